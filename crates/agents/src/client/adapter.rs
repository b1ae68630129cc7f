//! What differs between clients. A new client is a file with an [`Adapter`], a [`Client`](super::Client) and its line in
//! `adapter()`.

use super::input::Input;
use super::reply::Reply;
use super::report::HookReport;

/// One client program.
pub(super) trait Adapter: Sync {
    /// The word for it.
    fn name(&self) -> &'static str;

    /// The names of its programs; each stands for it where a client is named.
    fn programs(&self) -> &'static [&'static str];

    /// Whether Ringer was ever run with it, and not only written after its documents.
    fn is_tested(&self) -> bool;

    /// How many characters of context it takes from one hook, if that is known.
    fn context_limit(&self) -> Option<usize> {
        None
    }

    /// Whether the beginning of a session's id is random. Otherwise its end is: Codex and opencode begin it with the time,
    /// and two sessions of one minute would be one agent. Of the others the documents do not say how an id begins.
    fn session_id_begins_randomly(&self) -> bool {
        false
    }

    /// What an input says. An event that is not known says nothing.
    fn read(&self, event: &str, input: &Input) -> HookReport;

    /// The bytes for the hook's standard output; `None` for not a single one.
    fn answer(&self, event: &str, reply: &Reply) -> Option<String>;

    /// Why a message cannot be pushed to it while it is idle; `None` where it can.
    fn push_refusal(&self) -> Option<&'static str>;
}
