//! Applying settings: to the engine, to the ways out, to the watches.

use std::sync::Arc;
use std::time::Duration;

use ringer_core::Event;
use ringer_journal::Repository;

use crate::clock::monotonic;
use crate::dispatch::{Dispatcher, search_path};
use crate::outfit::Outfit;
use crate::perform::Job;
use crate::watch::Watcher;

/// How often the settings' files are looked at, at most.
const LOOK_EVERY: Duration = Duration::from_secs(1);

impl Dispatcher {
    pub(crate) fn hear_of_repository(&mut self, scope: &str, cwd: &str) {
        // Cheap where it is known: one look at a file.
        let Some(repository) = Repository::around(cwd.as_ref()) else { return };
        if self.settings.hear_of(scope, &repository.worktree) {
            self.apply_settings();
        }
    }

    /// Looks whether the settings changed, now and then.
    pub(crate) fn look_at_settings(&mut self) {
        let now = monotonic();
        if now.saturating_sub(self.looked) >= LOOK_EVERY {
            self.looked = now;
            self.reload();
        }
    }

    /// Reads the settings again if they changed. Gives whether they did.
    pub(crate) fn reload(&mut self) -> bool {
        let Some(told) = self.settings.refresh() else { return false };
        self.apply_settings();
        for observation in told {
            self.handle(Event::Observed(observation));
        }
        true
    }

    pub(crate) fn apply_settings(&mut self) {
        let config = self.settings.config();
        let trusted = self.settings.trusted();
        self.engine.set(config.preferences(&|hook| trusted.is_trusted(hook)));
        self.flash = config.notify.flash;
        self.patience = config.patience();
        self.perform(Job::Equip(Arc::new(Outfit::of(&config, search_path()))));
        self.watch(&config.watches);
        self.log.line("the settings changed");
    }

    pub(crate) fn watch(&mut self, watches: &[crate::config::Watch]) {
        let trusted = self.settings.trusted();
        let allowed: Vec<_> = watches.iter().filter(|watch| trusted.is_trusted(*watch)).cloned().collect();
        self.watcher = self
            .inputs
            .upgrade()
            .filter(|_| !allowed.is_empty())
            .and_then(|inputs| Watcher::begin(allowed, inputs));
    }
}
