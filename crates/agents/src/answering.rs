//! Gives an answer to an agent's prompt, and says whether the client has taken it.

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
    let Some(info) = journal.agent_info(&prompt.agent)? else { return Ok(AnswerResult::Over) };
    let mut answering = Answering { journal, paths, prompt, decision, origin, clock, info };
    match prompt.prompt.method {
        AnswerMethod::WaitingHook => answering.through_hook(),
        AnswerMethod::ClientServer => answering.through_server(),
        _ => Ok(dialog_only("its client takes answers only in its own terminal")),
    }
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

fn dialog_only(why: &str) -> AnswerResult {
    AnswerResult::DialogOnly(why.to_owned())
}

/// An answer on its way.
struct Answering<'a> {
    journal: &'a mut Journal,
    paths: &'a ClientPaths,
    prompt: &'a StoredPrompt,
    decision: &'a Decision,
    origin: &'a MessageOrigin,
    clock: &'a dyn Fn() -> Duration,
    /// The agent that asks.
    info: AgentInfo,
}

impl Answering<'_> {
    /// Gives it to the hook that waits beside the dialog.
    fn through_hook(&mut self) -> Result<AnswerResult, JournalError> {
        if let Some(before) = &self.prompt.decision {
            return Ok(AnswerResult::AnsweredBefore(before.clone()));
        }
        if !self.is_waited_for_soon()? {
            return Ok(dialog_only("the hook that waited beside its dialog has ended"));
        }
        let transcript =
            self.info.client.parse().ok().and_then(|client| Transcript::begin(client, self.prompt));
        match self.decide()? {
            Some(not_accepted) => Ok(not_accepted),
            None => self.confirm(transcript),
        }
    }

    /// Gives it to the client's own server.
    fn through_server(&mut self) -> Result<AnswerResult, JournalError> {
        let (paths, content) = (self.paths, &self.prompt.prompt.content);
        // What cannot be given is not written down as a decision.
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
                self.note_went_on()?;
                return Ok(AnswerResult::Taken);
            }
            Ok(AnswerOutcome::NotConfirmed) => AnswerResult::NotConfirmed,
            Ok(AnswerOutcome::NothingWaits) => AnswerResult::Over,
            Err(error) => AnswerResult::DialogOnly(error.to_string()),
        };
        // Another answer may be given: the server takes one only.
        self.journal.withdraw_decision(self.prompt)?;
        Ok(result)
    }

    /// Writes it down. Gives the result if it is not the first, or too late.
    fn decide(&mut self) -> Result<Option<AnswerResult>, JournalError> {
        let outcome = self.journal.decide(self.prompt, self.decision, self.origin, &IdSource::now())?;
        Ok(match outcome {
            DecideOutcome::Accepted => None,
            DecideOutcome::AnsweredBefore(before) => Some(AnswerResult::AnsweredBefore(before)),
            _ => Some(AnswerResult::Over),
        })
    }

    /// Whether a hook waits for it. The hook of a prompt that has only just come may be on its way.
    fn is_waited_for_soon(&mut self) -> Result<bool, JournalError> {
        loop {
            if self.journal.is_waited_for(&self.prompt.key)? {
                return Ok(true);
            }
            let age_ms = IdSource::now().unix_ms.saturating_sub(self.prompt.asked_ms);
            if !(0..HOOK_COMES_WITHIN_MS).contains(&age_ms) {
                return Ok(false);
            }
            sleep(LOOK_EVERY);
        }
    }

    /// Waits until the client shows that it has taken it.
    fn confirm(&mut self, mut transcript: Option<Transcript>) -> Result<AnswerResult, JournalError> {
        let answer = &self.decision.answer;
        let needs_proof = matches!(answer, Answer::Deny { .. } | Answer::Choices(_));
        let deadline = Instant::now() + CONFIRM_WITHIN;
        loop {
            let Some(now) = self.journal.prompt(&self.prompt.key)? else { return Ok(AnswerResult::Over) };
            // The answer is taken back where the client says that it took another one.
            let (is_handed, is_over) =
                (now.handed_ms.is_some() && now.decision.is_some(), now.ended_ms.is_some());
            let activity = if is_handed { self.activity() } else { None };
            let went_on = is_over || activity == Some(SessionActivity::Busy);
            // The client does not say whose answer it took. Where two differ, its transcript tells.
            let shown =
                transcript.as_mut().filter(|_| needs_proof).map(|transcript| transcript.shows(answer));
            let is_taken = is_handed && went_on && shown.is_none_or(|shown| shown == ShownResult::Own);
            let another_was_first = is_over && (!is_handed || shown == Some(ShownResult::Other));
            // It waits for the next instruction: the dialog was left with No.
            let is_left = is_handed && !is_over && activity == Some(SessionActivity::Idle);
            if is_taken || another_was_first || is_left {
                if went_on && !is_over {
                    self.note_went_on()?;
                }
                return Ok(if is_taken { AnswerResult::Taken } else { AnswerResult::Over });
            }
            if Instant::now() >= deadline {
                break;
            }
            sleep(LOOK_EVERY);
        }
        // A hook that never came to read it: another answer may be given.
        if !self.journal.is_waited_for(&self.prompt.key)? {
            self.journal.withdraw_decision(self.prompt)?;
        }
        Ok(AnswerResult::NotConfirmed)
    }

    /// What the session does, where its client says so.
    fn activity(&self) -> Option<SessionActivity> {
        let client: Client = self.info.client.parse().ok()?;
        Some(find_session(client, self.paths, &self.info.session_id)?.status?.activity)
    }

    fn note_went_on(&mut self) -> Result<(), JournalError> {
        note_went_on(self.journal, &self.prompt.agent, &self.prompt.call, (self.clock)())
    }
}

/// How much is read at once. A result of a tool is seldom longer; of a longer one the beginning tells.
const MAX_READ: u64 = 1024 * 1024;

/// What comes into a transcript from now on.
#[derive(Debug)]
pub(crate) struct Transcript {
    file: File,
    /// The end of the last whole line that was read.
    read_to: u64,
    results: ReadResults,
    shown: ShownResult,
}

/// What the results in a transcript show of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ShownResult {
    /// There is none yet.
    None,
    /// None repeats the answer: another answer was first, or they are of other tools.
    Other,
    /// One repeats the answer.
    Own,
}

impl Transcript {
    /// Begins at the end of the file. `None` for a client without one.
    pub(crate) fn begin(client: Client, prompt: &StoredPrompt) -> Option<Self> {
        let hooks = client.adapter().prompts.as_ref()?;
        // A hook says where it is, so anything may be there.
        let file = owned::open(Path::new(prompt.prompt.transcript.as_ref()?)).ok()?;
        let read_to = file.metadata().ok()?.len();
        Some(Self { file, read_to, results: hooks.results?, shown: ShownResult::None })
    }

    /// What it shows by now of an answer.
    pub(crate) fn shows(&mut self, answer: &Answer) -> ShownResult {
        let mut own = answer.own_texts();
        if own.is_empty() {
            own.push(DENIED);
        }
        let results = self.new_results();
        if results.iter().any(|result| own.iter().all(|text| result.contains(text))) {
            self.shown = ShownResult::Own;
        } else if !results.is_empty() && self.shown == ShownResult::None {
            self.shown = ShownResult::Other;
        }
        self.shown
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
        assert_eq!(transcript.shows(&not_on_main), ShownResult::None, "what was there before tells nothing");
        file.write_all(b"{\"type\":\"assistant\"}\n{\"type\":").unwrap();
        assert_eq!(transcript.shows(&not_on_main), ShownResult::None);
        file.write_all(b"1}\n").unwrap();
        file.write_all(result("File created").as_bytes()).unwrap();
        assert_eq!(transcript.shows(&not_on_main), ShownResult::Other);
        file.write_all(result("not on main").as_bytes()).unwrap();
        assert_eq!(transcript.shows(&not_on_main), ShownResult::Own);
        assert_eq!(transcript.shows(&not_on_main), ShownResult::Own, "also when nothing has come since");
        let mut transcript = begin();
        file.write_all(result(DENIED).as_bytes()).unwrap();
        assert_eq!(transcript.shows(&deny(None)), ShownResult::Own);
        let mut transcript = begin();
        file.write_all(result("You answered: \"Which?\"=\"Beta\"").as_bytes()).unwrap();
        assert_eq!(transcript.shows(&Answer::Choices(vec![vec!["Beta".into()]])), ShownResult::Own);
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
