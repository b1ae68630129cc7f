//! Converts cells of the emulator to cells of a screen.

use alacritty_terminal::term::cell::{Cell as GridCell, Flags};
use alacritty_terminal::term::color::Colors;
use alacritty_terminal::vte::ansi::{Color, NamedColor, Rgb};

use crate::screen::Cell;
use crate::style::{Colour, Style, Underline};

/// The longest link, in bytes. Longer ones become plain text.
const MAX_LINK: usize = 2083;

/// Converts a cell.
pub(super) fn cell(cell: &GridCell, colours: &Colors) -> Cell {
    let flags = cell.flags;
    let is_second = flags.intersects(Flags::WIDE_CHAR_SPACER);
    let underline = match flags.intersection(Flags::ALL_UNDERLINES) {
        Flags::UNDERLINE => Underline::Single,
        Flags::DOUBLE_UNDERLINE => Underline::Double,
        Flags::UNDERCURL => Underline::Curly,
        Flags::DOTTED_UNDERLINE => Underline::Dotted,
        Flags::DASHED_UNDERLINE => Underline::Dashed,
        _ => Underline::None,
    };
    let (foreground, is_dim) = colour(cell.fg, colours);
    let style = Style {
        foreground,
        background: colour(cell.bg, colours).0,
        underline_colour: cell.underline_color().map_or(Colour::Default, |own| colour(own, colours).0),
        underline,
        bold: flags.contains(Flags::BOLD),
        dim: flags.contains(Flags::DIM) || is_dim,
        italic: flags.contains(Flags::ITALIC),
        reverse: flags.contains(Flags::INVERSE),
        hidden: flags.contains(Flags::HIDDEN),
        strike: flags.contains(Flags::STRIKEOUT),
    };
    Cell {
        // The emulator stores a tab in its first cell.
        character: (!is_second).then_some(if cell.c < ' ' { ' ' } else { cell.c }),
        marks: cell.zerowidth().filter(|marks| !marks.is_empty()).map(Into::into),
        style,
        link: cell.hyperlink().filter(|link| link.uri().len() <= MAX_LINK && link.id().len() <= MAX_LINK),
    }
}

/// Converts a colour. Returns true for a dim colour.
fn colour(colour: Color, colours: &Colors) -> (Colour, bool) {
    let set = |index: usize| colours[index].map(|Rgb { r, g, b }| Colour::Rgb(r, g, b));
    match colour {
        Color::Spec(Rgb { r, g, b }) => (Colour::Rgb(r, g, b), false),
        Color::Indexed(index) => (set(usize::from(index)).unwrap_or(Colour::Indexed(index)), false),
        Color::Named(named) => {
            let number = named as usize;
            let dim = NamedColor::DimBlack as usize..=NamedColor::DimWhite as usize;
            let is_dim = dim.contains(&number) || named == NamedColor::DimForeground;
            let index = if dim.contains(&number) { number - NamedColor::DimBlack as usize } else { number };
            let plain = u8::try_from(index).map_or(Colour::Default, Colour::Indexed);
            (set(number).unwrap_or(plain), is_dim)
        }
    }
}
