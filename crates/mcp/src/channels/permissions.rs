//! Relays the agent's permission requests to a chat, and matches the answers.

use std::collections::BTreeMap;

use ringer_core::agent::{AnswerMethod, PromptContent};
use ringer_core::conversation::{
    AdmittedSender, Error, PermissionRelay, PermissionRequestId, PermissionVerdict, RelayedMessage,
};
use ringer_core::message::Agent;
use ringer_journal::StoredPrompt;
use ringer_term::escape_hidden;

use super::protocol::permission_request;

/// The longest request that is relayed, in bytes. A request must be readable in full to be allowed, and Discord, for example,
/// cuts messages at 2,000 characters.
const MAX_REQUEST: usize = 1_500;
/// The most lines, and the longest run of blanks: a reader may miss text below or after them.
const MAX_LINES: usize = 30;
const MAX_BLANKS: usize = 40;
/// The most requests relayed at the same time. Others follow when one is closed.
const MAX_RELAYED: usize = 8;

/// The requests that were relayed to one server.
#[derive(Debug, Default)]
pub(super) struct PermissionRequests {
    relay: PermissionRelay,
    /// Keyed by prompt, while the prompt is open.
    ids: BTreeMap<String, PermissionRequestId>,
}

/// An answer to pass on to the agent.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RelayedAnswer {
    /// The key of the prompt.
    pub(super) key: String,
    pub(super) verdict: PermissionVerdict,
}

/// The meaning of a chat message or a verdict.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ChatReply {
    /// The first answer to a request.
    Answer(RelayedAnswer),
    /// An answer to a request that is closed.
    TooLate,
    /// Not an answer.
    Message,
}

impl PermissionRequests {
    /// Updates the open prompts. Returns the lines that relay new requests to the server.
    pub(super) fn update(
        &mut self,
        agent: &Agent,
        open: &[StoredPrompt],
        mut random: impl FnMut() -> u32,
    ) -> Vec<Vec<u8>> {
        let open: Vec<RelayablePrompt<'_>> =
            open.iter().filter(|prompt| prompt.agent == *agent).filter_map(RelayablePrompt::of).collect();
        let relay = &mut self.relay;
        self.ids.retain(|key, id| {
            let prompt = open.iter().find(|relayable| relayable.prompt.key == *key);
            match prompt {
                // If there was an answer, the client did not accept it and it was withdrawn: allow another one.
                Some(relayable) if relayable.prompt.decision.is_none() => drop(relay.ask_as(id.clone())),
                _ => drop(relay.withdraw(id)),
            }
            prompt.is_some()
        });
        let mut lines = Vec::new();
        for RelayablePrompt { prompt, tool, request } in open {
            if prompt.decision.is_some()
                || self.ids.contains_key(&prompt.key)
                || self.ids.len() >= MAX_RELAYED
            {
                continue;
            }
            let Ok(id) = self.relay.ask(random()) else { break };
            lines.push(permission_request(&id, &tool, &request));
            self.ids.insert(prompt.key.clone(), id);
        }
        lines
    }

    /// Handles a message of an admitted sender.
    pub(super) fn receive(&mut self, sender: AdmittedSender<'_>, text: &str) -> ChatReply {
        let message = self.relay.receive(sender, text);
        self.match_reply(message)
    }

    /// Handles a verdict that the server reports.
    pub(super) fn receive_verdict(
        &mut self,
        request_id: &str,
        verdict: PermissionVerdict,
    ) -> Result<ChatReply, Error> {
        let message = self.relay.receive_verdict(request_id, verdict)?;
        Ok(self.match_reply(message))
    }

    fn match_reply(&self, message: RelayedMessage) -> ChatReply {
        match message {
            RelayedMessage::Answer { id, verdict } => {
                let key = self.ids.iter().find(|(_, own)| **own == id).map(|(key, _)| key.clone());
                key.map_or(ChatReply::TooLate, |key| ChatReply::Answer(RelayedAnswer { key, verdict }))
            }
            RelayedMessage::TooLate { .. } => ChatReply::TooLate,
            RelayedMessage::Message => ChatReply::Message,
        }
    }
}

/// A prompt as it appears in a chat: the tool and the whole request, with hidden characters made visible.
struct RelayablePrompt<'a> {
    prompt: &'a StoredPrompt,
    tool: String,
    request: String,
}

impl<'a> RelayablePrompt<'a> {
    /// Returns `None` unless this is a permission request that can be shown in full and answered from here.
    fn of(prompt: &'a StoredPrompt) -> Option<Self> {
        let PromptContent::Permission(request) = &prompt.prompt.content else { return None };
        let tool = escape_hidden(&request.tool).into_owned();
        let lines: Vec<String> =
            request.request.split('\n').map(|line| escape_hidden(line).into_owned()).collect();
        let text = lines.join("\n");
        // The tool's name is sent twice: as name and as description.
        let fits = 2 * tool.len() + text.len() <= MAX_REQUEST && lines.len() <= MAX_LINES;
        let is_shown = request.whole && fits && longest_blanks(&text) <= MAX_BLANKS;
        let can_be_answered = prompt.prompt.method != AnswerMethod::DialogOnly;
        (is_shown && can_be_answered).then_some(Self { prompt, tool, request: text })
    }
}

fn longest_blanks(text: &str) -> usize {
    let (mut longest, mut run) = (0, 0);
    for character in text.chars() {
        run = if character.is_whitespace() { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    longest
}

#[cfg(test)]
mod tests {
    use ringer_core::agent::{Answer, PermissionRequest, Prompt};
    use ringer_core::attention::AnsweredWith;
    use ringer_core::{Scope, Sender};
    use ringer_journal::Decision;
    use serde_json::Value;

    use super::*;

    fn prompt(key: &str, agent: &str, request: &str) -> StoredPrompt {
        let content = PromptContent::Permission(PermissionRequest {
            tool: "Bash".to_owned(),
            request: request.to_owned(),
            whole: true,
            always: Vec::new(),
        });
        StoredPrompt {
            key: key.to_owned(),
            agent: Agent::new(agent).unwrap(),
            scope: Scope::global(),
            call: key.to_owned(),
            asked_ms: 1,
            prompt: Prompt { content, method: AnswerMethod::WaitingHook, transcript: None },
            decision: None,
            handed_ms: None,
            ended_ms: None,
        }
    }

    fn decided() -> Decision {
        let (by, with) = (Sender::person(), AnsweredWith::Command);
        Decision { answer: Answer::Allow, by, with, at_ms: 2 }
    }

    /// Relays the requests of these prompts. Returns the ids and texts that the server receives.
    fn update(requests: &mut PermissionRequests, open: &[StoredPrompt]) -> Vec<(String, String)> {
        let lines = requests.update(&Agent::new("a").unwrap(), open, || 7);
        let read = |line: &Vec<u8>| serde_json::from_slice::<Value>(line).unwrap()["params"].clone();
        let text = |params: &Value, name: &str| params[name].as_str().unwrap().to_owned();
        let relayed = lines.iter().map(read);
        relayed.map(|params| (text(&params, "request_id"), text(&params, "input_preview"))).collect()
    }

    fn answer(key: &str, verdict: PermissionVerdict) -> ChatReply {
        ChatReply::Answer(RelayedAnswer { key: key.to_owned(), verdict })
    }

    #[test]
    fn each_request_is_relayed_once_and_answered_once() {
        let mut requests = PermissionRequests::default();
        let open = [prompt("1", "a", "make"), prompt("2", "b", "no"), prompt("3", "a", "rm \u{202e}x")];
        let relayed = update(&mut requests, &open);
        assert_eq!(
            relayed.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>(),
            ["make", "rm \\u{202e}x"]
        );
        assert_eq!(update(&mut requests, &open), []);
        let (first, second) = (&relayed[0].0, &relayed[1].0);
        let allow = PermissionVerdict::Allow;
        assert_eq!(requests.receive_verdict(second, allow), Ok(answer("3", allow)));
        assert_eq!(requests.receive_verdict(second, allow), Ok(ChatReply::TooLate));
        // The other one is answered at the keyboard, which closes it.
        assert_eq!(update(&mut requests, &open[2..]), []);
        assert_eq!(requests.receive_verdict(first, allow), Ok(ChatReply::TooLate));
        // The same dialog comes back, as after a hub restart: it is another request.
        let again = update(&mut requests, &open[..1]);
        assert!(again.len() == 1 && again[0].0 != *first && again[0].0 != *second);
    }

    #[test]
    fn a_request_decided_elsewhere_is_closed_until_the_decision_is_withdrawn() {
        let mut requests = PermissionRequests::default();
        let mut open = [prompt("1", "a", "make")];
        let relayed = update(&mut requests, &open);
        let deny = PermissionVerdict::Deny;
        open[0].decision = Some(decided());
        assert_eq!(update(&mut requests, &open), []);
        assert_eq!(requests.receive_verdict(&relayed[0].0, deny), Ok(ChatReply::TooLate));
        open[0].decision = None;
        assert_eq!(update(&mut requests, &open), [], "the chat has its id");
        assert_eq!(requests.receive_verdict(&relayed[0].0, deny), Ok(answer("1", deny)));
    }

    #[test]
    fn only_readable_and_answerable_requests_are_relayed() {
        let mut requests = PermissionRequests::default();
        let mut cut = prompt("1", "a", "make");
        if let PromptContent::Permission(request) = &mut cut.prompt.content {
            request.whole = false;
        }
        let mut dialog = prompt("2", "a", "make");
        dialog.prompt.method = AnswerMethod::DialogOnly;
        let mut plan = prompt("3", "a", "");
        plan.prompt.content = PromptContent::Plan { text: "1. all".to_owned(), whole: true };
        let mut long_tool = prompt("4", "a", "make");
        if let PromptContent::Permission(request) = &mut long_tool.prompt.content {
            request.tool = "x".repeat(MAX_REQUEST);
        }
        let long = prompt("5", "a", &"x".repeat(MAX_REQUEST));
        let tall = prompt("6", "a", &"x\n".repeat(MAX_LINES));
        let wide = prompt("7", "a", &format!("make{}; rm -rf /", " ".repeat(MAX_BLANKS + 1)));
        assert_eq!(update(&mut requests, &[cut, dialog, plan, long_tool, long, tall, wide]), []);
        assert!(requests.receive_verdict("no id", PermissionVerdict::Allow).is_err());
        let mut hidden = prompt("8", "a", "make");
        if let PromptContent::Permission(request) = &mut hidden.prompt.content {
            request.tool = "Read\n\u{202e}".to_owned();
        }
        let lines = requests.update(&Agent::new("a").unwrap(), &[hidden], || 7);
        let relayed: Value = serde_json::from_slice(&lines[0]).unwrap();
        assert_eq!(relayed["params"]["tool_name"], "Read\\u{a}\\u{202e}");
    }

    #[test]
    fn relayed_requests_are_limited_and_others_follow() {
        let mut requests = PermissionRequests::default();
        let open: Vec<StoredPrompt> =
            (0..MAX_RELAYED + 2).map(|number| prompt(&format!("{number:02}"), "a", "make")).collect();
        assert_eq!(update(&mut requests, &open).len(), MAX_RELAYED);
        assert_eq!(update(&mut requests, &open[1..]).len(), 1);
    }
}
