//! Queries the terminal itself: which program it is, and whether it supports OSC 99.
//!
//! The caller writes [`Probe::query_bytes`] to a terminal in raw mode and feeds the reply, until [`Probe::feed`] returns true
//! or the caller's deadline has passed. Only for one's own terminal: the answer arrives as input, so a query through another
//! program's terminal would type into that program.

use crate::identity::TerminalIdentity;
use crate::multiplexer::{Multiplexer, wrap};
use crate::osc99::NotificationId;

/// The longest answer; further bytes are dropped. No terminal's answer is this long.
const MAX_REPLY: usize = 8 * 1024;

/// A query to the terminal, and the answer so far.
#[derive(Debug)]
pub struct Probe {
    id: NotificationId,
    received: Vec<u8>,
    /// The name in the terminal's XTVERSION reply.
    pub name: Option<String>,
    /// The program and version behind that name.
    pub identity: TerminalIdentity,
    /// True if it answered the OSC 99 query.
    pub osc99: bool,
    /// True if it answered DA1, which every terminal answers last.
    pub complete: bool,
}

impl Probe {
    /// Creates a probe whose OSC 99 query has this id.
    pub fn new(id: NotificationId) -> Self {
        Self {
            id,
            received: Vec::new(),
            name: None,
            identity: TerminalIdentity::default(),
            osc99: false,
            complete: false,
        }
    }

    /// The bytes to write: XTVERSION, the OSC 99 query, and then DA1, which every terminal answers last. The first two are
    /// meant for the terminal around any multiplexers, so they are wrapped.
    pub fn query_bytes(&self, layers: &[Multiplexer]) -> Vec<u8> {
        let asked = format!("\x1b[>q\x1b]99;i={}:p=?;\x1b\\", self.id);
        [wrap(asked.as_bytes(), layers).as_slice(), b"\x1b[c"].concat()
    }

    /// Reads bytes from the terminal. Returns true once the terminal has answered everything that it will.
    pub fn feed(&mut self, bytes: &[u8]) -> bool {
        let room = MAX_REPLY.saturating_sub(self.received.len());
        self.received.extend_from_slice(&bytes[..bytes.len().min(room)]);
        let text = String::from_utf8_lossy(&self.received).into_owned();
        if let Some(name) = between(&text, "\x1bP>|", &["\x1b\\"]) {
            self.identity = TerminalIdentity::from_xtversion(name);
            self.name = Some(name.to_owned());
        }
        self.osc99 |=
            between(&text, "\x1b]99;", &["\x1b\\", "\x07"]).is_some_and(|reply| self.is_support(reply));
        self.complete |= between(&text, "\x1b[?", &["c"])
            .is_some_and(|attributes| attributes.bytes().all(|byte| byte.is_ascii_digit() || byte == b';'));
        self.complete
    }

    /// kitty and foot answer `i=ID:p=?;KEYS`, Konsole puts the keys before the `;`, VS Code puts `p=?` after it: any answer
    /// with our id and `p=?` means yes.
    fn is_support(&self, reply: &str) -> bool {
        let pairs: Vec<(&str, &str)> =
            reply.split([';', ':']).filter_map(|pair| pair.split_once('=')).collect();
        pairs.contains(&("i", self.id.as_str())) && pairs.contains(&("p", "?"))
    }
}

fn between<'a>(text: &'a str, start: &str, ends: &[&str]) -> Option<&'a str> {
    let rest = text.split_once(start)?.1;
    let end = ends.iter().filter_map(|end| rest.find(end)).min()?;
    Some(&rest[..end])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::TerminalProgram;

    fn probe() -> Probe {
        Probe::new(NotificationId::new("q1").unwrap())
    }

    #[test]
    fn da1_is_queried_last_and_never_wrapped() {
        assert_eq!(probe().query_bytes(&[]), b"\x1b[>q\x1b]99;i=q1:p=?;\x1b\\\x1b[c");
        assert!(probe().query_bytes(&[Multiplexer::Tmux]).ends_with(b"\x1b\\\x1b[c"));
    }

    #[test]
    fn three_dialects_mean_yes() {
        for reply in [
            "\x1b]99;i=q1:p=?;a=focus,report:o=always,unfocused,invisible:u=0,1,2:p=title,body,?\x1b\\",
            "\x1b]99;i=q1:p=?:a=focus:o=always;\x07",
            "\x1b]99;i=q1;p=?:a=focus,report\x1b\\",
        ] {
            let mut probe = probe();
            assert!(!probe.feed(reply.as_bytes()));
            assert!(probe.osc99, "{reply:?}");
            assert!(probe.feed(b"\x1b[?62;22c"));
        }
        let mut other = probe();
        other.feed(b"\x1b]99;i=other:p=?;a=focus\x1b\\\x1b[?1;2c");
        assert!(other.complete && !other.osc99);
    }

    #[test]
    fn replies_may_come_byte_by_byte() {
        let mut probe = probe();
        let reply = b"\x1bP>|kitty(0.48.2)\x1b\\\x1b]99;i=q1:p=?;a=focus\x1b\\\x1b[?62;c";
        let done: Vec<bool> = reply.iter().map(|byte| probe.feed(&[*byte])).collect();
        assert_eq!(done.iter().filter(|done| **done).count(), 1);
        assert_eq!((probe.identity.program, probe.osc99), (TerminalProgram::Kitty, true));
        assert_eq!(probe.name.as_deref(), Some("kitty(0.48.2)"));
    }

    #[test]
    fn a_flood_is_not_buffered() {
        let mut probe = probe();
        for _ in 0..100 {
            probe.feed(&[b'x'; 1024]);
        }
        assert!(probe.received.len() <= MAX_REPLY && !probe.complete);
    }
}
