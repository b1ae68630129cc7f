//! Colours and signs. The sign carries the meaning, the colour repeats it, the word confirms it.

use ratatui::style::{Color, Modifier, Style};
use ringer_core::message::ShownKind;

/// The meaning of a piece of text. The theme maps it to a style.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Role {
    Plain,
    Dim,
    Heading,
    Key,
    Border,
    Permission,
    Question,
    Error,
    Stuck,
    Done,
    Warning,
}

/// A set of colours.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Palette {
    /// The terminal's own 16 colours, which suit its background.
    #[default]
    Terminal,
    /// Colours for a dark background.
    Dark,
    /// Colours for a light background.
    Light,
    /// No colours.
    None,
}

/// The names of the palettes in the settings.
const PALETTES: [(&str, Palette); 4] = [
    ("terminal", Palette::Terminal),
    ("dark", Palette::Dark),
    ("light", Palette::Light),
    ("none", Palette::None),
];

impl Palette {
    /// Returns the palette with a name. The error lists all names.
    pub fn named(name: &str) -> Result<Self, String> {
        let found = PALETTES.iter().find(|(known, _)| *known == name);
        found
            .map(|(_, palette)| *palette)
            .ok_or_else(|| format!("unknown theme {name:?} (known: {})", Self::names().join(", ")))
    }

    /// Returns the names of all palettes.
    pub fn names() -> Vec<&'static str> {
        PALETTES.iter().map(|(name, _)| *name).collect()
    }
}

/// The colours and signs of the UI.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Theme {
    /// The set of colours.
    pub palette: Palette,
    /// True to use only ASCII signs.
    pub ascii: bool,
}

impl Theme {
    pub(crate) fn style(self, role: Role) -> Style {
        let style = match self.colour(role) {
            Some(colour) => Style::new().fg(colour),
            None => Style::new(),
        };
        match role {
            Role::Permission | Role::Question | Role::Heading | Role::Key => {
                style.add_modifier(Modifier::BOLD)
            }
            // The dark and light palettes use a grey instead, because black cannot be dimmed.
            Role::Dim | Role::Border if style.fg.is_none() => style.add_modifier(Modifier::DIM),
            _ => style,
        }
    }

    fn colour(self, role: Role) -> Option<Color> {
        let rgb = |number: u32| Some(Color::from_u32(number));
        let (terminal, dark, light) = match role {
            Role::Plain | Role::Heading | Role::Key => return None,
            Role::Dim | Role::Border if self.palette == Palette::Terminal => return None,
            Role::Dim | Role::Border => (Color::Reset, 0x0092_98a3, 0x006b_7280),
            Role::Permission | Role::Warning => (Color::Yellow, 0x00e5_c07b, 0x0098_6801),
            Role::Question => (Color::Blue, 0x0061_afef, 0x0040_78f2),
            Role::Error => (Color::Red, 0x00e0_6c75, 0x00ca_1243),
            Role::Stuck => (Color::Magenta, 0x00c6_78dd, 0x00a6_26a4),
            Role::Done => (Color::Green, 0x0098_c379, 0x0050_a14f),
        };
        match self.palette {
            Palette::Terminal => Some(terminal),
            Palette::Dark => rgb(dark),
            Palette::Light => rgb(light),
            Palette::None => None,
        }
    }

    /// Returns the style of the selected row: one bar, without the colours of its parts.
    pub(crate) fn selected() -> Style {
        Style::new().fg(Color::Reset).add_modifier(Modifier::REVERSED).remove_modifier(Modifier::DIM)
    }

    /// Returns the mark of an unread row.
    pub(crate) fn unread_mark(self) -> &'static str {
        if self.ascii { "*" } else { "●" }
    }
}

/// A sign, with its word and role.
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

/// Returns the sign of a notification.
pub(crate) fn sign_of_kind(kind: ShownKind) -> Sign {
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

/// Returns the word for the state of an agent: `needs permission`, `working`.
pub fn state_word(state: &str, waits_for: Option<ShownKind>) -> &'static str {
    sign_of_state(state, waits_for).word
}

/// Returns the sign and the word of a notification: `✗` and `error`.
pub fn kind_sign(kind: ShownKind) -> (&'static str, &'static str) {
    let sign = sign_of_kind(kind);
    (sign.unicode, sign.word)
}

/// Returns the sign and the word for the state of an agent: `!` and `needs permission`.
pub fn state_sign(state: &str, waits_for: Option<ShownKind>) -> (&'static str, &'static str) {
    let sign = sign_of_state(state, waits_for);
    (sign.unicode, sign.word)
}

/// Returns the sign for the state of an agent. The kind of its open notification tells what a blocked agent waits for.
pub(crate) fn sign_of_state(state: &str, waits_for: Option<ShownKind>) -> Sign {
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
