//! What happens with every client alike.

mod sessions;

use std::time::Instant;

use serde_json::Value;
use test_support::{Answer, Model, until_within};

use crate::environment::{ClientEnvironment, DEADLINE, SENDER};
use crate::hosts::HostedClient;
use crate::session::Session;

pub(crate) use sessions::{SessionCommands, check_clear, check_fork, check_resume};

/// What is sent in these tests, and how the model should see it.
pub(crate) const TEXT: &str = "please also update the docs";
pub(crate) const BLOCK: &str =
    "<notification source=\"agent:builder\">\nplease also update the docs\n</notification>";

/// The block, where a client escapes what a hook says.
pub(crate) fn escaped_block() -> String {
    BLOCK.replace('<', "&lt;").replace('>', "&gt;")
}

/// A command that says something and notifies the agent.
pub(crate) fn notifying(agent: &str) -> String {
    format!("echo it ran; \"$RINGER\" notify --from {SENDER} --to {agent} '{TEXT}'")
}

/// The same after a tool that runs [`notifying`]: the sender is a worker of the agent itself.
#[track_caller]
pub(crate) fn check_after_worker(
    environment: &ClientEnvironment,
    model: &Model,
    session: Session,
    block: &str,
) -> String {
    let worker = format!("agent:{}/{SENDER}", environment.agent());
    check_after_tool(environment, model, session, &block.replace(&format!("agent:{SENDER}"), &worker))
}

/// After a tool: the next request has the block and the tool's own result, and the end is one `complete`. Returns what the
/// client printed.
#[track_caller]
pub(crate) fn check_after_tool(
    environment: &ClientEnvironment,
    model: &Model,
    session: Session,
    block: &str,
) -> String {
    let next = model.request();
    assert_eq!(next.count_new(block), 1, "{}", next.news());
    assert_eq!(next.count_new("it ran"), 1, "the tool's own result is there as well: {}", next.news());
    model.answer(Answer::Text("all done"));
    let (printed, is_content) = session.end();
    assert!(is_content && printed.contains("all done"), "{printed}");
    assert_eq!(environment.kinds(), ["complete"]);
    assert!(!model.has_request(), "nothing else was to be done");
    assert_eq!(environment.complaints(), "");
    printed
}

/// An idle session is woken twice by the same text. Each time, `woken` gets what `ringer notify` printed.
#[track_caller]
pub(crate) fn check_waking(environment: &ClientEnvironment, model: &Model, woken: impl Fn(&str)) {
    assert_eq!(model.request().count_new("hello"), 1);
    model.answer(Answer::Text("good morning"));
    environment.notified("complete");
    let agent = environment.agent();
    for text in ["the build is red", "the build is red"] {
        let sent = environment.ringer(&["notify", "--json", "--from", SENDER, "--to", &agent, text]);
        let request = model.request();
        let block = format!("<notification source=\"agent:{SENDER}\">\n{text}\n</notification>");
        assert_eq!(request.count_new(&block), 1, "{}", request.news());
        assert_eq!(request.count_new("</notification>"), 1, "nothing is told again: {}", request.news());
        woken(&sent);
        model.answer(Answer::Text("I will look at it"));
        environment.notified("complete");
    }
    assert_eq!(environment.kinds(), ["complete"; 3]);
    assert!(!model.has_request(), "each was told once");
    assert_eq!(environment.complaints(), "");
}

/// A client in a host: a turn with a permission that is given, a turn that is interrupted, and its end.
pub(crate) struct HostedTurns<'a> {
    pub(crate) environment: &'a ClientEnvironment,
    pub(crate) model: &'a Model,
    pub(crate) client: HostedClient<'a>,
    /// What the client draws when it takes a prompt.
    pub(crate) ready: &'static str,
    /// What makes the client ask for a permission, and a part of its dialog.
    pub(crate) asks: Answer,
    pub(crate) dialog: &'static str,
}

impl HostedTurns<'_> {
    /// Each event is told once, and the state is the client's, with hooks and without.
    #[track_caller]
    pub(crate) fn check(mut self) {
        self.client.terminal().until_drawn(self.ready);
        self.prompt("go on, please");
        self.until(Some("working"), &[]);
        self.client.go_away();
        self.model.answer(self.asks.clone());
        // One opens no dialog while keys are pressed.
        self.client.terminal().until_drawn(self.dialog);
        self.until(Some("blocked"), &["permission, open"]);
        self.until_rings(true);
        self.client.go_there();
        self.until_rings(false);
        self.until(Some("blocked"), &["permission, open"]);
        let model = self.model;
        // A dialog takes no key in its first moment.
        self.client.terminal().press_until("\r", "the tool has run", |_| model.has_request());
        self.until(Some("working"), &["permission"]);

        self.client.go_away();
        self.model.answer(Answer::Text("all done"));
        self.until(Some("done"), &["permission", "complete, open"]);
        self.until_rings(true);
        self.client.go_there();
        self.until_rings(false);
        self.until(Some("done"), &["permission", "complete"]);

        self.prompt("once more, please");
        self.until(Some("working"), &["permission", "complete"]);
        self.client.terminal().press("\x1b");
        self.until(Some("ready"), &["permission", "complete"]);

        self.client.quit();
        self.until(None, &["permission", "complete"]);
        assert_eq!(self.environment.complaints(), "");
    }

    /// Gives the client a prompt, and waits until the model has it.
    #[track_caller]
    fn prompt(&mut self, text: &str) {
        let model = self.model;
        self.client.go_there();
        self.client.terminal().press(text);
        self.client.terminal().press_until("\r", "the model is asked", |_| model.has_request());
    }

    /// Waits until the only agent that has not ended is in this state, and exactly this is listed. How long that takes is printed.
    #[track_caller]
    fn until(&self, state: Option<&str>, listed: &[&str]) {
        let start = Instant::now();
        // It is read after all that was sent before it.
        self.environment.ringer(&["notify", "--from", SENDER, "--kind", "status", "--key", "probe", "probe"]);
        let mut last = String::new();
        until_within(DEADLINE, &format!("{state:?} {listed:?}"), || {
            let (mut states, rows) = (self.environment.states(), self.environment.listed());
            states.retain(|state| state != "exited");
            let rows: Vec<String> = rows.iter().map(short).collect();
            let seen = format!("{states:?} {rows:?}");
            if seen != last {
                eprintln!("{seen}");
                last = seen;
            }
            states.iter().map(String::as_str).eq(state) && rows == listed
        });
        eprintln!("{state:?} after {} ms", start.elapsed().as_millis());
    }

    #[track_caller]
    fn until_rings(&self, rings: bool) {
        until_within(DEADLINE, "its place shows that something is unread, or not", || {
            self.client.rings() == rings
        });
    }
}

/// The key that opens the inbox over the panes, and the one that leaves it.
const INBOX: &str = "\x07i";
const LEAVE_INBOX: &str = "q";

/// Two permissions that a client in a pane asks for: one is given in the inbox over the panes, one by a command in another
/// terminal. The person never goes to the pane.
#[track_caller]
pub(crate) fn check_answers_from_panes(
    environment: &ClientEnvironment,
    model: &Model,
    client: &mut HostedClient<'_>,
    asks: [Answer; 2],
    until_asked: impl Fn(),
) {
    let [first, second] = asks;
    model.answer(first);
    until_asked();
    client.terminal().press(INBOX);
    client.terminal().press_until_drawn("a", "Allow once");
    client.terminal().press_until("1", "the tool has run", |_| model.has_request());
    environment.until_open(0);
    client.terminal().press(LEAVE_INBOX);
    model.answer(second);
    until_asked();
    let (code, said) = environment.try_ringer(&["answer", "last", "allow"]);
    assert_eq!(code, 0, "{said}");
    model.request();
    model.answer(Answer::Text("all done"));
    environment.notified("complete");
    assert_eq!(environment.complaints(), "");
}

/// The kind of a notification, and whether it is open.
fn short(row: &Value) -> String {
    let open = if row["is_open"] == true { ", open" } else { "" };
    format!("{}{open}", row["kind"].as_str().expect("a kind"))
}
