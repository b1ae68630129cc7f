//! Selects the visible rows of the sidebar, which may have fewer lines than there are workspaces and panes.

use crate::layout::PaneId;
use crate::workspace::Workspace;

/// A workspace or a pane in the sidebar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Row {
    /// A workspace, by its index.
    Workspace {
        at: usize,
    },
    Pane {
        pane: PaneId,
        workspace: usize,
    },
}

/// A line of the sidebar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SidebarLine {
    Row(Row),
    /// Stands for hidden rows above.
    Above(Vec<Row>),
    /// Stands for hidden rows below.
    Below(Vec<Row>),
}

impl SidebarLine {
    /// The row that a click leads to: its own, or the nearest hidden one.
    pub(crate) fn target(&self) -> Option<&Row> {
        match self {
            Self::Row(row) => Some(row),
            Self::Above(rows) => rows.last(),
            Self::Below(rows) => rows.first(),
        }
    }
}

/// The visible part of the sidebar. It always contains the workspace that is shown and its focused pane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SidebarPage {
    pub(crate) lines: Vec<SidebarLine>,
    /// The first row of the visible range. The next page scrolls as little as possible.
    pub(crate) first: usize,
}

/// A range of visible rows. The workspace of the focused pane is also visible if it is before the range.
#[derive(Debug, Clone, Copy)]
struct Part {
    first: usize,
    end: usize,
    /// The number of hidden rows before the range.
    above: usize,
}

impl SidebarPage {
    /// Selects the rows for a number of lines. `before` is the first row of the previous page.
    pub(crate) fn new(workspaces: &[Workspace], shown: &str, lines: u16, before: usize) -> Self {
        let (rows, lines) = (rows(workspaces), usize::from(lines));
        if rows.len() <= lines {
            return Self { lines: rows.into_iter().map(SidebarLine::Row).collect(), first: 0 };
        }
        let at = workspaces.iter().position(|own| own.id == shown).unwrap_or(0);
        let focused = workspaces.get(at).and_then(Workspace::focused);
        let is_focused = |row: &Row| matches!(row, Row::Pane { pane, .. } if Some(pane) == focused);
        let heading = rows.iter().position(|row| *row == Row::Workspace { at }).unwrap_or(0);
        let current = rows.iter().position(is_focused).unwrap_or(heading);
        let parts = (0..rows.len()).filter_map(|first| Part::new(first, heading, rows.len(), lines));
        let shows_current = |part: &Part| current == heading || (part.first..part.end).contains(&current);
        let Some(part) = parts.filter(shows_current).min_by_key(|part| part.first.abs_diff(before)) else {
            // With less than four lines, there is only the pane, and the workspace above it if there is room.
            let mut seen = vec![heading, current];
            seen.dedup();
            let seen = seen.split_off(seen.len().saturating_sub(lines));
            let lines = seen.into_iter().map(|row| SidebarLine::Row(rows[row].clone())).collect();
            return Self { lines, first: current };
        };
        let mut lines = Vec::with_capacity(lines);
        if part.above > 0 {
            let above = (0..part.first).filter(|row| *row != heading);
            lines.push(SidebarLine::Above(above.map(|row| rows[row].clone()).collect()));
        }
        lines.extend((heading < part.first).then(|| SidebarLine::Row(rows[heading].clone())));
        lines.extend(rows[part.first..part.end].iter().cloned().map(SidebarLine::Row));
        if part.end < rows.len() {
            lines.push(SidebarLine::Below(rows[part.end..].to_vec()));
        }
        Self { lines, first: part.first }
    }
}

impl Part {
    /// The range from `first` on that fills the lines. There are more rows than lines.
    fn new(first: usize, heading: usize, rows: usize, lines: usize) -> Option<Self> {
        let has_heading = heading < first;
        let above = first - usize::from(has_heading);
        let room = lines.checked_sub(usize::from(has_heading) + usize::from(above > 0))?;
        let end = if first + room == rows { rows } else { first + room.checked_sub(1)? };
        // A line that stands for only one hidden row could show that row.
        (end > first && end <= rows && first + room <= rows && above != 1).then_some(Self {
            first,
            end,
            above,
        })
    }
}

/// All workspaces, each with its panes, in a stable order.
fn rows(workspaces: &[Workspace]) -> Vec<Row> {
    let workspaces = workspaces.iter().enumerate();
    workspaces
        .flat_map(|(at, workspace)| {
            let panes = workspace.panes().into_iter().map(move |pane| Row::Pane { pane, workspace: at });
            std::iter::once(Row::Workspace { at }).chain(panes)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::layout::SplitDirection;

    /// Workspaces with these numbers of panes. The first pane of each is focused.
    fn workspaces(panes: &[usize]) -> Vec<Workspace> {
        let workspace = |(at, count): (usize, &usize)| {
            let mut workspace = Workspace::new(at.to_string(), at.to_string());
            for number in 0..*count {
                workspace.add_behind(PaneId::new(&format!("{at}.{number}")), None, SplitDirection::Right);
            }
            workspace
        };
        panes.iter().enumerate().map(workspace).collect()
    }

    fn hidden(line: &SidebarLine) -> usize {
        match line {
            SidebarLine::Row(_) => 0,
            SidebarLine::Above(rows) | SidebarLine::Below(rows) => rows.len(),
        }
    }

    proptest! {
        #[test]
        fn the_pane_that_has_the_keys_is_seen_with_its_workspace_and_each_row_counts_once(
            panes in prop::collection::vec(1..9_usize, 1..9),
            moves in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0..30_u16), 1..9),
        ) {
            let mut workspaces = workspaces(&panes);
            let all = rows(&workspaces);
            let mut before = 0;
            for (workspace, pane, lines) in moves {
                let at = workspace.index(workspaces.len());
                let panes = workspaces[at].panes();
                let focused = panes[pane.index(panes.len())].clone();
                workspaces[at].focus(&focused);
                let page = SidebarPage::new(&workspaces, &at.to_string(), lines, before);
                before = page.first;
                let heading = SidebarLine::Row(Row::Workspace { at });
                let current = SidebarLine::Row(Row::Pane { pane: focused, workspace: at });
                prop_assert!(lines < 1 || page.lines.contains(&current), "{page:?}");
                prop_assert!(lines < 2 || page.lines.contains(&heading), "{page:?}");
                prop_assert!(page.lines.len() <= usize::from(lines));
                if lines > 3 {
                    prop_assert_eq!(page.lines.len(), all.len().min(usize::from(lines)), "{:?}", page);
                    let seen = page.lines.iter().filter(|line| matches!(line, SidebarLine::Row(_))).count();
                    prop_assert_eq!(seen + page.lines.iter().map(hidden).sum::<usize>(), all.len());
                    prop_assert!(page.lines.iter().all(|line| hidden(line) != 1), "{page:?}");
                }
                let again = SidebarPage::new(&workspaces, &at.to_string(), lines, before);
                prop_assert_eq!(page, again, "it does not move by itself");
            }
        }
    }

    #[test]
    fn it_moves_no_more_than_it_has_to() {
        let workspaces = workspaces(&[3; 10]);
        let first =
            |shown: usize, before| SidebarPage::new(&workspaces, &shown.to_string(), 12, before).first;
        assert_eq!((first(0, 0), first(2, 0)), (0, 0));
        let moved = first(5, 0);
        assert_eq!((first(4, moved), first(5, moved)), (moved, moved), "what is seen stays where it is");
        assert!(first(2, moved) < moved);
    }
}
