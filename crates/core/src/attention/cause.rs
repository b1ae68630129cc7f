//! Why something happened to a notification: a value for programs, and a sentence for people.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::attention::{AnsweredWith, PlaceReason, ReadReason, ResolvedBy, UndoKind};
use crate::message::MessageId;
use crate::policy::{DeliveryChannel, MuteTarget};
use crate::time::{rounded_span_text, span_text};

/// One step in the life of a notification. `Display` is the sentence that `ringer why` prints; the serialized form is an
/// object with the `name` of the cause and its fields.
///
/// ```
/// use ringer_core::attention::Cause;
///
/// let cause = Cause::RateLimited { sender: "worker-1".to_owned(), over: 3 };
/// assert_eq!(cause.to_string(), "worker-1 is 3 over its rate limit: no popup, sound, command or webhook");
/// assert_eq!(serde_json::to_string(&cause)?, r#"{"name":"rate_limited","sender":"worker-1","over":3}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Cause {
    /// The hub took the message.
    Received {
        /// The sender.
        from: String,
        /// How its place was found.
        place: PlaceReason,
    },
    /// Its time to live was over before the hub took it.
    Expired,
    /// It is for an agent, so the person is not notified.
    ForAgent {
        /// The recipient.
        to: String,
    },
    /// It reports the same event as another one, with no more detail.
    Duplicate {
        /// The other one; nothing if it came from the terminal.
        of: Option<MessageId>,
    },
    /// It reports the same event as an older one, with more detail.
    ReplacesOlder {
        /// The older one.
        older: MessageId,
    },
    /// A newer one of the same surface arrived before it was shown.
    ReplacedByNewer {
        /// The newer one.
        newer: MessageId,
    },
    /// The queue was full.
    QueueFull,
    /// Its place was cleared before it was shown.
    Cleared,
    /// It is from a subagent, and the settings leave those out.
    Subagent,
    /// The settings mute it.
    Muted,
    /// The person muted it with a command.
    MutedByPerson {
        /// What is muted.
        target: MuteTarget,
        /// Until when, in milliseconds since 1970, if that was said.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until_unix_ms: Option<i64>,
    },
    /// It arrived in quiet hours.
    QuietHours,
    /// Its sender sent too many.
    RateLimited {
        /// The sender.
        sender: String,
        /// How many notifications too many.
        over: u32,
    },
    /// Its machine or its sender there sent more than the list takes. It is counted in a row of that machine.
    OnlyCounted {
        /// The machine.
        machine: String,
    },
    /// The turn that ended was short, and no host says whether the person looks at its pane.
    ShortTurn {
        /// How long the turn took, in milliseconds.
        turn_ms: u64,
        /// The setting, in milliseconds.
        min_turn_ms: u64,
    },
    /// The end of the turn after which the agent waits had a popup.
    TurnShown,
    /// The settings turn reminders of waiting agents off.
    IdleReminderOff,
    /// A hook has run.
    HookRan {
        /// The hook's id.
        hook: String,
        /// Whether it changed anything.
        changed: bool,
        /// The effects that are on after it.
        effects: Vec<String>,
    },
    /// A hook ended the chain: the hooks after it do not run.
    HookStopped {
        /// The hook's id.
        hook: String,
    },
    /// A hook failed.
    HookFailed {
        /// The hook's id.
        hook: String,
        /// Why.
        why: String,
    },
    /// A hook failed that suppresses the notification then.
    HookSuppressed {
        /// The hook's id.
        hook: String,
    },
    /// A hook is not trusted.
    HookUntrusted {
        /// The hook's id.
        hook: String,
    },
    /// A hook did not run because the settings have changed.
    HookNotRun {
        /// The hook's id.
        hook: String,
        /// What changed.
        why: String,
    },
    /// The person is looking at its pane.
    InView,
    /// The settings turn popups off.
    PopupsDisabled,
    /// It was sent long before the hub took it.
    TooOld,
    /// The person is away, and it can wait until they are back.
    Away,
    /// All rules and hooks have been applied.
    Decided {
        /// The groups of channels that it is sent through. Within a group the next one is tried if the one before it fails.
        channels: Vec<Vec<DeliveryChannel>>,
        /// Whether it is listed.
        listed: bool,
        /// Whether it is unread.
        unread: bool,
        /// The effects that are on.
        effects: Vec<String>,
    },
    /// A channel delivered it.
    Delivered {
        /// The channel.
        channel: DeliveryChannel,
        /// What was done.
        how: String,
        /// The number of its popup on the desktop.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        popup: Option<u32>,
    },
    /// A channel failed.
    DeliveryFailed {
        /// The channel.
        channel: DeliveryChannel,
        /// Why.
        why: String,
    },
    /// It was marked read.
    MarkedRead {
        /// What marked it.
        by: ReadReason,
    },
    /// It was marked unread.
    MarkedUnread,
    /// The person snoozed it.
    Snoozed {
        /// Until when, in milliseconds since 1970.
        until_unix_ms: i64,
        /// How long that was then, in milliseconds.
        span_ms: u64,
    },
    /// The time for which it was snoozed is over.
    SnoozeEnded,
    /// It was still open, so the person is told by other means.
    Escalated {
        /// Whether they were away. Otherwise it was open for as long as the settings say.
        away: bool,
    },
    /// The command that read it, or took it off the list, was taken back.
    TakenBack {
        /// What that command did.
        kind: UndoKind,
    },
    /// The agent's prompt was answered from elsewhere.
    Answered {
        /// The answer.
        answer: String,
        /// Who gave it.
        by: String,
        /// The way it was given.
        with: AnsweredWith,
        /// How it is known that it was the person.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        evidence: Option<String>,
    },
    /// What it was about has ended.
    Resolved {
        /// How.
        by: ResolvedBy,
    },
    /// A click on its popup did not lead to its pane.
    CannotShow {
        /// Why.
        why: String,
    },
    /// An answer that was given with a button of its popup did not do what the person wanted.
    PopupAnswerFailed {
        /// The button.
        answer: String,
        /// Why.
        why: String,
    },
    /// The hub found it in a journal that replaced the one it knew.
    OtherJournal,
}

/// `desktop, else terminal; command`: the channels of a plan.
fn channel_names(groups: &[Vec<DeliveryChannel>]) -> String {
    let group = |group: &Vec<DeliveryChannel>| {
        group.iter().map(|channel| channel.as_str()).collect::<Vec<_>>().join(", else ")
    };
    if groups.is_empty() {
        "none".to_owned()
    } else {
        groups.iter().map(group).collect::<Vec<_>>().join("; ")
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Received { from, place } => write!(formatter, "received from {from}{place}"),
            Self::Expired => formatter.write_str("not shown: it expired before the hub received it"),
            Self::ForAgent { to } => write!(formatter, "not shown to you: it is for {}", recipient(to)),
            Self::Duplicate { of: Some(of) } => {
                write!(formatter, "not shown: it reports the same event as {of}")
            }
            Self::Duplicate { of: None } => {
                formatter.write_str("not shown: it reports the same event as the terminal's own notification")
            }
            Self::ReplacesOlder { older } => {
                write!(formatter, "replaces {older}: the same event with more detail")
            }
            Self::ReplacedByNewer { newer } => {
                write!(formatter, "not shown: a newer one of its pane, {newer}, arrived first")
            }
            Self::QueueFull => formatter.write_str("not shown: too many notifications were queued"),
            Self::Cleared => formatter.write_str("not shown: its pane or workspace was cleared first"),
            Self::Subagent => {
                formatter.write_str("not shown: it is from a subagent, and notify.subagents = false")
            }
            Self::Muted => formatter.write_str("muted: listed as read, no popup, sound, command or webhook"),
            Self::MutedByPerson { target, .. } => {
                write!(formatter, "you muted {}: no popup, flash, sound, command or webhook", target.name())
            }
            Self::QuietHours => formatter.write_str("quiet hours: no popup, sound, command or webhook"),
            Self::RateLimited { sender, over } => {
                write!(
                    formatter,
                    "{sender} is {over} over its rate limit: no popup, sound, command or webhook"
                )
            }
            Self::OnlyCounted { machine } => write!(formatter, "only counted: too many came from {machine}"),
            Self::ShortTurn { turn_ms, min_turn_ms } => write!(
                formatter,
                "no popup or sound: the turn took {}, less than notify.min_turn = \"{}\"",
                // Half a second more or less tells nothing.
                span_text(Duration::from_secs(*turn_ms / 1000)),
                span_text(Duration::from_millis(*min_turn_ms))
            ),
            Self::TurnShown => formatter.write_str("no popup or sound: the end of that turn had a popup"),
            Self::IdleReminderOff => formatter.write_str(
                "notify.idle_reminder = \"off\": listed as read, no popup, sound, command or webhook",
            ),
            Self::HookRan { hook, changed: true, effects } => {
                write!(formatter, "hook {hook} changed it; effects: {}", effects.join(", "))
            }
            Self::HookRan { hook, changed: false, .. } => write!(formatter, "hook {hook} changed nothing"),
            Self::HookStopped { hook } => write!(formatter, "hook {hook} stopped the hooks after it"),
            Self::HookFailed { hook, why } => write!(formatter, "hook {hook} failed: {why}"),
            Self::HookSuppressed { hook } => {
                write!(formatter, "not shown: hook {hook} failed and has on_failure = \"suppress\"")
            }
            Self::HookUntrusted { hook } => {
                write!(formatter, "hook {hook} did not run: not trusted")
            }
            Self::HookNotRun { hook, why } => write!(formatter, "hook {hook} did not run: {why}"),
            Self::InView => formatter
                .write_str("you are looking at it: listed as read, no popup, sound, command or webhook"),
            Self::PopupsDisabled => formatter.write_str("no popup: disabled by your settings"),
            Self::TooOld => {
                formatter.write_str("not sent to any channel: it was sent long before the hub received it")
            }
            Self::Away => formatter.write_str("no popup or sound: you are away; it is in the digest"),
            Self::Decided { channels, listed, unread, .. } => {
                let list = match (listed, unread) {
                    (false, _) => "not listed",
                    (true, false) => "listed as read",
                    (true, true) => "listed as unread",
                };
                write!(formatter, "channels: {} ({list})", channel_names(channels))
            }
            Self::Delivered { channel, how, .. } => write!(formatter, "{channel}: {how}"),
            Self::DeliveryFailed { channel, why } => write!(formatter, "{channel} failed: {why}"),
            Self::MarkedRead { by } => write!(formatter, "marked read: {by}"),
            Self::MarkedUnread => formatter.write_str("marked unread"),
            Self::Snoozed { span_ms, .. } => {
                write!(formatter, "snoozed by you for {}", rounded_span_text(Duration::from_millis(*span_ms)))
            }
            Self::Escalated { away: true } => formatter.write_str("you are away: escalated"),
            Self::Escalated { away: false } => {
                formatter.write_str("still open after notify.escalate_after: escalated")
            }
            Self::SnoozeEnded => formatter.write_str("came back: it was snoozed until now"),
            Self::TakenBack { kind: UndoKind::Read } => formatter.write_str("reading it was taken back"),
            Self::TakenBack { kind: UndoKind::Clear } => formatter.write_str("clearing it was taken back"),
            Self::TakenBack { kind: UndoKind::Mute } => formatter.write_str("a mute was taken back"),
            Self::Answered { answer, by, with, evidence } => {
                let from = evidence.iter().map(|evidence| format!(" {evidence}")).collect::<String>();
                write!(formatter, "answered by {by} with {with}{from}: {answer}")
            }
            Self::Resolved { by } => write!(formatter, "over: {by}"),
            Self::CannotShow { why } => write!(formatter, "cannot jump to its pane: {why}"),
            Self::PopupAnswerFailed { answer, why } => {
                write!(formatter, "you pressed {answer} on its popup: {why}")
            }
            Self::OtherJournal => {
                formatter.write_str("listed as read: found in a journal that replaced another")
            }
        }
    }
}

/// `agent:worker-9` is the agent worker-9, `lead` is the lead agent.
fn recipient(to: &str) -> String {
    match to.strip_prefix("agent:") {
        Some(agent) => format!("agent {agent}"),
        None => format!("the {to} agent"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences() {
        fn check(cause: &Cause, expect: &str) {
            assert_eq!(cause.to_string(), expect);
        }
        let id = MessageId::parse("01997a3e-0a1b-7c2d-8e3f-0123456789ab").expect("an id");
        let decided =
            |channels, listed, unread| Cause::Decided { channels, listed, unread, effects: Vec::new() };
        let popup = vec![DeliveryChannel::Desktop, DeliveryChannel::Terminal];
        check(
            &decided(vec![popup, vec![DeliveryChannel::Command]], true, true),
            "channels: desktop, else terminal; command (listed as unread)",
        );
        check(&decided(Vec::new(), true, false), "channels: none (listed as read)");
        check(&decided(Vec::new(), false, false), "channels: none (not listed)");
        check(
            &Cause::Received { from: "system".to_owned(), place: PlaceReason::Repository },
            "received from system, outside any known terminal: filed under its repository",
        );
        check(
            &Cause::ForAgent { to: "agent:worker-9".to_owned() },
            "not shown to you: it is for agent worker-9",
        );
        check(
            &Cause::ShortTurn { turn_ms: 1_500, min_turn_ms: 10_000 },
            "no popup or sound: the turn took 1s, less than notify.min_turn = \"10s\"",
        );
        check(
            &Cause::MutedByPerson { target: MuteTarget::Agent("ci".to_owned()), until_unix_ms: None },
            "you muted ci: no popup, flash, sound, command or webhook",
        );
        check(&Cause::Snoozed { until_unix_ms: 1_200_000, span_ms: 1_199_700 }, "snoozed by you for 20m");
        check(&Cause::ForAgent { to: "lead".to_owned() }, "not shown to you: it is for the lead agent");
        check(
            &Cause::MarkedRead { by: ReadReason::Newer(id) },
            "marked read: superseded by 01997a3e-0a1b-7c2d-8e3f-0123456789ab",
        );
    }

    #[test]
    fn every_cause_is_read_back() {
        let id = || MessageId::parse("01997a3e-0a1b-7c2d-8e3f-0123456789ab").expect("an id");
        let channels =
            vec![vec![DeliveryChannel::Desktop, DeliveryChannel::Terminal], vec![DeliveryChannel::Command]];
        for cause in [
            Cause::Decided { channels, listed: true, unread: true, effects: vec!["record".to_owned()] },
            Cause::Received { from: "system".to_owned(), place: PlaceReason::Repository },
            Cause::Duplicate { of: None },
            Cause::MarkedRead { by: ReadReason::Newer(id()) },
            Cause::MarkedRead { by: ReadReason::Looked },
            Cause::TakenBack { kind: UndoKind::Clear },
            Cause::Snoozed { until_unix_ms: 7, span_ms: 5 },
            Cause::MutedByPerson { target: MuteTarget::Agent("ci".to_owned()), until_unix_ms: Some(7) },
            Cause::MutedByPerson { target: MuteTarget::All, until_unix_ms: None },
            Cause::Delivered { channel: DeliveryChannel::Desktop, how: "shown".to_owned(), popup: Some(48) },
            Cause::Expired,
        ] {
            let stored = serde_json::to_string(&cause).expect("JSON");
            assert_eq!(serde_json::from_str::<Cause>(&stored).expect("a cause"), cause);
        }
    }
}
