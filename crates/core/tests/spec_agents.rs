//! The sentences of 50-agents.md about the state of an agent and about notifying. Tests are named after them.

use std::time::Duration;

use ringer_core::Kind;
use ringer_core::agent::{
    AUTHORITY_HOLD, AgentMachine, AgentNotice, AgentState, AgentTimeouts, Authority, BlockedOn, Signal,
    SignalContent,
};

const AUTHORITIES: [Authority; 5] =
    [Authority::Hook, Authority::Status, Authority::Title, Authority::Notification, Authority::Process];

const BLOCKED: [AgentState; 4] = [
    AgentState::Blocked(BlockedOn::Permission),
    AgentState::Blocked(BlockedOn::Question),
    AgentState::Blocked(BlockedOn::Auth),
    AgentState::Blocked(BlockedOn::Input),
];

fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn new() -> AgentMachine {
    AgentMachine::new(at(0), AgentTimeouts::default())
}

/// An agent that a signal of that authority put into a state, at second 100.
fn in_state(authority: Authority, state: AgentState) -> AgentMachine {
    let mut agent = new();
    agent.apply(at(100), &Signal::state(authority, state));
    assert_eq!(agent.state(), state);
    agent
}

fn signal(authority: Authority, content: SignalContent) -> Signal {
    Signal::new(authority, content)
}

#[test]
fn a_lower_authority_never_overrides_a_fresher_higher_one() {
    for (rank, higher) in AUTHORITIES.into_iter().enumerate() {
        for (other, lower) in AUTHORITIES.into_iter().enumerate() {
            let mut agent = in_state(higher, AgentState::Working);
            let just_before = at(100) + AUTHORITY_HOLD.saturating_sub(Duration::from_millis(1));
            agent.apply(just_before, &Signal::state(lower, AgentState::Error));
            let overrides = other <= rank;
            assert_eq!(agent.state() == AgentState::Error, overrides, "{lower:?} against {higher:?}");
            // When the more reliable source is silent, the next one counts, without a new signal.
            agent.tick(at(100) + AUTHORITY_HOLD);
            assert_eq!(agent.state(), AgentState::Error, "{lower:?} after {higher:?}");
            assert_eq!(agent.decided_by(), lower, "`ringer why` says which signal decided");
        }
    }
}

#[test]
fn a_signal_that_is_repeated_is_fresh_again() {
    let mut agent = in_state(Authority::Hook, AgentState::Working);
    agent.apply(at(104), &Signal::state(Authority::Hook, AgentState::Working));
    agent.apply(at(108), &Signal::state(Authority::Title, AgentState::Error));
    assert_eq!(agent.state(), AgentState::Working);
}

#[test]
fn that_the_process_has_ended_is_believed_at_once() {
    let mut agent = in_state(Authority::Hook, AgentState::Working);
    let notices = agent.apply(at(101), &Signal::state(Authority::Process, AgentState::Exited)).notices;
    assert_eq!((agent.state(), notices.len()), (AgentState::Exited, 1));
}

#[test]
fn working_to_not_working_without_a_completion_always_produces_a_notification() {
    let busy = [AgentState::Working, AgentState::Stuck, AgentState::RateLimited, AgentState::Compacting];
    let ends = [AgentState::Ready, AgentState::Exited, AgentState::Error, AgentState::Done];
    for before in busy {
        for authority in AUTHORITIES {
            for after in ends.into_iter().chain(BLOCKED) {
                // A client's own notification is never a sign that a turn ended.
                if (authority, after) == (Authority::Notification, AgentState::Done) {
                    continue;
                }
                let mut agent = in_state(Authority::Hook, before);
                let notices = agent.apply(at(120), &Signal::state(authority, after)).notices;
                assert_eq!(notices.len(), 1, "{before:?} to {after:?} by {authority:?}");
                let abnormal = matches!(after, AgentState::Ready | AgentState::Exited);
                assert_eq!(notices[0].category == Some("abnormal_stop"), abnormal);
            }
        }
    }
}

#[test]
fn never_for_working_starting_compacting_rate_limited() {
    let silent = [AgentState::Working, AgentState::Starting, AgentState::Compacting, AgentState::RateLimited];
    for after in silent {
        let before = [
            AgentState::Starting,
            AgentState::Ready,
            AgentState::Done,
            AgentState::Error,
            AgentState::Exited,
        ];
        for before in before.into_iter().chain(BLOCKED).chain(silent) {
            let mut agent = in_state(Authority::Hook, before);
            let notices = agent.apply(at(110), &Signal::state(Authority::Hook, after).text("words")).notices;
            assert_eq!(notices, [], "{before:?} to {after:?}");
        }
    }
}

#[test]
fn an_episode_is_one_notification_whatever_signals_announce_it_and_however_late() {
    for state in BLOCKED.into_iter().chain([AgentState::Done]) {
        let mut agent = in_state(Authority::Hook, AgentState::Working);
        let mut told: Vec<AgentNotice> = Vec::new();
        for (number, authority) in (1u64..).zip(AUTHORITIES) {
            told.extend(agent.apply(at(100 + number), &Signal::state(authority, state)).notices);
            let late = at(100 + 10 * number);
            told.extend(agent.apply(late, &signal(Authority::Title, SignalContent::TurnEnded)).notices);
            told.extend(agent.apply(late, &signal(Authority::Notification, SignalContent::Notified)).notices);
        }
        assert_eq!(told.iter().filter(|notice| !notice.upgrade).count(), 1, "{state:?}: {told:?}");
        let richer = Signal {
            text: Some("in words".to_owned()),
            ..signal(Authority::Notification, SignalContent::Notified)
        };
        let upgrade = agent.apply(at(155), &richer).notices;
        assert!(
            matches!(&upgrade[..], [notice] if notice.upgrade && notice.kind == told[0].kind),
            "{upgrade:?}"
        );
        assert_eq!(agent.apply(at(156), &richer).notices, [], "once");
    }
}

#[test]
fn the_times_are_configurable() {
    let timeouts = AgentTimeouts { stuck: at(5), idle: Some(at(7)) };
    let mut agent = AgentMachine::new(at(0), timeouts);
    agent.apply(at(0), &Signal::state(Authority::Hook, AgentState::Working));
    assert_eq!((agent.tick(at(4)).notices.len(), agent.tick(at(5)).notices.len()), (0, 1));
    agent.apply(at(6), &Signal::state(Authority::Hook, AgentState::Done));
    assert_eq!(agent.next_deadline(), Some(at(13)));
    assert_eq!(agent.tick(at(13)).notices[0].category, Some("idle_prompt"));
}

#[test]
fn any_sign_of_life_puts_off_being_stuck() {
    for sign in [
        SignalContent::Alive,
        SignalContent::Notified,
        SignalContent::Idle,
        SignalContent::State(AgentState::Working),
    ] {
        let mut agent = in_state(Authority::Hook, AgentState::Working);
        agent.apply(at(400), &signal(Authority::Title, sign.clone()));
        assert_eq!(agent.tick(at(999)).notices, [], "{sign:?}");
        let notices = agent.tick(at(1000)).notices;
        assert!(matches!(&notices[..], [notice] if notice.kind == Kind::Stuck), "{sign:?}: {notices:?}");
    }
}

#[test]
fn a_stop_that_is_pending_is_not_complete_and_makes_no_idle_notice() {
    let mut agent = in_state(Authority::Hook, AgentState::Working);
    let pending = Signal { pending: true, ..Signal::state(Authority::Hook, AgentState::Done) };
    assert_eq!(agent.apply(at(101), &pending).notices, []);
    assert_eq!((agent.tick(at(5000)).notices, agent.next_deadline()), (Vec::new(), None));
    assert_eq!(
        agent.apply(at(5001), &Signal::state(Authority::Hook, AgentState::Done)).notices[0].kind,
        Kind::Complete
    );
}
