//! Which rows of which section are on the screen.

use crate::rows::Section;

/// How many rows of each section are shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Shares {
    /// Rows, by section.
    pub(crate) rows: [usize; 3],
    /// Whether a blank line stands between two sections.
    pub(crate) spaced: bool,
}

/// What the section with the selection has at least, as far as it has rows.
const SELECTED_ROWS: usize = 3;

impl Shares {
    /// Divides the lines. What needs the person comes first, then the agents; recent ones give way.
    pub(crate) fn of(lines: usize, counts: [usize; 3], row_lines: usize, selected: Option<Section>) -> Self {
        let shown = counts.iter().filter(|count| **count > 0).count();
        let spaced = lines >= 16;
        let headings = shown + if spaced { shown.saturating_sub(1) } else { 0 };
        let mut free = lines.saturating_sub(headings) / row_lines.max(1);
        let mut rows = [0; 3];
        let selected = selected.and_then(|section| Section::ALL.iter().position(|one| *one == section));
        // First what each must have, then the rest from top to bottom.
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

/// The first row that is shown: the old one, moved as little as is needed to show the selected one and to leave no line empty.
pub(crate) fn first_shown(old: usize, selected: Option<usize>, shown: usize, count: usize) -> usize {
    let first = match selected {
        Some(selected) if selected < old => selected,
        Some(selected) if selected >= old + shown => (selected + 1).saturating_sub(shown),
        _ => old,
    };
    first.min(count.saturating_sub(shown))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_needs_the_person_comes_first_and_recent_ones_give_way() {
        let rows = |lines, counts| Shares::of(lines, counts, 1, None).rows;
        assert_eq!(rows(20, [2, 6, 3]), [2, 6, 3]);
        assert_eq!(rows(12, [2, 6, 9]), [2, 6, 1]);
        assert_eq!(rows(12, [2, 60, 9]), [2, 6, 1]);
        assert_eq!(rows(12, [30, 60, 9]), [7, 1, 1]);
        assert_eq!(Shares::of(12, [30, 60, 9], 1, Some(Section::Recent)).rows, [5, 1, 3]);
    }

    proptest! {
        #[test]
        fn the_lines_are_enough_and_none_is_wasted(
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
        fn the_selected_row_is_shown(old in 0_usize..50, count in 1_usize..50, shown in 1_usize..20, at in 0_usize..50) {
            let selected = at.min(count - 1);
            let first = first_shown(old, Some(selected), shown, count);
            prop_assert!(first <= selected && selected < first + shown);
        }
    }
}
