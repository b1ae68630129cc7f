//! Settings that change during a run.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use ringer_config::{REPOSITORY_FILE, Trusted, load_repository};

use super::{Simulation, trust_file};

impl Simulation {
    /// Changes the settings, the hooks of the repository and the trust in them.
    pub(super) fn change_settings(&mut self) {
        self.changes += 1;
        let text = format!(
            "[notify]\nrate_limit = \"off\"\ntitle_mark = \"{}\"\npopup = \"{}\"\n",
            *self.random.pick(&["auto", "always"]),
            *self.random.pick(&["desktop", "terminal", "off"]),
        );
        fs::write(self.config(), text).unwrap();
        self.touch(&self.config());
        let mut text = String::new();
        for id in ["one", "two"] {
            if self.random.one_in(2) {
                let command = format!("{id}-{}", self.random.below(2));
                writeln!(text, "[[hook]]\nid = \"{id}\"\ncommand = [\"{command}\"]").unwrap();
            }
        }
        let file = self.repository().join(REPOSITORY_FILE);
        fs::write(&file, text).unwrap();
        self.touch(&file);
        let config = load_repository(&self.repository(), None).unwrap();
        let path = trust_file(&self.home());
        let mut trusted = Trusted::default();
        for hook in &config.hooks {
            let is_trusted = self.random.one_in(2);
            self.programs.insert(hook.command[0].clone(), is_trusted);
            if is_trusted {
                trusted.trust(hook);
            }
        }
        trusted.save(&path).unwrap();
        self.touch(&path);
    }

    /// Makes a file newer than before, because runs are faster than the clock of the file system.
    fn touch(&self, path: &Path) {
        let changes = Duration::from_secs(self.changes);
        fs::File::options()
            .append(true)
            .open(path)
            .unwrap()
            .set_modified(SystemTime::UNIX_EPOCH + changes)
            .unwrap();
    }
}
