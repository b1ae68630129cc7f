//! Gives an answer to an agent's prompt, and says whether the client has taken it.

use std::thread::sleep;
use std::time::{Duration, Instant};

use ringer_core::agent::{Answer, AnswerMethod};
use ringer_core::message::MessageOrigin;
use ringer_journal::{DecideOutcome, Decision, Error as JournalError, IdSource, Journal, StoredPrompt};

use crate::client::{Client, ClientPaths, SessionActivity};
use crate::codex_server::{self, AnswerOutcome};
use crate::sessions::find_session;
use crate::transcript::{ShownResult, Transcript};
use crate::waiting_hook::note_went_on;

/// How long the client may take to go on.
const CONFIRM_WITHIN: Duration = Duration::from_secs(2);
/// How old a prompt may be whose hook does not wait yet. It first makes sure that a dialog is shown.
const HOOK_COMES_WITHIN_MS: i64 = 3000;
const LOOK_EVERY: Duration = Duration::from_millis(15);

/// What became of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum AnswerResult {
    /// The client has taken it.
    Taken,
    /// It was sent, and the client has not shown yet that it has taken it.
    NotConfirmed,
    /// Another answer was first.
    AnsweredBefore(Decision),
    /// The prompt was over: it was answered in its dialog, or the agent no longer asks.
    Over,
    /// It can only be answered in its dialog.
    DialogOnly(String),
}

/// Gives an answer to a prompt.
pub fn give_answer(
    journal: &mut Journal,
    paths: &ClientPaths,
    prompt: &StoredPrompt,
    decision: &Decision,
    origin: &MessageOrigin,
    clock: &dyn Fn() -> Duration,
) -> Result<AnswerResult, JournalError> {
    if prompt.ended_ms.is_some() {
        return Ok(AnswerResult::Over);
    }
    match prompt.prompt.method {
        AnswerMethod::WaitingHook => {}
        AnswerMethod::ClientServer => {
            return answer_through_server(journal, paths, prompt, decision, origin, clock);
        }
        _ => return Ok(dialog_only("its client takes answers only in its own terminal")),
    }
    if let Some(before) = &prompt.decision {
        return Ok(AnswerResult::AnsweredBefore(before.clone()));
    }
    if !is_waited_for_soon(journal, prompt)? {
        return Ok(dialog_only("the hook that waited beside its dialog has ended"));
    }
    let info = journal.agent_info(&prompt.agent)?;
    let session = info.and_then(|info| Some((info.client.parse::<Client>().ok()?, info.session_id)));
    let transcript = session.as_ref().and_then(|(client, _)| Transcript::begin(*client, prompt));
    match journal.decide(prompt, decision, origin, &IdSource::now())? {
        DecideOutcome::Accepted => {}
        DecideOutcome::AnsweredBefore(before) => return Ok(AnswerResult::AnsweredBefore(before)),
        _ => return Ok(AnswerResult::Over),
    }
    let session = session.as_ref().map(|(client, id)| (*client, id.as_str()));
    confirm(journal, (paths, session), (prompt, &decision.answer), transcript, clock)
}

/// Whether a hook waits for the answer. The hook of a prompt that has only just come may be on its way.
fn is_waited_for_soon(journal: &mut Journal, prompt: &StoredPrompt) -> Result<bool, JournalError> {
    loop {
        if journal.is_waited_for(&prompt.key)? {
            return Ok(true);
        }
        let age_ms = IdSource::now().unix_ms.saturating_sub(prompt.asked_ms);
        if !(0..HOOK_COMES_WITHIN_MS).contains(&age_ms) {
            return Ok(false);
        }
        sleep(LOOK_EVERY);
    }
}

fn dialog_only(why: &str) -> AnswerResult {
    AnswerResult::DialogOnly(why.to_owned())
}

/// Adds what the client's server says of a prompt: what `always` would allow, of which hooks may not know.
pub fn add_details(
    journal: &mut Journal,
    paths: &ClientPaths,
    prompt: &mut StoredPrompt,
) -> Result<(), JournalError> {
    if prompt.prompt.method != AnswerMethod::ClientServer || prompt.ended_ms.is_some() {
        return Ok(());
    }
    let Some(info) = journal.agent_info(&prompt.agent)? else { return Ok(()) };
    if let Ok(Some(waiting)) = codex_server::shown_prompt(paths, &info.session_id, &prompt.prompt.content) {
        prompt.prompt = waiting;
    }
    Ok(())
}

/// Gives an answer through the client's own server.
fn answer_through_server(
    journal: &mut Journal,
    paths: &ClientPaths,
    prompt: &StoredPrompt,
    decision: &Decision,
    origin: &MessageOrigin,
    clock: &dyn Fn() -> Duration,
) -> Result<AnswerResult, JournalError> {
    let Some(info) = journal.agent_info(&prompt.agent)? else { return Ok(AnswerResult::Over) };
    let (session_id, content) = (&info.session_id, &prompt.prompt.content);
    // What cannot be given is not written down as a decision.
    match codex_server::shown_prompt(paths, session_id, content) {
        Ok(Some(_)) => {}
        Ok(None) => return Ok(AnswerResult::Over),
        Err(error) => return Ok(AnswerResult::DialogOnly(error.to_string())),
    }
    match journal.decide(prompt, decision, origin, &IdSource::now())? {
        DecideOutcome::Accepted => {}
        DecideOutcome::AnsweredBefore(before) => return Ok(AnswerResult::AnsweredBefore(before)),
        _ => return Ok(AnswerResult::Over),
    }
    let result = match codex_server::answer(paths, session_id, content, &decision.answer) {
        Ok(AnswerOutcome::Taken) => {
            journal.note_answer_handed(&prompt.key, IdSource::now().unix_ms)?;
            note_went_on(journal, &prompt.agent, &prompt.call, clock())?;
            return Ok(AnswerResult::Taken);
        }
        Ok(AnswerOutcome::NotConfirmed) => AnswerResult::NotConfirmed,
        Ok(AnswerOutcome::NothingWaits) => AnswerResult::Over,
        Err(error) => AnswerResult::DialogOnly(error.to_string()),
    };
    // Another answer may be given: the server takes one only.
    journal.withdraw_decision(prompt)?;
    Ok(result)
}

/// Waits until the client shows that it has taken the answer.
fn confirm(
    journal: &mut Journal,
    (paths, session): (&ClientPaths, Option<(Client, &str)>),
    (prompt, answer): (&StoredPrompt, &Answer),
    mut transcript: Option<Transcript>,
    clock: &dyn Fn() -> Duration,
) -> Result<AnswerResult, JournalError> {
    let needs_proof = matches!(answer, Answer::Deny { .. } | Answer::Choices(_));
    let deadline = Instant::now() + CONFIRM_WITHIN;
    loop {
        let Some(now) = journal.prompt(&prompt.key)? else { return Ok(AnswerResult::Over) };
        let is_handed = now.handed_ms.is_some();
        let activity = session
            .filter(|_| is_handed)
            .and_then(|(client, session_id)| Some(find_session(client, paths, session_id)?.status?.activity));
        let is_over = now.ended_ms.is_some();
        let went_on = is_over || activity == Some(SessionActivity::Busy);
        // The client does not say whose answer it took. Where two differ, its transcript tells.
        let shown = transcript.as_mut().filter(|_| needs_proof).map(|transcript| transcript.shows(answer));
        let is_taken = is_handed && went_on && shown.is_none_or(|shown| shown == ShownResult::Own);
        let another_was_first = match shown {
            _ if !is_handed => is_over,
            Some(shown) => is_over && shown == ShownResult::Other,
            None => false,
        };
        // It waits for the next instruction: the dialog was left with No.
        let is_left = is_handed && !is_over && activity == Some(SessionActivity::Idle);
        let result = if is_taken {
            Some(AnswerResult::Taken)
        } else {
            (another_was_first || is_left).then_some(AnswerResult::Over)
        };
        if let Some(result) = result {
            if went_on && !is_over {
                note_went_on(journal, &prompt.agent, &prompt.call, clock())?;
            }
            return Ok(result);
        }
        if Instant::now() >= deadline {
            break;
        }
        sleep(LOOK_EVERY);
    }
    // A hook that never came to read it: another answer may be given.
    if !journal.is_waited_for(&prompt.key)? {
        journal.withdraw_decision(prompt)?;
    }
    Ok(AnswerResult::NotConfirmed)
}
