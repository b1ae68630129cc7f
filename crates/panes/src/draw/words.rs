//! Signs and words for the state of a pane, and truncation of texts.

use ringer_core::message::ShownKind;
use ringer_ui::{kind_sign, state_sign};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::pane::Pane;
use crate::style::Colour;

/// The sign for the state of a pane, its word and its colour.
pub(super) fn sign_of(pane: &Pane) -> (&'static str, &'static str, Colour) {
    if pane.failure.is_some() {
        return ("✗", "cannot be started", Colour::Indexed(1));
    }
    let (sign, word) = match (&pane.ending, &pane.agent) {
        (Some(ending), _) if ending.is_success() => ("✓", "finished"),
        (Some(_), _) => ("✗", "ended"),
        (None, Some(agent)) => state_sign(&agent.state, pane.ring.kind),
        (None, None) if pane.ring.is_lit => match pane.ring.kind {
            None | Some(ShownKind::Status | ShownKind::Idle) => ("●", "unread"),
            Some(kind) => kind_sign(kind),
        },
        (None, None) => (" ", ""),
    };
    (sign, word, colour_of(sign))
}

fn colour_of(sign: &str) -> Colour {
    match sign {
        "!" => Colour::Indexed(3),
        "?" | "●" => Colour::Indexed(4),
        "✗" => Colour::Indexed(1),
        "⏲" => Colour::Indexed(5),
        "✓" => Colour::Indexed(2),
        _ => Colour::Default,
    }
}

/// The width of a text in columns.
pub(super) fn columns(text: &str) -> u16 {
    u16::try_from(text.width()).unwrap_or(u16::MAX)
}

/// Returns the end of a text that fits into a number of columns.
pub(super) fn end_of(text: &str, columns: u16) -> String {
    let columns = usize::from(columns);
    let mut width = text.width();
    let is_too_long = |char: &char| {
        let is_too_long = width > columns;
        width -= char.width().unwrap_or(0).min(width);
        is_too_long
    };
    text.chars().skip_while(is_too_long).collect()
}

/// Truncates a text to a number of columns, with `…` at the end if it was cut.
pub(super) fn cut(text: &str, columns: u16) -> String {
    let columns = usize::from(columns);
    if text.width() <= columns {
        return text.to_owned();
    }
    let mut width = 0;
    let fits = |char: &char| {
        width += char.width().unwrap_or(0);
        width < columns
    };
    let mut kept: String = text.chars().take_while(fits).collect();
    if columns > 0 {
        kept.push('…');
    }
    kept
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::time::Instant;

    use super::*;
    use crate::emulator::Size;
    use crate::layout::PaneId;
    use crate::pane::Ring;

    #[test]
    fn a_pane_without_an_agent_shows_what_it_rings_for() {
        let mut pane =
            Pane::new(PaneId::new("x"), PathBuf::from("/"), Size::at_least(40, 10), Instant::now());
        let mut sign = |is_lit, kind| {
            pane.set_ring(Ring { is_lit, unread: 1, kind });
            let (sign, word, _) = sign_of(&pane);
            (sign, word)
        };
        assert_eq!(sign(true, Some(ShownKind::Error)), ("✗", "error"));
        assert_eq!(sign(true, Some(ShownKind::Permission)), ("!", "permission"));
        assert_eq!(sign(true, Some(ShownKind::Question)), ("?", "question"));
        assert_eq!(sign(true, Some(ShownKind::Complete)), ("✓", "done"));
        assert_eq!(sign(true, Some(ShownKind::Status)), ("●", "unread"));
        assert_eq!(sign(false, None), (" ", ""));
    }
}
