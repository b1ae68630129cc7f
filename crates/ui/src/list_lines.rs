//! Which line of the screen shows what of the list.

use crate::row_list::RowList;
use crate::rows::{Row, RowKey, Section};

/// One line of the list.
pub(crate) enum ListLine<'a> {
    Blank,
    Heading(Section, String),
    Row(&'a Row),
    /// The second line of a row, where the screen is narrow.
    Detail(&'a Row),
}

/// All lines of the list, from the second line of the screen on.
pub(crate) fn planned_lines(list: &RowList) -> Vec<ListLine<'_>> {
    let (shares, first) = list.shares();
    let mut lines = Vec::new();
    for (index, section) in Section::ALL.into_iter().enumerate() {
        let rows = list.rows().section(section);
        let shown = shares.rows[index];
        if shown == 0 {
            continue;
        }
        if shares.spaced && !lines.is_empty() {
            lines.push(ListLine::Blank);
        }
        let from = first[index];
        let count = list.rows().count(section);
        let position =
            if shown < count { format!("{}–{} of {count}", from + 1, from + shown) } else { String::new() };
        lines.push(ListLine::Heading(section, position));
        for row in rows.iter().skip(from).take(shown) {
            lines.push(ListLine::Row(row));
            if list.row_lines() > 1 {
                lines.push(ListLine::Detail(row));
            }
        }
    }
    lines
}

/// The row on a line of the screen.
pub(crate) fn row_at(list: &RowList, line: u16) -> Option<RowKey> {
    let index = usize::from(line).checked_sub(1)?;
    match planned_lines(list).get(index)? {
        ListLine::Row(row) | ListLine::Detail(row) => Some(row.key.clone()),
        ListLine::Blank | ListLine::Heading(..) => None,
    }
}
