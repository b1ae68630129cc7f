//! The hook programs that may run, by the identity under which the engine orders them.
//!
//! Only trusted programs are added, and this is the only source of programs to run. The engine orders the hooks of the settings
//! under which a notification arrived, so the programs of those settings stay as long as the engine may order one of them.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use ringer_core::policy::HookIdentity;
use ringer_deliver::HookProgram;

use ringer_config::{Config, Trusted};

use crate::delivery::setup::hook_program;

/// The trusted programs of every revision in use: the current one, and at most one for each undecided notification.
#[derive(Debug, Default)]
pub(crate) struct HookPrograms {
    programs: HashMap<HookIdentity, Arc<HookProgram>>,
}

impl HookPrograms {
    /// Adds the trusted programs of a revision.
    pub(crate) fn add(&mut self, revision: u64, config: &Config, trusted: &Trusted) {
        let runnable = config.enabled_hooks().filter(|hook| trusted.is_trusted(*hook));
        self.programs.extend(runnable.map(|hook| (hook.identity(revision), Arc::new(hook_program(hook)))));
    }

    /// Removes the programs of all other revisions.
    pub(crate) fn keep_only(&mut self, revisions: &HashSet<u64>) {
        self.programs.retain(|identity, _| revisions.contains(&identity.revision));
    }

    /// Returns the program with exactly this identity.
    pub(crate) fn get(&self, hook: &HookIdentity) -> Option<Arc<HookProgram>> {
        self.programs.get(hook).cloned()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use ringer_config::{HookEntry, Rules, Trustable, parse, parse_repository};

    fn config(repository: &str) -> Config {
        let own = "[[hook]]\nid = \"own\"\ncommand = [\"x\"]\n\
                   [[hook]]\nid = \"off\"\ncommand = [\"x\"]\nenabled = false\n";
        let own = parse(Path::new("/c/config.toml"), None, own, &Rules::default()).unwrap();
        let text = format!("[[hook]]\nid = \"format\"\ncommand = [\"{repository}\"]\n");
        let theirs = parse_repository(Path::new("/r/.ringer.toml"), None, &text).unwrap();
        own.with_repository(&theirs, "0a0a0a0a")
    }

    #[test]
    fn what_is_not_trusted_is_never_in_it() {
        let (good, bad) = (config("good"), config("bad"));
        let mut trusted = Trusted::default();
        trusted.trust(&good.hooks[2]);
        let mut programs = HookPrograms::default();
        programs.add(1, &good, &trusted);
        programs.add(2, &bad, &trusted);
        let argv = |hook: &HookEntry, revision| {
            programs.get(&hook.identity(revision)).map(|program| program.argv.clone())
        };
        assert_eq!(argv(&good.hooks[0], 1).unwrap(), ["x"]);
        assert_eq!(argv(&good.hooks[1], 1), None, "it is switched off");
        assert_eq!(argv(&good.hooks[2], 1).unwrap(), ["good"]);
        // The same position and the same id in the next revision.
        assert_eq!(argv(&good.hooks[2], 2), None);
        assert_eq!(argv(&bad.hooks[2], 2), None);
        assert_eq!(programs.programs.len(), 3);
    }

    #[test]
    fn a_name_alone_finds_nothing() {
        let config = config("good");
        let mut trusted = Trusted::default();
        trusted.trust(&config.hooks[2]);
        let mut programs = HookPrograms::default();
        programs.add(1, &config, &trusted);
        let right = config.hooks[2].identity(1);
        assert_eq!(right.digest, config.hooks[2].digest());
        for wrong in [
            HookIdentity { id: "own".to_owned(), ..right.clone() },
            HookIdentity { digest: String::new(), ..right.clone() },
            HookIdentity { revision: 2, ..right.clone() },
        ] {
            assert!(programs.get(&wrong).is_none(), "{wrong:?}");
        }
        assert!(programs.get(&right).is_some());
        programs.keep_only(&HashSet::from([2]));
        assert!(programs.get(&right).is_none());
    }
}
