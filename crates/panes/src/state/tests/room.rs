//! Windows without room for all panes of a workspace, and panes that are opened where most room is.

use super::*;
use crate::layout::SplitDirection;

/// Shells in one workspace of a window of this size. The last one is focused.
fn shells(columns: u16, lines: u16, count: usize) -> (Session, Vec<PaneId>) {
    let mut session = Session::new();
    session.attach(1, columns, lines);
    for _ in 1..count {
        session.prefix(1, "|");
    }
    let panes = session.state.workspaces()[0].panes();
    (session, panes)
}

fn title(session: &Session, client: u64) -> String {
    session.drawn(client).text().lines().next().unwrap_or_default().to_owned()
}

#[test]
fn the_pane_that_has_the_keys_is_seen_alone_where_there_is_no_room_for_all() {
    let (mut session, panes) = shells(40, 10, 5);
    let whole = Area::new(0, 0, 40, 8);
    assert_eq!(session.areas(1), [(panes[4].clone(), whole)]);
    assert!(title(&session, 1).ends_with(" 5 of 5 ─┐"), "{}", title(&session, 1));
    for (keys, at) in [("\t", 0), ("l", 1), ("\x1b[C", 2), ("o", 3), ("h", 2), ("\x1b[D", 1)] {
        session.prefix(1, keys);
        assert_eq!(session.areas(1), [(panes[at].clone(), whole)], "{keys:?}");
        assert!(title(&session, 1).contains(&format!(" {} of 5 ", at + 1)), "{}", title(&session, 1));
    }
    session.output(&panes[1], "hello");
    assert!(session.drawn(1).text().contains("hello"), "what is typed into is seen");
    session.ring(&panes[3]);
    session.prefix(1, "n");
    assert_eq!(session.areas(1), [(panes[3].clone(), whole)]);
    assert!(panes.iter().all(|pane| session.size(pane) == (38, 6)), "each has the size in which it is seen");
}

#[test]
fn all_panes_are_seen_again_in_a_larger_window() {
    let (mut session, panes) = shells(250, 60, 5);
    let before = session.areas(1);
    assert_eq!(before.len(), 5);
    for (columns, lines) in [(40, 10), (10, 3), (3, 3), (2, 2), (1, 1), (0, 0), (71, 8), (250, 4)] {
        session.state.resize(ClientId(1), columns, lines, session.now);
        session.prefix(1, "L");
        let seen = session.areas(1);
        assert_eq!(seen.iter().map(|(pane, _)| pane).collect::<Vec<_>>(), [&panes[4]], "{columns}x{lines}");
        session.mouse(1, 0, (columns / 2, lines / 2), 'M');
        assert_eq!(session.focused(1), panes[4]);
        session.drawn(1);
    }
    session.state.resize(ClientId(1), 250, 60, session.now);
    assert_eq!(session.areas(1), before, "the layout is as it was");
    assert!(!title(&session, 1).contains(" of 5"), "{}", title(&session, 1));
}

#[test]
fn each_window_shows_as_many_panes_as_it_has_room_for() {
    let (mut session, panes) = shells(250, 60, 4);
    session.attach(2, 40, 10);
    assert_eq!((session.areas(1).len(), session.areas(2).len()), (4, 1));
    session.input(1, "a");
    assert!(session.size(&panes[0]).0 > 38, "the sizes are those of the window that was used last");
    session.prefix(2, "h");
    assert_eq!(session.areas(2), [(panes[2].clone(), Area::new(0, 0, 40, 8))]);
    assert_eq!((session.areas(1).len(), session.focused(1)), (4, panes[2].clone()));
    // A click into the only visible pane goes to it, wherever the others would be.
    session.mouse(2, 0, (2, 2), 'M');
    assert_eq!(session.focused(2), panes[2]);
}

#[test]
fn one_pane_has_what_there_is_and_says_no_number() {
    let (session, panes) = shells(8, 4, 1);
    assert_eq!(session.areas(1), [(panes[0].clone(), Area::new(0, 0, 8, 4))]);
    let (session, _) = shells(40, 10, 1);
    assert!(!title(&session, 1).contains("1 of 1"), "{}", title(&session, 1));
}

#[test]
fn what_cannot_be_done_without_room_for_all_panes_is_said() {
    let (mut session, _) = shells(40, 10, 5);
    for keys in ["z", "H"] {
        session.prefix(1, keys);
        assert!(session.footer(1).contains("no room for all panes"), "{}", session.footer(1));
        session.wait(5000);
    }
    session.state.resize(ClientId(1), 250, 60, session.now);
    assert_eq!(session.areas(1).len(), 5);
    session.prefix(1, "z");
    assert!(title(&session, 1).contains(" 5 of 5 "), "{}", title(&session, 1));
    session.state.resize(ClientId(1), 40, 10, session.now);
    session.prefix(1, "z");
    session.state.resize(ClientId(1), 250, 60, session.now);
    assert_eq!(session.areas(1).len(), 5, "one that is zoomed is not, then");
}

/// Opens panes as `ringer open --detached` does.
fn open_behind(session: &mut Session, count: usize) -> Vec<PaneId> {
    (0..count).map(|_| session.open_as(OpenRequest::default())).collect()
}

#[test]
fn what_a_script_opens_leaves_the_pane_that_the_person_types_into_as_it_is() {
    let mut session = Session::new();
    session.attach(1, 120, 40);
    let own = session.focused(1);
    open_behind(&mut session, 1);
    let half = session.area(1, &own);
    assert_eq!(half, Area::new(16, 0, 52, 38));
    open_behind(&mut session, 11);
    assert_eq!((session.area(1, &own), session.focused(1)), (half, own.clone()));
    assert_eq!(session.areas(1).len(), 13, "all are seen");
    let smallest = session.areas(1).into_iter().map(|(_, area)| area.cell_count()).min().unwrap();
    let largest = session.areas(1)[1..].iter().map(|(_, area)| area.cell_count()).max().unwrap();
    assert!(largest < 3 * smallest, "{smallest} {largest}");
}

#[test]
fn what_a_script_opens_without_room_for_it_shares_the_room_of_a_larger_window() {
    let mut session = Session::new();
    session.attach(1, 80, 24);
    let own = session.focused(1);
    open_behind(&mut session, 60);
    assert_eq!(session.areas(1).len(), 1);
    session.state.resize(ClientId(1), 250, 60, session.now);
    assert_eq!(session.areas(1).len(), 61);
    assert_eq!(session.area(1, &own).width, 117, "it is still half");
    let others = || session.areas(1).into_iter().map(|(_, area)| area).filter(|area| area.width < 117);
    let (smallest, largest) = (others().map(Area::cell_count).min(), others().map(Area::cell_count).max());
    assert!(largest < smallest.map(|cells| cells * 4), "{smallest:?} {largest:?}");
}

#[test]
fn what_a_script_opens_halves_the_longer_side_and_leaves_the_zoom() {
    let mut session = Session::new();
    session.attach(1, 60, 60);
    let own = session.focused(1);
    let below = open_behind(&mut session, 1).remove(0);
    assert_eq!(session.area(1, &below), Area::new(0, 29, 60, 29), "60 columns are not as long as 58 lines");
    session.prefix(1, "z");
    let beside = open_behind(&mut session, 1).remove(0);
    assert_eq!(session.areas(1), [(own.clone(), Area::new(0, 0, 60, 58))], "it stays alone");
    session.prefix(1, "z");
    assert_eq!(session.area(1, &beside), Area::new(30, 29, 30, 29));
}

#[test]
fn a_side_that_was_chosen_is_beside_the_pane_that_has_the_keys() {
    let (mut session, _, right) = Session::with_two();
    let split = Some(SplitDirection::Down);
    let chosen = session.open_as(OpenRequest { split, ..OpenRequest::default() });
    assert_eq!(session.area(1, &chosen), Area::new(58, 14, 42, 14));
    assert_eq!(session.focused(1), right);
}
