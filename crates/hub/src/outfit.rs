//! What the ways out need to know of the settings, and nothing else of them.

use std::ffi::OsString;
use std::path::Path;

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
    /// Where players are looked for.
    pub(crate) search_path: OsString,
}

impl Outfit {
    /// What a configuration says of it.
    pub(crate) fn of(config: &Config, search_path: OsString) -> Self {
        Self {
            channel: config.preferred_channel,
            sound: config.notify.sound.way_out(),
            command: config.command_way_out(),
            webhooks: config
                .webhooks
                .iter()
                .map(|entry| (entry.name().to_owned(), entry.way_out()))
                .collect(),
            search_path,
        }
    }
}

impl Config {
    /// The person's command, ready to run: beside the settings, or at the root where there is no such place.
    pub fn command_way_out(&self) -> Option<PersonCommand> {
        let beside = self.path.parent().filter(|directory| directory.is_dir());
        let directory = beside.unwrap_or(Path::new("/")).to_owned();
        let argv = self.notify.command.clone();
        (!argv.is_empty()).then_some(PersonCommand { argv, directory, timeout: COMMAND_TIMEOUT })
    }
}

impl config::Sound {
    /// The sound, ready to be played.
    pub fn way_out(&self) -> Sound {
        match self {
            Self::Off => Sound::Off,
            Self::Theme => Sound::Theme,
            Self::File(path) => Sound::File(path.clone()),
        }
    }
}

impl config::HookEntry {
    /// The hook, ready to run.
    pub fn program(&self) -> HookProgram {
        HookProgram {
            id: self.id.clone(),
            argv: self.command.clone(),
            directory: self.source.directory().to_owned(),
            timeout: self.timeout,
        }
    }
}

impl config::Webhook {
    /// The webhook, ready to be called.
    pub fn way_out(&self) -> Webhook {
        let kind = match self.kind {
            WebhookKind::Ntfy => Service::Ntfy,
            WebhookKind::Slack => Service::Slack,
            WebhookKind::Discord => Service::Discord,
            WebhookKind::Json => Service::Json,
        };
        Webhook {
            kind,
            url: self.url.clone(),
            secret: self.secret_file.clone().map(SecretFile::new),
            kinds: self.kinds.clone(),
            timeout: ATTEMPT_TIMEOUT,
        }
    }
}
