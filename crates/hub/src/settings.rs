//! The settings as they are now: the person's file, those of repositories, and what was trusted of them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use ringer_core::Observation;
use ringer_journal::Home;

use crate::config::{
    Change, Config, Environment, LastGood, REPOSITORY_FILE, Repository, Trusted, load, load_repository,
    user_path,
};

/// Repositories whose settings are kept. With more, those that have none of their own are forgotten first.
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
    repositories: BTreeMap<String, Own>,
}

/// A repository's own settings.
#[derive(Debug)]
struct Own {
    root: PathBuf,
    look: Look,
    settings: Repository,
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

    /// What was trusted.
    pub(crate) fn trusted(&self) -> &Trusted {
        &self.trusted
    }

    /// A repository is heard of. Gives whether the settings changed by it.
    pub(crate) fn hear_of(&mut self, scope: &str, root: &Path) -> bool {
        let seen = look(&root.join(REPOSITORY_FILE));
        match self.repositories.get(scope) {
            Some(own) if own.root == root && own.look == seen => return false,
            None if seen.is_none() => return false,
            _ => {}
        }
        if self.repositories.len() >= MAX_REPOSITORIES {
            self.repositories.pop_first();
        }
        // A broken file of a repository sets nothing; `ringer config check` says what is wrong with it.
        let settings = load_repository(root, self.environment.home.as_deref()).unwrap_or_default();
        self.repositories.insert(scope.to_owned(), Own { root: root.to_owned(), look: seen, settings });
        true
    }

    /// Looks whether a file changed, and reads it again if so. Gives what to tell the person, if anything did.
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
        let known: Vec<(String, PathBuf)> =
            self.repositories.iter().map(|(scope, own)| (scope.clone(), own.root.clone())).collect();
        for (scope, root) in known {
            changed |= self.hear_of(&scope, &root);
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

fn read(path: Option<&Path>, environment: &Environment) -> Result<Config, crate::config::ConfigErrors> {
    path.map_or_else(|| Ok(Config::default()), |path| load(path, environment.home.as_deref()))
}

fn look(path: &Path) -> Look {
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
    fn a_repository_adds_its_own_until_its_file_goes() {
        let directory = tempfile::tempdir().unwrap();
        let (mut settings, _) = settings(directory.path());
        let root = directory.path().join("repo");
        fs::create_dir(&root).unwrap();
        assert!(!settings.hear_of("0a0a0a0a", &root), "it sets nothing");
        fs::write(root.join(REPOSITORY_FILE), "[[hook]]\nid = \"x\"\ncommand = [\"true\"]\n").unwrap();
        assert!(settings.hear_of("0a0a0a0a", &root));
        let config = settings.config();
        assert_eq!(config.hooks[0].scope.as_deref(), Some("0a0a0a0a"));
        assert!(!settings.trusted().is_trusted(&config.hooks[0]));
        fs::remove_file(root.join(REPOSITORY_FILE)).unwrap();
        assert!(settings.refresh().is_some());
        assert!(settings.config().hooks.is_empty());
    }
}
