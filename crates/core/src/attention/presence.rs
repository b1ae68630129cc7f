//! Whether the person is there.

use std::collections::BTreeMap;

/// What each host knows about it. Away needs evidence: who is not known to be away is present.
#[derive(Debug, Clone, Default)]
pub(crate) struct Presence {
    hosts: BTreeMap<u64, bool>,
}

impl Presence {
    /// Replaces what a host said; `None` if it does not know, or is gone.
    pub(crate) fn set(&mut self, host: u64, present: Option<bool>) {
        match present {
            Some(present) => self.hosts.insert(host, present),
            None => self.hosts.remove(&host),
        };
    }

    /// Whether a host says that the person is away, and none that they are there.
    pub(crate) fn is_away(&self) -> bool {
        !self.hosts.is_empty() && self.hosts.values().all(|present| !present)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn away_needs_evidence_and_one_host_that_sees_the_person_is_enough() {
        let mut presence = Presence::default();
        assert!(!presence.is_away(), "unknown is present");
        presence.set(1, Some(false));
        assert!(presence.is_away());
        presence.set(2, Some(true));
        assert!(!presence.is_away(), "they are at the other host");
        presence.set(2, None);
        assert!(presence.is_away());
        presence.set(1, None);
        assert!(!presence.is_away(), "the host is gone");
    }
}
