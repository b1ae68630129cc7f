//! Questions of programs: notifications with buttons.

use std::path::PathBuf;

use ringer_ui::ProgramQuestion;

use super::*;
use crate::effect::{QuestionNumber, QuestionOutcome};
use crate::unread_output::UnreadOutput;

/// A notification with two buttons, whose clicks the program wants to know.
const ASKS: &str = "\x1b]99;i=b:d=0:a=report;Again?\x1b\\\x1b]99;i=b:p=buttons;Yes\u{2028}No\x1b\\";

fn closed(effects: &[Effect], pane: &PaneId) -> Vec<u64> {
    let numbers = effects.iter().filter_map(|effect| match effect {
        Effect::CloseQuestion { pane: own, number } if own == pane => Some(number.0),
        _ => None,
    });
    numbers.collect()
}

fn asked(effects: &[Effect]) -> Vec<u64> {
    let numbers = effects.iter().filter_map(|effect| match effect {
        Effect::Ask { number, .. } => Some(number.0),
        _ => None,
    });
    numbers.collect()
}

impl Session {
    fn outcome(&mut self, pane: &PaneId, number: u64, outcome: &QuestionOutcome) -> Vec<Effect> {
        self.state.question_outcome(pane, QuestionNumber(number), outcome)
    }

    fn choose(&mut self, pane: &PaneId, number: u64, label: &str) -> String {
        let effects = self.outcome(pane, number, &QuestionOutcome::Chosen(label.to_owned()));
        written(&effects, pane)
    }

    fn ring_out(&mut self, pane: &PaneId) -> Vec<Effect> {
        self.ring(pane);
        let surface_id = format!("pane:{pane}");
        self.order(HubOrder::Ring { surface_id, lit: false, unread: 0, kind: None })
    }
}

#[test]
fn a_notification_with_buttons_is_asked_and_not_told() {
    let mut session = Session::with_shell();
    let pane = session.focused(1);
    let effects = session.output(&pane, ASKS);
    let question = ProgramQuestion {
        text: "Again?".to_owned(),
        options: vec!["Yes".to_owned(), "No".to_owned()],
        surface: format!("pane:{pane}"),
        workspace: Some(session.state.workspaces()[0].id.clone()),
        tty: Some("/dev/pts/1".to_owned()),
        pid: session.state.pane(&pane).unwrap().pid,
        directory: PathBuf::from("/src/api"),
    };
    let number = QuestionNumber(1);
    let question = Box::new(question);
    assert_eq!(effects, [Effect::Ask { pane: pane.clone(), number, question, replaces: None }]);
    session.outcome(&pane, 1, &QuestionOutcome::Asked);
    assert_eq!(session.choose(&pane, 1, "No"), "\x1b]99;i=b;2\x1b\\");
    assert_eq!(session.choose(&pane, 1, "No"), "", "once");
}

#[test]
fn what_cannot_be_asked_is_told_to_the_hub() {
    let mut session = Session::with_shell();
    let pane = session.focused(1);
    session.output(&pane, ASKS);
    let effects = session.outcome(&pane, 1, &QuestionOutcome::NotAsked);
    assert_eq!(terminal_reports(&effects)[0]["title"], "Again?");
}

#[test]
fn a_question_is_closed_when_it_is_seen_and_when_its_program_ends() {
    let mut session = Session::with_shell();
    let pane = session.open(&["make"], None);
    session.output(&pane, ASKS);
    session.outcome(&pane, 1, &QuestionOutcome::Asked);
    let effects = session.ring_out(&pane);
    assert_eq!(closed(&effects, &pane), [1]);
    session.outcome(&pane, 1, &QuestionOutcome::Closed);
    session.output(&pane, ASKS);
    let effects = session.end(&pane, 1);
    assert_eq!(closed(&effects, &pane), [2]);
    assert_eq!(session.choose(&pane, 2, "Yes"), "");
    let effects = session.output(&pane, ASKS);
    assert_eq!((asked(&effects), terminal_reports(&effects).len()), (Vec::new(), 1), "it has ended");
}

#[test]
fn the_answer_to_a_program_is_not_for_the_next_one() {
    let mut session = Session::with_shell();
    let pane = session.open(&["make"], None);
    session.output(&pane, ASKS);
    session.end(&pane, 1);
    session.prefix(1, "r");
    assert_eq!(asked(&session.output(&pane, ASKS)), [2]);
    assert_eq!(session.choose(&pane, 1, "Yes"), "");
    assert_eq!(session.choose(&pane, 2, "Yes"), "\x1b]99;i=b;1\x1b\\");
}

#[test]
fn what_was_written_without_a_server_is_told_and_not_asked() {
    let mut session = Session::with_shell();
    let pane = session.focused(1);
    session.output(&pane, ASKS);
    let late = ASKS.replace("Again?", "Once more?");
    let late = UnreadOutput { new: late.as_bytes(), ..UnreadOutput::default() };
    let effects = session.state.unread_output(&pane, late, session.now);
    assert_eq!((asked(&effects), closed(&effects, &pane)), (Vec::new(), vec![1]));
    assert_eq!(terminal_reports(&effects)[0]["title"], "Once more?");
}
