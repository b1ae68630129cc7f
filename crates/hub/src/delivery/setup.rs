//! What the delivery channels need of the settings, and nothing else of them: one for each revision of the settings.

use std::ffi::OsString;
use std::path::Path;

use ringer_core::message::ShownKind;
use ringer_deliver::{
    ATTEMPT_TIMEOUT, COMMAND_TIMEOUT, HookProgram, PersonCommand, SecretFile, Service, Sound, Webhook,
};
use ringer_term::Channel;

use ringer_config::{Config, HookEntry, WebhookKind, WebhookWhen};

/// How often a webhook is tried before it is given up.
pub(crate) const WEBHOOK_ATTEMPTS: u32 = 5;

/// The delivery channels, as they are set up.
#[derive(Debug, Clone)]
pub(crate) struct DeliverySetup {
    /// How terminals show a notification.
    pub(crate) channel: Channel,
    /// What is played.
    sound: Sound,
    /// What is played for some kinds instead.
    sounds: Vec<(ShownKind, Sound)>,
    /// What is run.
    pub(crate) command: Option<PersonCommand>,
    /// The webhooks that are called, each under its name.
    pub(crate) webhooks: Vec<(String, Webhook)>,
    /// Those that are called when the person is away.
    pub(crate) away_webhooks: Vec<(String, Webhook)>,
    /// Where players are looked for.
    pub(crate) search_path: OsString,
}

impl DeliverySetup {
    /// What a configuration says of it.
    pub(crate) fn of(config: &Config, search_path: OsString) -> Self {
        let webhooks =
            |when| config.webhooks_of(when).map(|entry| (entry.name().to_owned(), webhook(entry))).collect();
        Self {
            channel: config.preferred_channel,
            sound: sound(&config.notify.sound),
            sounds: config.notify.sounds.iter().map(|(kind, own)| (*kind, sound(own))).collect(),
            command: command(config),
            webhooks: webhooks(WebhookWhen::Always),
            away_webhooks: webhooks(WebhookWhen::Away),
            search_path,
        }
    }
}

impl DeliverySetup {
    /// What is played for a kind.
    pub(crate) fn sound_of(&self, kind: ShownKind) -> &Sound {
        self.sounds.iter().find(|(own, _)| *own == kind).map_or(&self.sound, |(_, sound)| sound)
    }
}

/// The person's command, ready to run: beside the settings, or at the root where there is no such place.
pub fn command(config: &Config) -> Option<PersonCommand> {
    let beside = config.path.parent().filter(|directory| directory.is_dir());
    let directory = beside.unwrap_or(Path::new("/")).to_owned();
    let argv = config.notify.command.clone();
    (!argv.is_empty()).then_some(PersonCommand { argv, directory, timeout: COMMAND_TIMEOUT })
}

/// A sound, ready to be played.
pub fn sound(sound: &ringer_config::SoundSetting) -> Sound {
    match sound {
        ringer_config::SoundSetting::Off => Sound::Off,
        ringer_config::SoundSetting::Theme => Sound::Theme,
        ringer_config::SoundSetting::File(path) => Sound::File(path.clone()),
    }
}

/// A hook, ready to run.
pub fn hook_program(hook: &HookEntry) -> HookProgram {
    HookProgram {
        id: hook.id.clone(),
        argv: hook.command.clone(),
        directory: hook.source.directory().to_owned(),
        timeout: hook.timeout,
    }
}

/// A webhook, ready to be called.
pub fn webhook(webhook: &ringer_config::WebhookEntry) -> Webhook {
    let kind = match webhook.kind {
        WebhookKind::Ntfy => Service::Ntfy,
        WebhookKind::Slack => Service::Slack,
        WebhookKind::Discord => Service::Discord,
        WebhookKind::Json => Service::Json,
    };
    Webhook {
        kind,
        url: webhook.url.clone(),
        secret: webhook.secret_file.clone().map(SecretFile::new),
        kinds: webhook.kinds.clone(),
        timeout: ATTEMPT_TIMEOUT,
    }
}

/// Where programs are looked for.
pub(crate) fn search_path() -> OsString {
    std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into())
}
