//! What a file may have several of: hooks, webhooks, watches.

use std::path::{Path, PathBuf};
use std::time::Duration;

use ringer_core::Kind;
use ringer_core::policy::OnFailure;
use schemars::JsonSchema;
use serde::Serialize;

use crate::{milliseconds, word};

/// How long a program may take, unless the person says otherwise.
pub(crate) const DEFAULT_TIMEOUT: Duration = Duration::from_secs(20);

pub(crate) fn default_timeout() -> Duration {
    DEFAULT_TIMEOUT
}

fn enabled() -> bool {
    true
}

/// Whose file an entry stands in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Origin {
    /// The person's own: they wrote it, so it runs.
    #[default]
    User,
    /// A repository's: it came with a checkout, so it runs only when the person has trusted it.
    Repository,
}

/// Where an entry stands.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Source {
    /// Whose file.
    pub origin: Origin,
    /// The file.
    pub path: PathBuf,
}

impl Source {
    /// The directory of the file, in which its programs run.
    pub fn directory(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("."))
    }
}

/// A program that sees every notification before it is shown, and may change it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Hook", deny_unknown_fields)]
pub struct HookEntry {
    /// Its name, of which there is one in a file.
    #[schemars(length(min = 1))]
    pub id: String,
    /// The program and its arguments. There is no shell; `~/` at the start of one is the home directory.
    #[schemars(length(min = 1))]
    pub command: Vec<String>,
    /// How long it may take, in milliseconds.
    #[serde(rename = "timeout_ms", serialize_with = "milliseconds::serialize")]
    #[schemars(schema_with = "milliseconds::schema", default = "default_timeout")]
    pub timeout: Duration,
    /// What its failure means: `keep` shows the notification as if it had said nothing, `suppress` fails closed.
    #[serde(serialize_with = "word::serialize")]
    #[schemars(schema_with = "word::schema::<OnFailure>", default)]
    pub on_failure: OnFailure,
    /// Whether it runs at all.
    #[schemars(default = "enabled")]
    pub enabled: bool,
    /// Where it stands.
    #[serde(skip)]
    pub source: Source,
    /// The repository whose own it is.
    #[serde(skip)]
    pub scope: Option<String>,
}

impl HookEntry {
    /// Whether it stands in the person's own file.
    pub fn is_own(&self) -> bool {
        self.source.origin == Origin::User
    }
}

/// The services that are spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WebhookKind {
    /// <https://ntfy.sh>.
    Ntfy,
    /// An incoming webhook of Slack.
    Slack,
    /// A webhook of Discord.
    Discord,
    /// Anything that takes our own JSON.
    Json,
}

impl WebhookKind {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        word::Word::word(self)
    }
}

impl word::Word for WebhookKind {
    fn words() -> Vec<(&'static str, Self)> {
        vec![("ntfy", Self::Ntfy), ("slack", Self::Slack), ("discord", Self::Discord), ("json", Self::Json)]
    }
}

/// An address that is told over HTTP.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Webhook {
    /// Its name in what is told of it; the kind, if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(min = 1), default = "Option::<String>::default")]
    pub id: Option<String>,
    /// What is spoken there.
    #[serde(serialize_with = "word::serialize")]
    #[schemars(schema_with = "word::schema::<WebhookKind>")]
    pub kind: WebhookKind,
    /// The address.
    #[schemars(regex(pattern = r"^[hH][tT][tT][pP][sS]?://[^\s/?#]\S*$"))]
    pub url: String,
    /// A file with a token in it, so that none has to stand here.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(min = 1), default = "Option::<String>::default")]
    pub secret_file: Option<PathBuf>,
    /// What is told there; everything, if none is named.
    #[schemars(schema_with = "word::list_schema::<Kind>", default)]
    pub kinds: Vec<Kind>,
}

impl Webhook {
    /// Its name.
    pub fn name(&self) -> &str {
        self.id.as_deref().unwrap_or(self.kind.as_str())
    }

    /// Whether a notification of this kind is told there.
    pub fn takes(&self, kind: Kind) -> bool {
        self.kinds.is_empty() || self.kinds.contains(&kind)
    }
}

/// Files to watch, and what to run when one changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Watch {
    /// The files; relative ones begin at the directory of this file.
    #[schemars(with = "Vec<String>", length(min = 1))]
    pub paths: Vec<PathBuf>,
    /// The program and its arguments.
    #[schemars(length(min = 1))]
    pub command: Vec<String>,
    /// Where it runs; the directory of this file, if none is named.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(min = 1), default = "Option::<String>::default")]
    pub directory: Option<PathBuf>,
    /// An agent that is given what came of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(min = 1), default = "Option::<String>::default")]
    pub agent: Option<String>,
    /// How long it may take, in milliseconds.
    #[serde(rename = "timeout_ms", serialize_with = "milliseconds::serialize")]
    #[schemars(schema_with = "milliseconds::schema", default = "default_timeout")]
    pub timeout: Duration,
    /// Where it stands.
    #[serde(skip)]
    pub source: Source,
}

impl Watch {
    /// Where its program runs.
    pub fn working_directory(&self) -> &Path {
        self.directory.as_deref().unwrap_or_else(|| self.source.directory())
    }
}
