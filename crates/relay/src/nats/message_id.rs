//! The `Nats-Msg-Id` of messages.

use ringer_platform::hex;
use sha2::{Digest, Sha256};

use crate::machine::MachineId;

/// The `Nats-Msg-Id` of a message in a stream. The server takes another message of the same one for a duplicate, whichever
/// machine publishes it. So that no machine keeps out the messages of another one after the stream was lost, the second part
/// can be known only once the message was published.
pub(crate) fn nats_message_id(machine: &MachineId, stream: &str, message: &str) -> String {
    format!("{message}.{}", digest(&[machine.as_str(), stream, message]))
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
    fn a_message_has_one_id_in_a_stream_and_another_one_in_the_next() {
        let machine = |digit: &str| MachineId::parse(&digit.repeat(32)).unwrap();
        let id = |digit: &str, stream: &str| nats_message_id(&machine(digit), stream, "m");
        assert_eq!(id("a", "monday"), id("a", "monday"));
        assert_ne!(id("a", "monday"), id("a", "tuesday"));
        assert_ne!(id("a", "monday"), id("b", "monday"));
        assert!(id("a", "monday").starts_with("m."));
    }
}
