//! Entries that run a program: what decides which one, as a digest.

use ringer_core::policy::{Hook, HookIdentity};
use sha2::{Digest, Sha256};

use crate::entry::{HookEntry, Source, Watch};

/// Something that runs a program and may have come with a checkout.
pub trait Trustable {
    /// Where it stands.
    fn source(&self) -> &Source;

    /// What the person is asked about, in words. It comes from a stranger's file and is shown in a terminal, so
    /// everything in it is quoted and escaped.
    fn what(&self) -> String;

    /// A digest of all that decides what is run, as lowercase hex.
    fn digest(&self) -> String;
}

impl Trustable for HookEntry {
    fn source(&self) -> &Source {
        &self.source
    }

    fn what(&self) -> String {
        format!("hook {:?}: {:?}", self.id, self.command)
    }

    fn digest(&self) -> String {
        let mut digest = Parts::new("hook");
        digest.add(self.id.as_bytes());
        digest.all(&self.command);
        digest.add(self.source.path.as_os_str().as_encoded_bytes());
        digest.finish()
    }
}

impl Trustable for Watch {
    fn source(&self) -> &Source {
        &self.source
    }

    fn what(&self) -> String {
        format!("watch of {:?}: {:?}", self.paths, self.command)
    }

    fn digest(&self) -> String {
        let mut digest = Parts::new("watch");
        digest.all(&self.command);
        digest.add(self.source.path.as_os_str().as_encoded_bytes());
        // Another directory can mean another program, another file an attacker's moment, another agent a new reader.
        digest.add(self.working_directory().as_os_str().as_encoded_bytes());
        digest.add(self.agent.as_deref().unwrap_or_default().as_bytes());
        for path in &self.paths {
            digest.add(path.as_os_str().as_encoded_bytes());
        }
        digest.finish()
    }
}

impl HookEntry {
    /// Which program it is, in the settings of this revision.
    pub fn identity(&self, revision: u64) -> HookIdentity {
        HookIdentity { id: self.id.clone(), digest: self.digest(), revision }
    }

    /// The hook of the engine.
    pub(crate) fn to_rule(&self, revision: u64, trusted: bool) -> Hook {
        Hook {
            identity: self.identity(revision),
            config_path: Some(self.source.path.to_string_lossy().into_owned()),
            on_failure: self.on_failure,
            trusted,
            scope: self.scope.clone(),
        }
    }
}

/// A digest of parts. Each goes in with its length, so that `a bc` and `ab c` differ.
struct Parts(Sha256);

impl Parts {
    fn new(what: &str) -> Self {
        let mut parts = Self(Sha256::new());
        parts.add(b"ringer-trust-1");
        parts.add(what.as_bytes());
        parts
    }

    fn add(&mut self, part: &[u8]) {
        self.0.update((part.len() as u64).to_le_bytes());
        self.0.update(part);
    }

    fn all(&mut self, parts: &[String]) {
        self.0.update((parts.len() as u64).to_le_bytes());
        for part in parts {
            self.add(part.as_bytes());
        }
    }

    fn finish(self) -> String {
        ringer_platform::hex(&self.0.finalize())
    }
}
