//! The `Nats-Msg-Id` of messages.

use ringer_platform::hex;
use sha2::{Digest, Sha256};

use crate::machine::MachineId;

/// The `Nats-Msg-Id` of a message that is published in a run. The server takes another message of the same one for a duplicate,
/// whichever machine publishes it, and also if the first one was lost or removed. So each run has other ids, and no machine can
/// know those of another one before it has published.
pub(crate) fn nats_message_id(machine: &MachineId, run: i64, message: &str) -> String {
    format!("{message}.{}", digest(&[machine.as_str(), &run.to_string(), message]))
}

/// What tells one machine from another of the same name. It does not say the machine's id.
pub(crate) fn machine_mark(machine: &MachineId) -> String {
    digest(&[machine.as_str(), "consumer"])
}

fn digest(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part.as_bytes());
        hash.update(b"\n");
    }
    hex(&hash.finalize()[..8])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_has_one_id_in_a_run_and_another_one_in_the_next() {
        let machine = |digit: &str| MachineId::parse(&digit.repeat(32)).unwrap();
        let id = |digit: &str, run: i64| nats_message_id(&machine(digit), run, "m");
        assert_eq!(id("a", 1), id("a", 1));
        assert_ne!(id("a", 1), id("a", 2));
        assert_ne!(id("a", 1), id("b", 1));
        assert!(id("a", 1).starts_with("m."));
    }
}
