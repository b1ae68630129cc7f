//! Questions of programs in panes: the buttons of a notification become the options.

use std::os::fd::BorrowedFd;

use ringer_core::Sender;
use ringer_core::message::{MessageOrigin, QuestionId};
use ringer_journal::{Error, IdSource, Journal, OnParentExit, Repository};
use ringer_ui::{ProgramAnswer, ProgramQuestion};

use crate::commands::ask::{Asker, SentQuestion, store};
use crate::context;
use crate::failure::Failure;

/// The category of these questions, by which the next server of panes finds those that a killed one left open.
const CATEGORY: &str = "program_buttons";

/// Asks like `ringer ask --wait` in the pane, and closes the question on a hangup of `stop`.
pub(crate) fn ask(
    question: &ProgramQuestion,
    asked: &mut dyn FnMut(),
    stop: BorrowedFd<'_>,
) -> ProgramAnswer {
    let Ok(mut sent) = send(question) else { return ProgramAnswer::NotAsked };
    asked();
    match sent.journal.wait_for_answer(&mut sent.asked, None, Some(stop)) {
        Ok(Some(answered)) => chosen(answered.answer),
        Ok(None) | Err(_) => close(&mut sent.journal, &sent.asked.id),
    }
}

fn send(question: &ProgramQuestion) -> Result<SentQuestion, Failure> {
    let asker = Asker {
        // Not the agent of the worktree: the answer is for the program, and not for the agent's inbox.
        sender: Sender::system(),
        name: None,
        repository: Repository::around(&question.directory),
        origin: MessageOrigin {
            pid: question.pid,
            tty: question.tty.clone(),
            cwd: Some(question.directory.to_string_lossy().into_owned()),
            surface: Some(question.surface.clone()),
            workspace: question.workspace.clone(),
            ..MessageOrigin::default()
        },
        category: Some(CATEGORY.to_owned()),
    };
    let wait = Some(OnParentExit::Continue);
    store(context::journal()?, &question.text, &question.options, asker, wait)
}

/// Closes a question without an answer, unless the person has just answered it.
fn close(journal: &mut Journal, id: &QuestionId) -> ProgramAnswer {
    match journal.answer(id, None, &Sender::system(), &IdSource::now()) {
        Err(Error::Answered { answer, .. }) => chosen(answer),
        // If this cannot be written, the next server closes it.
        Ok(_) | Err(_) => ProgramAnswer::Closed,
    }
}

fn chosen(answer: Option<String>) -> ProgramAnswer {
    answer.map_or(ProgramAnswer::Closed, ProgramAnswer::Chosen)
}

pub(crate) fn close_all() -> Result<(), Failure> {
    let Some(mut journal) = Journal::open_existing(&context::home()?)? else { return Ok(()) };
    for id in journal.open_questions_of_category(CATEGORY)? {
        close(&mut journal, &id);
    }
    Ok(())
}
