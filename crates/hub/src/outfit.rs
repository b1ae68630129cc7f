//! What the ways out need to know of the settings, and nothing else of them.

use std::ffi::OsString;
use std::path::PathBuf;

use ringer_deliver::{
    ATTEMPT_TIMEOUT, COMMAND_TIMEOUT, HookProgram, PersonCommand, SecretFile, Service, Sound, Webhook,
};
use ringer_term::Channel;

use crate::config::{self, Config, WebhookKind};

/// How often a webhook is tried before it is given up.
pub(crate) const WEBHOOK_ATTEMPTS: u32 = 5;

/// The ways out, as they are set up.
#[derive(Debug, Clone)]
pub(crate) struct Outfit {
    /// How terminals are told.
    pub(crate) channel: Channel,
    /// What is played.
    pub(crate) sound: Sound,
    /// What is run.
    pub(crate) command: Option<PersonCommand>,
    /// Who is called, each under its name.
    pub(crate) webhooks: Vec<(String, Webhook)>,
    /// The hook programs, under the indexes that the engine uses.
    pub(crate) hooks: Vec<HookProgram>,
    /// Where players are looked for.
    pub(crate) search_path: OsString,
}

impl Outfit {
    /// What a configuration says of it.
    pub(crate) fn of(config: &Config, search_path: OsString) -> Self {
        let directory = config.path.parent().map_or_else(|| PathBuf::from("/"), PathBuf::from);
        let notify = &config.notify;
        let command = (!notify.command.is_empty()).then(|| PersonCommand {
            argv: notify.command.clone(),
            directory: if directory.is_dir() { directory } else { PathBuf::from("/") },
            timeout: COMMAND_TIMEOUT,
        });
        Self {
            channel: config.preferred_channel,
            sound: match &notify.sound {
                config::Sound::Off => Sound::Off,
                config::Sound::Theme => Sound::Theme,
                config::Sound::File(path) => Sound::File(path.clone()),
            },
            command,
            webhooks: config.webhooks.iter().map(|entry| (entry.name().to_owned(), webhook(entry))).collect(),
            hooks: config.enabled_hooks().map(hook).collect(),
            search_path,
        }
    }
}

fn hook(entry: &config::HookEntry) -> HookProgram {
    HookProgram {
        id: entry.id.clone(),
        argv: entry.command.clone(),
        directory: entry.source.directory().to_owned(),
        timeout: entry.timeout,
    }
}

fn webhook(entry: &config::Webhook) -> Webhook {
    let kind = match entry.kind {
        WebhookKind::Ntfy => Service::Ntfy,
        WebhookKind::Slack => Service::Slack,
        WebhookKind::Discord => Service::Discord,
        WebhookKind::Json => Service::Json,
    };
    Webhook {
        kind,
        url: entry.url.clone(),
        secret: entry.secret_file.clone().map(SecretFile::new),
        kinds: entry.kinds.clone(),
        timeout: ATTEMPT_TIMEOUT,
    }
}
