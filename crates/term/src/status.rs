//! Program status, OSC 7501: a program reports its state.
//!
//! Claude Code sends it only to a terminal that answered its query; Codex sends it unasked.

use crate::base64;
use crate::encode::{Terminator, osc};
use crate::sanitise::{cut_bytes, sanitise_block, sanitise_line};

/// The longest status that is read, in bytes.
pub const MAX_STATUS: usize = 4096;

/// The state that a program reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StatusState {
    /// Waiting for input.
    Idle,
    /// In a turn.
    Working,
    /// The turn ended.
    Done,
    /// Needs a person; [`ProgramStatus::kind`] says for what.
    Blocked,
    /// Failed.
    Error,
    /// The program withdraws its status, usually because it exits.
    Clear,
}

const STATES: [(&str, StatusState); 6] = [
    ("idle", StatusState::Idle),
    ("working", StatusState::Working),
    ("done", StatusState::Done),
    ("blocked", StatusState::Blocked),
    ("error", StatusState::Error),
    ("clear", StatusState::Clear),
];

impl StatusState {
    /// The word used in the protocol.
    pub fn as_str(self) -> &'static str {
        name_of(&STATES, self)
    }
}

/// The need of a blocked program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BlockedKind {
    /// A permission.
    Permission,
    /// An answer.
    Question,
    /// A login.
    Auth,
}

const KINDS: [(&str, BlockedKind); 3] = [
    ("permission", BlockedKind::Permission),
    ("question", BlockedKind::Question),
    ("auth", BlockedKind::Auth),
];

impl BlockedKind {
    /// The word used in the protocol.
    pub fn as_str(self) -> &'static str {
        name_of(&KINDS, self)
    }
}

fn name_of<T: Copy + PartialEq>(names: &[(&'static str, T)], value: T) -> &'static str {
    names.iter().find(|(_, own)| *own == value).map_or("", |(name, _)| name)
}

fn value_of<T: Copy>(names: &[(&str, T)], name: &str) -> Option<T> {
    names.iter().find(|(own, _)| *own == name).map(|(_, value)| *value)
}

/// A program's status.
///
/// ```
/// use ringer_term::{ProgramStatus, StatusState, Terminator};
///
/// let status = ProgramStatus { app: Some("codex".to_owned()), ..ProgramStatus::new(StatusState::Done) };
/// assert_eq!(status.encode(Terminator::St), "\x1b]7501;state=done:app=codex\x1b\\");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramStatus {
    /// The state.
    pub state: StatusState,
    /// The need of the program, if it is blocked.
    pub kind: Option<BlockedKind>,
    /// The name of the program.
    pub app: Option<String>,
    /// The id of one of several sessions in one terminal.
    pub id: Option<String>,
    /// The progress, in percent.
    pub progress: Option<u8>,
    /// The task.
    pub title: Option<String>,
    /// The question, the error, the result.
    pub message: Option<String>,
}

impl ProgramStatus {
    /// Creates a status with only the state.
    pub fn new(state: StatusState) -> Self {
        Self { state, kind: None, app: None, id: None, progress: None, title: None, message: None }
    }

    /// The query whether the terminal supports program status. A positive answer has exactly the same bytes.
    pub fn query(terminator: Terminator) -> String {
        osc("7501;?", terminator)
    }

    /// Returns the sequence that reports this status. Words are reduced to harmless characters, texts are base64, and a
    /// message that would make the sequence too long is shortened.
    pub fn encode(&self, terminator: Terminator) -> String {
        let word = |text: &str| -> String {
            text.chars().filter(|c| c.is_ascii_alphanumeric() || "_+.-".contains(*c)).take(64).collect()
        };
        let text = |text: &str, most: usize| base64::encode(cut_bytes(text, most).as_bytes());
        let mut keys = vec![format!("state={}", self.state.as_str())];
        keys.extend(self.app.as_deref().map(|app| format!("app={}", word(app))));
        keys.extend(self.id.as_deref().map(|id| format!("id={}", word(id))));
        keys.extend(self.kind.map(|kind| format!("kind={}", kind.as_str())));
        keys.extend(self.progress.map(|percent| format!("progress={}", percent.min(100))));
        keys.extend(self.title.as_deref().map(|title| format!("title={}", text(&sanitise_line(title), 768))));
        keys.extend(
            self.message.as_deref().map(|message| format!("msg={}", text(&sanitise_block(message), 1536))),
        );
        osc(&format!("7501;{}", keys.join(":")), terminator)
    }

    /// Parses the text after `7501;`. Unknown keys and kinds are ignored; an unknown state is not a status.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        if text.len() > MAX_STATUS {
            return None;
        }
        let pairs: Vec<(&str, &str)> = text
            .split(':')
            .filter_map(|pair| pair.split_once('='))
            .map(|(k, v)| (k.trim(), v.trim()))
            .collect();
        let get = |key: &str| pairs.iter().find(|(own, _)| *own == key).map(|(_, value)| *value);
        let decoded = |key: &str| {
            let bytes = base64::decode(get(key)?.as_bytes())?;
            Some(String::from_utf8_lossy(&bytes).into_owned())
        };
        Some(Self {
            state: value_of(&STATES, get("state")?)?,
            kind: get("kind").and_then(|kind| value_of(&KINDS, kind)),
            app: get("app").map(str::to_owned),
            id: get("id").map(str::to_owned),
            progress: get("progress")
                .and_then(|percent| percent.parse().ok())
                .map(|percent: u8| percent.min(100)),
            title: decoded("title"),
            message: decoded("msg"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_of_real_clients() {
        let status = ProgramStatus::parse(
            "state=blocked:app=claude-code:kind=question:msg=YW5zd2VyOiBXaGljaD8gKEEgwrcgQik=",
        )
        .unwrap();
        assert_eq!(status.state, StatusState::Blocked);
        assert_eq!(status.kind, Some(BlockedKind::Question));
        assert_eq!(status.app.as_deref(), Some("claude-code"));
        assert_eq!(status.message.as_deref(), Some("answer: Which? (A · B)"));
        assert_eq!(ProgramStatus::parse("state=clear"), Some(ProgramStatus::new(StatusState::Clear)));
    }

    #[test]
    fn invalid_statuses() {
        assert_eq!(ProgramStatus::parse("state=dancing"), None);
        assert_eq!(ProgramStatus::parse("app=codex"), None);
        assert_eq!(ProgramStatus::parse(&format!("state=idle:x={}", "x".repeat(MAX_STATUS))), None);
        let odd = ProgramStatus::parse("state=idle:kind=magic:progress=x:msg=!:new=1").unwrap();
        assert_eq!(odd, ProgramStatus::new(StatusState::Idle));
    }

    #[test]
    fn both_directions() {
        for (name, state) in STATES {
            let status = ProgramStatus {
                kind: Some(BlockedKind::Auth),
                app: Some("a".into()),
                id: Some("s-1".into()),
                progress: Some(40),
                title: Some("títle; with: all=".into()),
                message: Some("two\nlines".into()),
                ..ProgramStatus::new(state)
            };
            let encoded = status.encode(Terminator::Bel);
            let payload = encoded.strip_prefix("\x1b]7501;").unwrap().strip_suffix('\x07').unwrap();
            assert_eq!(ProgramStatus::parse(payload), Some(status), "{name}");
        }
    }

    #[test]
    fn hostile_fields_stay_inside() {
        let status = ProgramStatus {
            app: Some("a;b:c=\x1b]0;x\x07".into()),
            message: Some("語".repeat(4_000)),
            ..ProgramStatus::new(StatusState::Done)
        };
        let encoded = status.encode(Terminator::Bel);
        assert!(encoded.starts_with("\x1b]7501;state=done:app=abc0x:msg="), "{encoded:?}");
        assert!(encoded.len() < MAX_STATUS);
    }
}
