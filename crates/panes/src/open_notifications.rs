//! The open notifications of one program, and the reports about them that it asked for (OSC 99).
//!
//! A notification with buttons becomes a question, whose options are the labels of the buttons. The server asks it, and reports
//! the outcome here.

use ringer_term::{Notification, NotificationId, Terminator, close99, sanitise_line};
use serde_json::Value;

use crate::effect::{QuestionNumber, QuestionOutcome};

/// The most open notifications of a program. One more replaces the oldest.
const MAX_OPEN: usize = 64;
/// The most buttons of one notification. Desktops show three to five.
const MAX_BUTTONS: usize = 8;

/// The notifications with an id, oldest first.
#[derive(Debug, Default)]
pub(crate) struct OpenNotifications {
    open: Vec<OpenNotification>,
    /// The number of questions so far, including those of earlier programs in this pane, so that a late answer matches no later
    /// question.
    asked: u64,
}

#[derive(Debug)]
struct OpenNotification {
    id: NotificationId,
    reports_click: bool,
    reports_close: bool,
    question: Option<ButtonQuestion>,
}

/// The question of a notification with buttons.
#[derive(Debug)]
struct ButtonQuestion {
    number: QuestionNumber,
    text: String,
    buttons: Vec<Button>,
    /// The report to the hub if the question cannot be asked.
    report: Value,
    /// The question is stored. Before that, the person cannot have seen it.
    is_asked: bool,
    /// The person has seen the notification. The question is about to be closed, unless they answered it.
    is_seen: bool,
}

/// A button. The number counts all buttons that the program sent, from 1.
#[derive(Debug, PartialEq)]
struct Button {
    number: usize,
    label: String,
}

/// The consequences of a new notification. There are none if it repeats the question of the one that it replaces.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct NewNotification {
    /// The question to ask.
    pub(crate) question: Option<NewQuestion>,
    /// The report to the hub, if nothing is asked.
    pub(crate) report: Option<Value>,
    /// The question of a notification that was dropped for the new one.
    pub(crate) closes: Option<QuestionNumber>,
}

/// A question to ask.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NewQuestion {
    pub(crate) number: QuestionNumber,
    pub(crate) text: String,
    pub(crate) options: Vec<String>,
    /// The question of the notification that this one replaces. It is closed after this one is asked, so that the pane keeps
    /// ringing.
    pub(crate) replaces: Option<QuestionNumber>,
}

/// A notification that the program withdrew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WithdrawnNotification {
    /// It was asked as this question.
    Question(QuestionNumber),
    /// It was reported to the hub.
    Notification,
}

/// A message about the outcome of a question.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum NotificationReply {
    /// Write this to the program.
    Program(String),
    /// Report the notification to the hub.
    Hub(Value),
}

impl OpenNotifications {
    /// Adds a notification, which replaces one with the same id. `can_ask` is false if the program can no longer be told which
    /// button was pressed.
    pub(crate) fn add(
        &mut self,
        notification: &Notification,
        report: Value,
        can_ask: bool,
    ) -> NewNotification {
        let Some(id) = &notification.id else {
            return NewNotification { report: Some(report), ..NewNotification::default() };
        };
        let before = self.take(id).and_then(|open| open.question);
        let replaces = before.as_ref().map(|question| question.number);
        let closes = if self.open.len() == MAX_OPEN { self.open.remove(0).question_number() } else { None };
        let metadata = &notification.metadata;
        let (reports_click, reports_close) = (metadata.actions.report, metadata.report_close);
        let buttons = if can_ask && reports_click { buttons(&metadata.buttons) } else { Vec::new() };
        let text = text_of(notification);
        let mut open = OpenNotification { id: id.clone(), reports_click, reports_close, question: None };
        let mut added = NewNotification { closes, ..NewNotification::default() };
        if buttons.is_empty() {
            (added.report, added.closes) = (Some(report), closes.or(replaces));
        } else if let Some(same) = before.filter(|question| question.asks_the_same(&text, &buttons)) {
            // The hub would merge two questions with the same text within half a second into one notification.
            open.question = Some(same);
        } else {
            self.asked += 1;
            let number = QuestionNumber(self.asked);
            let options = buttons.iter().map(|button| button.label.clone()).collect();
            added.question = Some(NewQuestion { number, text: text.clone(), options, replaces });
            let (is_asked, is_seen) = (false, false);
            open.question = Some(ButtonQuestion { number, text, buttons, report, is_asked, is_seen });
        }
        self.open.push(open);
        added
    }

    fn take(&mut self, id: &NotificationId) -> Option<OpenNotification> {
        let at = self.open.iter().position(|open| open.id == *id)?;
        Some(self.open.remove(at))
    }

    /// Removes a notification that the program withdraws.
    pub(crate) fn remove(&mut self, id: &NotificationId) -> Option<WithdrawnNotification> {
        Some(
            self.take(id)?
                .question_number()
                .map_or(WithdrawnNotification::Notification, WithdrawnNotification::Question),
        )
    }

    /// Removes all notifications. Returns the questions to close.
    pub(crate) fn remove_all(&mut self) -> Vec<QuestionNumber> {
        std::mem::take(&mut self.open).iter().filter_map(OpenNotification::question_number).collect()
    }

    pub(crate) fn ids(&self) -> Vec<NotificationId> {
        self.open.iter().filter(|open| !open.is_seen()).map(|open| open.id.clone()).collect()
    }

    /// Records that the person followed the newest notification to the pane. Returns the report for the program.
    pub(crate) fn click(&mut self) -> Option<String> {
        let newest = self.open.iter_mut().rev().find(|open| open.reports_click && !open.is_seen())?;
        newest.reports_click = false;
        Some(pressed99(&newest.id, None))
    }

    /// Records that the person has seen all notifications. Returns the report for the program, and the questions to close.
    /// Questions stay until they are closed: the person may have seen one by answering it.
    pub(crate) fn see_all(&mut self) -> (Option<String>, Vec<QuestionNumber>) {
        let (asked, seen) =
            std::mem::take(&mut self.open).into_iter().partition(|open| open.question.is_some());
        self.open = asked;
        let mut closes = Vec::new();
        for question in self.open.iter_mut().filter_map(|open| open.question.as_mut()) {
            if question.is_asked && !std::mem::replace(&mut question.is_seen, true) {
                closes.push(question.number);
            }
        }
        let reply: String = seen.iter().filter_map(OpenNotification::closed).collect();
        ((!reply.is_empty()).then_some(reply), closes)
    }

    /// Handles the outcome of a question. Returns `None` if its notification is not open any more.
    pub(crate) fn handle_outcome(
        &mut self,
        number: QuestionNumber,
        outcome: &QuestionOutcome,
    ) -> Option<NotificationReply> {
        let at = self.open.iter().position(|open| open.question_number() == Some(number))?;
        let open = &mut self.open[at];
        let button = match outcome {
            QuestionOutcome::Asked => {
                open.question.as_mut()?.is_asked = true;
                return None;
            }
            // It becomes a notification without buttons.
            QuestionOutcome::NotAsked => {
                return open.question.take().map(|question| NotificationReply::Hub(question.report));
            }
            QuestionOutcome::Chosen(label) => open.button(label),
            QuestionOutcome::Closed => None,
        };
        let open = self.open.remove(at);
        let pressed = button.map(|number| pressed99(&open.id, Some(number)));
        let reply: String = pressed.into_iter().chain(open.closed()).collect();
        (!reply.is_empty()).then_some(NotificationReply::Program(reply))
    }
}

impl ButtonQuestion {
    /// Returns true if it is the same question, and stays open.
    fn asks_the_same(&self, text: &str, buttons: &[Button]) -> bool {
        !self.is_seen && self.text == text && self.buttons == buttons
    }
}

impl OpenNotification {
    fn question_number(&self) -> Option<QuestionNumber> {
        self.question.as_ref().map(|question| question.number)
    }

    fn is_seen(&self) -> bool {
        self.question.as_ref().is_some_and(|question| question.is_seen)
    }

    /// The number of the button with a label.
    fn button(&self, label: &str) -> Option<usize> {
        let buttons = self.question.iter().flat_map(|question| &question.buttons);
        buttons.into_iter().find(|button| button.label == label).map(|button| button.number)
    }

    /// The report for the program when the notification is closed, if it asked for one.
    fn closed(&self) -> Option<String> {
        self.reports_close.then(|| close99(&self.id, Terminator::St))
    }
}

/// Returns the buttons with a unique and visible label.
fn buttons(labels: &[String]) -> Vec<Button> {
    let mut buttons: Vec<Button> = Vec::new();
    for (number, label) in (1..=MAX_BUTTONS).zip(labels) {
        let label = sanitise_line(label).trim().to_owned();
        if !label.is_empty() && buttons.iter().all(|button| button.label != label) {
            buttons.push(Button { number, label });
        }
    }
    buttons
}

/// The text of a notification as a question.
fn text_of(notification: &Notification) -> String {
    match (notification.title.trim(), notification.body.trim()) {
        ("", text) | (text, "") => text.to_owned(),
        (title, body) => format!("{title}: {body}"),
    }
}

/// The report for a program that its notification, or one of its buttons, was clicked.
fn pressed99(id: &NotificationId, button: Option<usize>) -> String {
    let button = button.map(|number| number.to_string()).unwrap_or_default();
    format!("\x1b]99;i={id};{button}\x1b\\")
}

#[cfg(test)]
mod tests {
    use ringer_term::{Scanner, TerminalEventKind};
    use serde_json::json;

    use super::*;

    /// A program that has written something, and the consequences.
    #[derive(Default)]
    struct Program {
        scanner: Scanner,
        open: OpenNotifications,
        asked: Vec<NewQuestion>,
        reported: usize,
        withdrawn: usize,
        closed: Vec<QuestionNumber>,
    }

    impl Program {
        fn new(sequences: &[&str]) -> Self {
            let mut program = Self::default();
            program.write(sequences);
            program
        }

        fn write(&mut self, sequences: &[&str]) {
            let Self { scanner, open, asked, reported, withdrawn, closed } = self;
            for sequence in sequences {
                scanner.feed(format!("\x1b]99;{sequence}\x1b\\").as_bytes(), |event| match &event.kind {
                    TerminalEventKind::Notification(notification) => {
                        let added = open.add(notification, json!({ "body": notification.title }), true);
                        assert!(added.question.is_none() || added.report.is_none());
                        *reported += usize::from(added.report.is_some());
                        asked.extend(added.question);
                        closed.extend(added.closes);
                    }
                    TerminalEventKind::Close { id } => match open.remove(id) {
                        Some(WithdrawnNotification::Question(number)) => closed.push(number),
                        Some(WithdrawnNotification::Notification) => *withdrawn += 1,
                        None => {}
                    },
                    _ => {}
                });
            }
        }

        fn handle_outcome(&mut self, number: u64, outcome: &QuestionOutcome) -> Option<NotificationReply> {
            self.open.handle_outcome(QuestionNumber(number), outcome)
        }

        fn choose(&mut self, number: u64, label: &str) -> Option<NotificationReply> {
            self.handle_outcome(number, &QuestionOutcome::Chosen(label.to_owned()))
        }
    }

    fn program_hears(text: &str) -> NotificationReply {
        NotificationReply::Program(text.to_owned())
    }

    #[test]
    fn the_newest_that_asked_for_it_hears_of_a_click_once() {
        let sequences = ["i=1:a=report;one", "i=2:a=focus,report;two", "i=3;three", "a=report;no id"];
        let mut open = Program::new(&sequences).open;
        assert_eq!(open.click().as_deref(), Some("\x1b]99;i=2;\x1b\\"));
        assert_eq!(open.click().as_deref(), Some("\x1b]99;i=1;\x1b\\"));
        assert_eq!(open.click(), None);
    }

    #[test]
    fn those_that_asked_for_it_hear_that_they_are_closed() {
        let sequences = ["i=1:c=1;one", "i=2;two", "i=3:c=1;three", "i=1:c=1;again", "i=3:p=close;"];
        let mut open = Program::new(&sequences).open;
        assert_eq!(open.ids().iter().map(NotificationId::as_str).collect::<Vec<_>>(), ["2", "1"]);
        assert_eq!(open.see_all(), (Some("\x1b]99;i=1:p=close;\x1b\\".to_owned()), Vec::new()));
        assert_eq!((open.see_all(), open.ids()), ((None, Vec::new()), Vec::new()));
    }

    #[test]
    fn a_program_that_notifies_without_end_takes_no_memory() {
        let sequences: Vec<String> = (0..200).map(|number| format!("i={number};x")).collect();
        let sequences: Vec<&str> = sequences.iter().map(String::as_str).collect();
        let ids = Program::new(&sequences).open.ids();
        assert_eq!((ids.len(), ids[0].as_str()), (MAX_OPEN, "136"));
        let sequences: Vec<String> = (0..200)
            .flat_map(|number| [format!("i={number}:d=0:a=report;x"), format!("i={number}:p=buttons;Yes")])
            .collect();
        let sequences: Vec<&str> = sequences.iter().map(String::as_str).collect();
        let mut program = Program::new(&sequences);
        assert_eq!((program.asked.len(), program.closed.len()), (200, 200 - MAX_OPEN));
        program.closed.extend(program.open.remove_all());
        assert_eq!(program.closed, (1..=200).map(QuestionNumber).collect::<Vec<_>>());
    }

    /// A notification with two buttons.
    const BUILD: [&str; 3] =
        ["i=b:d=0:a=report:c=1;Build", "i=b:d=0:p=body;it failed", "i=b:p=buttons;Again\u{2028}Leave it"];

    #[test]
    fn the_program_hears_once_which_button_was_pressed() {
        let mut program = Program::new(&BUILD);
        let expect = NewQuestion {
            number: QuestionNumber(1),
            text: "Build: it failed".to_owned(),
            options: vec!["Again".to_owned(), "Leave it".to_owned()],
            replaces: None,
        };
        assert_eq!((&program.asked[..], program.reported), (&[expect][..], 0));
        assert_eq!(program.handle_outcome(1, &QuestionOutcome::Asked), None);
        let reply = Some(program_hears("\x1b]99;i=b;2\x1b\\\x1b]99;i=b:p=close;\x1b\\"));
        assert_eq!(program.choose(1, "Leave it"), reply);
        assert_eq!((program.choose(1, "Leave it"), program.open.ids()), (None, Vec::new()));
    }

    /// Another one under the same id.
    const TESTS: [&str; 2] = ["i=b:d=0:a=report;Tests failed", "i=b:p=buttons;Again\u{2028}Leave it"];

    #[test]
    fn an_answer_is_for_the_notification_that_asked() {
        let mut program = Program::new(&BUILD);
        program.write(&TESTS);
        assert_eq!(program.asked[1].replaces, Some(QuestionNumber(1)));
        assert_eq!(program.choose(1, "Again"), None, "it was replaced");
        program.write(&["i=b:p=close;"]);
        assert_eq!((program.choose(2, "Again"), &program.closed[..]), (None, &[QuestionNumber(2)][..]));
        program.write(&BUILD);
        assert_eq!(program.open.remove_all(), [QuestionNumber(3)], "it has ended");
        program.write(&BUILD);
        assert_eq!(program.choose(3, "Again"), None, "another program runs there");
        program.write(&["i=b:a=report;Build is fine"]);
        assert_eq!(program.closed, [2, 4].map(QuestionNumber), "one without buttons is there instead");
        assert_eq!(program.choose(4, "Again"), None);
    }

    #[test]
    fn the_same_notification_again_is_the_same_question() {
        let mut program = Program::new(&BUILD);
        program.handle_outcome(1, &QuestionOutcome::Asked);
        program.write(&BUILD);
        assert_eq!((program.asked.len(), program.closed.len(), program.reported), (1, 0, 0));
        program.open.see_all();
        program.write(&BUILD);
        assert_eq!(
            (program.asked.len(), program.asked[1].replaces),
            (2, Some(QuestionNumber(1))),
            "that is closed"
        );
        assert_eq!(
            program.choose(2, "Again"),
            Some(program_hears("\x1b]99;i=b;1\x1b\\\x1b]99;i=b:p=close;\x1b\\"))
        );
    }

    #[test]
    fn a_person_who_sees_it_closes_the_question_unless_they_have_answered_it() {
        let closed = "\x1b]99;i=b:p=close;\x1b\\";
        let mut program = Program::new(&BUILD);
        assert_eq!(program.open.see_all(), (None, Vec::new()), "it cannot be seen yet");
        program.handle_outcome(1, &QuestionOutcome::Asked);
        assert_eq!(program.open.see_all(), (None, vec![QuestionNumber(1)]));
        assert_eq!((program.open.see_all(), program.open.ids()), ((None, Vec::new()), Vec::new()));
        assert_eq!(program.handle_outcome(1, &QuestionOutcome::Closed), Some(program_hears(closed)));
        program.write(&BUILD);
        program.handle_outcome(2, &QuestionOutcome::Asked);
        // The answer ends the ring, and that event may arrive first.
        assert_eq!(program.open.see_all(), (None, vec![QuestionNumber(2)]));
        assert_eq!(program.choose(2, "Again"), Some(program_hears(&format!("\x1b]99;i=b;1\x1b\\{closed}"))));
    }

    #[test]
    fn questions_that_cannot_be_asked_are_reported() {
        let mut program = Program::new(&BUILD);
        assert_eq!(
            program.handle_outcome(1, &QuestionOutcome::NotAsked),
            Some(NotificationReply::Hub(json!({ "body": "Build" })))
        );
        assert_eq!(program.handle_outcome(1, &QuestionOutcome::NotAsked), None);
        let (reply, closes) = program.open.see_all();
        assert_eq!((reply.as_deref(), closes), (Some("\x1b]99;i=b:p=close;\x1b\\"), Vec::new()));
        // Without an id, without a request for reports, and without a label.
        let buttons = |metadata: &str, labels: &str| {
            Program::new(&[&format!("{metadata}:d=0;x"), &format!("{metadata}:p=buttons;{labels}")])
        };
        for program in
            [buttons("a=report", "Yes"), buttons("i=1", "Yes"), buttons("i=1:a=report", " \u{2028}\u{200b}")]
        {
            assert_eq!((program.asked.len(), program.reported > 0), (0, true));
        }
    }

    #[test]
    fn labels_are_cleaned_and_keep_the_numbers_of_the_program() {
        let labels = ["", " Yes\u{202e} ", "Yes", "No", "4", "5", "6", "7", "8", "9"].join("\u{2028}");
        let mut program = Program::new(&["i=1:d=0:a=report;x", &format!("i=1:p=buttons;{labels}")]);
        assert_eq!(program.asked[0].options, ["Yes", "No", "4", "5", "6", "7"]);
        assert_eq!(program.choose(1, "No"), Some(program_hears("\x1b]99;i=1;4\x1b\\")));
        let mut program = Program::new(&["i=1:d=0:a=report;x", &format!("i=1:p=buttons;{labels}")]);
        assert_eq!(program.choose(1, "Yes"), Some(program_hears("\x1b]99;i=1;2\x1b\\")));
        let mut program = Program::new(&["i=1:d=0:a=report;x", "i=1:p=buttons;Yes"]);
        assert_eq!(program.choose(1, "another answer"), None);
        assert_eq!(program.open.ids(), []);
    }
}
