//! Signals of terminals, before they are in the journal.

use super::*;
use crate::agent::{AgentMachine, AgentState, AgentTimeouts, Authority, SignalContent};

fn terminal_signal(surface: &str, signal: TerminalSignal) -> Event {
    Event::TerminalSignal { surface: SurfaceId::new(surface), signal, report: None }
}

fn notified(body: &str) -> TerminalSignal {
    TerminalSignal::Notified(TerminalNotification {
        body: body.to_owned(),
        ..TerminalNotification::default()
    })
}

fn agent_on(surface: &str, by_hooks: bool) -> Event {
    let agent = crate::message::Agent::new("claude-1").unwrap();
    Event::AgentOnSurface { surface: SurfaceId::new(surface), agent: Some((agent, by_hooks)) }
}

#[test]
fn a_terminal_signal_is_appended_at_once_and_once() {
    let mut engine = engine(&[]);
    assert_eq!(words(&engine.handle(at(0), terminal_signal("a", notified("done")))), ["append a done"]);
    assert_eq!(
        words(&engine.handle(at(10), terminal_signal("a", TerminalSignal::Bell))),
        [] as [&str; 0],
        "the same moment"
    );
    // It comes back as a message, and is shown.
    assert!(!words(&engine.handle(at(30), message(1, "a", "done"))).is_empty());
    assert_eq!(words(&engine.handle(at(40), terminal_signal("a", notified("done")))), [] as [&str; 0]);
}

#[test]
fn a_bell_waits_for_the_text_that_says_why_it_rang() {
    let mut engine = engine(&[]);
    let nothing: [&str; 0] = [];
    for surface in ["a", "b"] {
        assert_eq!(words(&engine.handle(at(0), terminal_signal(surface, TerminalSignal::Bell))), nothing);
    }
    assert_eq!(words(&engine.handle(at(100), terminal_signal("a", notified("done")))), ["append a done"]);
    let deadline = engine.next_deadline(at(100));
    assert_eq!(deadline, Some(Duration::from_millis(500)));
    assert_eq!(words(&engine.handle(at(500), Event::Tick)), ["append b the terminal bell rang"]);
}

#[test]
fn titles_alone_are_told_apart() {
    let mut engine = engine(&[]);
    let titled = |title: &str| {
        let title = Some(title.to_owned());
        TerminalSignal::Notified(TerminalNotification { title, ..TerminalNotification::default() })
    };
    let mut hear = |ms, title| engine.handle(at(ms), terminal_signal("a", titled(title))).len();
    assert_eq!((hear(0, "one"), hear(10, "two"), hear(20, "two")), (1, 1, 0));
    assert!(!words(&engine.handle(at(30), message(1, "a", "two"))).is_empty(), "it comes back as a message");
}

#[test]
fn what_is_taken_back_does_not_overtake_what_was_sent() {
    let mut engine = engine(&[]);
    let withdrawn = || TerminalSignal::Withdrawn { id: "i".to_owned() };
    assert_eq!(words(&engine.handle(at(0), terminal_signal("b", withdrawn()))), ["withdraw b i"]);
    engine.handle(at(0), agent_on("a", true));
    engine.handle(at(100), terminal_signal("a", notified("done")));
    assert_eq!(words(&engine.handle(at(110), terminal_signal("a", withdrawn()))), [] as [&str; 0]);
    let later = words(&engine.handle(at(610), Event::Tick));
    assert_eq!((later.len(), later[1].as_str()), (2, "withdraw a i"), "{later:?}");
}

#[test]
fn where_hooks_report_a_terminal_signal_is_delayed() {
    let mut engine = engine(&[]);
    engine.handle(at(0), agent_on("a", true));
    assert_eq!(words(&engine.handle(at(100), terminal_signal("a", notified("done")))), [] as [&str; 0]);
    assert_eq!(engine.next_deadline(at(100)), Some(at(600).mono));
    // The hook says the same, in the journal.
    engine.handle(at(200), message(1, "a", "done"));
    assert_eq!(words(&engine.handle(at(600), Event::Tick)), [] as [&str; 0], "one event, one notification");
    // No hook reports this one: the agent's state machine decides.
    engine.handle(at(5000), terminal_signal("a", notified("half way")));
    assert_eq!(words(&engine.handle(at(5500), Event::Tick)), ["apply a Notified"]);
}

#[test]
fn without_hooks_an_agents_title_counts_at_once() {
    let mut engine = engine(&[]);
    let title = || {
        let content = SignalContent::TurnEnded;
        TerminalSignal::Agent(Signal::new(Authority::Title, content))
    };
    assert_eq!(
        words(&engine.handle(at(0), terminal_signal("b", title()))),
        ["apply b TurnEnded"],
        "a new agent"
    );
    engine.handle(at(0), agent_on("a", false));
    assert_eq!(words(&engine.handle(at(0), terminal_signal("a", title()))), ["apply a TurnEnded"]);
    engine.handle(at(0), agent_on("a", true));
    assert_eq!(words(&engine.handle(at(10), terminal_signal("a", title()))), [] as [&str; 0]);
    engine.handle(at(20), Event::SurfaceGone(SurfaceId::new("a")));
    assert_eq!(words(&engine.handle(at(510), Event::Tick)), ["apply a TurnEnded"], "nothing heard is lost");
}

#[test]
fn a_flood_of_signals_is_bounded_and_none_is_lost() {
    let mut engine = engine(&[]);
    engine.handle(at(0), agent_on("a", true));
    let told: usize = (0..3000)
        .map(|number| words(&engine.handle(at(1), terminal_signal("a", notified(&number.to_string())))).len())
        .sum();
    assert_eq!(told, 3000 - 1024);
    assert_eq!(words(&engine.handle(at(501), Event::Tick)).len(), 1024);
}

/// A notification from the host itself has the host's kind, and is not a status.
#[test]
fn the_end_of_a_program_with_an_error_is_an_error() {
    let ended = || {
        TerminalSignal::Notified(TerminalNotification {
            title: Some("tests".to_owned()),
            body: "exit status 101".to_owned(),
            kind: Some(Kind::Error),
            ..TerminalNotification::default()
        })
    };
    let mut engine = engine(&[]);
    let kinds = |orders: Vec<Order>| -> Vec<Kind> {
        let kind = |order| match order {
            Order::AppendToJournal { notification, .. } => Some(notification.kind.unwrap_or_default()),
            Order::ApplySignal { signal, .. } => signal.kind,
            _ => None,
        };
        orders.into_iter().filter_map(kind).collect()
    };
    assert_eq!(kinds(engine.handle(at(0), terminal_signal("a", ended()))), [Kind::Error]);
    assert_eq!(kinds(engine.handle(at(0), terminal_signal("b", notified("done")))), [Kind::Status]);
    engine.handle(at(1000), agent_on("a", false));
    let orders = engine.handle(at(2000), terminal_signal("a", ended()));
    let Some(Order::ApplySignal { signal, .. }) = orders.first() else { panic!("{orders:?}") };
    // Its agent was idle, so its end alone is no error.
    let mut agent = AgentMachine::new(at(0).mono, AgentTimeouts::default());
    for state in [AgentState::Working, AgentState::Done, AgentState::Exited] {
        agent.apply(at(1).mono, &Signal::state(Authority::Process, state));
    }
    assert_eq!(agent.apply(at(2).mono, signal).notices[0].kind, Kind::Error);
}
