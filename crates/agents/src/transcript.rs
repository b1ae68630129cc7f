//! The transcript of a session: what the client writes shows which of two answers it took.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use ringer_core::agent::Answer;
use ringer_journal::StoredPrompt;
use ringer_platform::owned;

use crate::client::{Client, DENIED, ReadResults};

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
    use std::io::Write;

    use ringer_core::Scope;
    use ringer_core::agent::{AnswerMethod, Prompt, PromptContent};
    use ringer_core::message::Agent;
    use serde_json::json;

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
