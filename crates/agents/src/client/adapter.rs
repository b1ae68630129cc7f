//! The differences between clients. A new client needs a file with an [`Adapter`], a [`Client`](super::Client), an entry in
//! `Client::ALL` and a line in `adapter()`.

use super::input::HookInput;
use super::prompt::PromptHooks;
use super::reply::HookReply;
use super::report::HookReport;
use super::session_file::SessionFiles;
use super::settings::ClientSettings;

/// One client: its properties, and the functions that read and answer its hooks.
#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact about one client, independent of the others"
)]
pub(crate) struct Adapter {
    /// The name in commands and settings.
    pub(super) name: &'static str,
    /// The name as its makers write it.
    pub(crate) display_name: &'static str,
    /// The names of its programs. Each is accepted as the name of the client.
    pub(super) programs: &'static [&'static str],
    /// Ringer was run with it, not only written from its documentation.
    pub(super) is_tested: bool,
    /// Maximum characters of context per hook, if known.
    pub(super) context_limit: Option<usize>,
    /// The beginning of a session's id is random. Otherwise its end is: Codex and opencode ids begin with the time, so that two
    /// sessions of one minute would get the same agent id. For other clients the documentation does not say.
    pub(super) session_id_begins_randomly: bool,
    /// It may start a new session in the same terminal without a hook that ends the old one.
    pub(crate) leaves_sessions_silently: bool,
    /// Reads a hook's input. An unknown event gives an empty report.
    pub(super) read: fn(event: &str, input: &HookInput) -> HookReport,
    /// The text for the hook's standard output; `None` if nothing is to be written.
    pub(super) answer: fn(event: &str, reply: &HookReply) -> Option<String>,
    /// It reports events. Other clients only send messages.
    pub(super) reports_events: bool,
    /// Where it publishes its sessions, if it does.
    pub(crate) sessions: Option<SessionFiles>,
    /// How its hooks report dialogs, if these can be answered from elsewhere.
    pub(crate) prompts: Option<PromptHooks>,
    pub(crate) push: PushMethod,
    /// The settings that `ringer setup` edits.
    pub(crate) settings: ClientSettings,
}

impl Adapter {
    /// A client without hooks that Ringer was never run with.
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

/// How a message is pushed to an idle session. `crate::push` acts on it.
#[derive(Debug)]
pub(crate) enum PushMethod {
    /// It takes none, for this reason.
    Refused(&'static str),
    /// A hook waits while the session is idle, and delivers messages (`crate::waiting_hook`).
    WaitingHook,
    /// A line is written to the session's Unix socket. The client may drop it; its next prompts name the messages that arrived.
    SessionSocket {
        /// Formats the line from the message ids and their text.
        line: fn(ids: &str, text: &str) -> String,
    },
    /// A program of the client is run. Exit code 0 means that it took the message.
    Command {
        program: &'static str,
        /// Builds its arguments from the session's id and the text. The first is the subcommand.
        arguments: for<'a> fn(session_id: &'a str, text: &'a str) -> Vec<&'a str>,
    },
}
