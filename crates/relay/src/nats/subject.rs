//! The subjects of a team: `ringer.TEAM.MACHINE.SCOPE.RECIPIENT`.
//!
//! The server lets a machine publish only below its own name, so the machine in a subject is the publisher.
//!
//! Also defines the other names on the server: the stream, the consumers, and the `Nats-Msg-Id` of messages.

use ringer_platform::hex;
use sha2::{Digest, Sha256};

use crate::machine::MachineId;

/// The first word of all subjects.
const FIRST: &str = "ringer";
/// The last word of marks, and of requests between machines.
const MARK: &str = "mark";
const WANT: &str = "want";
/// The prefix of the last word if it names the only recipient machine.
const TO: &str = "to-";

/// The recipients of a subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Audience<'a> {
    /// All machines of the team. The word says who reads it there.
    All(&'a str),
    /// One machine, for an agent there.
    Machine(&'a str),
    /// A mark, for all machines.
    Mark,
    /// A request to the other machines.
    Want,
}

/// A parsed subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TeamSubject<'a> {
    pub(crate) machine: &'a str,
    pub(crate) scope: &'a str,
    pub(crate) audience: Audience<'a>,
}

impl<'a> TeamSubject<'a> {
    /// Formats the subject for the server.
    pub(crate) fn text(&self, team: &str) -> String {
        let Self { machine, scope, audience } = self;
        let last = match audience {
            Audience::All(word) => (*word).to_owned(),
            Audience::Machine(to) => format!("{TO}{to}"),
            Audience::Mark => MARK.to_owned(),
            Audience::Want => WANT.to_owned(),
        };
        format!("{FIRST}.{team}.{machine}.{scope}.{last}")
    }

    /// Parses a subject. Returns `None` if it does not belong to this team.
    pub(crate) fn parse(text: &'a str, team: &str) -> Option<Self> {
        let mut words = text.split('.');
        let mut next = || words.next().filter(|word| is_word(word));
        if next()? != FIRST || next()? != team {
            return None;
        }
        let (machine, scope, last) = (next()?, next()?, next()?);
        let audience = match last {
            MARK => Audience::Mark,
            WANT => Audience::Want,
            word => word.strip_prefix(TO).map_or(Audience::All(word), Audience::Machine),
        };
        words.next().is_none().then_some(Self { machine, scope, audience })
    }
}

/// Matches all subjects of a team.
pub(crate) fn all_of(team: &str) -> String {
    format!("{FIRST}.{team}.>")
}

/// Matches all subjects of a machine of a team.
pub(crate) fn all_of_machine(team: &str, machine: &str) -> String {
    format!("{FIRST}.{team}.{machine}.>")
}

pub(crate) fn stream_name(team: &str) -> String {
    format!("{FIRST}-{team}")
}

pub(crate) fn consumer_name(machine: &str) -> String {
    format!("{FIRST}-{machine}")
}

/// The subject on which a machine receives answers to its agents. The last word is the answering machine.
pub(crate) fn answers_for(team: &str, machine: &str) -> String {
    format!("{FIRST}-answers.{team}.{machine}.*")
}

/// The subject on which one machine answers agents of another. The server lets a machine publish only as itself.
pub(crate) fn answers_from(team: &str, to: &str, machine: &str) -> String {
    format!("{FIRST}-answers.{team}.{to}.{machine}")
}

/// The prefix of the subjects for lists of agents, which are outside the stream.
pub(crate) const AGENTS: &str = "ringer-agents.";

/// Matches the lists of agents of all machines in a team.
pub(crate) fn agents_of_team(team: &str) -> String {
    format!("{AGENTS}{team}.*")
}

/// The subject for one machine's list. The server lets a machine publish only as itself.
pub(crate) fn agents_from(team: &str, machine: &str) -> String {
    format!("{AGENTS}{team}.{machine}")
}

/// Returns the machine that publishes its agents under a subject. `None` if the subject does not belong to this team.
pub(crate) fn machine_of_agents<'a>(subject: &'a str, team: &str) -> Option<&'a str> {
    let machine = subject.strip_prefix(AGENTS)?.strip_prefix(team)?.strip_prefix('.')?;
    is_word(machine).then_some(machine)
}

/// Returns true for a valid word of a subject. A machine's word becomes part of names here.
fn is_word(word: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    let begins_well = word.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
    begins_well && word.len() <= 128 && word.bytes().all(is_allowed)
}

/// Returns the `Nats-Msg-Id` of a message that is published in a run. The server takes another message with the same id for a
/// duplicate, whichever machine publishes it, and even if the first one was lost or removed. So each run has new ids, and no
/// machine can predict those of another one.
pub(crate) fn nats_message_id(machine: &MachineId, run: i64, message: &str) -> String {
    format!("{message}.{}", digest(&[machine.as_str(), &run.to_string(), message]))
}

/// Returns a word that distinguishes machines with the same name. It does not reveal the machine's id.
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
    fn a_subject_round_trips() {
        let audiences = [Audience::All("person"), Audience::Machine("box"), Audience::Mark, Audience::Want];
        for audience in audiences {
            let subject = TeamSubject { machine: "lap-top", scope: "0a1b", audience };
            assert_eq!(TeamSubject::parse(&subject.text("t"), "t"), Some(subject.clone()));
            assert_eq!(TeamSubject::parse(&subject.text("t"), "other"), None);
        }
    }

    #[test]
    fn the_subject_of_a_list_names_its_machine() {
        assert_eq!(machine_of_agents(&agents_from("t", "box"), "t"), Some("box"));
        for subject in [
            "ringer-agents.u.box",
            "ringer-agents.t",
            "ringer-agents.t.a.b",
            "ringer-agents.t.b@x",
            "ringer.t.box",
        ] {
            assert_eq!(machine_of_agents(subject, "t"), None, "{subject}");
        }
    }

    #[test]
    fn foreign_subjects_are_rejected() {
        for text in [
            "",
            "ringer",
            "ringer.t",
            "ringer.t.box",
            "ringer.t.box.s",
            "ringer.t.box.s.all.more",
            "ringer.t..s.all",
            "other.t.box.s.all",
            "ringer.t.b@x.s.all",
            "ringer.t.*.s.all",
            "ringer.t.box.s.>",
            "ringer.t.-box.s.all",
        ] {
            assert_eq!(TeamSubject::parse(text, "t"), None, "{text}");
        }
        let long = format!("ringer.t.{}.s.all", "x".repeat(200));
        assert_eq!(TeamSubject::parse(&long, "t"), None);
    }

    #[test]
    fn a_message_gets_a_new_id_in_each_run() {
        let machine = |digit: &str| MachineId::parse(&digit.repeat(32)).unwrap();
        let id = |digit: &str, run: i64| nats_message_id(&machine(digit), run, "m");
        assert_eq!(id("a", 1), id("a", 1));
        assert_ne!(id("a", 1), id("a", 2));
        assert_ne!(id("a", 1), id("b", 1));
        assert!(id("a", 1).starts_with("m."));
    }
}
