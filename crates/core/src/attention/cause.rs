//! Why something happened to a notification, as a value for programs and a sentence for people; and the trail, which lists these
//! causes step by step.

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize, Serializer};

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
        /// How the place was found.
        place: PlaceReason,
    },
    /// The time to live was over before the hub took the message.
    Expired,
    /// The message is for an agent, so the person is not notified.
    ForAgent {
        /// The recipient.
        to: String,
    },
    /// Another notification reports the same event with at least as much detail.
    Duplicate {
        /// The other notification; `None` if it came from the terminal.
        of: Option<MessageId>,
    },
    /// An older notification reports the same event with less detail.
    ReplacesOlder {
        /// The older notification.
        older: MessageId,
    },
    /// A newer notification of the same surface arrived before this one was shown.
    ReplacedByNewer {
        /// The newer notification.
        newer: MessageId,
    },
    /// The queue was full.
    QueueFull,
    /// The place was cleared before the notification was shown.
    Cleared,
    /// The sender is a subagent, and the settings leave out subagents.
    Subagent,
    /// A mute in the settings matches.
    Muted,
    /// A mute that the person set with a command matches.
    MutedByPerson {
        /// What is muted.
        target: MuteTarget,
        /// The end of the mute, in milliseconds since 1970, if it has one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until_unix_ms: Option<i64>,
    },
    /// The notification arrived in quiet hours.
    QuietHours,
    /// The sender is over its rate limit.
    RateLimited {
        /// The sender.
        sender: String,
        /// By how many notifications.
        over: u32,
    },
    /// The machine, or the sender there, sent more than the list takes. The message is only counted, in a row of that machine.
    OnlyCounted {
        /// The machine.
        machine: String,
    },
    /// The turn that ended was short, and no host reports whether the person looks at the pane.
    ShortTurn {
        /// How long the turn took, in milliseconds.
        turn_ms: u64,
        /// The setting `notify.min_turn`, in milliseconds.
        min_turn_ms: u64,
    },
    /// The end of the turn after which the agent waits already had a popup.
    TurnShown,
    /// The settings turn off reminders of waiting agents.
    IdleReminderOff,
    /// A hook has run.
    HookRan {
        /// The hook's id.
        hook: String,
        /// True if the hook changed anything.
        changed: bool,
        /// The effects that are on after the hook.
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
    /// A hook failed that fails closed, so the notification is suppressed.
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
    /// The person is looking at the pane.
    InView,
    /// The settings turn off popups.
    PopupsDisabled,
    /// The message was sent long before the hub took it.
    TooOld,
    /// The person is away, and the notification can wait until they are back.
    Away,
    /// All rules and hooks have been applied.
    Decided {
        /// The groups of channels to deliver through. Within a group, the next one is tried if the one before it fails.
        channels: Vec<Vec<DeliveryChannel>>,
        /// True if the notification is listed.
        listed: bool,
        /// True if the notification is unread.
        unread: bool,
        /// The effects that are on.
        effects: Vec<String>,
    },
    /// A channel delivered the notification.
    Delivered {
        /// The channel.
        channel: DeliveryChannel,
        /// What the channel did.
        how: String,
        /// The number of the desktop popup.
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
    /// The notification was marked read.
    MarkedRead {
        /// What marked it read.
        by: ReadReason,
    },
    /// The notification was marked unread.
    MarkedUnread,
    /// The person snoozed the notification.
    Snoozed {
        /// The end of the snooze, in milliseconds since 1970.
        until_unix_ms: i64,
        /// The length of the snooze when it was set, in milliseconds.
        span_ms: u64,
    },
    /// The snooze ended.
    SnoozeEnded,
    /// The notification was still open and escalated: the person is told by other means.
    Escalated {
        /// True if the person was away. Otherwise it was open for the time in the settings.
        away: bool,
    },
    /// The command that read the notification, or took it off the list, was undone.
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
    /// The cause of the notification has ended.
    Resolved {
        /// How.
        by: ResolvedBy,
    },
    /// A click on the popup could not bring the pane to the front.
    CannotShow {
        /// Why.
        why: String,
    },
    /// An answer from a button of the popup failed.
    PopupAnswerFailed {
        /// The button.
        answer: String,
        /// Why.
        why: String,
    },
    /// The hub found the notification in a journal that replaced the one it knew.
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
                // Half a second more or less makes no difference.
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
            Self::InView => formatter.write_str("you are looking at it: listed as read, no popup or sound"),
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

/// The most steps that are kept. At the limit the first half stays and the oldest step of the second half is dropped: the
/// beginning and the end answer most questions.
pub const MAX_TRAIL_STEPS: usize = 64;

/// One step of a trail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrailStep {
    /// When it happened, in milliseconds since 1970.
    pub unix_ms: i64,
    /// What happened, and why.
    pub cause: Cause,
}

/// The history of one notification.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "VecDeque<TrailStep>")]
pub struct Trail {
    /// `None` if there are no steps.
    #[expect(
        clippy::box_collection,
        reason = "most trails in memory are empty: a pointer is a quarter of a deque"
    )]
    steps: Option<Box<VecDeque<TrailStep>>>,
}

impl From<VecDeque<TrailStep>> for Trail {
    fn from(steps: VecDeque<TrailStep>) -> Self {
        Self { steps: Some(steps).filter(|steps| !steps.is_empty()).map(Box::new) }
    }
}

impl Serialize for Trail {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.steps())
    }
}

impl Trail {
    /// Adds a step.
    pub fn add(&mut self, unix_ms: i64, cause: Cause) {
        let steps = self.steps.get_or_insert_default();
        if steps.len() == MAX_TRAIL_STEPS {
            steps.remove(MAX_TRAIL_STEPS / 2);
        }
        steps.push_back(TrailStep { unix_ms, cause });
    }

    /// Drops the first steps, because they are saved.
    pub(crate) fn forget_first(&mut self, steps: usize) {
        let Some(kept) = &mut self.steps else { return };
        kept.drain(..steps.min(kept.len()));
        kept.shrink_to_fit();
        if kept.is_empty() {
            self.steps = None;
        }
    }

    /// The steps, first to last.
    pub fn steps(&self) -> impl ExactSizeIterator<Item = &TrailStep> + DoubleEndedIterator {
        // An empty deque allocates nothing.
        static NONE: VecDeque<TrailStep> = VecDeque::new();
        self.steps.as_deref().unwrap_or(&NONE).iter()
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

    #[test]
    fn the_beginning_and_the_end_stay() {
        let mut trail = Trail::default();
        for number in 0..1000 {
            trail.add(number, Cause::Expired);
        }
        let kept: Vec<i64> = trail.steps().map(|step| step.unix_ms).collect();
        assert_eq!(kept.len(), MAX_TRAIL_STEPS);
        assert_eq!((kept[0], kept[31], kept[32], kept[63]), (0, 31, 968, 999));
    }
}
