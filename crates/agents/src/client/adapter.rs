//! What differs between clients. A new client is a file with an [`Adapter`], a [`Client`](super::Client), its place in
//! `Client::ALL` and its line in `adapter()`.

use super::input::HookInput;
use super::prompt::PromptHooks;
use super::reply::HookReply;
use super::report::HookReport;
use super::session_file::SessionFiles;
use super::settings::ClientSettings;

/// One client program: data, and the two functions that read its hooks and answer them.
#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact about one client, independent of the others"
)]
pub(crate) struct Adapter {
    /// The word for it.
    pub(super) name: &'static str,
    /// Its name, as its makers write it.
    pub(crate) display_name: &'static str,
    /// The names of its programs; each stands for it where a client is named.
    pub(super) programs: &'static [&'static str],
    /// Whether Ringer was ever run with it, and not only written after its documents.
    pub(super) is_tested: bool,
    /// How many characters of context it takes from one hook, if that is known.
    pub(super) context_limit: Option<usize>,
    /// Whether the beginning of a session's id is random. Otherwise its end is: Codex and opencode begin it with the time,
    /// and two sessions of one minute would be one agent. Of the others the documents do not say how an id begins.
    pub(super) session_id_begins_randomly: bool,
    /// Whether it leaves a session for a new one in its terminal without a hook that says so.
    pub(crate) leaves_sessions_silently: bool,
    /// Reads an input. An unknown event gives an empty report.
    pub(super) read: fn(event: &str, input: &HookInput) -> HookReport,
    /// The bytes for the hook's standard output; `None` for not a single one.
    pub(super) answer: fn(event: &str, reply: &HookReply) -> Option<String>,
    /// Whether it tells Ringer of its events. One that does not only sends messages.
    pub(super) reports_events: bool,
    /// Where it says which sessions run and what they do, if it does.
    pub(crate) sessions: Option<SessionFiles>,
    /// How its hooks tell of its dialogs, where these can be answered from elsewhere.
    pub(crate) prompts: Option<PromptHooks>,
    /// How a message reaches it while it is idle.
    pub(crate) push: PushMethod,
    /// Its settings, in which `ringer setup` writes.
    pub(crate) settings: ClientSettings,
}

impl Adapter {
    /// A client without hooks, which Ringer was never run with.
    pub(super) const fn without_hooks(
        name: &'static str,
        display_name: &'static str,
        programs: &'static [&'static str],
        takes_no_messages: &'static str,
        settings: ClientSettings,
    ) -> Self {
        Self {
            name,
            display_name,
            programs,
            is_tested: false,
            context_limit: None,
            session_id_begins_randomly: false,
            leaves_sessions_silently: false,
            read: |_, _| HookReport::default(),
            answer: |_, _| None,
            reports_events: false,
            sessions: None,
            prompts: None,
            push: PushMethod::Refused(takes_no_messages),
            settings,
        }
    }
}

/// How a message is pushed to an idle session of a client.
#[derive(Debug)]
pub(crate) enum PushMethod {
    /// It takes none; why, in words.
    Refused(&'static str),
    /// A hook of the client waits while the session is idle, and takes what comes (`crate::idle_hook`).
    WaitingHook,
    /// A line is written to the Unix socket of the session. The client may drop it; its next prompts name the messages
    /// that arrived.
    SessionSocket {
        /// The line, for the ids of the messages and their text.
        line: fn(ids: &str, text: &str) -> String,
    },
    /// A program of the client is run; it has taken the message when it exits with 0.
    Command {
        program: &'static str,
        /// Its arguments, for the session's id and the text. The first names the subcommand.
        arguments: for<'a> fn(session_id: &'a str, text: &'a str) -> Vec<&'a str>,
    },
}
