//! Answers an agent's prompt, and checks whether the client took the answer.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use ringer_core::agent::{Answer, AnswerMethod};
use ringer_core::message::MessageOrigin;
use ringer_journal::{
    AgentInfo, DecideOutcome, Decision, Error as JournalError, IdSource, Journal, StoredPrompt,
};
use ringer_platform::owned;

use crate::client::{Client, ClientPaths, DENIED, ReadResults, SessionActivity};
use crate::codex_server::{self, AnswerOutcome};
use crate::sessions::find_session;
use crate::waiting_hook::record_resumed;

/// How long to wait until the client continues.
const CONFIRM_WITHIN: Duration = Duration::from_secs(2);
/// Grace period in which the waiting hook of a new prompt may still start. It first checks that a dialog is shown.
const HOOK_STARTS_WITHIN_MS: i64 = 3000;
const LOOK_EVERY: Duration = Duration::from_millis(15);

/// The outcome of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum AnswerResult {
    /// The client took the answer.
    Taken,
    /// The answer was sent, and the client has not yet shown that it took it.
    NotConfirmed,
    /// Another answer came first.
    AnsweredBefore(Decision),
    /// The prompt has ended: it was answered in its dialog, or the agent no longer asks.
    Over,
    /// The prompt can only be answered in its dialog, for this reason.
    DialogOnly(String),
}

/// Answers a prompt through the hook that waits beside it, or through the client's server.
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
    let Some(info) = journal.agent_info(&prompt.agent)? else { return Ok(AnswerResult::Over) };
    let mut delivery = AnswerDelivery { journal, paths, prompt, decision, origin, clock, info };
    match prompt.prompt.method {
        AnswerMethod::WaitingHook => delivery.send_through_hook(),
        AnswerMethod::ClientServer => delivery.send_through_server(),
        _ => Ok(dialog_only("its client takes answers only in its own terminal")),
    }
}

/// Completes a prompt from the client's server: what `always` would allow, which hooks may not know.
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

fn dialog_only(why: &str) -> AnswerResult {
    AnswerResult::DialogOnly(why.to_owned())
}

/// An answer that is being delivered.
struct AnswerDelivery<'a> {
    journal: &'a mut Journal,
    paths: &'a ClientPaths,
    prompt: &'a StoredPrompt,
    decision: &'a Decision,
    origin: &'a MessageOrigin,
    clock: &'a dyn Fn() -> Duration,
    info: AgentInfo,
}

impl AnswerDelivery<'_> {
    fn send_through_hook(&mut self) -> Result<AnswerResult, JournalError> {
        if let Some(before) = &self.prompt.decision {
            return Ok(AnswerResult::AnsweredBefore(before.clone()));
        }
        if !self.wait_for_hook()? {
            return Ok(dialog_only("the hook that waited beside its dialog has ended"));
        }
        let transcript =
            self.info.client.parse().ok().and_then(|client| Transcript::begin(client, self.prompt));
        match self.decide()? {
            Some(not_accepted) => Ok(not_accepted),
            None => self.confirm(transcript),
        }
    }

    fn send_through_server(&mut self) -> Result<AnswerResult, JournalError> {
        let (paths, content) = (self.paths, &self.prompt.prompt.content);
        // Check first: an answer that cannot be delivered must not be recorded as a decision.
        match codex_server::shown_prompt(paths, &self.info.session_id, content) {
            Ok(Some(_)) => {}
            Ok(None) => return Ok(AnswerResult::Over),
            Err(error) => return Ok(AnswerResult::DialogOnly(error.to_string())),
        }
        if let Some(not_accepted) = self.decide()? {
            return Ok(not_accepted);
        }
        let result = match codex_server::answer(paths, &self.info.session_id, content, &self.decision.answer)
        {
            Ok(AnswerOutcome::Taken) => {
                self.journal.note_answer_handed(&self.prompt.key, IdSource::now().unix_ms)?;
                self.record_resumed()?;
                return Ok(AnswerResult::Taken);
            }
            Ok(AnswerOutcome::NotConfirmed) => AnswerResult::NotConfirmed,
            Ok(AnswerOutcome::NothingPending) => AnswerResult::Over,
            Err(error) => AnswerResult::DialogOnly(error.to_string()),
        };
        // Allow another answer: the server takes only one.
        self.journal.withdraw_decision(self.prompt)?;
        Ok(result)
    }

    /// Records the decision. Returns the result if another answer came first or the prompt has ended.
    fn decide(&mut self) -> Result<Option<AnswerResult>, JournalError> {
        let outcome = self.journal.decide(self.prompt, self.decision, self.origin, &IdSource::now())?;
        Ok(match outcome {
            DecideOutcome::Accepted => None,
            DecideOutcome::AnsweredBefore(before) => Some(AnswerResult::AnsweredBefore(before)),
            _ => Some(AnswerResult::Over),
        })
    }

    /// Returns true if a hook waits for this prompt. Waits for the hook of a new prompt, which may still be starting.
    fn wait_for_hook(&mut self) -> Result<bool, JournalError> {
        loop {
            if self.journal.is_waited_for(&self.prompt.key)? {
                return Ok(true);
            }
            let age_ms = IdSource::now().unix_ms.saturating_sub(self.prompt.asked_ms);
            if !(0..HOOK_STARTS_WITHIN_MS).contains(&age_ms) {
                return Ok(false);
            }
            sleep(LOOK_EVERY);
        }
    }

    /// Waits until the client shows that it took the answer.
    fn confirm(&mut self, mut transcript: Option<Transcript>) -> Result<AnswerResult, JournalError> {
        let answer = &self.decision.answer;
        let needs_proof = matches!(answer, Answer::Deny { .. } | Answer::Choices(_));
        let deadline = Instant::now() + CONFIRM_WITHIN;
        loop {
            let Some(now) = self.journal.prompt(&self.prompt.key)? else { return Ok(AnswerResult::Over) };
            // The journal withdraws the decision if the client reports that it took another answer.
            let (is_delivered, is_over) =
                (now.handed_ms.is_some() && now.decision.is_some(), now.ended_ms.is_some());
            let activity = if is_delivered { self.activity() } else { None };
            let has_resumed = is_over || activity == Some(SessionActivity::Busy);
            // The client does not report whose answer it took. If two differ, its transcript shows which one.
            let evidence =
                transcript.as_mut().filter(|_| needs_proof).map(|transcript| transcript.evidence(answer));
            let is_taken = is_delivered
                && has_resumed
                && evidence.is_none_or(|evidence| evidence == AnswerEvidence::Own);
            let another_was_first = is_over && (!is_delivered || evidence == Some(AnswerEvidence::Other));
            // The session waits for its next prompt: the person closed the dialog with No.
            let is_left = is_delivered && !is_over && activity == Some(SessionActivity::Idle);
            if is_taken || another_was_first || is_left {
                if has_resumed && !is_over {
                    self.record_resumed()?;
                }
                return Ok(if is_taken { AnswerResult::Taken } else { AnswerResult::Over });
            }
            if Instant::now() >= deadline {
                break;
            }
            sleep(LOOK_EVERY);
        }
        // The hook ended without reading the decision. Allow another answer.
        if !self.journal.is_waited_for(&self.prompt.key)? {
            self.journal.withdraw_decision(self.prompt)?;
        }
        Ok(AnswerResult::NotConfirmed)
    }

    /// What the session is doing, if the client publishes it.
    fn activity(&self) -> Option<SessionActivity> {
        let client: Client = self.info.client.parse().ok()?;
        Some(find_session(client, self.paths, &self.info.session_id)?.status?.activity)
    }

    fn record_resumed(&mut self) -> Result<(), JournalError> {
        record_resumed(self.journal, &self.prompt.agent, &self.prompt.call, (self.clock)())
    }
}

/// Maximum bytes per read. Tool results are seldom longer; the beginning of a longer one is enough.
const MAX_READ: u64 = 1024 * 1024;

/// The lines that a client adds to a session's transcript from now on. They show which of two answers the client took.
#[derive(Debug)]
pub(crate) struct Transcript {
    file: File,
    /// Offset after the last complete line.
    read_to: u64,
    results: ReadResults,
    evidence: AnswerEvidence,
}

/// What the tool results in a transcript say about an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnswerEvidence {
    /// No results yet.
    None,
    /// No result repeats the answer: another answer came first, or the results belong to other tools.
    Other,
    /// A result repeats the answer.
    Own,
}

impl Transcript {
    /// Starts at the end of the file. `None` for a client without transcripts.
    pub(crate) fn begin(client: Client, prompt: &StoredPrompt) -> Option<Self> {
        let hooks = client.adapter().prompts.as_ref()?;
        // The path comes from a hook's input and may name anything.
        let file = owned::open(Path::new(prompt.prompt.transcript.as_ref()?)).ok()?;
        let read_to = file.metadata().ok()?.len();
        Some(Self { file, read_to, results: hooks.results?, evidence: AnswerEvidence::None })
    }

    /// The evidence so far.
    pub(crate) fn evidence(&mut self, answer: &Answer) -> AnswerEvidence {
        let mut own = answer.own_texts();
        if own.is_empty() {
            own.push(DENIED);
        }
        let results = self.new_results();
        if results.iter().any(|result| own.iter().all(|text| result.contains(text))) {
            self.evidence = AnswerEvidence::Own;
        } else if !results.is_empty() && self.evidence == AnswerEvidence::None {
            self.evidence = AnswerEvidence::Other;
        }
        self.evidence
    }

    fn new_results(&mut self) -> Vec<String> {
        let mut bytes = Vec::new();
        let read = self.file.seek(SeekFrom::Start(self.read_to));
        if read.and_then(|_| (&self.file).take(MAX_READ).read_to_end(&mut bytes)).is_err() {
            return Vec::new();
        }
        let Some(end) = bytes.iter().rposition(|byte| *byte == b'\n') else { return Vec::new() };
        self.read_to += u64::try_from(end).unwrap_or(0) + 1;
        bytes[..end].split(|byte| *byte == b'\n').flat_map(self.results).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringer_core::Scope;
    use ringer_core::agent::{Prompt, PromptContent};
    use ringer_core::message::Agent;
    use serde_json::json;
    use std::io::Write;

    fn deny(reason: Option<&str>) -> Answer {
        Answer::Deny { reason: reason.map(str::to_owned) }
    }

    fn prompt(transcript: &str) -> StoredPrompt {
        StoredPrompt {
            key: "k".into(),
            agent: Agent::new("claude-1").unwrap(),
            scope: Scope::global(),
            call: "c".into(),
            asked_ms: 0,
            prompt: Prompt {
                content: PromptContent::Plan { text: "x".into(), whole: true },
                method: AnswerMethod::WaitingHook,
                transcript: Some(transcript.to_owned()),
            },
            decision: None,
            handed_ms: None,
            ended_ms: None,
        }
    }

    #[test]
    fn the_result_that_comes_says_whose_answer_it_was() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let result = |text: &str| {
            let part = json!({ "type": "tool_result", "content": text, "is_error": true });
            format!("{}\n", json!({ "type": "user", "message": { "content": [part] } }))
        };
        file.write_all(result("not on main").as_bytes()).unwrap();
        let prompt = prompt(file.path().to_str().unwrap());
        let begin = || Transcript::begin(Client::Claude, &prompt).unwrap();
        let mut transcript = begin();
        let not_on_main = deny(Some("not on main"));
        assert_eq!(
            transcript.evidence(&not_on_main),
            AnswerEvidence::None,
            "what was there before tells nothing"
        );
        file.write_all(b"{\"type\":\"assistant\"}\n{\"type\":").unwrap();
        assert_eq!(transcript.evidence(&not_on_main), AnswerEvidence::None);
        file.write_all(b"1}\n").unwrap();
        file.write_all(result("File created").as_bytes()).unwrap();
        assert_eq!(transcript.evidence(&not_on_main), AnswerEvidence::Other);
        file.write_all(result("not on main").as_bytes()).unwrap();
        assert_eq!(transcript.evidence(&not_on_main), AnswerEvidence::Own);
        assert_eq!(
            transcript.evidence(&not_on_main),
            AnswerEvidence::Own,
            "also when nothing has come since"
        );
        let mut transcript = begin();
        file.write_all(result(DENIED).as_bytes()).unwrap();
        assert_eq!(transcript.evidence(&deny(None)), AnswerEvidence::Own);
        let mut transcript = begin();
        file.write_all(result("You answered: \"Which?\"=\"Beta\"").as_bytes()).unwrap();
        assert_eq!(transcript.evidence(&Answer::Choices(vec![vec!["Beta".into()]])), AnswerEvidence::Own);
        assert!(Transcript::begin(Client::Opencode, &prompt).is_none());
    }

    #[test]
    fn what_is_no_file_in_place_of_a_transcript_is_not_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("transcript.jsonl");
        let permissions = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, permissions, 0).unwrap();
        for path in [path.to_str().unwrap(), "/dev/zero", directory.path().to_str().unwrap(), "relative", ""]
        {
            assert!(Transcript::begin(Client::Claude, &prompt(path)).is_none(), "{path}");
        }
    }
}
