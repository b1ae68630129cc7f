//! Orders of the hub, and reports to it.

use ringer_core::message::ShownKind;
use serde_json::json;

use super::*;
use crate::saved_session::SavedPane;

fn surface(pane: &PaneId) -> String {
    format!("pane:{pane}")
}

#[test]
fn a_ring_is_around_its_pane_until_the_hub_takes_it_away() {
    let (mut session, left, right) = Session::with_two();
    let ring = |lit| HubOrder::Ring {
        surface_id: surface(&left),
        lit,
        unread: 2,
        kind: Some(ShownKind::Permission),
    };
    session.order(ring(true));
    let corner = |session: &Session, pane: &PaneId| {
        let area = session.area(1, pane);
        session.drawn(1).cell(area.x, area.y).unwrap().character
    };
    assert_eq!((corner(&session, &left), corner(&session, &right)), (Some('┏'), Some('┌')));
    assert_eq!(session.state.pane(&left).unwrap().ring.unread, 2);
    session.order(ring(false));
    assert_eq!(corner(&session, &left), Some('┌'));
}

#[test]
fn a_badge_is_beside_its_workspace() {
    let mut session = Session::with_shell();
    let workspace_id = session.state.workspaces()[0].id.clone();
    let badge = |badge| HubOrder::Badge { workspace_id: workspace_id.clone(), badge };
    let first = |session: &Session| {
        session.drawn(1).text().lines().next().unwrap().chars().take(15).collect::<String>()
    };
    session.order(badge(120));
    assert_eq!(first(&session), " api       99+ ");
    session.order(badge(0));
    assert_eq!(first(&session).trim(), "api");
}

#[test]
fn a_flash_is_seen_for_a_moment() {
    let mut session = Session::with_shell();
    let pane = session.focused(1);
    session.order(HubOrder::Flash { surface_id: surface(&pane) });
    let mut seen = Vec::new();
    let end = session.now + Duration::from_secs(1);
    while let Some(next) = session.state.next_change(session.now).filter(|next| *next < end) {
        session.now = next;
        seen.push(session.drawn(1).cell(16, 0).unwrap().style.reverse);
    }
    assert_eq!(seen, [true, false, true, false, false]);
}

#[test]
fn a_toast_stands_before_the_indicators() {
    let mut session = Session::with_shell();
    let indicator =
        |key: &str, text: &str| HubOrder::Indicator { key: key.to_owned(), text: text.to_owned() };
    session.order(indicator("mcp", "MCP ok"));
    session.order(indicator("limit", "limit 91 %"));
    assert!(session.footer(1).ends_with("limit 91 % │ MCP ok"), "{}", session.footer(1));
    session.order(HubOrder::Toast { text: Some("docs: done".to_owned()) });
    assert!(session.footer(1).ends_with("docs: done"), "{}", session.footer(1));
    session.order(HubOrder::Toast { text: None });
    session.order(indicator("limit", ""));
    assert!(session.footer(1).ends_with("MCP ok") && !session.footer(1).contains("limit"));
}

#[test]
fn the_hub_goes_to_a_pane_in_the_window_that_was_used_last() {
    let (mut session, left, _) = Session::with_two();
    session.attach(2, 80, 24);
    session.prefix(2, "c");
    let effects = session.order(HubOrder::Focus { surface_id: surface(&left) });
    assert_eq!(focus_answer(&effects), &json!({ "surface_id": surface(&left) }));
    assert_eq!((session.focused(2), session.focused(1)), (left.clone(), left));
}

#[test]
fn the_hub_learns_why_it_cannot_go_to_a_pane() {
    let mut session = Session::with_shell();
    let pane = session.focused(1);
    let effects = session.order(HubOrder::Focus { surface_id: "pane:other".to_owned() });
    assert_eq!(focus_answer(&effects)["why"], "the pane is closed");
    session.state.detach(ClientId(1));
    let effects = session.order(HubOrder::Focus { surface_id: surface(&pane) });
    let answer = focus_answer(&effects);
    assert_eq!(answer["why"], "no window shows its workspace");
    assert_eq!(answer["hint"], "ringer attach");
}

#[test]
fn orders_for_panes_that_are_not_there_change_nothing() {
    let mut session = Session::with_shell();
    let before = session.drawn(1);
    let surface_id = "pane:other".to_owned();
    session.order(HubOrder::Ring { surface_id: surface_id.clone(), lit: true, unread: 1, kind: None });
    session.order(HubOrder::Flash { surface_id });
    session.order(HubOrder::Badge { workspace_id: "panes:other".to_owned(), badge: 1 });
    assert_eq!(session.drawn(1), before);
}

#[test]
fn the_hub_is_told_of_panes_once_they_have_a_terminal_or_never_will() {
    let mut session = Session::new();
    let (left, effects) = session.state.open(OpenRequest::default(), None, session.now);
    assert!(facts(&effects).unwrap().surfaces.is_empty(), "a pane without a program is none");
    let effects = session.state.start_failed(&left, "no such program");
    assert_eq!(facts(&effects).unwrap().surfaces[&surface(&left)]["tty"], Value::Null);
    session.attach(1, 100, 30);
    let effects = session.prefix(1, "|");
    let right = session.focused(1);
    let workspace = &session.state.workspaces()[0].id;
    let expect = json!({ "surface_id": surface(&right), "workspace_id": workspace, "tty": "/dev/pts/1", "place": "work · pane 2" });
    assert_eq!(facts(&effects).unwrap().surfaces[&surface(&right)], expect);
    session.prefix(1, "h");
    let effects = session.prefix(1, "x");
    let surfaces = &facts(&effects).unwrap().surfaces;
    assert!(!surfaces.contains_key(&surface(&left)));
    assert_eq!(surfaces[&surface(&right)]["place"], "work · pane 1");
}

#[test]
fn a_pane_with_a_name_is_told_by_it() {
    let mut session = Session::with_shell();
    let pane = session.focused(1);
    let mut rename = |name: &str| {
        session.prefix(1, ",");
        let effects = session.input(1, &format!("{name}\r"));
        facts(&effects).unwrap().surfaces[&surface(&pane)]["place"].clone()
    };
    assert_eq!(rename("tests"), "api · tests");
    assert_eq!(rename(""), "api · pane 1");
}

#[test]
fn the_hub_is_told_where_the_window_itself_is() {
    let mut session = Session::with_shell();
    let pane = session.focused(1);
    session.wait(1);
    let own = ClientFacts { surface: Some("tmux:%3".to_owned()), ..Session::facts(80, 24) };
    let effects = session.state.attach(ClientId(2), own, session.now);
    assert_eq!(facts(&effects).unwrap().surfaces[&surface(&pane)]["parent"], "tmux:%3");
}

#[test]
fn the_hub_is_told_what_the_person_looks_at() {
    let (mut session, left, right) = Session::with_two();
    let looks = |pane: &PaneId| json!({ "views": [{ "client": "client 1", "surface_id": surface(pane) }], "is_complete": true });
    let views = |effects: &[Effect]| facts(effects).unwrap().views.clone().unwrap();
    assert_eq!(views(&session.input(1, "\x1b[I")), looks(&right));
    assert_eq!(views(&session.prefix(1, "h")), looks(&left));
    assert_eq!(views(&session.prefix(1, "i"))["views"], json!([]), "the inbox hides it");
    assert_eq!(views(&session.state.terminal_back(ClientId(1), session.now)), looks(&left));
    assert_eq!(views(&session.input(1, "\x1b[O"))["views"], json!([]));
    session.attach(2, 80, 24);
    let effects = session.input(1, "\x1b[I");
    assert_eq!(views(&effects)["is_complete"], false, "client 2 has not said anything");
}

#[test]
fn the_hub_is_told_now_and_then_that_the_person_types() {
    let mut session = Session::with_shell();
    assert!(session.input(1, "a").contains(&Effect::ReportPresence));
    assert!(!session.input(1, "b").contains(&Effect::ReportPresence));
    session.wait(10_000);
    assert!(session.input(1, "c").contains(&Effect::ReportPresence));
}

#[test]
fn nothing_of_a_hub_is_left_when_it_is_gone() {
    let (mut session, left, _) = Session::with_two();
    session.ring(&left);
    session.order(HubOrder::Toast { text: Some("soon gone".to_owned()) });
    session.state.hub_lost();
    assert!(!session.state.pane(&left).unwrap().ring.is_lit, "nothing rings without a hub");
    assert!(!session.footer(1).contains("soon gone"));
}

#[test]
fn what_was_unread_when_the_hub_stopped_is_saved_as_unread() {
    let mut session = Session::with_shell();
    let pane = session.focused(1);
    session.order(HubOrder::Ring { surface_id: surface(&pane), lit: true, unread: 1, kind: None });
    session.state.hub_lost();
    let is_saved = |session: &Session| SavedPane::of(session.state.pane(&pane).unwrap()).is_unread;
    assert!(is_saved(&session) && !session.state.pane(&pane).unwrap().ring.is_lit);
    session.state.hub_lost();
    assert!(is_saved(&session));
    session.state.hub_connected();
    assert!(!is_saved(&session), "the next hub knows it");
}
