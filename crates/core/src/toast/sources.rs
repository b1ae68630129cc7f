//! The catalogue of sources. Each reports one condition and shows at most one toast about it.
//!
//! Sources differ only in the data of one table: the key, the priority, the time, the colour, and when an observation is worth
//! showing.

use std::collections::HashMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::toast::{Colour, DEFAULT_TOAST_TIMEOUT, Priority, Toast, ToastSpan};

/// The most subjects (servers, plugins, notes) that are remembered with the text they last showed. At the limit all are
/// forgotten; the worst effect is that a toast is shown once more.
const MAX_SUBJECTS: usize = 256;

/// When an observation is worth showing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ShowWhen {
    /// When its text differs from the last one shown.
    OnNewText,
    /// Once each time the condition begins.
    OnEntry,
    /// While the condition holds; removed when it ends.
    WhileActive,
    /// Always as an indicator, never as a toast.
    Inline,
}

/// One row of the catalogue.
#[derive(Debug, Clone, Copy)]
struct Row {
    name: &'static str,
    /// The toast's key; `{}` stands for the subject.
    key: &'static str,
    priority: Priority,
    timeout: Duration,
    colour: Colour,
    /// Priority, time and colour for an error, if they differ.
    on_error: Option<(Priority, Duration, Colour)>,
    show_when: ShowWhen,
    /// Checked once per session, and never in remote mode.
    start_up: bool,
    /// The heading of the notification that is sent as well, because a toast is missed if no terminal shows the footer.
    notification: Option<&'static str>,
}

const FIVE_SECONDS: Duration = Duration::from_secs(5);

const fn row(
    name: &'static str,
    key: &'static str,
    priority: Priority,
    colour: Colour,
    show_when: ShowWhen,
) -> Row {
    Row {
        name,
        key,
        priority,
        timeout: DEFAULT_TOAST_TIMEOUT,
        colour,
        on_error: None,
        show_when,
        start_up: false,
        notification: None,
    }
}

const fn at_start(mut row: Row) -> Row {
    row.start_up = true;
    row
}

const fn notifying(mut row: Row, title: &'static str) -> Row {
    row.notification = Some(title);
    row
}

const fn for_five_seconds(mut row: Row) -> Row {
    row.timeout = FIVE_SECONDS;
    row
}

const fn worse_on_error(mut row: Row, priority: Priority) -> Row {
    row.on_error = Some((priority, DEFAULT_TOAST_TIMEOUT, Error));
    row
}

use Colour::{Error, Plain, Success, Warning};
use Priority::{High, Immediate, Low, Medium};
use ShowWhen::{Inline, OnEntry, OnNewText, WhileActive};

/// The seventeen sources.
const CATALOGUE: [Row; 17] = [
    notifying(row("rate-limit-warning", "rate-limit-warning", High, Warning, OnNewText), "limit near"),
    notifying(row("limit-reached", "limit-reached", Immediate, Error, OnEntry), "limit reached"),
    notifying(row("model-deprecation", "model-deprecation-warning", High, Warning, OnNewText), "model"),
    row("language-server", "lsp-error-{}", Medium, Error, WhileActive),
    row("fast-mode", "fast-mode", High, Plain, OnEntry),
    at_start(row("auto-mode", "auto-mode-unavailable", High, Warning, OnEntry)),
    notifying(row("model-migration", "model-migration", High, Plain, OnNewText), "model"),
    at_start(row("npm-deprecation", "npm-deprecation", High, Warning, OnNewText)),
    row("plugin-update", "plugin-autoupdate", Low, Success, OnNewText),
    worse_on_error(row("plugin-install", "plugin-install-{}", Medium, Success, OnNewText), Medium),
    worse_on_error(row("mcp-connectivity", "mcp-connectivity", Medium, Plain, OnNewText), Medium),
    row("ide-status", "ide-status", Medium, Plain, Inline),
    at_start(row("install-notes", "install-msg-{}", Low, Plain, OnNewText)),
    row("teammate-shutdown", "teammate-shutdown", High, Error, OnNewText),
    row("settings", "settings-error-{}", High, Error, OnNewText),
    for_five_seconds(row("editor-hint", "external-editor-hint", Immediate, Plain, WhileActive)),
    worse_on_error(for_five_seconds(row("env-hook", "env-hook", Low, Plain, OnNewText)), Medium),
];

/// A condition that a source reports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observation {
    /// The name of the source.
    pub source: String,
    /// The server, plugin, note or agent, for sources that have several. Each has its own condition; the catalogue says
    /// whether it also has its own toast.
    #[serde(default)]
    pub subject: Option<String>,
    /// The text.
    #[serde(default)]
    pub text: String,
    /// True while the condition holds. The text of a condition that ended is not used.
    #[serde(default = "default_active")]
    pub active: bool,
    /// True if it is about a failure.
    #[serde(default)]
    pub error: bool,
    /// The session that checked the condition. A source that is checked at session start shows one toast in each session.
    #[serde(default)]
    pub session: Option<String>,
    /// True if that session runs for a person elsewhere. Conditions that are checked at session start are not shown then.
    #[serde(default)]
    pub remote: bool,
}

fn default_active() -> bool {
    true
}

impl Observation {
    /// Creates an observation of a condition that holds.
    pub fn new(source: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            source: source.into(),
            subject: None,
            text: text.into(),
            active: true,
            error: false,
            session: None,
            remote: false,
        }
    }
}

/// A change that follows from an observation.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToastChange {
    /// Show this toast.
    Add(Toast),
    /// Remove the toast with this key.
    Remove(String),
    /// Draw it inline; an empty text removes it.
    Indicator {
        /// The key of the indicator.
        key: String,
        /// The text.
        text: String,
    },
    /// Send the person this notification.
    Notify(SourceNotification),
}

/// A notification about a source's condition. A newer one of the same source replaces it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceNotification {
    /// The source.
    pub source: String,
    /// A heading.
    pub title: String,
    /// The text.
    pub text: String,
}

/// There is no source with this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown source {name:?} (known: {})", names().collect::<Vec<_>>().join(", "))]
pub struct UnknownSource {
    /// The given name.
    pub name: String,
}

/// The names of all sources.
pub fn names() -> impl Iterator<Item = &'static str> {
    CATALOGUE.iter().map(|row| row.name)
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct SourceState {
    active: bool,
    last_shown: Option<String>,
    /// The last notification, without its digits: a limit that comes nearer makes one notification, not one per percent.
    last_notified: Option<String>,
}

/// All sources, with the last text that each has shown.
///
/// ```
/// use ringer_core::toast::{ToastChange, Observation, Sources};
///
/// let mut sources = Sources::default();
/// let warning = Observation::new("rate-limit-warning", "80 % of this week's limit is used");
/// let changes = sources.observe(&warning)?;
/// assert!(matches!(&changes[0], ToastChange::Add(toast) if toast.key == "rate-limit-warning"));
/// assert!(matches!(&changes[1], ToastChange::Notify(sent) if sent.title == "limit near"));
/// assert!(sources.observe(&warning)?.is_empty(), "the same text again is not worth showing");
/// # Ok::<(), ringer_core::toast::UnknownSource>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Sources {
    seen: HashMap<Condition, SourceState>,
}

/// The key of remembered state: the source, the subject, and for start-up sources the session.
type Condition = (&'static str, Option<String>, Option<String>);

impl Sources {
    /// Handles an observation. Returns the resulting changes.
    pub fn observe(&mut self, observation: &Observation) -> Result<Vec<ToastChange>, UnknownSource> {
        let row = CATALOGUE
            .iter()
            .find(|row| row.name == observation.source)
            .ok_or_else(|| UnknownSource { name: observation.source.clone() })?;
        if observation.remote && row.start_up {
            return Ok(Vec::new());
        }
        if self.seen.len() >= MAX_SUBJECTS {
            self.seen.clear();
        }
        let subject = observation.subject.clone();
        let key = row.key.replace("{}", subject.as_deref().unwrap_or("0"));
        let session = observation.session.clone().filter(|_| row.start_up);
        let seen = self.seen.entry((row.name, subject, session)).or_default();
        let began = observation.active && !seen.active;
        let ended = !observation.active && seen.active;
        let differs = seen.last_shown.as_ref() != Some(&observation.text);
        seen.active = observation.active;
        // A start-up source shows at most one toast per session.
        let again = !row.start_up || seen.last_shown.is_none();
        let shows = again
            && match row.show_when {
                OnNewText => observation.active && differs,
                OnEntry => began,
                WhileActive => observation.active && (began || differs),
                Inline => began || ended || (observation.active && differs),
            };
        if ended {
            (seen.last_shown, seen.last_notified) = (None, None);
        }
        let words: String = observation.text.chars().filter(|c| !c.is_ascii_digit()).collect();
        // A failure was already shown as an error.
        let is_news = observation.active && !observation.error && seen.last_notified.as_ref() != Some(&words);
        let notification = row.notification.filter(|_| is_news).map(|title| {
            seen.last_notified = Some(words);
            let (source, text) = (row.name.to_owned(), observation.text.clone());
            ToastChange::Notify(SourceNotification { source, title: title.to_owned(), text })
        });
        if shows && observation.active {
            seen.last_shown = Some(observation.text.clone());
        }
        let mut changes = match row.show_when {
            Inline if shows => {
                let text = if observation.active { observation.text.clone() } else { String::new() };
                vec![ToastChange::Indicator { key, text }]
            }
            Inline => Vec::new(),
            WhileActive if ended => vec![ToastChange::Remove(key)],
            _ if shows => vec![ToastChange::Add(toast(row, key, observation))],
            _ => Vec::new(),
        };
        changes.extend(notification);
        Ok(changes)
    }
}

fn toast(row: &Row, key: String, observation: &Observation) -> Toast {
    let (priority, timeout, colour) =
        row.on_error.filter(|_| observation.error).unwrap_or((row.priority, row.timeout, row.colour));
    let mut toast = Toast::new(key, priority, "");
    toast.spans = vec![ToastSpan { text: observation.text.clone(), colour }];
    toast.timeout = timeout;
    // A newer text replaces the last one, even while that is still shown or queued.
    toast.fold = Some(|_, newer| newer.clone());
    toast
}

#[cfg(test)]
mod tests {
    use super::*;

    fn about(source: &str, subject: &str, text: &str) -> Observation {
        Observation { subject: Some(subject.to_owned()), ..Observation::new(source, text) }
    }

    fn ended(source: &str) -> Observation {
        Observation { active: false, ..Observation::new(source, "") }
    }

    /// The changes of toasts, as short words.
    fn words(sources: &mut Sources, observation: &Observation) -> Vec<String> {
        let changes = sources.observe(observation).unwrap().into_iter();
        changes
            .filter_map(|change| match change {
                ToastChange::Add(toast) => Some(format!("+{}", toast.key)),
                ToastChange::Remove(key) => Some(format!("-{key}")),
                ToastChange::Indicator { key, text } => Some(format!("={key}:{text}")),
                ToastChange::Notify(_) => None,
            })
            .collect()
    }

    /// Key, priority and time of every row of the catalogue, as documents list them.
    #[test]
    fn every_row_of_the_catalogue() {
        let check = |source: &str, key: &str, priority, seconds| {
            let changes = Sources::default().observe(&about(source, "x", "text")).unwrap();
            let Some(ToastChange::Add(toast)) = changes.first() else { panic!("{source}: {changes:?}") };
            assert_eq!(
                (toast.key.as_str(), toast.priority, toast.timeout.as_secs()),
                (key, priority, seconds)
            );
            assert_eq!(toast.text(), "text");
        };
        check("rate-limit-warning", "rate-limit-warning", High, 8);
        check("limit-reached", "limit-reached", Immediate, 8);
        check("model-deprecation", "model-deprecation-warning", High, 8);
        check("language-server", "lsp-error-x", Medium, 8);
        check("fast-mode", "fast-mode", High, 8);
        check("auto-mode", "auto-mode-unavailable", High, 8);
        check("model-migration", "model-migration", High, 8);
        check("npm-deprecation", "npm-deprecation", High, 8);
        check("plugin-update", "plugin-autoupdate", Low, 8);
        check("plugin-install", "plugin-install-x", Medium, 8);
        check("mcp-connectivity", "mcp-connectivity", Medium, 8);
        check("install-notes", "install-msg-x", Low, 8);
        check("teammate-shutdown", "teammate-shutdown", High, 8);
        check("settings", "settings-error-x", High, 8);
        check("editor-hint", "external-editor-hint", Immediate, 5);
        check("env-hook", "env-hook", Low, 5);
        assert_eq!(
            words(&mut Sources::default(), &Observation::new("ide-status", "VS Code")),
            ["=ide-status:VS Code"]
        );
        assert_eq!(names().count(), 17);
    }

    #[test]
    fn an_env_hook_that_fails_is_medium_for_eight_seconds() {
        let failed = Observation { error: true, ..Observation::new("env-hook", "direnv failed") };
        let changes = Sources::default().observe(&failed).unwrap();
        let [ToastChange::Add(toast)] = &changes[..] else { panic!("{changes:?}") };
        assert_eq!((toast.priority, toast.timeout.as_secs(), toast.spans[0].colour), (Medium, 8, Error));
    }

    #[test]
    fn a_text_is_shown_again_only_when_it_differs_from_the_last_one() {
        let mut sources = Sources::default();
        for (text, shown) in [("a", true), ("a", false), ("b", true), ("a", true)] {
            let shows = !words(&mut sources, &Observation::new("rate-limit-warning", text)).is_empty();
            assert_eq!(shows, shown, "{text}");
        }
    }

    #[test]
    fn limits_and_models_are_notifications_too_once_and_not_for_each_percent() {
        let mut sources = Sources::default();
        let mut sent = |observation: &Observation| -> Vec<String> {
            let changes = sources.observe(observation).unwrap().into_iter();
            changes
                .filter_map(|change| match change {
                    ToastChange::Notify(sent) => Some(format!("{}: {}", sent.title, sent.text)),
                    _ => None,
                })
                .collect()
        };
        let near = |percent: u8| Observation::new("rate-limit-warning", format!("{percent}% is used"));
        assert_eq!(sent(&near(80)), ["limit near: 80% is used"]);
        assert_eq!(sent(&near(80)), [""; 0]);
        assert_eq!(sent(&near(97)), [""; 0]);
        sent(&ended("rate-limit-warning"));
        assert_eq!(sent(&near(80)), ["limit near: 80% is used"], "the next week");
        assert_eq!(sent(&Observation::new("model-migration", "a became b")), ["model: a became b"]);
        assert_eq!(sent(&Observation::new("model-migration", "b became a")), ["model: b became a"]);
        let failed = Observation { error: true, ..Observation::new("limit-reached", "over") };
        assert_eq!(sent(&failed), [""; 0], "the turn that failed was told as an error");
        assert_eq!(sent(&Observation::new("fast-mode", "fast")), [""; 0]);
    }

    #[test]
    fn overage_is_shown_once_per_entry() {
        let mut sources = Sources::default();
        let reached = Observation::new("limit-reached", "using extra credits");
        assert_eq!(words(&mut sources, &reached), ["+limit-reached"]);
        assert!(words(&mut sources, &Observation::new("limit-reached", "another text")).is_empty());
        assert!(words(&mut sources, &ended("limit-reached")).is_empty());
        assert_eq!(words(&mut sources, &reached), ["+limit-reached"]);
    }

    #[test]
    fn the_editor_hint_goes_when_its_condition_does() {
        let mut sources = Sources::default();
        let hint = Observation::new("editor-hint", "ctrl-g opens your editor");
        assert!(words(&mut sources, &ended("editor-hint")).is_empty(), "it never was there");
        assert_eq!(words(&mut sources, &hint), ["+external-editor-hint"]);
        assert!(words(&mut sources, &hint).is_empty());
        assert_eq!(words(&mut sources, &ended("editor-hint")), ["-external-editor-hint"]);
        assert_eq!(words(&mut sources, &hint), ["+external-editor-hint"]);
    }

    #[test]
    fn each_language_server_has_its_own_toast() {
        let mut sources = Sources::default();
        assert_eq!(words(&mut sources, &about("language-server", "rust", "crashed")), ["+lsp-error-rust"]);
        assert!(
            words(&mut sources, &about("language-server", "rust", "crashed")).is_empty(),
            "looked at again"
        );
        assert_eq!(words(&mut sources, &about("language-server", "go", "crashed")), ["+lsp-error-go"]);
    }

    #[test]
    fn each_agent_has_its_own_conditions_and_all_share_a_toast() {
        let mut sources = Sources::default();
        let fast = |agent: &str| about("fast-mode", agent, &format!("{agent} is in fast mode"));
        assert_eq!(words(&mut sources, &fast("claude-1")), ["+fast-mode"]);
        assert_eq!(words(&mut sources, &fast("claude-2")), ["+fast-mode"]);
        assert!(words(&mut sources, &fast("claude-1")).is_empty(), "it is still so");
        let over = Observation { active: false, ..fast("claude-1") };
        assert!(words(&mut sources, &over).is_empty());
        assert!(words(&mut sources, &fast("claude-2")).is_empty(), "that was another agent");
        assert_eq!(words(&mut sources, &fast("claude-1")), ["+fast-mode"]);
    }

    #[test]
    fn the_ide_is_an_indicator_and_never_a_toast() {
        let mut sources = Sources::default();
        assert_eq!(
            words(&mut sources, &Observation::new("ide-status", "connected")),
            ["=ide-status:connected"]
        );
        assert!(words(&mut sources, &Observation::new("ide-status", "connected")).is_empty());
        assert_eq!(words(&mut sources, &ended("ide-status")), ["=ide-status:"]);
    }

    #[test]
    fn a_start_up_source_shows_once_and_never_in_remote_mode() {
        let mut sources = Sources::default();
        assert_eq!(words(&mut sources, &about("install-notes", "a", "new in 2")), ["+install-msg-a"]);
        assert!(words(&mut sources, &about("install-notes", "a", "another")).is_empty());
        let of = |session: &str, remote: bool, text: &str| Observation {
            session: Some(session.to_owned()),
            remote,
            ..about("install-notes", "a", text)
        };
        assert_eq!(words(&mut sources, &of("one", false, "new in 2")).len(), 1, "a session of its own");
        assert!(words(&mut sources, &of("one", false, "new in 3")).is_empty());
        assert!(words(&mut sources, &of("two", true, "new in 2")).is_empty());
        let fast = Observation { remote: true, ..Observation::new("fast-mode", "on") };
        assert_eq!(words(&mut sources, &fast), ["+fast-mode"]);
    }

    #[test]
    fn the_error_for_an_unknown_source_lists_the_known_ones() {
        let error = Sources::default().observe(&Observation::new("weather", "rain")).unwrap_err();
        assert!(error.to_string().contains("env-hook"), "{error}");
    }

    #[test]
    fn memory_is_bounded() {
        let mut sources = Sources::default();
        for number in 0..10_000 {
            words(&mut sources, &about("plugin-install", &number.to_string(), "installed"));
        }
        assert!(sources.seen.len() <= MAX_SUBJECTS);
    }
}
