//! The settings as they are now: the person's file, those of repositories, and what was trusted of them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use ringer_core::{Observation, Preferences};
use ringer_journal::Home;

use crate::scout::{Own, Sight};
use ringer_config::{Change, Config, Environment, LastGood, REPOSITORY_FILE, Trusted, load, user_path};

/// Repositories whose settings are kept. With more, some are forgotten until they are heard of again.
const MAX_REPOSITORIES: usize = 256;

/// When a file was changed and how long it is: enough to see that it is another one.
type Look = Option<(SystemTime, u64)>;

/// Everything that is set, and a way to notice that it changed.
#[derive(Debug)]
pub(crate) struct Settings {
    environment: Environment,
    path: Option<PathBuf>,
    look: Look,
    last: LastGood,
    trust_path: PathBuf,
    trust_look: Look,
    trusted: Trusted,
    /// Those that set something, by their scopes. The scout reads them.
    repositories: BTreeMap<String, Arc<Own>>,
}

/// The file that remembers what was trusted.
pub fn trust_file(home: &Home) -> PathBuf {
    home.path().join("trusted.json")
}

impl Settings {
    /// Reads everything.
    pub(crate) fn read(environment: Environment, home: &Home) -> Self {
        let path = user_path(&environment);
        let result = read(path.as_deref(), &environment);
        let trust_path = trust_file(home);
        Self {
            look: path.as_deref().and_then(look),
            last: LastGood::new(result),
            trust_look: look(&trust_path),
            trusted: Trusted::load(&trust_path).unwrap_or_default(),
            path,
            environment,
            trust_path,
            repositories: BTreeMap::new(),
        }
    }

    /// The settings, those of repositories included.
    pub(crate) fn config(&self) -> Config {
        self.repositories.iter().fold(self.last.config().clone(), |config, (scope, own)| {
            config.with_repository(&own.settings, scope)
        })
    }

    /// What the engine has to know of them, under their revision.
    pub(crate) fn preferences(&self, config: &Config, revision: u64) -> Preferences {
        let files =
            self.repositories.values().map(|own| own.root.join(REPOSITORY_FILE)).chain(self.path.clone());
        let read_files = files.map(|path| path.to_string_lossy().into_owned()).collect();
        Preferences { read_files, ..config.preferences(revision, &self.trusted) }
    }

    /// What was trusted.
    pub(crate) fn trusted(&self) -> &Trusted {
        &self.trusted
    }

    /// The person's own directory.
    pub(crate) fn home(&self) -> Option<PathBuf> {
        self.environment.home.clone()
    }

    /// What is known of a repository.
    pub(crate) fn repository(&self, scope: &str) -> Option<Arc<Own>> {
        self.repositories.get(scope).cloned()
    }

    /// Every repository that sets something.
    pub(crate) fn repositories(&self) -> impl Iterator<Item = (&String, &Arc<Own>)> {
        self.repositories.iter()
    }

    /// A repository was looked at. Gives whether the settings changed by it.
    pub(crate) fn put(&mut self, scope: &str, sight: &Sight) -> bool {
        let own = match sight {
            Sight::Nothing => return false,
            Sight::Bare => return self.repositories.remove(scope).is_some(),
            Sight::Set(own) => own,
        };
        let known = self.repositories.get(scope);
        if known.is_some_and(|known| known.is(own)) {
            return false;
        }
        if known.is_none() && self.repositories.len() >= MAX_REPOSITORIES {
            self.repositories.pop_first();
        }
        self.repositories.insert(scope.to_owned(), Arc::clone(own));
        true
    }

    /// Looks whether the person's file or what was trusted changed, and reads it again if so. Gives what to tell the person, if anything did.
    pub(crate) fn refresh(&mut self) -> Option<Vec<Observation>> {
        let mut changed = false;
        let mut told = Vec::new();
        let seen = self.path.as_deref().and_then(look);
        if seen != self.look {
            self.look = seen;
            let was_broken = self.last.errors().is_some();
            let change = self.last.reload(read(self.path.as_deref(), &self.environment));
            changed |= !matches!(change, Change::Unchanged);
            told.extend(self.complaint().or_else(|| was_broken.then(mended)));
        }
        let seen = look(&self.trust_path);
        if seen != self.trust_look {
            self.trust_look = seen;
            self.trusted = Trusted::load(&self.trust_path).unwrap_or_default();
            changed = true;
        }
        changed.then_some(told)
    }

    /// What is wrong with the person's file, for the settings source.
    pub(crate) fn complaint(&self) -> Option<Observation> {
        let errors = self.last.errors()?;
        let mut observation = Observation::new("settings", format!("{errors}; the last good settings hold"));
        observation.error = true;
        Some(observation)
    }
}

/// What was wrong is right again.
fn mended() -> Observation {
    Observation { active: false, ..Observation::new("settings", "") }
}

fn read(path: Option<&Path>, environment: &Environment) -> Result<Config, ringer_config::ConfigErrors> {
    path.map_or_else(|| Ok(Config::default()), |path| load(path, environment.home.as_deref()))
}

/// Looks at a file. `None` if there is none.
pub(crate) fn look(path: &Path) -> Look {
    let metadata = fs::metadata(path).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(directory: &Path) -> (Settings, PathBuf) {
        let path = directory.join("config.toml");
        let environment = Environment { ringer_config: Some(path.clone()), ..Environment::default() };
        (Settings::read(environment, &Home::new(directory)), path)
    }

    #[test]
    fn a_broken_file_leaves_the_last_good_settings_and_is_told() {
        let directory = tempfile::tempdir().unwrap();
        let (mut settings, path) = settings(directory.path());
        assert!(settings.refresh().is_none() && settings.complaint().is_none());
        fs::write(&path, "[notify]\nreorder = true\n").unwrap();
        assert_eq!(settings.refresh(), Some(vec![]));
        assert!(settings.config().notify.reorder);
        fs::write(&path, "[notify]\nreorder = 7 # no\n").unwrap();
        let told = settings.refresh().unwrap();
        assert!(told[0].error && told[0].text.contains("config.toml:2:11"), "{told:?}");
        assert!(settings.config().notify.reorder, "the last good one holds");
        fs::write(&path, "").unwrap();
        let told = settings.refresh().unwrap();
        assert!(!told[0].active);
    }

    #[test]
    fn a_repository_adds_its_own_until_it_sets_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let (mut settings, _) = settings(directory.path());
        let own = |id: &str| {
            let text = format!("[[hook]]\nid = \"{id}\"\ncommand = [\"true\"]\n");
            fs::write(directory.path().join(REPOSITORY_FILE), text).unwrap();
            Sight::Set(Arc::new(Own::read(directory.path(), None).unwrap()))
        };
        let (first, second) = (own("x"), own("yy"));
        assert!(!settings.put("0a0a0a0a", &Sight::Bare), "it sets nothing");
        assert!(settings.put("0a0a0a0a", &first));
        assert!(!settings.put("0a0a0a0a", &first), "it is known");
        let config = settings.config();
        assert_eq!(config.hooks[0].scope.as_deref(), Some("0a0a0a0a"));
        assert!(!settings.trusted().is_trusted(&config.hooks[0]));
        assert!(settings.put("0a0a0a0a", &second));
        assert!(!settings.put("0a0a0a0a", &Sight::Nothing), "that says nothing about it");
        assert_eq!(settings.config().hooks[0].id, "yy");
        assert!(settings.put("0a0a0a0a", &Sight::Bare));
        assert!(settings.config().hooks.is_empty());
    }

    #[test]
    fn so_many_repositories_are_kept() {
        let directory = tempfile::tempdir().unwrap();
        let (mut settings, _) = settings(directory.path());
        fs::write(directory.path().join(REPOSITORY_FILE), "").unwrap();
        let own = Sight::Set(Arc::new(Own::read(directory.path(), None).unwrap()));
        for number in 0..MAX_REPOSITORIES + 5 {
            assert!(settings.put(&format!("{number:08x}"), &own));
        }
        assert_eq!(settings.repositories().count(), MAX_REPOSITORIES);
    }
}
