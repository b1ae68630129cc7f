//! Answers prompts of agents on other machines, by running the same command there.

use std::time::Duration;

use ringer_config::RelayEntry;
use ringer_core::MessageId;
use ringer_core::agent::{AnswerMethod, Prompt, PromptContent, PromptQuestion};
use ringer_core::attention::Record;
use ringer_journal::Journal;
use ringer_relay::{AnswerOutput, Error, Purpose, RemoteRequest, TeamSetup, answer_in_team};
use ringer_term::sanitise_line;
use serde_json::Value;

use super::prompt::no_answer;
use crate::commands::relay;
use crate::confirm::{ask_for_line, can_ask};
use crate::failure::{Exit, Failure, Outcome};
use crate::output::{eprint_line, print_line};
use crate::{context, guard};

/// Reasons why a prompt cannot be answered with a command.
pub(super) const NOT_TOLD: &str = "its client does not tell what it asks";
pub(super) const DIALOG_ONLY: &str = "its client takes answers only in its own terminal";
pub(super) const OVER: &str = "it is over";

/// Time limit for the other machine: an SSH connection, and the 2 s that an agent has to take the answer.
const ANSWERS_WITHIN: Duration = Duration::from_secs(30);

/// A notification from another machine.
pub(super) struct RemotePrompt {
    machine: String,
    message: MessageId,
}

impl RemotePrompt {
    /// Returns `None` if the record is missing, or if it came from this machine.
    pub(super) fn of(record: Option<&Record>, journal: &mut Journal) -> Result<Option<Self>, Failure> {
        let Some(record) = record else { return Ok(None) };
        Self::of_message(&record.id, journal)
    }

    fn of_message(message: &MessageId, journal: &mut Journal) -> Result<Option<Self>, Failure> {
        let machine = journal.machine_of(message)?.flatten();
        Ok(machine.map(|machine| Self { machine, message: message.clone() }))
    }

    /// Passes an answer to the other machine, and prints the outcome. Without words it shows the prompt, and asks the person if
    /// there is a terminal.
    pub(super) fn answer(&self, words: &[String], as_json: bool, journal: &mut Journal) -> Outcome {
        let answered = self.ask(journal, words, as_json && words.is_empty())?;
        print(&answered)?;
        if as_json || !words.is_empty() {
            return Ok(());
        }
        if !can_ask() {
            return Err(no_answer(self.message.as_str()));
        }
        let question =
            format!("Answer for {} (allow, deny, a number or text; Enter to leave it): ", self.machine);
        let line = ask_for_line(&question)?.unwrap_or_default();
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        if words.is_empty() {
            eprint_line("Not answered.");
            return Ok(());
        }
        print(&self.give(&words, journal)?)
    }

    /// A question can be closed without an answer only on its own machine.
    pub(super) fn cannot_close(&self) -> Failure {
        let what = format!("a question of {} can be closed only there", self.machine);
        Failure::usage(what).hint("to answer it from here: ringer answer ID TEXT")
    }

    /// Passes an answer to the other machine.
    pub(super) fn give(&self, words: &[String], journal: &mut Journal) -> Result<AnswerOutput, Failure> {
        self.ask(journal, words, false)
    }

    /// Returns the whole prompt, and the reason if it cannot be answered from here.
    pub(super) fn details(
        &self,
        journal: &mut Journal,
    ) -> Result<(PromptContent, Option<&'static str>), Failure> {
        let answered = self.ask(journal, &[], true)?;
        let shown = serde_json::from_str::<PromptView>(&answered.text).ok().and_then(PromptView::details);
        shown.ok_or_else(|| {
            let what = format!("ringer on {} does not tell what is asked", self.machine);
            Failure::new(Exit::Unavailable, what).hint("install the same version on both")
        })
    }

    /// Runs `ringer answer` on the other machine, with an answer or to show the prompt. Refused if an agent runs this command.
    fn ask(&self, journal: &mut Journal, words: &[String], as_json: bool) -> Result<AnswerOutput, Failure> {
        let what = format!("answer what an agent on {} asks", self.machine);
        guard::only_a_person(journal, &ringer_core::Scope::global(), &what)?;
        self.connect(journal, words, as_json)
    }

    fn connect(
        &self,
        journal: &mut Journal,
        words: &[String],
        as_json: bool,
    ) -> Result<AnswerOutput, Failure> {
        let link = self.link()?;
        let (home, program) = (context::home()?, env!("CARGO_PKG_VERSION"));
        let id = self.message.as_str();
        if let Some(team) = TeamSetup::of(&home, &link.link()) {
            let answered = answer_in_team(&team, &self.machine, id, words, as_json);
            return self.answered(answered, words.is_empty());
        }
        let connected = RemoteRequest::begin(&home, &link.argv(), program, Purpose::Answer, ANSWERS_WITHIN);
        let connected = connected.and_then(|question| question.is_from(journal, &self.machine));
        self.answered(
            connected.and_then(
                |question| {
                    if as_json { question.show(id) } else { question.answer(id, words) }
                },
            ),
            words.is_empty(),
        )
    }

    /// Checks the outcome. Without an answer the other machine shows the prompt, and exits with the code for wrong usage.
    fn answered(
        &self,
        answered: Result<AnswerOutput, Error>,
        only_shows: bool,
    ) -> Result<AnswerOutput, Failure> {
        let answered = answered.map_err(|error| {
            let what = format!("{} cannot be asked: {}", self.machine, sanitise_line(&error.to_string()));
            Failure::new(Exit::Unavailable, what).hint("ringer relay status")
        })?;
        match answered.exit {
            0 => Ok(answered),
            exit if only_shows && exit == Exit::Usage as u8 && !answered.text.is_empty() => Ok(answered),
            exit => Err(failure(exit, &self.machine, &answered)),
        }
    }

    fn link(&self) -> Result<RelayEntry, Failure> {
        let machine = &self.machine;
        let found = relay::settings()?.relays.into_iter().find(|relay| relay.reaches(machine));
        let Some(link) = found else {
            let what = format!("{machine} is no machine that this one connects to");
            return Err(Failure::new(Exit::Unavailable, what).hint("answer it there, or: ringer relay add"));
        };
        // In a team, the machine on which the agent runs decides.
        if link.may_answer || link.nats.is_some() {
            return Ok(link);
        }
        let what = format!("what agents on {machine} ask may not be answered from here");
        Err(Failure::new(Exit::NoPermission, what)
            .hint(format!("set may_answer = true for {machine} in config.toml")))
    }
}

/// Passes on the answer from a popup, which only the person can press. Called for the hub.
pub(crate) fn answer_of_popup(journal: &mut Journal, message: &MessageId, words: &str) -> Outcome {
    let Some(remote) = RemotePrompt::of_message(message, journal)? else {
        return Err(Failure::new(Exit::Data, OVER));
    };
    let words = [words.to_owned()];
    remote.connect(journal, &words, false).map(drop)
}

/// The output of `ringer answer --json` on the other machine.
#[derive(serde::Deserialize)]
struct PromptView {
    open: bool,
    kind: String,
    content: Value,
}

/// A question of `ringer ask` in that output.
#[derive(serde::Deserialize)]
struct QuestionView {
    question: String,
    options: Vec<String>,
}

impl PromptView {
    /// Returns the prompt, and the reason if it cannot be answered from here. `None` if this version does not know its kind.
    fn details(self) -> Option<(PromptContent, Option<&'static str>)> {
        let over = (!self.open).then_some(OVER);
        match self.kind.as_str() {
            "question" => {
                let QuestionView { question: text, options } = serde_json::from_value(self.content).ok()?;
                let question = PromptQuestion { text, options, ..PromptQuestion::default() };
                Some((PromptContent::Questions(vec![question]), over))
            }
            "prompt" => {
                let prompt: Prompt = serde_json::from_value(self.content).ok()?;
                let only_there = (prompt.method == AnswerMethod::DialogOnly).then_some(DIALOG_ONLY);
                Some((prompt.content, over.or(only_there)))
            }
            _ => None,
        }
    }
}

fn print(answered: &AnswerOutput) -> Outcome {
    if answered.text.is_empty() { Ok(()) } else { print_line(&answered.text) }
}

/// Converts the failure of `ringer answer` on the other machine, with the same exit code.
fn failure(exit: u8, machine: &str, answered: &AnswerOutput) -> Failure {
    let known = [Exit::Usage, Exit::Data, Exit::Unavailable, Exit::TryAgain, Exit::NoPermission];
    let exit = known.into_iter().find(|known| *known as u8 == exit).unwrap_or(Exit::Unavailable);
    let mut lines = answered.error.lines();
    let first = lines.next().unwrap_or("it failed").trim_start_matches("error: ");
    let hint = lines.find_map(|line| line.strip_prefix("hint: ")).unwrap_or("ringer relay status");
    Failure::new(exit, format!("on {machine}: {}", sanitise_line(first)))
        .hint(format!("on {machine}: {}", sanitise_line(hint)))
}
