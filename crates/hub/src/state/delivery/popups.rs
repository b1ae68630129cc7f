//! The prompts of popups, and the person's clicks and answers.

use ringer_core::agent::{AnswerMethod, PopupAnswer, PromptContent};
use ringer_core::attention::{Cause, Record, digest_id};
use ringer_core::engine::Delivery;
use ringer_core::policy::DeliveryChannel;
use ringer_core::toast::{Priority, Toast};
use ringer_core::{Event, MessageId, Now};
use ringer_ipc::part::{AnswerOutcome, AnsweredQuestion, Unreachable};
use ringer_journal::Error;

use crate::message::{FocusWaiter, Job};
use crate::state::HubState;
use crate::state::hosts::surfaces::FocusOutcome;

/// The prompt or question of a notification. A question in a client's dialog is a prompt, not a question of `ringer ask`.
fn asked(record: &Record) -> Option<AnsweredQuestion> {
    match &record.key {
        Some(key) if record.is_of_session() => Some(AnsweredQuestion::Prompt(key.to_string())),
        _ => record.open_question.clone().map(AnsweredQuestion::Question),
    }
}

impl HubState {
    /// Returns the prompt that the popup of a delivery can answer, and replaces the popup's text with as much of the prompt as
    /// fits.
    pub(in crate::state) fn popup_prompt(&mut self, delivery: &mut Delivery) -> Option<Box<PromptContent>> {
        if delivery.channel != DeliveryChannel::Desktop || !delivery.kind.is_prompt() {
            return None;
        }
        let asked = self.asked(&delivery.id)?;
        let read = self.read_prompt(&asked).and_then(|prompt| {
            // A text that a hook program changed stays unchanged.
            let messages = self.journal.messages(std::slice::from_ref(&delivery.id))?;
            let is_own = messages.iter().any(|message| message.draft.for_person().body == delivery.body);
            Ok((prompt, is_own))
        });
        match read {
            Ok((Some(prompt), is_own)) => {
                if let Some(text) = prompt.popup_text().filter(|_| is_own) {
                    delivery.body = text;
                }
                Some(Box::new(prompt))
            }
            Ok((None, _)) => None,
            Err(error) => {
                self.log(format!("cannot read what {} asks: {error}", delivery.id));
                None
            }
        }
    }

    /// The prompt or question of a notification, also one of another machine.
    fn asked(&mut self, id: &MessageId) -> Option<AnsweredQuestion> {
        let record = self.notifications.get(id)?;
        match self.journal.prompt_elsewhere(id) {
            Ok(Some(_)) if record.needs_person() => Some(AnsweredQuestion::Remote(id.clone())),
            _ => asked(record),
        }
    }

    /// Reads a prompt, if it is still open and can be answered outside its own terminal.
    fn read_prompt(&mut self, asked: &AnsweredQuestion) -> Result<Option<PromptContent>, Error> {
        Ok(match asked {
            AnsweredQuestion::Prompt(key) => self.journal.prompt(key)?.and_then(|stored| {
                let is_open = stored.ended_ms.is_none() && stored.decision.is_none();
                let is_reachable = stored.prompt.method != AnswerMethod::DialogOnly;
                (is_open && is_reachable).then_some(stored.prompt.content)
            }),
            AnsweredQuestion::Remote(id) => self.journal.prompt_elsewhere(id)?,
            AnsweredQuestion::Question(id) => {
                let open = self.journal.question(id)?.filter(|question| question.answered_ms.is_none());
                open.map(|question| PromptContent::Questions(vec![question.as_prompt()]))
            }
        })
    }

    /// Handles a click on an answer button.
    pub(in crate::state) fn popup_answered(&mut self, now: Now, id: MessageId, answer: PopupAnswer) {
        if let Some(asked) = self.asked(&id) {
            return self.execute(Job::Answer { id, asked, answer });
        }
        let outcome = AnswerOutcome::NotTaken("it is over, or no longer on the list".to_owned());
        self.answer_tried(now, id, &answer, outcome);
    }

    /// Handles the result of an answer. A failure is shown to the person, because the popup is gone and they believe that they
    /// answered.
    pub(in crate::state) fn answer_tried(
        &mut self,
        now: Now,
        id: MessageId,
        answer: &PopupAnswer,
        outcome: AnswerOutcome,
    ) {
        let (why, only_there) = match outcome {
            AnswerOutcome::Taken => return self.log(format!("{id} was answered with its popup")),
            AnswerOutcome::NotTaken(why) => (why, false),
            AnswerOutcome::OnlyThere(why) => {
                (format!("it can only be answered in its own terminal: {why}"), true)
            }
        };
        self.log(format!("{id} was not answered with its popup: {why}"));
        let cause = Cause::PopupAnswerFailed { answer: answer.label().to_owned(), why: why.clone() };
        self.feed_engine(now, Event::AddTrailStep { id: id.clone(), cause });
        self.answer_click(now, &id, format!("not answered: {why}"));
        if only_there {
            self.popup_clicked(now, id);
        }
    }

    /// Shows a toast at once, in response to a click.
    fn answer_click(&mut self, now: Now, id: &MessageId, text: String) {
        self.feed_engine(now, Event::Toast(Toast::new(format!("show-{id}"), Priority::Immediate, text)));
    }

    /// Handles a click on "Show".
    pub(in crate::state) fn popup_clicked(&mut self, now: Now, id: MessageId) {
        let outcome = match self.record(&id) {
            // It came from no terminal, so the person has already seen all there is.
            Ok(record) if record.place.surface.is_none() => FocusOutcome::Known(Ok("desktop".to_owned())),
            Ok(record) => self.focus(&record.place),
            Err(error) => FocusOutcome::Known(Err(Unreachable::new(error.message))),
        };
        match outcome {
            FocusOutcome::Known(result) => self.focus_tried(now, &id, result.map(drop)),
            FocusOutcome::Ask(target, surface) => {
                self.ask_focus(now, target, surface, FocusWaiter::Popup(id));
            }
        }
    }

    /// Handles the result of a click on "Show". The notification is marked as read only if the person got there.
    pub(in crate::state) fn focus_tried(
        &mut self,
        now: Now,
        id: &MessageId,
        result: Result<(), Unreachable>,
    ) {
        let why = match result {
            Ok(()) => match self.append_read_mark(now, id) {
                Ok(()) => return,
                Err(error) => error.to_string(),
            },
            Err(unreachable) => unreachable.to_string(),
        };
        self.log(format!("cannot show {id}: {why}"));
        let cause = Cause::CannotShow { why: why.clone() };
        self.feed_engine(now, Event::AddTrailStep { id: id.clone(), cause });
        self.answer_click(now, id, format!("cannot show it: {why}"));
    }
}

impl HubState {
    /// Returns the notification of a popup. The digest's popup stands for the most urgent notification.
    pub(in crate::state) fn meant_by_popup(&self, id: MessageId) -> MessageId {
        if id != digest_id() {
            return id;
        }
        let list = self.notifications.list();
        let first =
            list.newest_unread().chain(list.needs_person()).min_by(|one, two| Record::by_urgency(one, two));
        first.map_or(id, |record| record.id.clone())
    }
}
