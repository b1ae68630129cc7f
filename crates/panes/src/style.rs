//! The style of a cell, and its escape sequence.

use std::fmt::Write;

/// A colour of a terminal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Colour {
    /// The default colour.
    #[default]
    Default,
    /// One of 256 colours.
    Indexed(u8),
    Rgb(u8, u8, u8),
}

/// The style of an underline.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Underline {
    #[default]
    None,
    Single,
    Double,
    Curly,
    Dotted,
    Dashed,
}

/// The style of a cell.
#[expect(clippy::struct_excessive_bools, reason = "as in a terminal, each can be set by itself")]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Style {
    pub(crate) foreground: Colour,
    pub(crate) background: Colour,
    pub(crate) underline_colour: Colour,
    pub(crate) underline: Underline,
    pub(crate) bold: bool,
    pub(crate) dim: bool,
    pub(crate) italic: bool,
    pub(crate) reverse: bool,
    pub(crate) hidden: bool,
    pub(crate) strike: bool,
}

/// The colours that a terminal supports.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ColourDepth {
    /// No colours.
    None,
    /// 16 colours.
    Sixteen,
    /// 256 colours.
    #[default]
    Indexed,
    /// True colour.
    Rgb,
}

impl Style {
    pub(crate) fn foreground(colour: Colour) -> Self {
        Self { foreground: colour, ..Self::default() }
    }

    pub(crate) fn bold(self) -> Self {
        Self { bold: true, ..self }
    }

    pub(crate) fn dim(self) -> Self {
        Self { dim: true, ..self }
    }

    pub(crate) fn reversed(self) -> Self {
        Self { reverse: !self.reverse, ..self }
    }

    /// Appends the sequence that sets this style. It resets the previous one.
    pub(crate) fn write(self, depth: ColourDepth, out: &mut String) {
        out.push_str("\x1b[0");
        let flags = [
            (self.bold, ";1"),
            (self.dim, ";2"),
            (self.italic, ";3"),
            (self.reverse, ";7"),
            (self.hidden, ";8"),
            (self.strike, ";9"),
        ];
        flags.iter().filter(|(is_set, _)| *is_set).for_each(|(_, code)| out.push_str(code));
        out.push_str(match self.underline {
            Underline::None => "",
            Underline::Single => ";4",
            Underline::Double => ";4:2",
            Underline::Curly => ";4:3",
            Underline::Dotted => ";4:4",
            Underline::Dashed => ";4:5",
        });
        write_colour(self.foreground.within(depth), ['3', '9'], "38;", out);
        write_colour(self.background.within(depth), ['4', '1'], "48;", out);
        match self.underline_colour.within(depth) {
            Colour::Default => {}
            // With colons, a terminal that does not support it ignores the whole parameter.
            Colour::Indexed(index) => _ = write!(out, ";58:5:{index}"),
            Colour::Rgb(red, green, blue) => _ = write!(out, ";58:2::{red}:{green}:{blue}"),
        }
        out.push('m');
    }
}

fn write_colour(colour: Colour, [plain, bright]: [char; 2], long: &str, out: &mut String) {
    // Writing to a string cannot fail.
    let _ = match colour {
        Colour::Default => Ok(()),
        Colour::Indexed(index @ 0..8) => write!(out, ";{plain}{index}"),
        Colour::Indexed(index @ 8..16) => {
            let hundreds = if bright == '1' { "10" } else { "9" };
            write!(out, ";{hundreds}{}", index - 8)
        }
        Colour::Indexed(index) => write!(out, ";{long}5;{index}"),
        Colour::Rgb(red, green, blue) => write!(out, ";{long}2;{red};{green};{blue}"),
    };
}

impl Colour {
    /// The nearest colour that the terminal supports.
    fn within(self, depth: ColourDepth) -> Self {
        match (self, depth) {
            (_, ColourDepth::None) => Self::Default,
            (Self::Rgb(red, green, blue), ColourDepth::Indexed) => Self::Indexed(cube(red, green, blue)),
            (Self::Rgb(red, green, blue), ColourDepth::Sixteen) => Self::Indexed(basic(red, green, blue)),
            (Self::Indexed(index @ 16..), ColourDepth::Sixteen) => {
                let (red, green, blue) = rgb_of(index);
                Self::Indexed(basic(red, green, blue))
            }
            (colour, _) => colour,
        }
    }
}

/// The levels of the 6 × 6 × 6 colour cube, which begins at index 16.
const STEPS: [u8; 6] = [0, 95, 135, 175, 215, 255];

fn nearest_step(value: u8) -> u8 {
    let distance = |step: &&u8| value.abs_diff(**step);
    let found = STEPS.iter().min_by_key(distance).copied().unwrap_or_default();
    STEPS
        .iter()
        .position(|step| *step == found)
        .and_then(|index| u8::try_from(index).ok())
        .unwrap_or_default()
}

fn cube(red: u8, green: u8, blue: u8) -> u8 {
    let is_grey = red.abs_diff(green) < 8 && green.abs_diff(blue) < 8 && red.abs_diff(blue) < 8;
    match red {
        8..=243 if is_grey => 232 + (red - 8) / 10,
        _ => 16 + 36 * nearest_step(red) + 6 * nearest_step(green) + nearest_step(blue),
    }
}

/// One of the 8 basic colours or its bright variant: each component is on or off.
fn basic(red: u8, green: u8, blue: u8) -> u8 {
    let most = red.max(green).max(blue);
    if most < 48 {
        return 0;
    }
    let is_on = |value: u8| u8::from(value > most / 2);
    let colour = is_on(red) | is_on(green) << 1 | is_on(blue) << 2;
    if most > 192 { colour + 8 } else { colour }
}

fn rgb_of(index: u8) -> (u8, u8, u8) {
    match index {
        232.. => {
            let grey = (index - 232) * 10 + 8;
            (grey, grey, grey)
        }
        16.. => {
            let step = |number: u8| STEPS[usize::from(number % 6)];
            let number = index - 16;
            (step(number / 36), step(number / 6), step(number))
        }
        _ => (0, 0, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sequence(style: Style, depth: ColourDepth) -> String {
        let mut out = String::new();
        style.write(depth, &mut out);
        out.replace('\x1b', "ESC")
    }

    #[test]
    fn a_style_is_one_sequence() {
        let style = Style {
            foreground: Colour::Rgb(1, 2, 3),
            background: Colour::Indexed(12),
            underline: Underline::Curly,
            ..Style::default()
        };
        assert_eq!(sequence(style.bold(), ColourDepth::Rgb), "ESC[0;1;4:3;38;2;1;2;3;104m");
        assert_eq!(sequence(Style::default(), ColourDepth::Rgb), "ESC[0m");
        assert_eq!(sequence(Style::foreground(Colour::Indexed(9)), ColourDepth::Sixteen), "ESC[0;91m");
        assert_eq!(sequence(style, ColourDepth::None), "ESC[0;4:3m");
    }

    #[test]
    fn a_colour_that_a_terminal_has_not_becomes_the_nearest() {
        assert_eq!(Colour::Rgb(255, 0, 0).within(ColourDepth::Indexed), Colour::Indexed(196));
        assert_eq!(Colour::Rgb(128, 128, 128).within(ColourDepth::Indexed), Colour::Indexed(244));
        assert_eq!(Colour::Rgb(255, 20, 20).within(ColourDepth::Sixteen), Colour::Indexed(9));
        assert_eq!(Colour::Indexed(196).within(ColourDepth::Sixteen), Colour::Indexed(9));
        assert_eq!(Colour::Indexed(3).within(ColourDepth::Sixteen), Colour::Indexed(3));
    }
}
