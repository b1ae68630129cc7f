//! The current settings: the person's file, the files of repositories, and the trust in their programs.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ringer_core::Preferences;
use ringer_core::policy::HookIdentity;
use ringer_core::toast::Observation;
use ringer_deliver::HookProgram;
use ringer_journal::Home;
use ringer_platform::{FileStamp, file_stamp};

use super::hook_programs::HookPrograms;
use crate::delivery::setup::settings_rules;
use crate::repository_probe::{ProbeResult, RepositorySettings};
use ringer_config::{
    Change, Config, Environment, LastGood, REPOSITORY_FILE, Trusted, Watch, load, user_path,
};

/// The most repositories whose settings are kept. Others are forgotten until their next message.
const MAX_REPOSITORIES: usize = 256;

/// The shortest time between two checks of the files if no message comes.
const CHECK_EVERY: Duration = Duration::from_secs(1);

/// The settings, and the stamps that reveal changes.
#[derive(Debug)]
pub(crate) struct Settings {
    environment: Environment,
    path: Option<PathBuf>,
    stamp: Option<FileStamp>,
    last: LastGood,
    trust_path: PathBuf,
    trust_stamp: Option<FileStamp>,
    trusted: Trusted,
    /// Repositories with settings, by scope.
    repositories: BTreeMap<String, Arc<RepositorySettings>>,
    /// The revision of the current settings: the number of times that settings were applied.
    revision: u64,
    /// The trusted programs of the revisions in use.
    hook_programs: HookPrograms,
    checked_at: Option<Duration>,
    /// Probe all known repositories with the next batch.
    recheck_known: bool,
}

/// Returns the file that stores the person's trust.
pub fn trust_file(home: &Home) -> PathBuf {
    home.path().join("trusted.json")
}

impl Settings {
    /// Reads the person's settings and trust.
    pub(crate) fn read(environment: Environment, home: &Home) -> Self {
        let path = user_path(&environment);
        let result = read(path.as_deref(), &environment);
        let trust_path = trust_file(home);
        Self {
            stamp: path.as_deref().and_then(file_stamp),
            last: LastGood::new(result),
            trust_stamp: file_stamp(&trust_path),
            trusted: Trusted::load(&trust_path).unwrap_or_default(),
            path,
            environment,
            trust_path,
            repositories: BTreeMap::new(),
            revision: 0,
            hook_programs: HookPrograms::default(),
            checked_at: None,
            recheck_known: false,
        }
        .with_programs()
    }

    fn with_programs(mut self) -> Self {
        self.hook_programs.add(self.revision, &self.config(), &self.trusted);
        self
    }

    /// Returns the revision of the current settings.
    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }

    /// Makes the current settings a new revision, and returns them.
    pub(super) fn apply(&mut self) -> Config {
        self.revision += 1;
        let config = self.config();
        self.hook_programs.add(self.revision, &config, &self.trusted);
        config
    }

    /// Removes the hook programs of all other revisions.
    pub(super) fn keep_revisions(&mut self, revisions: &HashSet<u64>) {
        self.hook_programs.keep_only(revisions);
    }

    /// Returns the trusted program with exactly this identity.
    pub(super) fn hook_program(&self, hook: &HookIdentity) -> Option<Arc<HookProgram>> {
        self.hook_programs.get(hook)
    }

    /// Returns the trusted watches.
    pub(super) fn trusted_watches(&self, config: &Config) -> Vec<Watch> {
        config.watches.iter().filter(|watch| self.trusted.is_trusted(*watch)).cloned().collect()
    }

    /// Counts the untrusted programs in each file. They do not run.
    pub(super) fn untrusted_files(&self, config: &Config) -> BTreeMap<PathBuf, usize> {
        let hooks = config.enabled_hooks().filter(|hook| !self.trusted.is_trusted(*hook));
        let watches = config.watches.iter().filter(|watch| !self.trusted.is_trusted(*watch));
        let paths = hooks.map(|hook| &hook.source.path).chain(watches.map(|watch| &watch.source.path));
        paths.fold(BTreeMap::new(), |mut files, path| {
            *files.entry(path.clone()).or_default() += 1;
            files
        })
    }

    /// Returns true at most once a second, when the files must be checked again.
    pub(super) fn take_check(&mut self, now: Duration) -> bool {
        let is_due = self.checked_at.is_none_or(|at| now.saturating_sub(at) >= CHECK_EVERY);
        if is_due {
            self.checked_at = Some(now);
            self.recheck_known = true;
        }
        is_due
    }

    /// Requests a probe of all known repositories with the next batch.
    pub(super) fn recheck_repositories(&mut self) {
        self.recheck_known = true;
    }

    /// Takes the request for a probe of all known repositories.
    pub(super) fn take_recheck(&mut self) -> bool {
        std::mem::take(&mut self.recheck_known)
    }

    /// Returns the settings, including the settings of repositories.
    pub(crate) fn config(&self) -> Config {
        self.repositories.iter().fold(self.last.config().clone(), |config, (scope, own)| {
            config.with_repository(&own.settings, scope)
        })
    }

    /// Returns the part of the settings for the engine.
    pub(crate) fn preferences(&self, config: &Config) -> Preferences {
        let files =
            self.repositories.values().map(|own| own.root.join(REPOSITORY_FILE)).chain(self.path.clone());
        let read_files = files.map(|path| path.to_string_lossy().into_owned()).collect();
        Preferences { read_files, ..config.preferences(self.revision, &self.trusted) }
    }

    #[cfg(test)]
    pub(crate) fn trusted(&self) -> &Trusted {
        &self.trusted
    }

    /// Returns the person's home directory.
    pub(crate) fn home(&self) -> Option<PathBuf> {
        self.environment.home.clone()
    }

    /// Returns the settings of a repository, if it has any.
    pub(crate) fn repository(&self, scope: &str) -> Option<Arc<RepositorySettings>> {
        self.repositories.get(scope).cloned()
    }

    /// Returns every repository with settings.
    pub(crate) fn repositories(&self) -> impl Iterator<Item = (&String, &Arc<RepositorySettings>)> {
        self.repositories.iter()
    }

    /// Applies the result of a probe. Returns true if the settings changed.
    pub(crate) fn repository_probed(&mut self, scope: &str, result: &ProbeResult) -> bool {
        let own = match result {
            ProbeResult::NoRepository => return false,
            ProbeResult::NoSettings => return self.repositories.remove(scope).is_some(),
            ProbeResult::Settings(own) => own,
        };
        let known = self.repositories.get(scope);
        if known.is_some_and(|known| known.is_same_file(own)) {
            return false;
        }
        if known.is_none() && self.repositories.len() >= MAX_REPOSITORIES {
            self.repositories.pop_first();
        }
        self.repositories.insert(scope.to_owned(), Arc::clone(own));
        true
    }

    /// Reloads the person's file and trust if they changed. Returns observations for the person, or `None` if nothing changed.
    pub(crate) fn refresh(&mut self) -> Option<Vec<Observation>> {
        let mut changed = false;
        let mut told = Vec::new();
        let seen = self.path.as_deref().and_then(file_stamp);
        if seen != self.stamp {
            self.stamp = seen;
            let was_broken = self.last.errors().is_some();
            let change = self.last.reload(read(self.path.as_deref(), &self.environment));
            changed |= !matches!(change, Change::Unchanged);
            told.extend(self.error_observation().or_else(|| was_broken.then(cleared_observation)));
        }
        let seen = file_stamp(&self.trust_path);
        if seen != self.trust_stamp {
            self.trust_stamp = seen;
            self.trusted = Trusted::load(&self.trust_path).unwrap_or_default();
            changed = true;
        }
        changed.then_some(told)
    }

    /// Returns the error of the person's file as an observation of the settings source.
    pub(crate) fn error_observation(&self) -> Option<Observation> {
        let mut observation = Observation::new("settings", self.error_text()?);
        observation.error = true;
        Some(observation)
    }

    /// Returns the error of the person's file in words.
    pub(super) fn error_text(&self) -> Option<String> {
        let errors = self.last.errors()?;
        Some(format!("{errors}; the last good settings hold"))
    }
}

/// The observation that the error is gone.
fn cleared_observation() -> Observation {
    Observation { active: false, ..Observation::new("settings", "") }
}

fn read(path: Option<&Path>, environment: &Environment) -> Result<Config, ringer_config::ConfigErrors> {
    path.map_or_else(
        || Ok(Config::default()),
        |path| load(path, environment.home.as_deref(), &settings_rules()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn settings(directory: &Path) -> (Settings, PathBuf) {
        let path = directory.join("config.toml");
        let environment = Environment { ringer_config: Some(path.clone()), ..Environment::default() };
        (Settings::read(environment, &Home::new(directory)), path)
    }

    #[test]
    fn a_broken_file_leaves_the_last_good_settings_and_is_told() {
        let directory = tempfile::tempdir().unwrap();
        let (mut settings, path) = settings(directory.path());
        assert!(settings.refresh().is_none() && settings.error_observation().is_none());
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
            ProbeResult::Settings(Arc::new(RepositorySettings::read(directory.path(), None).unwrap()))
        };
        let (first, second) = (own("x"), own("yy"));
        assert!(!settings.repository_probed("0a0a0a0a", &ProbeResult::NoSettings), "it sets nothing");
        assert!(settings.repository_probed("0a0a0a0a", &first));
        assert!(!settings.repository_probed("0a0a0a0a", &first), "it is known");
        let config = settings.config();
        assert_eq!(config.hooks[0].scope.as_deref(), Some("0a0a0a0a"));
        assert!(!settings.trusted().is_trusted(&config.hooks[0]));
        assert!(settings.repository_probed("0a0a0a0a", &second));
        assert!(
            !settings.repository_probed("0a0a0a0a", &ProbeResult::NoRepository),
            "that says nothing about it"
        );
        assert_eq!(settings.config().hooks[0].id, "yy");
        assert!(settings.repository_probed("0a0a0a0a", &ProbeResult::NoSettings));
        assert!(settings.config().hooks.is_empty());
    }

    #[test]
    fn so_many_repositories_are_kept() {
        let directory = tempfile::tempdir().unwrap();
        let (mut settings, _) = settings(directory.path());
        fs::write(directory.path().join(REPOSITORY_FILE), "").unwrap();
        let own = ProbeResult::Settings(Arc::new(RepositorySettings::read(directory.path(), None).unwrap()));
        for number in 0..MAX_REPOSITORIES + 5 {
            assert!(settings.repository_probed(&format!("{number:08x}"), &own));
        }
        assert_eq!(settings.repositories().count(), MAX_REPOSITORIES);
    }
}
