//! Opens, closes, names and restarts panes.

use std::path::Path;

use super::*;
use crate::layout::SplitDirection;

#[test]
fn the_first_window_opens_a_shell_in_its_directory() {
    let mut session = Session::new();
    let effects = session.attach(1, 100, 30);
    let Effect::Start { command, directory, size, .. } = &effects[0] else { panic!("{effects:?}") };
    assert_eq!((command.len(), directory.as_path()), (0, Path::new("/src/api")));
    // Without the sidebar, the footer and the border.
    assert_eq!((size.columns, size.lines), (100 - 16 - 2, 30 - 2 - 2));
    assert_eq!(session.names(), ["api"]);
    let again = session.attach(2, 100, 30);
    assert!(!again.iter().any(|effect| matches!(effect, Effect::Start { .. })), "{again:?}");
    assert_eq!(session.focused(2), session.focused(1));
}

#[test]
fn a_split_shares_the_room_and_the_new_pane_has_the_keys() {
    let (mut session, left, right) = Session::with_two();
    assert_eq!(session.area(1, &left), Area::new(16, 0, 42, 28));
    assert_eq!(session.area(1, &right), Area::new(58, 0, 42, 28));
    assert_eq!((session.size(&left), session.size(&right)), ((40, 26), (40, 26)));
    let effects = session.prefix(1, "-");
    let below = session.focused(1);
    assert_eq!(session.area(1, &right), Area::new(58, 0, 42, 14));
    assert_eq!(session.area(1, &below), Area::new(58, 14, 42, 14));
    let resized = |effect: &Effect| matches!(effect, Effect::Resize { pane, .. } if *pane == right);
    assert!(effects.iter().any(resized), "{effects:?}");
}

#[test]
fn a_new_pane_is_opened_where_the_one_with_the_keys_is() {
    let mut session = Session::with_shell();
    let shell = session.focused(1);
    session.output(&shell, "\x1b]7;file:///src/web\x07");
    let effects = session.prefix(1, "%");
    let start = effects.iter().find_map(|effect| match effect {
        Effect::Start { directory, .. } => Some(directory.as_path()),
        _ => None,
    });
    assert_eq!(start, Some(Path::new("/src/web")));
}

#[test]
fn a_new_workspace_has_a_name_that_none_has() {
    let mut session = Session::with_shell();
    session.prefix(1, "c");
    session.prefix(1, "c");
    assert_eq!(session.names(), ["api", "api 2", "api 3"]);
    assert_eq!(session.state.shown_workspace(ClientId(1)).unwrap().name, "api 3");
}

#[test]
fn a_command_opens_a_pane_in_the_workspace_that_it_names() {
    let mut session = Session::with_shell();
    let shell = session.focused(1);
    let first = session.open_as(behind(Some("tests")));
    let second = session.open_as(behind(Some("tests")));
    assert_eq!(session.focused(1), shell, "the keys stay where they are");
    let here = session.open(&["htop"], None);
    assert_eq!(session.names(), ["api", "tests"]);
    assert_eq!(["tests", "tests", "api"], [&first, &second, &here].map(|pane| session.workspace_of(pane)));
    assert_eq!(session.focused(1), here);
    assert_eq!(session.size(&first), (80, 24), "no window has shown it");
    assert_eq!(session.state.pane(&here).unwrap().label(), "htop");
}

/// The request of a script, which does not change the focus.
fn behind(workspace: Option<&str>) -> OpenRequest {
    OpenRequest { workspace: workspace.map(str::to_owned), ..OpenRequest::default() }
}

#[test]
fn a_window_goes_to_the_pane_that_a_person_opens_in_another_workspace() {
    let mut session = Session::with_shell();
    session.attach(2, 80, 24);
    let shell = session.focused(2);
    session.input(1, "a");
    let other = session.open(&["htop"], Some("other"));
    assert_eq!((session.focused(1), session.focused(2)), (other.clone(), shell), "in the window used last");
    assert_eq!(session.size(&other), (82, 26));
    assert_eq!(written(&session.input(1, "b"), &other), "b");
}

#[test]
fn without_a_window_the_next_one_shows_what_was_opened_last() {
    let mut session = Session::with_shell();
    session.prefix(1, "c");
    session.prefix(1, "c");
    session.prefix(1, "2");
    session.state.detach(ClientId(1));
    let newest = session.open(&[], None);
    assert_eq!(session.workspace_of(&newest), "api 2", "the workspace that was shown last");
    let third = session.open(&[], Some("api 3"));
    let quiet = session.open_as(behind(Some("api")));
    let beside = session.open_as(behind(None));
    assert_eq!(["api", "api 3"], [&quiet, &beside].map(|pane| session.workspace_of(pane)));
    session.attach(2, 100, 30);
    assert_eq!(session.focused(2), third);
}

/// The request of a command that was run in a pane.
fn called_in(caller: &PaneId, workspace: Option<&str>) -> OpenRequest {
    let (takes_keys, caller) = (TakesKeys::FromCaller, Some(caller.clone()));
    OpenRequest { takes_keys, caller, ..behind(workspace) }
}

#[test]
fn a_command_in_a_pane_takes_the_keys_only_from_that_pane() {
    let (mut session, left, right) = Session::with_two();
    let agent = session.open_as(behind(Some("agents")));
    let helper = session.open_as(called_in(&agent, None));
    assert_eq!((session.workspace_of(&helper).as_str(), session.focused(1)), ("agents", right.clone()));
    let helper = session.open_as(called_in(&agent, Some("api")));
    assert_eq!((session.workspace_of(&helper).as_str(), session.focused(1)), ("api", right.clone()));
    // From a pane that is not focused.
    let split = Some(SplitDirection::Right);
    let helper = session.open_as(OpenRequest { split, ..called_in(&left, None) });
    let (own, beside) = (session.area(1, &helper), session.area(1, &left));
    assert_eq!((own.x, session.focused(1)), (beside.x + beside.width, right.clone()));
    // In the inbox, the person types into no pane.
    session.prefix(1, "i");
    session.open_as(called_in(&right, None));
    session.state.terminal_back(ClientId(1), session.now);
    assert_eq!(session.focused(1), right);
    let typed = session.open_as(called_in(&right, None));
    assert_eq!(session.focused(1), typed);
    let elsewhere = session.open_as(called_in(&typed, Some("agents")));
    assert_eq!(session.focused(1), elsewhere);
}

#[test]
fn a_command_in_a_pane_takes_no_keys_of_the_window_used_last() {
    let mut session = Session::with_shell();
    let first = session.focused(1);
    session.attach(2, 80, 24);
    session.prefix(2, "c");
    let second = session.focused(2);
    session.input(1, "a");
    // Its pane is focused in the other window, and this one shows the workspace that it names.
    session.open_as(called_in(&second, Some("api")));
    assert_eq!((session.focused(1), session.focused(2)), (first, second));
}

#[test]
fn a_command_in_a_pane_that_is_closed_opens_where_the_person_is() {
    let (mut session, left, right) = Session::with_two();
    session.state.close(&right);
    let opened = session.open_as(called_in(&right, None));
    assert_eq!((session.workspace_of(&opened).as_str(), session.focused(1)), ("api", left));
    // It takes the focus if it is told to.
    let request = OpenRequest { takes_keys: TakesKeys::Always, ..called_in(&right, Some("other")) };
    let opened = session.open_as(request);
    assert_eq!(session.focused(1), opened);
}

#[test]
fn closing_asks_first_and_only_yes_closes() {
    let (mut session, left, right) = Session::with_two();
    session.prefix(1, "x");
    assert_eq!(session.mode(1), Mode::ConfirmClose);
    assert!(session.footer(1).contains("Close api and end its program?"), "{}", session.footer(1));
    let effects = session.input(1, "n");
    assert_eq!((session.mode(1), written(&effects, &right).as_str()), (Mode::Program, ""));
    session.prefix(1, "x");
    let effects = session.input(1, "y");
    assert!(effects.contains(&Effect::Forget { pane: right.clone() }), "{effects:?}");
    assert_eq!((session.focused(1), session.state.panes().count()), (left.clone(), 1));
    assert_eq!(session.area(1, &left), Area::new(16, 0, 84, 28));
}

#[test]
fn yes_is_for_the_pane_that_was_asked_about() {
    let (mut session, left, right) = Session::with_two();
    session.prefix(1, "x");
    // Meanwhile its shell exits.
    session.end(&right, 0);
    assert_eq!((session.focused(1), session.mode(1)), (left.clone(), Mode::Program));
    let effects = session.input(1, "y");
    assert_eq!(written(&effects, &left), "y", "the other one is not closed");
}

#[test]
fn an_ended_pane_is_closed_without_a_question() {
    let (mut session, left, right) = Session::with_two();
    session.end(&right, 3);
    let effects = session.prefix(1, "x");
    assert!(effects.contains(&Effect::Forget { pane: right }), "{effects:?}");
    assert_eq!(session.focused(1), left);
}

#[test]
fn windows_leave_with_the_last_pane() {
    let mut session = Session::with_shell();
    session.attach(2, 80, 24);
    session.prefix(1, "x");
    let effects = session.input(1, "y");
    assert_eq!(leaving(&effects), [1, 2]);
    assert_eq!(session.names(), Vec::<&str>::new());
}

#[test]
fn a_window_whose_workspace_is_gone_shows_another() {
    let mut session = Session::with_shell();
    let first = session.focused(1);
    session.prefix(1, "c");
    let second = session.focused(1);
    let effects = session.end(&second, 0);
    assert_eq!((leaving(&effects), session.focused(1)), (Vec::new(), first));
}

#[test]
fn a_pane_is_renamed_until_an_empty_name_is_typed() {
    let mut session = Session::with_shell();
    let pane = session.focused(1);
    session.prefix(1, ",");
    session.input(1, "webx\x7f app");
    assert!(session.footer(1).contains("name of the pane: web app"), "{}", session.footer(1));
    let effects = session.input(1, "\r");
    assert_eq!((session.mode(1), written(&effects, &pane).as_str()), (Mode::Program, ""));
    assert_eq!(session.state.pane(&pane).unwrap().label(), "web app");
    session.prefix(1, ",");
    session.input(1, "other\x1b");
    assert_eq!(session.state.pane(&pane).unwrap().label(), "web app", "escape changes nothing");
    session.prefix(1, ",");
    session.input(1, "\x1b[200~pasted\nname\x1b[201~\r");
    assert_eq!(session.state.pane(&pane).unwrap().label(), "pastedname");
    session.prefix(1, ",");
    session.input(1, "\r");
    assert_eq!(session.state.pane(&pane).unwrap().label(), "api");
}

#[test]
fn a_name_has_no_more_characters_than_one_of_a_command() {
    let mut session = Session::with_shell();
    let pane = session.focused(1);
    let name = |session: &Session| session.state.pane(&pane).unwrap().name.clone();
    session.prefix(1, ",");
    session.input(1, &format!("{}\r", "ä".repeat(150)));
    assert_eq!(name(&session), Some("ä".repeat(100)));
    session.prefix(1, ",");
    session.input(1, &format!("\x1b[200~{}\x1b[201~x\r", "b".repeat(150)));
    assert_eq!(name(&session), Some("b".repeat(100)));
    session.prefix(1, ",");
    session.input(1, "\u{200b} \r");
    assert_eq!(name(&session), None, "it could not be seen");
}

#[test]
fn a_workspace_is_called_like_its_directory_as_far_as_that_is_a_name() {
    let mut session = Session::new();
    let mut names = Vec::new();
    for directory in
        ["/src/api", &format!("/{}", "ä".repeat(150)), &format!("/{}", "ä".repeat(150)), "/ ", "/"]
    {
        let facts = ClientFacts { directory: directory.into(), ..Session::facts(80, 24) };
        let (_, effects) = session.state.open(OpenRequest { facts, ..behind(None) }, None, session.now);
        session.start(effects);
        // The next one finds no workspace.
        names.push(session.names()[0].to_owned());
        let panes: Vec<PaneId> = session.state.panes().map(|pane| pane.id.clone()).collect();
        for pane in &panes {
            session.state.close(pane);
        }
    }
    assert_eq!(names, ["api", &"ä".repeat(95), &"ä".repeat(95), "work", "work"]);
}

#[test]
fn a_name_is_for_the_pane_for_which_it_was_typed() {
    let (mut session, left, right) = Session::with_two();
    session.prefix(1, ",");
    session.input(1, "new");
    session.order(HubOrder::Focus { surface_id: format!("pane:{left}") });
    session.input(1, "\r");
    let label = |pane: &PaneId| session.state.pane(pane).unwrap().label();
    assert_eq!((label(&left), label(&right)), ("api".into(), "api".into()));
}

#[test]
fn an_ended_program_is_started_again_as_it_was() {
    let mut session = Session::with_shell();
    let pane = session.open(&["make", "watch"], None);
    let effects = session.prefix(1, "r");
    assert!(!effects.iter().any(|effect| matches!(effect, Effect::Start { .. })), "{effects:?}");
    assert!(session.footer(1).contains("its program still runs"), "{}", session.footer(1));
    session.output(&pane, "old text");
    session.end(&pane, 2);
    let effects = session.prefix(1, "r");
    let forget = effects.iter().position(|effect| *effect == Effect::Forget { pane: pane.clone() });
    let start = effects.iter().position(
        |effect| matches!(effect, Effect::Start { pane: own, command, .. } if *own == pane && command == &["make", "watch"]),
    );
    assert!(forget.is_some() && forget < start, "{effects:?}");
    assert!(session.state.pane(&pane).unwrap().ending.is_none());
    assert!(!session.drawn(1).text().contains("old text"));
}

#[test]
fn a_program_that_cannot_be_started_says_why_and_can_be_tried_again() {
    let mut session = Session::with_shell();
    session.can_start = false;
    let pane = session.open(&["claude"], None);
    let drawn = session.drawn(1).text();
    assert!(drawn.contains("no such program"), "{drawn}");
    assert_eq!(written(&session.input(1, "a"), &pane), "", "it has no program");
    session.can_start = true;
    session.prefix(1, "r");
    assert!(session.state.pane(&pane).unwrap().failure.is_none());
    assert_eq!(written(&session.input(1, "a"), &pane), "a");
}

#[test]
fn the_keys_under_an_ended_pane_are_those_of_the_settings() {
    let settings = [("pane_prefix", "ctrl-b"), ("pane_restart", "R")];
    let settings = settings.map(|(name, key)| (name.to_owned(), key.to_owned())).into();
    let mut session = Session::with_keys(PaneKeys::with(&settings).0);
    session.attach(1, 100, 30);
    let pane = session.focused(1);
    session.end(&pane, 1);
    let drawn = session.drawn(1).text();
    assert!(drawn.contains("exit status 1 · ^b R start again · ^b x close"), "{drawn}");
}
