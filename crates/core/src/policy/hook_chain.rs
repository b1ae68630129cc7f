//! The chain of hook programs: each reads the output of the one before it. A hook that fails changes nothing.
//!
//! This module runs no program. The chain returns which hook to run next and with what input, and takes its answer.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::attention::Cause;
use crate::policy::{Effects, HookInput, HookPatch};

/// The minimum time between toasts about one failing hook. A hook fails with every notification, and one toast per five
/// minutes is enough to show that it still does.
pub(crate) const FAILURE_INTERVAL: Duration = Duration::from_mins(5);

/// The result of running a hook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HookAnswer {
    /// The changes it asks for; an empty patch changes nothing.
    Patched(HookPatch),
    /// Why it failed: exit code, timeout, too much output, no JSON.
    Failed(String),
}

/// The next step of a chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HookChainStep {
    /// Run this hook, with this on its standard input.
    Run {
        /// The program.
        hook: HookIdentity,
        /// Its standard input.
        hook_input: HookInput,
    },
    /// All hooks have run.
    Decided {
        /// The notification and its switches after all hooks.
        hook_input: HookInput,
        /// What each hook did, for the trail.
        steps: Vec<Cause>,
        /// Hooks that failed or are not trusted, with the reason.
        failures: Vec<(String, String)>,
    },
}

/// The run of all hooks for one notification. It keeps the hooks it began with; each is checked against the current settings
/// before it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HookChain {
    hooks: Arc<[Hook]>,
    scope: String,
    at: usize,
    hook_input: HookInput,
    steps: Vec<Cause>,
    failures: Vec<(String, String)>,
}

impl HookChain {
    /// Starts the chain for a notification of this scope. Returns the first step.
    pub(crate) fn begin(
        hooks: Arc<[Hook]>,
        scope: &str,
        hook_input: HookInput,
        active: &ActiveHooks,
    ) -> (Self, HookChainStep) {
        let scope = scope.to_owned();
        let mut chain = Self { hooks, scope, at: 0, hook_input, steps: Vec::new(), failures: Vec::new() };
        let next = chain.next(active);
        (chain, next)
    }

    /// The revision of the settings that the hooks come from, if there are any.
    pub(crate) fn revision(&self) -> Option<u64> {
        self.hooks.first().map(|hook| hook.identity.revision)
    }

    /// Applies the answer of the hook that ran. Returns the next step.
    pub(crate) fn answered(&mut self, answer: HookAnswer, active: &ActiveHooks) -> HookChainStep {
        if let Some(hook) = self.hooks.get(self.at).cloned() {
            self.at += 1;
            match answer {
                HookAnswer::Patched(patch) => self.patch(&hook, patch),
                HookAnswer::Failed(why) => self.fail(&hook, why),
            }
        }
        self.next(active)
    }

    fn patch(&mut self, hook: &Hook, patch: HookPatch) {
        let before = self.hook_input.clone();
        let stop = patch.stop;
        self.hook_input.apply(patch);
        let hook = hook.identity.id.clone();
        let effects = self.hook_input.effects.names().into_iter().map(str::to_owned).collect();
        self.steps.push(Cause::HookRan { hook: hook.clone(), changed: self.hook_input != before, effects });
        if stop {
            self.steps.push(Cause::HookStopped { hook });
            self.at = self.hooks.len();
        }
    }

    /// Records a failure. The failed hook's patch is lost, the patches before it stay. A hook that fails closed suppresses
    /// the notification.
    fn fail(&mut self, hook: &Hook, why: String) {
        self.steps.push(Cause::HookFailed { hook: hook.identity.id.clone(), why: why.clone() });
        self.failures.push((hook.identity.id.clone(), why));
        if hook.on_failure == OnFailure::Suppress {
            self.steps.push(Cause::HookSuppressed { hook: hook.identity.id.clone() });
            self.hook_input.effects = Effects::NONE;
            self.at = self.hooks.len();
        }
    }

    fn next(&mut self, active: &ActiveHooks) -> HookChainStep {
        while let Some(hook) = self.hooks.get(self.at) {
            let id = &hook.identity.id;
            if hook.scope.as_ref().is_some_and(|scope| *scope != self.scope) {
                // A hook of another repository.
            } else if !hook.trusted {
                self.steps.push(Cause::HookUntrusted { hook: id.clone() });
                self.failures.push((id.clone(), "not trusted; run: ringer trust".to_owned()));
            } else if let Some(why) = active.refusal_reason(hook) {
                self.steps.push(Cause::HookNotRun { hook: id.clone(), why });
            } else {
                let mut hook_input = self.hook_input.clone();
                hook_input.context.hook_id = Some(id.clone());
                hook_input.context.config_path.clone_from(&hook.config_path);
                return HookChainStep::Run { hook: hook.identity.clone(), hook_input };
            }
            self.at += 1;
        }
        HookChainStep::Decided {
            hook_input: self.hook_input.clone(),
            steps: std::mem::take(&mut self.steps),
            failures: std::mem::take(&mut self.failures),
        }
    }
}

/// Limits how often failing hooks are reported.
#[derive(Debug, Clone, Default)]
pub(crate) struct FailureNotices {
    /// When each hook was last reported.
    last_reported: HashMap<String, Duration>,
}

impl FailureNotices {
    /// Returns true if a failure of this hook should be reported now, and records the time.
    pub(crate) fn is_due(&mut self, now: Duration, hook: &str) -> bool {
        let due =
            self.last_reported.get(hook).is_none_or(|last| now.saturating_sub(*last) >= FAILURE_INTERVAL);
        if due {
            // Only configured hooks get here, so the map stays as small as the configuration.
            self.last_reported.insert(hook.to_owned(), now);
        }
        due
    }
}

/// What happens to the notification when a hook fails.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OnFailure {
    /// It continues as if the hook had changed nothing.
    #[default]
    Keep,
    /// It is suppressed: the hook fails closed.
    Suppress,
}

/// The identity of a hook program. An order names a hook by this and never by its position: the settings may have changed
/// since the chain began, and another program may have the same position and id.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct HookIdentity {
    /// Its name.
    pub id: String,
    /// A digest of everything that determines which program runs: the id, the arguments, the file that names them.
    pub digest: String,
    /// The revision of the settings that name it.
    pub revision: u64,
}

/// A hook, without its command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hook {
    /// The identity of the program.
    pub identity: HookIdentity,
    /// The file that names it.
    pub config_path: Option<String>,
    /// The effect of a failure.
    pub on_failure: OnFailure,
    /// True if the person trusted it in that revision. A hook that is not trusted is skipped.
    pub trusted: bool,
    /// The repository that names it; it runs for notifications of that repository only. `None` for a hook of the user's own
    /// settings, which runs for all.
    pub scope: Option<String>,
}

/// The hooks of the current settings.
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

    /// Returns why a hook of earlier settings may not run any more; `None` if it may.
    ///
    /// The settings hold one worktree's file for each repository. A file that was not read says nothing about its hooks, so
    /// those only have to be trusted still.
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
    use crate::policy::{AgentContext, HookInputContext, HookInputText};

    fn hook(id: &str) -> Hook {
        let identity = HookIdentity { id: id.to_owned(), digest: format!("digest of {id}"), revision: 1 };
        Hook { identity, config_path: None, on_failure: OnFailure::Keep, trusted: true, scope: None }
    }

    /// The active hooks of settings that trust all of them.
    fn active(hooks: &[Hook]) -> ActiveHooks {
        let trusted = hooks.iter().map(|hook| hook.identity.digest.clone()).collect();
        ActiveHooks::new(hooks, trusted, HashSet::new())
    }

    fn patch(json: &str) -> HookAnswer {
        HookAnswer::Patched(serde_json::from_str(json).unwrap())
    }

    /// Runs a chain with these answers. Returns what was decided and which hooks ran.
    fn run(hooks: Vec<Hook>, answers: Vec<HookAnswer>) -> (HookInput, Vec<(String, String)>, Vec<String>) {
        let text = HookInputText { body: "b".into(), ..HookInputText::default() };
        let hook_input = HookInput::new(text, HookInputContext::default(), AgentContext::default());
        let active = active(&hooks);
        let (mut chain, mut next) = HookChain::begin(hooks.into(), "here", hook_input, &active);
        let (mut answers, mut ran) = (answers.into_iter(), Vec::new());
        loop {
            match next {
                HookChainStep::Run { hook, .. } => {
                    ran.push(hook.id);
                    next = chain.answered(answers.next().unwrap(), &active);
                }
                HookChainStep::Decided { hook_input, failures, .. } => return (hook_input, failures, ran),
            }
        }
    }

    #[test]
    fn each_hook_reads_what_the_one_before_it_left() {
        let text = HookInputText { body: "b".into(), ..HookInputText::default() };
        let hook_input = HookInput::new(text, HookInputContext::default(), AgentContext::default());
        let hooks = [hook("a"), hook("b")];
        let active = active(&hooks);
        let (mut chain, _) = HookChain::begin(hooks.into(), "here", hook_input, &active);
        let answer = patch(r#"{"notification":{"body":"new"}}"#);
        let HookChainStep::Run { hook_input, .. } = chain.answered(answer, &active) else {
            panic!("the second comes next");
        };
        assert_eq!(
            (hook_input.notification.body.as_str(), hook_input.context.hook_id.as_deref()),
            ("new", Some("b"))
        );
    }

    #[test]
    fn stop_ends_the_chain() {
        let answers = vec![patch(r#"{"stop":true,"effects":{"sound":false}}"#)];
        let (hook_input, _, ran) = run(vec![hook("a"), hook("b")], answers);
        assert_eq!((hook_input.effects.sound, ran), (false, vec!["a".to_owned()]));
    }

    #[test]
    fn a_hook_that_fails_loses_its_own_patch_only() {
        let answers = vec![
            patch(r#"{"effects":{"sound":false}}"#),
            HookAnswer::Failed("exit code 1".into()),
            patch(r#"{"effects":{"desktop":false}}"#),
        ];
        let (hook_input, failures, ran) = run(vec![hook("a"), hook("b"), hook("c")], answers);
        assert!(!hook_input.effects.sound && !hook_input.effects.desktop && hook_input.effects.record);
        assert_eq!(failures, [("b".into(), "exit code 1".into())]);
        assert_eq!(ran, ["a", "b", "c"]);
    }

    #[test]
    fn one_may_fail_closed() {
        let fails_closed = Hook { on_failure: OnFailure::Suppress, ..hook("a") };
        let (hook_input, _, ran) =
            run(vec![fails_closed, hook("b")], vec![HookAnswer::Failed("timeout".into())]);
        assert_eq!((hook_input.effects, ran), (Effects::NONE, vec!["a".to_owned()]));
    }

    #[test]
    fn an_untrusted_hook_is_skipped_and_reported() {
        let untrusted = Hook { trusted: false, ..hook("a") };
        let (hook_input, failures, ran) = run(vec![untrusted, hook("b")], vec![patch("{}")]);
        assert_eq!((hook_input.effects, ran), (Effects::default(), vec!["b".to_owned()]));
        assert!(failures[0].1.contains("ringer trust"));
    }

    #[test]
    fn a_repositorys_own_hook_runs_for_that_repository_only() {
        let of = |scope: &str| Hook { scope: Some(scope.to_owned()), ..hook(scope) };
        let (_, failures, ran) =
            run(vec![of("elsewhere"), of("here"), hook("b")], vec![patch("{}"), patch("{}")]);
        assert_eq!((failures.len(), ran), (0, vec!["here".to_owned(), "b".to_owned()]));
    }

    #[test]
    fn a_hook_that_the_settings_withdrew_is_not_run_and_the_notification_kept() {
        let text = HookInputText { body: "b".into(), ..HookInputText::default() };
        let hook_input = HookInput::new(text, HookInputContext::default(), AgentContext::default());
        let fails_closed = Hook { on_failure: OnFailure::Suppress, ..hook("b") };
        let hooks = [hook("a"), fails_closed.clone(), hook("c")];
        let (mut chain, next) = HookChain::begin(hooks.clone().into(), "here", hook_input, &active(&hooks));
        assert!(matches!(next, HookChainStep::Run { hook, .. } if hook.id == "a"));
        let now = active(&[hook("a"), hook("c")]);
        let HookChainStep::Run { hook, .. } = chain.answered(patch("{}"), &now) else {
            panic!("the third comes next")
        };
        assert_eq!(hook.id, "c");
        let HookChainStep::Decided { hook_input, steps, .. } = chain.answered(patch("{}"), &now) else {
            panic!("all ran")
        };
        assert_eq!(hook_input.effects, Effects::default(), "its failing closed holds for what it was asked");
        assert!(
            steps.iter().any(|step| matches!(step, Cause::HookNotRun { hook, .. } if hook == "b")),
            "{steps:?}"
        );
    }

    #[test]
    fn no_hooks_decide_at_once() {
        assert_eq!(run(Vec::new(), Vec::new()).0.effects, Effects::default());
    }

    #[test]
    fn each_hook_is_reported_once_in_five_minutes() {
        let mut notices = FailureNotices::default();
        let second = Duration::from_secs;
        assert!(notices.is_due(second(0), "a") && !notices.is_due(second(299), "a"));
        assert!(notices.is_due(second(10), "b"));
        assert!(notices.is_due(second(300), "a"));
    }

    fn named_hook(digest: &str, file: &str, scope: Option<&str>) -> Hook {
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
            let hooks: Vec<Hook> =
                named.iter().map(|digest| named_hook(digest, "/one", Some("repo"))).collect();
            let now = ActiveHooks::new(&hooks, set(trusted), set(read));
            let refusal = now.refusal_reason(&named_hook("x", "/one", Some("repo")));
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
        let own = named_hook("x", "/config.toml", None);
        let now = |hooks: &[Hook]| ActiveHooks::new(hooks, HashSet::new(), HashSet::new());
        assert_eq!(now(std::slice::from_ref(&own)).refusal_reason(&own), None);
        let refusal = now(&[named_hook("y", "/config.toml", None)]).refusal_reason(&own);
        assert_eq!(refusal.as_deref(), Some("/config.toml no longer names it"));
    }
}
