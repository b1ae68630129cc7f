//! Which hooks may still run, checked before each one is run.
//!
//! A chain keeps the hooks of the settings that were active when its notification arrived. Before a hook of it is run, the
//! user may have withdrawn their trust, or the file may name another program. Such a hook is not run.

use std::collections::HashSet;

use crate::policy::Hook;

/// What the present settings say about hooks.
#[derive(Debug, Clone, Default)]
pub(crate) struct ActiveHooks {
    /// The digests of the hooks in these settings.
    named: HashSet<String>,
    /// The digests of repositories' hooks that the user trusts, whether or not these settings name them.
    trusted: HashSet<String>,
    /// The files that these settings were read from.
    read_files: HashSet<String>,
}

impl ActiveHooks {
    /// `trusted` are digests of repositories' hooks; hooks of the user's own settings need no trust. `read_files` are the
    /// files whose hooks are all among `hooks`.
    pub(crate) fn new(hooks: &[Hook], trusted: HashSet<String>, read_files: HashSet<String>) -> Self {
        let named = hooks.iter().map(|hook| hook.identity.digest.clone()).collect();
        Self { named, trusted, read_files }
    }

    /// Why a hook of earlier settings may not run any more; `None` if it may.
    ///
    /// The settings hold one worktree's file for each repository. A file that was not read for them says nothing about
    /// its hooks, so those only have to be trusted still.
    pub(crate) fn refusal_reason(&self, hook: &Hook) -> Option<String> {
        let is_own = hook.scope.is_none();
        let is_read = hook.config_path.as_ref().is_some_and(|path| self.read_files.contains(path));
        if !is_own && !self.trusted.contains(&hook.identity.digest) {
            return Some("it is no longer trusted".to_owned());
        }
        if (is_own || is_read) && !self.named.contains(&hook.identity.digest) {
            let file = hook.config_path.as_deref().unwrap_or("its file");
            return Some(format!("{file} no longer names it"));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{HookIdentity, OnFailure};

    fn hook(digest: &str, file: &str, scope: Option<&str>) -> Hook {
        Hook {
            identity: HookIdentity { id: "format".to_owned(), digest: digest.to_owned(), revision: 1 },
            config_path: Some(file.to_owned()),
            on_failure: OnFailure::Keep,
            trusted: true,
            scope: scope.map(str::to_owned),
        }
    }

    #[test]
    fn one_of_a_repository_has_to_be_trusted_still_and_named_by_its_file_if_that_was_read() {
        let set = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<HashSet<_>>();
        let check = |named: &[&str], trusted: &[&str], read: &[&str], expected: Option<&str>| {
            let hooks: Vec<Hook> = named.iter().map(|digest| hook(digest, "/one", Some("repo"))).collect();
            let now = ActiveHooks::new(&hooks, set(trusted), set(read));
            let refusal = now.refusal_reason(&hook("x", "/one", Some("repo")));
            assert_eq!(refusal.as_deref(), expected, "{named:?} {trusted:?} {read:?}");
        };
        check(&["x"], &["x"], &["/one"], None);
        check(&["x"], &["y"], &["/one"], Some("it is no longer trusted"));
        check(&["y"], &["x", "y"], &["/one"], Some("/one no longer names it"));
        check(&[], &["x"], &["/one"], Some("/one no longer names it"));
        // The settings have since been read from another worktree of the same repository.
        check(&["y"], &["x", "y"], &["/two"], None);
        check(&["y"], &["y"], &["/two"], Some("it is no longer trusted"));
    }

    #[test]
    fn one_of_the_persons_own_has_to_stand_in_their_settings_still() {
        let own = hook("x", "/config.toml", None);
        let now = |hooks: &[Hook]| ActiveHooks::new(hooks, HashSet::new(), HashSet::new());
        assert_eq!(now(std::slice::from_ref(&own)).refusal_reason(&own), None);
        let refusal = now(&[hook("y", "/config.toml", None)]).refusal_reason(&own);
        assert_eq!(refusal.as_deref(), Some("/config.toml no longer names it"));
    }
}
