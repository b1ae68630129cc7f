//! Entries of arrays of tables: `[[hook]]`, `[[webhook]]`, `[[watch]]` and `[[channel]]`.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ringer_core::message::ShownKind;
use ringer_core::policy::OnFailure;
use serde_json::json;

use crate::reader::{Field, Origin, Section, Source};
use crate::table::{FieldType, SettingValue, Shape, settings};
use crate::types::{Words, list, milliseconds, name, not_empty, optional, path, program, switch, text, word};

/// The default of `timeout_ms`.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(20);

settings! {
    /// A program that reads every notification before it is shown and may change it.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct HookEntry("Hook") {
        /// Unique name.
        #[example("triage")]
        pub id: String => name("id"),
        /// The program and its arguments. No shell is used; a leading `~/` is the home directory.
        #[example(["~/bin/triage"])]
        pub command: Vec<String> => program(),
        /// How long it may take, in milliseconds.
        #[key("timeout_ms")]
        pub timeout: Duration = DEFAULT_TIMEOUT => milliseconds(),
        /// When it fails: `keep` shows the notification unchanged, `suppress` does not show it.
        pub on_failure: OnFailure = OnFailure::default() => word(),
        /// Whether it runs.
        pub enabled: bool = true => switch(),
    } from section {
        /// The file that contains it.
        pub source: Source = section.source(),
        /// The scope of the repository whose file contains it; `None` for the person's own file.
        pub scope: Option<String> = None,
    }
}

impl HookEntry {
    /// Returns true if the entry is in the person's own file.
    pub fn is_own(&self) -> bool {
        self.source.origin == Origin::User
    }
}

/// When a webhook is called.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum WebhookWhen {
    /// For every notification.
    #[default]
    Always,
    /// For notifications that need the person, while the person is away or leaves them open for `notify.escalate_after`.
    Away,
}

impl Words for WebhookWhen {
    fn words() -> Vec<(&'static str, Self)> {
        vec![("always", Self::Always), ("away", Self::Away)]
    }
}

settings! {
    /// An HTTP endpoint that receives notifications.
    #[derive(Clone, PartialEq, Eq)]
    pub struct WebhookEntry("Webhook") {
        /// Name used in reports [default: the kind].
        #[example("phone")]
        pub id: Option<String> = None => optional(name("id")),
        /// Service, which determines the format.
        #[example("ntfy")]
        pub kind: &'static str => service(),
        /// The address, `https://` or `http://`.
        #[example("https://ntfy.sh/my-topic")]
        pub url: String => text(address, || json!({ "pattern": r"^[hH][tT][tT][pP][sS]?://[^\s/?#]\S*$" })),
        /// File containing the access token (must be mode 0600).
        #[example("~/.config/ringer/ntfy.token")]
        pub secret_file: Option<PathBuf> = None => optional(path()),
        /// Kinds of notifications to send; `[]` sends all.
        #[example(["question", "error"])]
        pub kinds: Vec<ShownKind> = Vec::new() => list(word(), "a list of kinds"),
        /// When to send: `always`, or `away` for an open question, permission, stuck agent or error once you are away or it was
        /// open for `notify.escalate_after`.
        pub when: WebhookWhen = WebhookWhen::Always => word(),
    }
}

impl fmt::Debug for WebhookEntry {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without the address, which may be a password.
        formatter.debug_struct("WebhookEntry").field("name", &self.name()).finish_non_exhaustive()
    }
}

impl WebhookEntry {
    /// Returns the id, or the kind if there is no id.
    pub fn name(&self) -> &str {
        self.id.as_deref().unwrap_or(self.kind)
    }

    /// Returns true if notifications of this kind are sent to the webhook.
    pub fn takes(&self, kind: ShownKind) -> bool {
        self.kinds.is_empty() || self.kinds.contains(&kind)
    }

    /// Checks the address as its service requires.
    pub(crate) fn check(&self, section: &Section<'_, '_>, _: &[Self]) -> bool {
        let Some(url) = section.get("url") else { return false };
        let check = url.rules().webhooks.check;
        let wrong = |why: &str| url.wrong::<()>(format!("cannot be used: {why}"), None);
        check(self.kind, &self.url, section.has("secret_file")).map_err(wrong).is_ok()
    }
}

/// One of the services that the rules name.
fn service() -> FieldType<&'static str> {
    FieldType {
        read: Box::new(|field| field.one_of(&field.rules().webhooks.names)),
        write: Box::new(|name| Some(SettingValue::text(name))),
        shape: Box::new(|rules| Shape::Value(json!({ "type": "string", "enum": rules.webhooks.names }))),
    }
}

/// Reads a URL. Problems do not quote it: Slack and Discord URLs contain secrets, and problems are displayed.
fn address(field: &Field<'_, '_>) -> Option<String> {
    let text = field.text()?;
    let rest = text
        .split_once("://")
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("https") || scheme.eq_ignore_ascii_case("http"));
    let Some((_, rest)) = rest else {
        return field.wrong("is not a web address; expected one that begins with https:// or http://", None);
    };
    if rest.is_empty() || rest.starts_with(['/', '?', '#']) {
        return field.wrong("names no host", None);
    }
    if rest.contains(|character: char| character.is_whitespace() || character.is_control()) {
        return field.wrong("has a space or a control character in it", None);
    }
    Some(text.to_owned())
}

settings! {
    /// Files to watch, and what to run when one changes.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Watch("Watch") {
        /// Files to watch; relative paths start at the directory of this file.
        #[example(["~/work/project/flake.nix"])]
        pub paths: Vec<PathBuf> => not_empty(list(path(), "a list of paths"), "at least one path"),
        /// The program and its arguments. It finds the changed file in `RINGER_WATCH_PATH`.
        #[example(["direnv", "reload"])]
        pub command: Vec<String> => program(),
        /// Working directory [default: the directory of this file].
        #[example("~/work/project")]
        pub directory: Option<PathBuf> = None => optional(path()),
        /// Agent that receives the command's output, at most 8,000 characters, as a message with the source `file_watcher`.
        #[example("claude-1a2b3c4d")]
        pub agent: Option<String> = None => optional(name("agent")),
        /// How long it may take, in milliseconds.
        #[key("timeout_ms")]
        pub timeout: Duration = DEFAULT_TIMEOUT => milliseconds(),
    } from section {
        /// The file that contains it.
        pub source: Source = section.source(),
    }
}

impl Watch {
    /// Returns the directory in which the program runs.
    pub fn working_directory(&self) -> &Path {
        self.directory.as_deref().unwrap_or_else(|| self.source.directory())
    }
}

settings! {
    /// An MCP server whose messages enter an agent's conversation.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct ChannelEntry("Channel") {
        /// Unique name; the agent reads it as the source of each message.
        #[example("slack")]
        pub name: String => name("name"),
        /// The server's program and its arguments. It speaks MCP on standard input and output.
        #[example(["~/bin/slack-channel"])]
        pub command: Vec<String> => program(),
        /// Agent that receives the messages, by its name or id.
        #[example("claude-1a2b3c4d")]
        pub to: String => name("agent"),
        /// Senders that may write, by the `user` that the server gives; `ringer mcp pair` allows others.
        #[example(["U012AB3CD"])]
        pub allow: Vec<String> = Vec::new() => list(name("sender"), "a list of senders"),
        /// Whether the server, and the senders that it brings, may allow or deny what the agent asks a permission for.
        pub may_answer: bool = false => switch(),
    } from section {
        /// The file that contains it.
        pub source: Source = section.source(),
    }
}
