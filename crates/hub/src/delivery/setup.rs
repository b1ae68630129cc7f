//! The part of the settings that the delivery channels need. Each revision of the settings has its own.

use std::ffi::OsString;
use std::path::Path;

use ringer_core::message::ShownKind;
use ringer_deliver::{
    COMMAND_TIMEOUT, HookProgram, PersonCommand, SecretFile, Sound, Webhook, check_address, service_names,
};
use ringer_term::Channel;

use ringer_config::{Config, HookEntry, Rules, WebhookEntry, WebhookRule, WebhookWhen};

/// The most attempts to call a webhook.
pub(crate) const WEBHOOK_ATTEMPTS: u32 = 5;

/// The settings of the delivery channels.
#[derive(Debug, Clone)]
pub(crate) struct DeliverySetup {
    /// How terminals show a notification.
    pub(crate) channel: Channel,
    /// The default sound.
    sound: Sound,
    /// Sounds for single kinds.
    sounds: Vec<(ShownKind, Sound)>,
    pub(crate) command: Option<PersonCommand>,
    /// Webhooks by name.
    pub(crate) webhooks: Vec<(String, Webhook)>,
    /// Webhooks for when the person is away, by name.
    pub(crate) away_webhooks: Vec<(String, Webhook)>,
    /// Where sound players are searched.
    pub(crate) search_path: OsString,
}

impl DeliverySetup {
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
    /// Returns the sound for a kind.
    pub(crate) fn sound_of(&self, kind: ShownKind) -> &Sound {
        self.sounds.iter().find(|(own, _)| *own == kind).map_or(&self.sound, |(_, sound)| sound)
    }
}

/// Returns the person's command. It runs in the directory of the settings, or in `/` if there is none.
pub fn command(config: &Config) -> Option<PersonCommand> {
    let beside = config.path.parent().filter(|directory| directory.is_dir());
    let directory = beside.unwrap_or(Path::new("/")).to_owned();
    let argv = config.notify.command.clone();
    (!argv.is_empty()).then_some(PersonCommand { argv, directory, timeout: COMMAND_TIMEOUT })
}

/// Returns the sound that a setting names.
pub fn sound(sound: &ringer_config::SoundSetting) -> Sound {
    match sound {
        ringer_config::SoundSetting::Off => Sound::Off,
        ringer_config::SoundSetting::Theme => Sound::Theme,
        ringer_config::SoundSetting::File(path) => Sound::File(path.clone()),
    }
}

/// Returns the program of a hook.
pub fn hook_program(hook: &HookEntry) -> HookProgram {
    HookProgram {
        id: hook.id.clone(),
        argv: hook.command.clone(),
        directory: hook.source.directory().to_owned(),
        timeout: hook.timeout,
    }
}

/// Returns the webhook of a settings entry.
pub fn webhook(entry: &WebhookEntry) -> Webhook {
    Webhook {
        secret: entry.secret_file.clone().map(SecretFile::new),
        kinds: entry.kinds.clone(),
        ..Webhook::new(entry.kind, &entry.url)
    }
}

/// What the delivery channels define of the settings.
pub fn settings_rules() -> Rules {
    let webhooks = WebhookRule { names: service_names(), check: check_address };
    Rules { webhooks, ..Rules::default() }
}

/// Returns `PATH`, or a default if it is not set.
pub(crate) fn search_path() -> OsString {
    std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into())
}
