//! Applying settings: to the engine, to the ways out, to the watches.

use std::sync::Arc;
use std::time::Duration;

use ringer_core::Event;

use crate::clock::monotonic;
use crate::delivery_setup::DeliverySetup;
use crate::dispatch::{Dispatcher, search_path};
use crate::perform::Job;
use crate::scout::Sight;
use crate::watch::Watcher;

/// How often the settings' files are looked at, at most, when no message comes.
const LOOK_EVERY: Duration = Duration::from_secs(1);

impl Dispatcher {
    /// A repository was looked at.
    pub(crate) fn see(&mut self, scope: &str, sight: &Sight) {
        if self.settings.put(scope, sight) {
            self.apply_settings();
        }
    }

    /// Looks whether the settings changed, now and then.
    pub(crate) fn look_at_settings(&mut self) {
        let now = monotonic();
        if now.saturating_sub(self.looked) >= LOOK_EVERY {
            self.looked = now;
            self.look_at_known = true;
            self.reload();
        }
    }

    /// Reads the person's settings again if they changed.
    pub(crate) fn reload(&mut self) {
        let Some(told) = self.settings.refresh() else { return };
        self.apply_settings();
        for observation in told {
            self.handle(Event::Observed(observation));
        }
    }

    pub(crate) fn apply_settings(&mut self) {
        self.applied += 1;
        let config = self.settings.config();
        self.hook_programs.add(self.applied, &config, self.settings.trusted());
        self.engine.set_preferences(self.settings.preferences(&config, self.applied));
        self.hook_programs.keep_only(&self.engine.hook_revisions());
        self.flash = config.notify.flash;
        self.titles.allow(&config);
        self.patience = config.patience();
        self.perform(Job::Equip(Arc::new(DeliverySetup::of(&config, search_path()))));
        self.watch(&config.watches);
        self.log.line("the settings changed");
    }

    pub(crate) fn watch(&mut self, watches: &[ringer_config::Watch]) {
        let trusted = self.settings.trusted();
        let allowed: Vec<_> = watches.iter().filter(|watch| trusted.is_trusted(*watch)).cloned().collect();
        self.watcher = match (self.watcher.take(), self.inputs.upgrade()) {
            (Some(current), _) if !allowed.is_empty() => current.set(allowed),
            (None, Some(inputs)) if !allowed.is_empty() => Watcher::begin(allowed, inputs),
            _ => None,
        };
    }
}
