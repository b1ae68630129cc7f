//! Renders the coloured text of a terminal as SVG.

use std::fmt::Write as _;

/// The size of a character cell in SVG units.
const CHARACTER: (f64, f64) = (8.4, 18.0);
const MARGIN: f64 = 14.0;
const BACKGROUND: &str = "#1e2127";
const FOREGROUND: &str = "#c8ccd4";
/// The 8 terminal colours and their bright variants.
const COLOURS: [&str; 16] = [
    "#3f4451", "#e06c75", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#c8ccd4", "#5c6370",
    "#e06c75", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#ffffff",
];

#[derive(Clone, Copy, Default, PartialEq)]
struct Style {
    colour: Option<usize>,
    bold: bool,
    dim: bool,
    reverse: bool,
}

impl Style {
    fn apply(&mut self, codes: &str) {
        let mut codes = codes.split(';').map(|code| code.parse().unwrap_or(0));
        while let Some(code) = codes.next() {
            match code {
                0 => *self = Self::default(),
                1 => self.bold = true,
                2 => self.dim = true,
                7 => self.reverse = true,
                22 => (self.bold, self.dim) = (false, false),
                27 => self.reverse = false,
                // One of 256 colours: `38;5;3`.
                38 => self.colour = codes.nth(1),
                39 => self.colour = None,
                code @ 30..=37 => self.colour = Some(code - 30),
                code @ 90..=97 => self.colour = Some(code - 82),
                _ => {}
            }
        }
    }
}

/// Renders a screen from the output of `tmux capture-pane -e`.
pub(super) fn of_screen(screen: &str, columns: usize) -> String {
    let lines: Vec<&str> = screen.lines().collect();
    let (width, height) = CHARACTER;
    let total_width = number(columns) * width + 2.0 * MARGIN;
    let total_height = number(lines.len()) * height + 2.0 * MARGIN;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{total_width:.0}\" height=\"{total_height:.0}\" \
         viewBox=\"0 0 {total_width:.0} {total_height:.0}\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"{BACKGROUND}\"/>\n\
         <g font-family=\"ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace\" font-size=\"14\" xml:space=\"preserve\">\n"
    );
    let mut style = Style::default();
    for (row, line) in lines.iter().enumerate() {
        let mut column = 0;
        for (text, style) in pieces(line, &mut style) {
            let x = MARGIN + number(column) * width;
            let y = MARGIN + number(row) * height;
            column += text.chars().count();
            push_piece(&mut svg, &text, style, x, y);
        }
    }
    svg.push_str("</g>\n</svg>\n");
    svg
}

fn push_piece(svg: &mut String, text: &str, style: Style, x: f64, y: f64) {
    let (width, height) = CHARACTER;
    let takes = number(text.chars().count()) * width;
    let colour = style.colour.and_then(|index| COLOURS.get(index)).copied().unwrap_or(FOREGROUND);
    let (front, back) = if style.reverse { (BACKGROUND, Some(colour)) } else { (colour, None) };
    if let Some(back) = back {
        // Writing into a String cannot fail.
        let _ = writeln!(
            svg,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{takes:.1}\" height=\"{height}\" fill=\"{back}\"/>"
        );
    }
    if text.trim().is_empty() {
        return;
    }
    let weight = if style.bold { " font-weight=\"bold\"" } else { "" };
    let opacity = if style.dim && !style.reverse { " opacity=\"0.6\"" } else { "" };
    let escaped = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    // The length is explicit, because the reader's font may be wider.
    let _ = writeln!(
        svg,
        "<text x=\"{x:.1}\" y=\"{:.1}\" textLength=\"{takes:.1}\" fill=\"{front}\"{weight}{opacity}>{escaped}</text>",
        y + height * 0.75
    );
}

/// Splits a line into pieces of the same style.
fn pieces(line: &str, style: &mut Style) -> Vec<(String, Style)> {
    let mut pieces = Vec::new();
    let mut rest = line;
    while !rest.is_empty() {
        let (text, after) =
            rest.split_once("\x1b[").map_or((rest, None), |(text, after)| (text, Some(after)));
        if !text.is_empty() {
            pieces.push((text.to_owned(), *style));
        }
        let Some(after) = after else { break };
        let Some((codes, after)) = after.split_once('m') else { break };
        style.apply(codes);
        rest = after;
    }
    pieces
}

fn number(count: usize) -> f64 {
    u32::try_from(count).map_or(0.0, f64::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_become_pieces() {
        let mut style = Style::default();
        let pieces = pieces("a\x1b[1;33m!\x1b[0m<b>", &mut style);
        let texts: Vec<&str> = pieces.iter().map(|(text, _)| text.as_str()).collect();
        assert_eq!(texts, ["a", "!", "<b>"]);
        assert!(pieces[1].1.bold && pieces[1].1.colour == Some(3) && style == Style::default());
        let svg = of_screen("a\x1b[7m&\x1b[0m", 10);
        assert!(svg.contains("&amp;") && svg.contains("<rect x=\"22.4\""), "{svg}");
    }
}
