//! The list of the inbox: the selection, scrolling, the layout of rows on the screen, and what an action on a row does.

use ringer_core::message::ShownKind;

use crate::backend::{Agent, Data, Notification, Request};
use crate::keys::Action;
use crate::rows::{Row, RowKey, Rows, Section};
use crate::view::{Menu, SilenceTarget};

/// The list of the inbox, with its selection and scroll positions.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct RowList {
    rows: Rows,
    selected: Option<RowKey>,
    /// The first visible row of each section.
    first: [usize; 3],
    lines: usize,
    row_lines: usize,
}

impl RowList {
    pub(crate) fn rows(&self) -> &Rows {
        &self.rows
    }

    pub(crate) fn selected(&self) -> Option<&RowKey> {
        self.selected.as_ref()
    }

    pub(crate) fn selected_row(&self) -> Option<&Row> {
        self.rows.find(self.selected.as_ref()?)
    }

    /// Returns the number of lines per row.
    pub(crate) fn row_lines(&self) -> usize {
        self.row_lines
    }

    /// Returns how the lines are divided, and the first visible row of each section.
    pub(crate) fn shares(&self) -> (Shares, [usize; 3]) {
        let section = self.selected.as_ref().map(|key| key.section);
        (Shares::of(self.lines, self.rows.counts(), self.row_lines, section), self.first)
    }

    pub(crate) fn resize(&mut self, lines: usize, row_lines: usize) {
        (self.lines, self.row_lines) = (lines, row_lines);
        self.scroll_to_selected();
    }

    pub(crate) fn refresh(&mut self, data: &Data, filter: &str, now_ms: i64) {
        let old = std::mem::replace(&mut self.rows, Rows::of(data, filter, now_ms));
        let is_there = self.selected.as_ref().is_some_and(|key| self.rows.find(key).is_some());
        if !is_there {
            // Selects the row that has taken its place, so that the selection does not jump.
            let index = self.selected.as_ref().and_then(|key| old.all().position(|row| row.key == *key));
            self.select_at(index.unwrap_or(0));
        }
        self.scroll_to_selected();
    }

    fn scroll_to_selected(&mut self) {
        let (shares, _) = self.shares();
        for (index, section) in Section::ALL.into_iter().enumerate() {
            let rows = self.rows.section(section);
            let selected = rows.iter().position(|row| Some(&row.key) == self.selected.as_ref());
            self.first[index] = first_shown(self.first[index], selected, shares.rows[index], rows.len());
        }
    }

    pub(crate) fn select(&mut self, key: RowKey) {
        self.selected = Some(key);
        self.scroll_to_selected();
    }

    /// Selects the row at an index, or the last row.
    pub(crate) fn select_at(&mut self, index: usize) {
        let rows: Vec<&Row> = self.rows.all().collect();
        self.selected = rows.get(index).or(rows.last()).map(|row| row.key.clone());
        self.scroll_to_selected();
    }

    fn position(&self) -> Option<usize> {
        let selected = self.selected.as_ref()?;
        self.rows.all().position(|row| row.key == *selected)
    }

    pub(crate) fn move_by(&mut self, step: isize) {
        let at = self.position().unwrap_or(0);
        self.select_at(at.saturating_add_signed(step));
    }

    pub(crate) fn move_section(&mut self, step: isize) {
        let shown: Vec<Section> =
            Section::ALL.into_iter().filter(|section| !self.rows.section(*section).is_empty()).collect();
        let own = self.selected.as_ref().map(|key| key.section);
        let at = shown.iter().position(|section| Some(*section) == own).unwrap_or(0);
        let next = shown.get(at.saturating_add_signed(step)).or(shown.last());
        if let Some(row) = next.and_then(|section| self.rows.section(*section).first()) {
            self.select(row.key.clone());
        }
    }

    pub(crate) fn select_next_unread(&mut self) {
        let at = self.position().map_or(0, |at| at + 1);
        let rows: Vec<&Row> = self.rows.all().collect();
        let (before, after) = rows.split_at(at.min(rows.len()));
        if let Some(key) = after.iter().chain(before).find(|row| row.is_unread).map(|row| row.key.clone()) {
            self.select(key);
        }
    }
}

/// The number of visible rows of each section.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Shares {
    pub(crate) rows: [usize; 3],
    /// True if a blank line separates sections.
    pub(crate) spaced: bool,
}

/// Minimum number of visible rows in the section with the selection, unless it has fewer.
const SELECTED_ROWS: usize = 3;

impl Shares {
    /// Divides the lines among the sections. Notifications that need the person come first, then agents, then recent ones.
    pub(crate) fn of(lines: usize, counts: [usize; 3], row_lines: usize, selected: Option<Section>) -> Self {
        let shown = counts.iter().filter(|count| **count > 0).count();
        let spaced = lines >= 16;
        let headings = shown + if spaced { shown.saturating_sub(1) } else { 0 };
        let mut free = lines.saturating_sub(headings) / row_lines.max(1);
        let mut rows = [0; 3];
        let selected = selected.and_then(|section| Section::ALL.iter().position(|one| *one == section));
        // Each section gets its minimum first; the rest is given out from top to bottom.
        let at_least = |index: usize| match index {
            index if Some(index) == selected => SELECTED_ROWS,
            _ => 1,
        };
        let in_order = selected.into_iter().chain((0..3).filter(|index| Some(*index) != selected));
        for index in in_order {
            let given = at_least(index).min(counts[index]).min(free);
            rows[index] = given;
            free -= given;
        }
        for (given, count) in rows.iter_mut().zip(counts) {
            let more = (count - *given).min(free);
            *given += more;
            free -= more;
        }
        Self { rows, spaced }
    }
}

/// Returns the first visible row: the old one, moved as little as possible so that the selected row is visible and no line stays
/// empty.
pub(crate) fn first_shown(old: usize, selected: Option<usize>, shown: usize, count: usize) -> usize {
    let first = match selected {
        Some(selected) if selected < old => selected,
        Some(selected) if selected >= old + shown => (selected + 1).saturating_sub(shown),
        _ => old,
    };
    first.min(count.saturating_sub(shown))
}

/// One line of the list.
pub(crate) enum ListLine<'a> {
    Blank,
    Heading(Section, String),
    Row(&'a Row),
    /// The second line of a row, on a narrow screen.
    Detail(&'a Row),
}

/// Returns all lines of the list. The first of them is the second line of the screen.
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

/// Returns the row on a line of the screen.
pub(crate) fn row_at(list: &RowList, line: u16) -> Option<RowKey> {
    let index = usize::from(line).checked_sub(1)?;
    match planned_lines(list).get(index)? {
        ListLine::Row(row) | ListLine::Detail(row) => Some(row.key.clone()),
        ListLine::Blank | ListLine::Heading(..) => None,
    }
}

/// The effect of an action on a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RowEffect {
    Request(Request),
    Menu(Menu),
    /// Show the page of this agent.
    Page(String),
    /// The action is not possible, for this reason.
    Refused(&'static str),
    Nothing,
}

/// Returns the effect of an action on a row.
pub(crate) fn row_effect(action: Action, row: &Row, data: &Data) -> RowEffect {
    let agent = agent_of(row, data);
    match action {
        Action::Show => {
            let unknown = RowEffect::Refused("It is not known which agent this is from.");
            return agent.map_or(unknown, |agent| RowEffect::Page(agent.id.clone()));
        }
        // Senders are muted, not agents: an agent with a name sends under that name.
        Action::Mute => {
            let sender = agent.map(|agent| &agent.sender);
            let sender = sender.or_else(|| notification_of(row, data).map(|one| &one.from));
            return sender.map_or(RowEffect::Nothing, |sender| {
                RowEffect::Menu(Menu::new(SilenceTarget::Mute { agent: sender.clone() }, &row.label))
            });
        }
        _ => {}
    }
    let id = if row.key.section == Section::Agents {
        // An open notification can also be handled on the row of its agent.
        let open = agent.and_then(|agent| data.needs_you.iter().find(|one| one.from == agent.sender));
        match (open, action, agent.and_then(|agent| agent.surface.clone())) {
            (Some(open), _, _) => open.id.clone(),
            (None, Action::GoThere, Some(surface)) => {
                return RowEffect::Request(Request::GoToSurface { surface });
            }
            (None, Action::GoThere, None) => {
                return RowEffect::Refused("It is not known where this agent runs.");
            }
            (None, _, _) => return RowEffect::Refused("This agent has nothing open."),
        }
    } else {
        row.key.id.clone()
    };
    let request = match action {
        Action::GoThere => Request::GoTo { id },
        Action::Answer => {
            let asks =
                |kind| matches!(kind, ShownKind::Permission | ShownKind::Question | ShownKind::Waiting);
            if !data.needs_you.iter().any(|one| one.id == id && asks(one.kind)) {
                return RowEffect::Refused("This asks nothing.");
            }
            Request::Prompt { id }
        }
        Action::Snooze => return RowEffect::Menu(Menu::new(SilenceTarget::Snooze { id }, &row.label)),
        Action::Read => Request::Read { id },
        Action::Unread => Request::Unread { id },
        Action::Remove => Request::Remove { id },
        Action::Why => Request::Why { id },
        _ => return RowEffect::Nothing,
    };
    RowEffect::Request(request)
}

/// Returns the agent of a row: the agent itself, or the sender of the notification.
fn agent_of<'a>(row: &Row, data: &'a Data) -> Option<&'a Agent> {
    if row.key.section == Section::Agents {
        return data.agents.iter().find(|agent| agent.id == row.key.id);
    }
    let from = &notification_of(row, data)?.from;
    data.agents.iter().find(|agent| agent.sender == *from)
}

fn notification_of<'a>(row: &Row, data: &'a Data) -> Option<&'a Notification> {
    data.needs_you.iter().chain(&data.recent).find(|one| one.id == row.key.id)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn rows_that_need_the_person_get_lines_before_recent_ones() {
        let rows = |lines, counts| Shares::of(lines, counts, 1, None).rows;
        assert_eq!(rows(20, [2, 6, 3]), [2, 6, 3]);
        assert_eq!(rows(12, [2, 6, 9]), [2, 6, 1]);
        assert_eq!(rows(12, [2, 60, 9]), [2, 6, 1]);
        assert_eq!(rows(12, [30, 60, 9]), [7, 1, 1]);
        assert_eq!(Shares::of(12, [30, 60, 9], 1, Some(Section::Recent)).rows, [5, 1, 3]);
    }

    proptest! {
        #[test]
        fn all_lines_are_used_and_none_overflows(
            lines in 0_usize..70, counts in [0_usize..200, 0_usize..200, 0_usize..200], row_lines in 1_usize..3, selected in 0_usize..4
        ) {
            let selected = Section::ALL.get(selected).copied();
            let shares = Shares::of(lines, counts, row_lines, selected);
            let shown = counts.iter().filter(|count| **count > 0).count();
            let headings = shown + if shares.spaced { shown.saturating_sub(1) } else { 0 };
            let used: usize = shares.rows.iter().sum::<usize>() * row_lines;
            prop_assert!(used == 0 || used + headings <= lines);
            let all_shown = shares.rows == counts;
            prop_assert!(all_shown || used + headings + row_lines > lines, "{shares:?}");
            for (rows, count) in shares.rows.iter().zip(counts) {
                prop_assert!(*rows <= count);
            }
        }

        #[test]
        fn the_selected_row_is_visible(old in 0_usize..50, count in 1_usize..50, shown in 1_usize..20, at in 0_usize..50) {
            let selected = at.min(count - 1);
            let first = first_shown(old, Some(selected), shown, count);
            prop_assert!(first <= selected && selected < first + shown);
        }
    }
}
