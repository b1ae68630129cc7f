//! A sidebar with more workspaces and panes than it has lines.

use super::*;

const LEFT: u16 = 0;

/// Ten workspaces of one pane each, in a window with ten lines for the sidebar. The last one is shown.
fn ten() -> (Session, Vec<PaneId>) {
    let mut session = Session::new();
    session.attach(1, 100, 12);
    let mut panes = vec![session.focused(1)];
    for _ in 1..10 {
        session.prefix(1, "c");
        panes.push(session.focused(1));
    }
    (session, panes)
}

fn sidebar(session: &Session) -> Vec<String> {
    let text = session.drawn(1).text();
    let lines = text.lines().take(10);
    lines.map(|line| line.chars().take(15).collect::<String>().trim_end().to_owned()).collect()
}

#[test]
fn the_workspace_that_is_shown_is_always_seen() {
    let (mut session, panes) = ten();
    let bottom = sidebar(&session);
    assert_eq!((bottom[0].as_str(), bottom[8].as_str()), (" ▴ 11 more", " api 10"));
    session.prefix(1, "1");
    let top = sidebar(&session);
    assert_eq!((top[0].as_str(), top[9].as_str()), (" api", " ▾ 11 more"));
    session.prefix(1, "5");
    let middle = sidebar(&session);
    assert!(middle[0].starts_with(" ▴ ") && middle[9].starts_with(" ▾ "), "{middle:?}");
    assert!(middle.contains(&" api 5".to_owned()), "{middle:?}");
    session.state.close(&panes[4]);
    session.drawn(1);
}

#[test]
fn what_is_unread_beyond_the_last_line_is_counted() {
    let (mut session, panes) = ten();
    session.prefix(1, "1");
    session.ring(&panes[8]);
    session.ring(&panes[9]);
    // One of them is in no pane.
    let workspace_id = session.state.workspaces()[9].id.clone();
    session.order(HubOrder::Badge { workspace_id, badge: 2 });
    assert_eq!(sidebar(&session)[9], " ▾ 11 more   3");
    session.prefix(1, "9");
    let lines = sidebar(&session);
    assert_eq!((lines[0].as_str(), lines[9].as_str()), (" ▴ 10 more", " ▾ 2 more    2"));
}

#[test]
fn a_click_goes_to_what_is_drawn_there() {
    let (mut session, _) = ten();
    session.prefix(1, "5");
    for y in 1..9 {
        let lines = sidebar(&session);
        let shown = |session: &Session| session.state.shown_workspace(ClientId(1)).unwrap().name.clone();
        let heading = lines[..=usize::from(y)].iter().rfind(|line| line.starts_with(" api")).cloned();
        session.mouse(1, LEFT, (3, y), 'M');
        assert_eq!(heading.map(|line| line.trim().to_owned()).unwrap_or(shown(&session)), shown(&session));
    }
}

#[test]
fn a_click_on_what_has_no_line_goes_to_the_nearest_of_it() {
    let (mut session, panes) = ten();
    let mut seen = vec![session.focused(1)];
    for _ in 0..20 {
        session.mouse(1, LEFT, (3, 0), 'M');
        seen.push(session.focused(1));
    }
    seen.dedup();
    assert_eq!(seen.last(), panes.first(), "the mouse alone comes to the first one");
    for _ in 0..20 {
        session.mouse(1, LEFT, (3, 9), 'M');
    }
    assert_eq!(session.focused(1), panes[9]);
}

#[test]
fn a_sidebar_of_few_lines_shows_the_pane_that_has_the_keys() {
    let (mut session, panes) = ten();
    session.prefix(1, "3");
    for lines in [1, 2, 3, 4, 8] {
        session.state.resize(ClientId(1), 100, lines, session.now);
        session.drawn(1);
        session.mouse(1, LEFT, (3, 0), 'M');
        session.order(HubOrder::Focus { surface_id: format!("pane:{}", panes[2]) });
    }
}
