//! The signs: they carry the meaning, the colour repeats it, the word confirms it.

use ringer_core::message::ShownKind;

use crate::theme::Role;

/// A sign, with its word and colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sign {
    pub(crate) unicode: &'static str,
    pub(crate) ascii: &'static str,
    pub(crate) word: &'static str,
    pub(crate) role: Role,
}

const fn sign(unicode: &'static str, ascii: &'static str, word: &'static str, role: Role) -> Sign {
    Sign { unicode, ascii, word, role }
}

/// The sign of a notification.
pub(crate) fn of_kind(kind: ShownKind) -> Sign {
    match kind {
        ShownKind::Permission => sign("!", "!", "permission", Role::Permission),
        ShownKind::Waiting => sign("!", "!", "waiting", Role::Permission),
        ShownKind::Question => sign("?", "?", "question", Role::Question),
        ShownKind::Error => sign("✗", "x", "error", Role::Error),
        ShownKind::Stuck => sign("⏲", "~", "stuck", Role::Stuck),
        ShownKind::Complete => sign("✓", "+", "done", Role::Done),
        ShownKind::Idle => sign("·", ".", "idle", Role::Dim),
        ShownKind::Status => sign("·", ".", "status", Role::Dim),
    }
}

/// The word for the state of an agent: `needs permission`, `working`.
pub fn state_word(state: &str, waits_for: Option<ShownKind>) -> &'static str {
    of_state(state, waits_for).word
}

/// The sign of a notification, and its word: `✗` and `error`.
pub fn kind_sign(kind: ShownKind) -> (&'static str, &'static str) {
    let sign = of_kind(kind);
    (sign.unicode, sign.word)
}

/// The sign of an agent in a state, and its word: `!` and `needs permission`.
pub fn state_sign(state: &str, waits_for: Option<ShownKind>) -> (&'static str, &'static str) {
    let sign = of_state(state, waits_for);
    (sign.unicode, sign.word)
}

/// The sign of an agent in a state. What a blocked one waits for is told by its open notification.
pub(crate) fn of_state(state: &str, waits_for: Option<ShownKind>) -> Sign {
    match (state, waits_for) {
        ("blocked", Some(ShownKind::Question)) => sign("?", "?", "asks", Role::Question),
        ("blocked", Some(ShownKind::Permission)) => sign("!", "!", "needs permission", Role::Permission),
        ("blocked", _) => sign("!", "!", "waits for you", Role::Permission),
        ("error", _) => sign("✗", "x", "error", Role::Error),
        ("stuck", _) => sign("⏲", "~", "stuck", Role::Stuck),
        ("rate_limited", _) => sign("⏲", "~", "waits for limit", Role::Stuck),
        ("working", _) => sign("◐", "*", "working", Role::Plain),
        ("compacting", _) => sign("◐", "*", "compacting", Role::Plain),
        ("starting", _) => sign("·", ".", "starting", Role::Dim),
        ("done", _) => sign("✓", "+", "done", Role::Done),
        ("exited", _) => sign("○", "o", "ended", Role::Dim),
        _ => sign("·", ".", "idle", Role::Dim),
    }
}
