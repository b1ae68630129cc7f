//! The built-in rules: mutes, events that the person already knows, quiet hours, rate limit, subagents. They run before the
//! hooks.

use std::collections::HashMap;
use std::time::Duration;

use crate::attention::Cause;
use crate::message::ShownKind;
use crate::policy::Effects;
use crate::time::{DailySpan, Now};

/// The most senders that are counted. At the limit, senders within their rate are forgotten, and all if that is not enough.
const MAX_SENDERS: usize = 1024;

/// The properties of a notification that rules can match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Subject<'a> {
    /// The sender.
    pub sender: &'a str,
    /// The scope.
    pub scope: &'a str,
    /// The kind.
    pub kind: ShownKind,
    /// True if a subagent sent it.
    pub is_subagent: bool,
    /// If it reports the end of a turn: how long the turn took.
    pub turn: Option<Duration>,
    /// True if a host reports when the person looks at its surface.
    pub focus_known: bool,
    /// True if the end of its agent's last turn had a popup.
    pub turn_had_popup: bool,
}

/// Which notifications to mute. Every field that is set must match; a rule with no field matches nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mute {
    /// The sender.
    pub agent: Option<String>,
    /// The scope.
    pub scope: Option<String>,
    /// The kind.
    pub kind: Option<ShownKind>,
}

impl Mute {
    fn matches(&self, subject: &Subject<'_>) -> bool {
        let is_set = self.agent.is_some() || self.scope.is_some() || self.kind.is_some();
        is_set
            && self.agent.as_deref().is_none_or(|agent| agent == subject.sender)
            && self.scope.as_deref().is_none_or(|scope| scope == subject.scope)
            && self.kind.is_none_or(|kind| kind == subject.kind)
    }
}

/// A rate limit for each sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimit {
    /// The number of notifications.
    pub count: u32,
    /// The time window.
    pub window: Duration,
}

impl RateLimit {
    /// Parses `30/min`: a number, and `s`, `min` or `h`.
    pub fn parse(text: &str) -> Option<Self> {
        let (count, unit) = text.split_once('/')?;
        let window = match unit.trim() {
            "s" => Duration::from_secs(1),
            "min" => Duration::from_mins(1),
            "h" => Duration::from_hours(1),
            _ => return None,
        };
        let count = count.trim().parse().ok().filter(|count| *count > 0)?;
        Some(Self { count, window })
    }
}

/// The settings of the built-in rules.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RuleSettings {
    /// Which notifications are muted.
    pub mute: Vec<Mute>,
    /// The times of day without popups.
    pub quiet_hours: Vec<DailySpan>,
    /// The rate limit of each sender.
    pub rate_limit: Option<RateLimit>,
    /// True if notifications of subagents are shown.
    pub subagents: bool,
    /// The end of a shorter turn makes no popup if no host reports what the person looks at.
    pub min_turn: Duration,
    /// True if reminders that an agent waits are off.
    pub idle_reminder_off: bool,
}

#[derive(Debug, Clone, Copy)]
struct SenderCount {
    since: Duration,
    count: u32,
}

/// The built-in rules, with the counts for the rate limit.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rules {
    settings: RuleSettings,
    counts: HashMap<String, SenderCount>,
}

impl Rules {
    pub(crate) fn new(settings: RuleSettings) -> Self {
        Self { settings, counts: HashMap::new() }
    }

    /// Replaces the settings. Counts are kept.
    pub(crate) fn set(&mut self, settings: RuleSettings) {
        self.settings = settings;
    }

    /// Returns the effects that a notification may have, and why others are off.
    pub(crate) fn decide(&mut self, now: Now, subject: &Subject<'_>) -> (Effects, Vec<Cause>) {
        let mut effects = Effects::default();
        let mut why = Vec::new();
        if subject.is_subagent && !self.settings.subagents {
            return (Effects::NONE, vec![Cause::Subagent]);
        }
        if self.settings.mute.iter().any(|mute| mute.matches(subject)) {
            effects = Effects { record: true, ..Effects::NONE };
            why.push(Cause::Muted);
        }
        if subject.kind == ShownKind::Idle && self.settings.idle_reminder_off {
            effects = Effects { record: true, ..Effects::NONE };
            why.push(Cause::IdleReminderOff);
        } else if let Some(cause) = self.says_what_is_known(subject) {
            (effects.desktop, effects.sound) = (false, false);
            why.push(cause);
        }
        if self.is_quiet(now) {
            (effects.desktop, effects.sound, effects.command) = (false, false, false);
            why.push(Cause::QuietHours);
        }
        if let Some(over) = self.excess(now.mono, subject.sender) {
            (effects.desktop, effects.sound, effects.command) = (false, false, false);
            why.push(Cause::RateLimited { sender: subject.sender.to_owned(), over });
        }
        (effects, why)
    }

    /// Returns true during quiet hours.
    pub(crate) fn is_quiet(&self, now: Now) -> bool {
        self.settings.quiet_hours.iter().any(|span| span.contains(now.local))
    }

    /// Returns why a notification tells the person nothing new: they most likely still look at the pane, or had a popup
    /// before.
    fn says_what_is_known(&self, subject: &Subject<'_>) -> Option<Cause> {
        let min_turn = self.settings.min_turn;
        let ms = |span: Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
        match (subject.kind, subject.turn) {
            (ShownKind::Idle, _) => subject.turn_had_popup.then_some(Cause::TurnShown),
            (ShownKind::Complete, Some(turn)) if turn < min_turn && !subject.focus_known => {
                Some(Cause::ShortTurn { turn_ms: ms(turn), min_turn_ms: ms(min_turn) })
            }
            _ => None,
        }
    }

    /// Counts a notification and returns by how many its sender exceeds its limit.
    fn excess(&mut self, now: Duration, sender: &str) -> Option<u32> {
        let limit = self.settings.rate_limit?;
        let is_over = |spent: &SenderCount| now.saturating_sub(spent.since) >= limit.window;
        if self.counts.len() >= MAX_SENDERS {
            self.counts.retain(|_, spent| !is_over(spent) && spent.count > limit.count);
        }
        if self.counts.len() >= MAX_SENDERS {
            self.counts.clear();
        }
        let spent = self.counts.entry(sender.to_owned()).or_insert(SenderCount { since: now, count: 0 });
        if is_over(spent) {
            *spent = SenderCount { since: now, count: 0 };
        }
        spent.count = spent.count.saturating_add(1);
        spent.count.checked_sub(limit.count).filter(|over| *over > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::TimeOfDay;

    fn at(seconds: u64, local: &str) -> Now {
        Now { mono: Duration::from_secs(seconds), wall_ms: 0, local: TimeOfDay::parse(local).unwrap() }
    }

    fn subject(sender: &str) -> Subject<'_> {
        Subject {
            sender,
            scope: "repo",
            kind: ShownKind::Complete,
            is_subagent: false,
            turn: None,
            focus_known: false,
            turn_had_popup: false,
        }
    }

    #[test]
    fn nothing_set_lets_everything_through() {
        let (effects, why) = Rules::default().decide(at(0, "12:00"), &subject("a"));
        assert_eq!((effects, why.len()), (Effects::default(), 0));
    }

    #[test]
    fn a_mute_matches_on_all_it_names() {
        let check = |mute: Mute, expected| {
            let mut rules = Rules::new(RuleSettings { mute: vec![mute.clone()], ..RuleSettings::default() });
            let muted = !rules.decide(at(0, "12:00"), &subject("a")).0.mark_unread;
            assert_eq!(muted, expected, "{mute:?}");
        };
        let agent = |name: &str| Mute { agent: Some(name.into()), ..Mute::default() };
        check(agent("a"), true);
        check(agent("b"), false);
        check(Mute { scope: Some("repo".into()), ..agent("a") }, true);
        check(Mute { scope: Some("other".into()), ..agent("a") }, false);
        check(Mute { kind: Some(ShownKind::Complete), ..Mute::default() }, true);
        check(Mute { kind: Some(ShownKind::Error), ..Mute::default() }, false);
        check(Mute::default(), false);
    }

    #[test]
    fn in_quiet_hours_nothing_pops_up_but_it_still_rings() {
        let quiet_hours = vec![DailySpan::parse("22:00-07:00").unwrap()];
        let mut rules = Rules::new(RuleSettings { quiet_hours, ..RuleSettings::default() });
        let (effects, _) = rules.decide(at(0, "23:00"), &subject("a"));
        assert!(
            effects.record && effects.mark_unread && !effects.desktop && !effects.sound && !effects.command
        );
        assert_eq!(rules.decide(at(0, "08:00"), &subject("a")).0, Effects::default());
    }

    #[test]
    fn over_the_rate_limit_is_counted_not_lost() {
        let rate_limit = RateLimit::parse("2/min");
        let mut rules = Rules::new(RuleSettings { rate_limit, ..RuleSettings::default() });
        let mut desktop = |seconds, sender| {
            let (effects, why) = rules.decide(at(seconds, "12:00"), &subject(sender));
            assert!(effects.record && effects.mark_unread);
            (effects.desktop, why)
        };
        assert!(desktop(0, "a").0 && desktop(1, "a").0);
        let (shown, why) = desktop(2, "a");
        assert!(!shown && why[0].to_string().contains("1 over its rate limit"), "{why:?}");
        assert!(desktop(3, "a").1[0].to_string().contains("2 over"));
        assert!(desktop(3, "b").0, "each sender has its own");
        assert!(desktop(60, "a").0, "a new minute");
    }

    #[test]
    fn subagents_are_silent_unless_asked_for() {
        let sub = Subject { is_subagent: true, ..subject("a") };
        assert_eq!(Rules::default().decide(at(0, "12:00"), &sub).0, Effects::NONE);
        let mut rules = Rules::new(RuleSettings { subagents: true, ..RuleSettings::default() });
        assert_eq!(rules.decide(at(0, "12:00"), &sub).0, Effects::default());
    }

    #[test]
    fn the_end_of_a_short_turn_makes_no_popup_where_focus_cannot_be_known() {
        let settings = RuleSettings { min_turn: Duration::from_secs(10), ..RuleSettings::default() };
        let check = |subject: Subject<'_>, pops_up: bool| {
            let (effects, why) = Rules::new(settings.clone()).decide(at(0, "12:00"), &subject);
            assert!(effects.record && effects.mark_unread && effects.command, "{subject:?}");
            assert_eq!((effects.desktop, effects.sound, why.is_empty()), (pops_up, pops_up, pops_up));
        };
        let of = |seconds| Subject { turn: Some(Duration::from_secs(seconds)), ..subject("a") };
        check(of(9), false);
        check(of(10), true);
        check(Subject { focus_known: true, ..of(9) }, true);
        check(Subject { kind: ShownKind::Error, ..of(9) }, true);
        check(subject("a"), true);
    }

    #[test]
    fn a_second_popup_for_a_turn_that_already_had_one_never_comes() {
        let idle = Subject { kind: ShownKind::Idle, ..subject("a") };
        assert_eq!(Rules::default().decide(at(0, "12:00"), &idle).0, Effects::default());
        let told = Subject { turn_had_popup: true, ..idle };
        let (effects, why) = Rules::default().decide(at(0, "12:00"), &told);
        assert!(effects.mark_unread && !effects.desktop && !effects.sound);
        assert_eq!(why, [Cause::TurnShown]);
        let done = Subject { turn_had_popup: true, ..subject("a") };
        assert_eq!(Rules::default().decide(at(0, "12:00"), &done).0, Effects::default(), "another turn");
        let mut rules = Rules::new(RuleSettings { idle_reminder_off: true, ..RuleSettings::default() });
        assert_eq!(rules.decide(at(0, "12:00"), &idle).0, Effects { record: true, ..Effects::NONE });
    }

    #[test]
    fn limits_as_people_write_them() {
        let check = |text, expected: Option<(u32, u64)>| {
            let found = RateLimit::parse(text).map(|limit| (limit.count, limit.window.as_secs()));
            assert_eq!(found, expected, "{text}");
        };
        check("30/min", Some((30, 60)));
        check("5/s", Some((5, 1)));
        check("100/h", Some((100, 3600)));
        for wrong in ["30", "0/min", "x/min", "30/day", "-1/s"] {
            check(wrong, None);
        }
    }

    #[test]
    fn senders_are_bounded() {
        let mut rules =
            Rules::new(RuleSettings { rate_limit: RateLimit::parse("2/min"), ..RuleSettings::default() });
        for (senders, messages) in [(0..10_000, 1), (10_000..20_000, 3)] {
            for sender in senders.map(|number| number.to_string()) {
                (0..messages).for_each(|_| drop(rules.decide(at(0, "12:00"), &subject(&sender))));
            }
            assert!(rules.counts.len() <= MAX_SENDERS);
        }
    }
}
