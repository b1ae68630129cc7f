//! Entries of arrays of tables: `[[hook]]`, `[[webhook]]`, `[[watch]]` and `[[channel]]`.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ringer_core::message::ShownKind;
use ringer_core::policy::OnFailure;
use schemars::JsonSchema;
use serde::Serialize;

use crate::values::{milliseconds, word};

/// The default of `timeout_ms`.
pub(crate) const DEFAULT_TIMEOUT: Duration = Duration::from_secs(20);

pub(crate) fn default_timeout() -> Duration {
    DEFAULT_TIMEOUT
}

fn default_enabled() -> bool {
    true
}

/// The kind of file that contains an entry.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Origin {
    /// The person's own file. They wrote it, so its programs run.
    #[default]
    User,
    /// A repository's file. It came with a checkout, so its programs run only after the person has trusted them.
    Repository,
}

/// The file that contains an entry.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Source {
    /// The kind of file.
    pub origin: Origin,
    /// The path of the file.
    pub path: PathBuf,
}

impl Source {
    /// Returns the directory of the file. Programs of the file run there by default.
    pub fn directory(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("."))
    }
}

/// A program that reads every notification before it is shown and may change it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Hook", deny_unknown_fields)]
pub struct HookEntry {
    /// Unique name.
    #[schemars(length(min = 1))]
    pub id: String,
    /// The program and its arguments. No shell is used; a leading `~/` is the home directory.
    #[schemars(length(min = 1))]
    pub command: Vec<String>,
    /// How long it may take, in milliseconds.
    #[serde(rename = "timeout_ms", serialize_with = "milliseconds::serialize")]
    #[schemars(schema_with = "milliseconds::schema", default = "default_timeout")]
    pub timeout: Duration,
    /// When it fails: `keep` shows the notification unchanged, `suppress` does not show it.
    #[serde(serialize_with = "word::serialize")]
    #[schemars(schema_with = "word::schema::<OnFailure>", default)]
    pub on_failure: OnFailure,
    /// Whether it runs.
    #[schemars(default = "default_enabled")]
    pub enabled: bool,
    /// The file that contains it.
    #[serde(skip)]
    pub source: Source,
    /// The scope of the repository whose file contains it; `None` for the person's own file.
    #[serde(skip)]
    pub scope: Option<String>,
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

impl word::Word for WebhookWhen {
    fn words() -> Vec<(&'static str, Self)> {
        vec![("always", Self::Always), ("away", Self::Away)]
    }
}

/// An HTTP endpoint that receives notifications.
#[derive(Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Webhook", deny_unknown_fields)]
pub struct WebhookEntry {
    /// Name used in reports [default: the kind].
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(min = 1), default = "Option::<String>::default")]
    pub id: Option<String>,
    /// Service, which determines the format.
    pub kind: &'static str,
    /// The address.
    #[schemars(regex(pattern = r"^[hH][tT][tT][pP][sS]?://[^\s/?#]\S*$"))]
    pub url: String,
    /// File containing the access token (must be mode 0600).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(min = 1), default = "Option::<String>::default")]
    pub secret_file: Option<PathBuf>,
    /// Kinds to send [default: all].
    #[schemars(schema_with = "word::list_schema::<ShownKind>", default)]
    pub kinds: Vec<ShownKind>,
    /// When to send: `always`, or `away` for an open question, permission, stuck agent or error once you are away or it was open
    /// for `notify.escalate_after`.
    #[serde(serialize_with = "word::serialize")]
    #[schemars(schema_with = "word::schema::<WebhookWhen>", default)]
    pub when: WebhookWhen,
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
}

/// Files to watch, and what to run when one changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Watch {
    /// Files to watch; relative paths start at the directory of this file.
    #[schemars(with = "Vec<String>", length(min = 1))]
    pub paths: Vec<PathBuf>,
    /// The program and its arguments.
    #[schemars(length(min = 1))]
    pub command: Vec<String>,
    /// Working directory [default: the directory of this file].
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(min = 1), default = "Option::<String>::default")]
    pub directory: Option<PathBuf>,
    /// Agent that receives the command's output.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(min = 1), default = "Option::<String>::default")]
    pub agent: Option<String>,
    /// How long it may take, in milliseconds.
    #[serde(rename = "timeout_ms", serialize_with = "milliseconds::serialize")]
    #[schemars(schema_with = "milliseconds::schema", default = "default_timeout")]
    pub timeout: Duration,
    /// The file that contains it.
    #[serde(skip)]
    pub source: Source,
}

impl Watch {
    /// Returns the directory in which the program runs.
    pub fn working_directory(&self) -> &Path {
        self.directory.as_deref().unwrap_or_else(|| self.source.directory())
    }
}

/// An MCP server whose messages enter an agent's conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Channel", deny_unknown_fields)]
pub struct ChannelEntry {
    /// Unique name; the agent reads it as the source of each message.
    #[schemars(length(min = 1))]
    pub name: String,
    /// The server's program and its arguments. It speaks MCP on standard input and output.
    #[schemars(length(min = 1))]
    pub command: Vec<String>,
    /// Agent that receives the messages, by its name or id.
    #[schemars(length(min = 1))]
    pub to: String,
    /// Senders that may write, by the `user` that the server gives; `ringer mcp pair` allows others.
    #[schemars(default)]
    pub allow: Vec<String>,
    /// Whether it, and the senders that it brings, may allow or deny what the agent asks a permission for.
    #[schemars(default)]
    pub may_answer: bool,
    /// The file that contains it.
    #[serde(skip)]
    pub source: Source,
}
