//! The help page with all keys, split into pages that fit the window.

use unicode_width::UnicodeWidthStr;

use crate::actions::{ACTIONS, PaneAction, PaneKeys};
use crate::layout::Area;

/// The lines without keys: the title, and empty lines around it and at the end.
pub(crate) const OTHER_LINES: u16 = 4;
/// Empty columns: at each side, between columns of keys, and between a key and its text.
pub(crate) const SIDE: u16 = 2;
pub(crate) const BETWEEN: u16 = 3;
pub(crate) const AFTER_KEY: u16 = 2;

/// The keys that are not configurable. They are listed after the other keys for workspaces.
const NUMBERS: (&str, &str) = ("1 … 9", "that workspace");

/// A page with as many keys as fit.
pub(crate) struct HelpPage {
    pub(crate) columns: Vec<HelpColumn>,
    /// The first key of the next page, if there is one.
    pub(crate) next: Option<usize>,
}

/// A column of keys and their texts.
pub(crate) struct HelpColumn {
    pub(crate) lines: Vec<(String, &'static str)>,
    pub(crate) keys_width: u16,
    pub(crate) width: u16,
}

impl HelpColumn {
    fn new(lines: &[(String, &'static str)]) -> Self {
        let widest =
            |widths: &mut dyn Iterator<Item = usize>| u16::try_from(widths.max().unwrap_or(0)).unwrap_or(0);
        let keys_width = widest(&mut lines.iter().map(|line| line.0.width()));
        let words_width = widest(&mut lines.iter().map(|line| line.1.width()));
        Self { lines: lines.to_vec(), keys_width, width: keys_width + AFTER_KEY + words_width }
    }
}

impl HelpPage {
    /// The page that begins with the key at index `first`.
    pub(crate) fn new(keys: &PaneKeys, room: Area, first: usize) -> Self {
        let lines: Vec<(String, &str)> = all_keys(keys).skip(first).collect();
        let most = usize::from(room.height.saturating_sub(OTHER_LINES).max(1));
        // As many columns as needed, but no more than fit.
        let count = lines.len().div_ceil(most);
        let divided = |count: usize| -> Vec<HelpColumn> {
            let height = lines.len().div_ceil(count.max(1)).clamp(1, most);
            lines.chunks(height).take(count).map(HelpColumn::new).collect()
        };
        let fits = |columns: &Vec<HelpColumn>| width_of(columns) <= room.width;
        let columns = (1..=count).rev().map(divided).find(fits).unwrap_or_else(|| divided(1));
        let shown: usize = columns.iter().map(|column| column.lines.len()).sum();
        Self { columns, next: (0 < shown && shown < lines.len()).then_some(first + shown) }
    }

    pub(crate) fn width(&self) -> u16 {
        width_of(&self.columns)
    }
}

/// All keys and their texts, in the order of the help.
fn all_keys(keys: &PaneKeys) -> impl Iterator<Item = (String, &'static str)> {
    ACTIONS.iter().flat_map(|words| {
        let numbers = words.action == PaneAction::PreviousWorkspace;
        let numbers = numbers.then(|| (NUMBERS.0.to_owned(), NUMBERS.1));
        std::iter::once((keys.keys_of(words.action), words.help)).chain(numbers)
    })
}

fn width_of(columns: &[HelpColumn]) -> u16 {
    let all: u16 = columns.iter().map(|column| column.width + BETWEEN).sum();
    all.saturating_sub(BETWEEN) + 2 * SIDE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_on_one_page_of_a_window_of_any_size() {
        let keys = PaneKeys::default();
        for (width, height) in [(1, 1), (10, 3), (40, 8), (40, 20), (80, 24), (250, 60)] {
            let (mut first, mut shown) = (Some(0), 0);
            while let Some(from) = first {
                assert_eq!(from, shown, "{width}x{height}");
                let page = HelpPage::new(&keys, Area::new(0, 0, width, height), from);
                shown += page.columns.iter().map(|column| column.lines.len()).sum::<usize>();
                first = page.next;
            }
            assert_eq!(shown, ACTIONS.len() + 1, "{width}x{height}");
        }
    }
}
