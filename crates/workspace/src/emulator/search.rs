//! Finds a text in what a program shows and what was scrolled away.

use alacritty_terminal::grid::Dimensions;
use alacritty_terminal::index::{Boundary, Direction, Point};
use alacritty_terminal::selection::{Selection, SelectionType};
use alacritty_terminal::term::search::RegexSearch;

use super::Emulator;

impl Emulator {
    /// Selects the next place of a text, upwards or downwards of what is selected, and scrolls to it. Gives whether there is one.
    pub(crate) fn find(&mut self, text: &str, is_upwards: bool) -> bool {
        let escaped: String = text.chars().flat_map(escape).collect();
        let Ok(mut search) = RegexSearch::new(&escaped) else { return false };
        let selected = self.term.selection.as_ref().and_then(|selection| selection.to_range(&self.term));
        let (direction, side) =
            if is_upwards { (Direction::Left, Direction::Left) } else { (Direction::Right, Direction::Left) };
        let last = Point::new(self.term.bottommost_line(), self.term.last_column());
        let origin = match (selected, is_upwards) {
            (Some(range), true) => range.start.sub(&self.term, Boundary::None, 1),
            (Some(range), false) => range.end.add(&self.term, Boundary::None, 1),
            (None, _) => last,
        };
        let Some(found) = self.term.search_next(&mut search, origin, direction, side, None) else {
            return false;
        };
        let mut selection = Selection::new(SelectionType::Simple, *found.start(), Direction::Left);
        selection.update(*found.end(), Direction::Right);
        self.term.selection = Some(selection);
        self.had_selection = true;
        self.term.scroll_to_point(*found.start());
        true
    }
}

/// A character as a part of a regular expression that finds it. `\<` and `\>` would be the ends of a word, and what is not ASCII
/// cannot be escaped.
fn escape(character: char) -> Vec<char> {
    let has_meaning = r"\.+*?()|[]{}^$#&-~".contains(character);
    if has_meaning { vec!['\\', character] } else { vec![character] }
}
