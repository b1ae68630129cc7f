//! The files that name hooks, what the person trusts of them, and the programs that a hub would keep for them.
//!
//! Ids and contents are few, so that the same position, id or content comes again as another program all the time.

use std::collections::{HashMap, HashSet};

use ringer_core::engine::Ticket;
use ringer_core::policy::{Hook, HookIdentity, HookInput, OnFailure};
use ringer_core::{Preferences, Scope};

use test_support::Random;

/// The person's own file.
const OWN: &str = "/own/config.toml";
/// The files of two worktrees of one repository: the settings hold the one that was read last.
const WORKTREES: [&str; 2] = ["/one/.ringer.toml", "/two/.ringer.toml"];
const CONTENTS: [&str; 3] = ["a", "b", "c"];

/// A hook as a file has it.
#[derive(Debug, Clone)]
struct Entry {
    id: &'static str,
    content: &'static str,
    on_failure: OnFailure,
}

/// What the settings of one revision had.
#[derive(Debug)]
struct Revision {
    hooks: Vec<HookIdentity>,
    /// What runs for each; only for those that were trusted.
    programs: HashMap<HookIdentity, String>,
}

#[derive(Debug, Default)]
pub(crate) struct HookFiles {
    revision: u64,
    entries: HashMap<&'static str, Vec<Entry>>,
    worktree: Option<&'static str>,
    trusted: HashSet<String>,
    revisions: HashMap<u64, Revision>,
    /// Which revision each chain is of, and the position of its last hook.
    chains: HashMap<Ticket, (u64, usize)>,
}

fn digest(file: &str, entry: &Entry) -> String {
    format!("{} {} {file}", entry.id, entry.content)
}

impl HookFiles {
    /// Edits a file, reads another worktree, or changes what the person trusts.
    pub(crate) fn change(&mut self, random: &mut Random) {
        let file = *random.pick(&[OWN, WORKTREES[0], WORKTREES[1]]);
        match random.below(4) {
            0 => {
                let ids = if random.below(2) == 0 { ["format", "triage"] } else { ["triage", "format"] };
                let mut entries = Vec::from(ids.map(|id| Entry {
                    id,
                    content: random.pick::<&str>(&CONTENTS),
                    on_failure: *random.pick(&[OnFailure::Keep, OnFailure::Keep, OnFailure::Suppress]),
                }));
                entries.truncate(*random.pick(&[0, 1, 2]));
                self.entries.insert(file, entries);
            }
            1 => self.worktree = WORKTREES.into_iter().find(|worktree| *worktree == file),
            _ => {
                let all = WORKTREES.iter().flat_map(|file| {
                    let entries = self.entries.get(file).into_iter().flatten();
                    entries.map(|entry| digest(file, entry))
                });
                let all: Vec<String> = all.chain(self.trusted.iter().cloned()).collect();
                if all.is_empty() {
                    return;
                }
                let digest = random.pick(&all).clone();
                if random.below(3) == 0 {
                    self.trusted.remove(&digest);
                } else {
                    self.trusted.insert(digest);
                }
            }
        }
    }

    /// The settings as they are now, as a new revision.
    pub(crate) fn next_revision(&mut self) -> Preferences {
        self.revision += 1;
        let files = [Some(OWN), self.worktree];
        let hooks: Vec<Hook> = files.into_iter().flatten().flat_map(|file| self.hooks_of(file)).collect();
        let trusted = hooks.iter().filter(|hook| hook.trusted).map(|hook| &hook.identity);
        let programs = trusted.map(|identity| (identity.clone(), identity.digest.clone())).collect();
        let named = hooks.iter().map(|hook| hook.identity.clone()).collect();
        self.revisions.insert(self.revision, Revision { hooks: named, programs });
        Preferences {
            hooks: hooks.into(),
            trusted_hooks: self.trusted.clone(),
            read_files: files.into_iter().flatten().map(str::to_owned).collect(),
            ..Preferences::default()
        }
    }

    fn hooks_of(&self, file: &'static str) -> Vec<Hook> {
        let entries = self.entries.get(file).into_iter().flatten();
        let hooks = entries.map(|entry| {
            let digest = digest(file, entry);
            Hook {
                trusted: file == OWN || self.trusted.contains(&digest),
                identity: HookIdentity { id: entry.id.to_owned(), digest, revision: self.revision },
                config_path: Some(file.to_owned()),
                on_failure: entry.on_failure,
                scope: (file != OWN).then(|| Scope::global().to_string()),
            }
        });
        hooks.collect()
    }

    /// Programs of other revisions are forgotten.
    pub(crate) fn keep_programs_of(&mut self, revisions: &HashSet<u64>) {
        self.revisions.retain(|revision, _| revisions.contains(revision));
    }

    /// Another hub starts: it counts revisions from zero, and has only the programs of its own settings.
    pub(crate) fn restart(&mut self) {
        self.revision = 0;
        self.revisions.clear();
        self.chains.clear();
    }

    /// A hook was ordered. The program that runs is the one that was ordered, it was trusted when its notification arrived,
    /// and the present settings still allow it.
    pub(crate) fn check_order(&mut self, ticket: Ticket, hook: &HookIdentity, hook_input: &HookInput) {
        let revision = self.revisions.get(&hook.revision).expect("its programs are kept");
        let program = revision.programs.get(hook).expect("it was trusted in its revision");
        assert_eq!(*program, hook.digest, "another program would run");
        let context = &hook_input.context;
        let file = context.config_path.as_deref().expect("a file names it");
        assert_eq!(context.hook_id.as_deref(), Some(hook.id.as_str()));
        assert!(hook.digest.ends_with(file), "{hook:?} is told it stands in {file}");
        let names = |file| {
            self.entries.get(file).into_iter().flatten().any(|entry| digest(file, entry) == hook.digest)
        };
        if file == OWN {
            assert!(names(OWN), "{hook:?} is no longer in the person's file");
        } else {
            assert!(self.trusted.contains(&hook.digest), "{hook:?} is no longer trusted");
            let is_held = self.worktree == Some(file);
            assert!(!is_held || names(file), "{hook:?} is no longer in its file");
        }
        let position = revision.hooks.iter().position(|own| own == hook).expect("it stands there");
        if let Some((before, last)) = self.chains.insert(ticket, (hook.revision, position)) {
            assert_eq!(before, hook.revision, "a chain keeps its hooks");
            assert!(last <= position, "in order");
        }
    }
}
