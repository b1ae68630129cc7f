//! The sentences of 30-attention.md about toasts and sources that only show where both meet. Tests are named after them.

use std::time::Duration;

use ringer_core::time::TimeOfDay;
use ringer_core::toast::{Observation, Priority, Toast, ToastQueue};
use ringer_core::{Engine, Event, Now, Order, Preferences};

fn at(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn now(ms: u64) -> Now {
    Now { mono: at(ms), wall_ms: 0, local: TimeOfDay::default() }
}

fn key(queue: &ToastQueue) -> Option<&str> {
    queue.current().map(|toast| toast.key.as_str())
}

#[test]
fn a_fold_is_given_the_accumulator_first_and_then_the_incoming_one() {
    let join = |old: &Toast, new: &Toast| {
        Toast::new("k", old.priority, format!("{} then {}", old.text(), new.text()))
    };
    let mut queue = ToastQueue::default();
    for key in ["shown", "waits"] {
        queue.add(at(0), Toast::new(key, Priority::Low, "old"));
    }
    for key in ["shown", "waits"] {
        queue.add(at(1), Toast { fold: Some(join), ..Toast::new(key, Priority::Low, "new") });
    }
    let texts: Vec<String> = queue.current().into_iter().chain(queue.waiting()).map(Toast::text).collect();
    assert_eq!(texts, ["old then new", "old then new"]);
}

#[test]
fn a_timeout_is_8000_ms_unless_given() {
    let mut queue = ToastQueue::default();
    queue.add(at(0), Toast { timeout: at(100), ..Toast::new("short", Priority::High, "x") });
    queue.add(at(0), Toast::new("usual", Priority::Low, "x"));
    queue.tick(at(99));
    assert_eq!((key(&queue), queue.next_deadline()), (Some("short"), Some(at(100))));
    queue.tick(at(100));
    assert_eq!((key(&queue), queue.next_deadline()), (Some("usual"), Some(at(8100))));
}

#[test]
fn an_immediate_one_takes_the_place_of_what_is_shown_under_its_own_key() {
    let mut queue = ToastQueue::default();
    queue.add(at(0), Toast::new("k", Priority::Low, "old"));
    queue.add(at(5), Toast::new("k", Priority::Immediate, "new"));
    assert_eq!(queue.current().map(Toast::text).as_deref(), Some("new"));
    assert_eq!(queue.waiting().count(), 0);
}

#[test]
fn what_invalidates_leaves_the_others_alone() {
    let mut queue = ToastQueue::default();
    for key in ["shown", "gone", "stays"] {
        queue.add(at(0), Toast::new(key, Priority::Low, "x"));
    }
    queue
        .add(at(10), Toast { invalidates: vec!["gone".to_owned()], ..Toast::new("new", Priority::Low, "x") });
    assert_eq!((key(&queue), queue.next_deadline()), (Some("shown"), Some(at(8000))));
    assert_eq!(queue.waiting().map(|toast| toast.key.as_str()).collect::<Vec<_>>(), ["stays", "new"]);
}

/// What the footer shows after observations, each at its time.
fn footer(observations: &[(u64, Observation)]) -> Option<String> {
    let mut engine = Engine::new(Preferences::default());
    for (ms, observation) in observations {
        engine.handle(now(*ms), Event::Observed(observation.clone()));
    }
    engine.toast().map(Toast::text)
}

#[test]
fn a_source_shows_a_new_text_also_while_its_last_one_is_shown() {
    let check = |source: &str| {
        let texts = [(0, Observation::new(source, "first")), (3000, Observation::new(source, "second"))];
        assert_eq!(footer(&texts).as_deref(), Some("second"), "{source}");
    };
    // A new warning text; lost or regained; success or failure.
    check("rate-limit-warning");
    check("model-deprecation");
    check("mcp-connectivity");
    check("plugin-install");
    check("env-hook");
}

#[test]
fn a_source_adds_at_most_one_toast_for_its_condition() {
    let mut engine = Engine::new(Preferences::default());
    let seen = |engine: &mut Engine, text: &str| {
        let orders = engine.handle(now(0), Event::Observed(Observation::new("rate-limit-warning", text)));
        orders.iter().filter(|order| matches!(order, Order::ShowToast(Some(_)))).count()
    };
    assert_eq!((seen(&mut engine, "80 %"), seen(&mut engine, "80 %"), seen(&mut engine, "90 %")), (1, 0, 1));
}

#[test]
fn the_editor_hint_is_removed_when_the_prompt_is_no_longer_wrapped() {
    let hint = Observation::new("editor-hint", "ctrl-g opens your editor");
    let over = Observation { active: false, ..hint.clone() };
    assert_eq!(footer(&[(0, hint.clone())]).as_deref(), Some("ctrl-g opens your editor"));
    assert_eq!(footer(&[(0, hint), (10, over)]), None);
}

#[test]
fn the_ide_status_is_drawn_inline_and_is_not_a_toast() {
    let mut engine = Engine::new(Preferences::default());
    let orders = engine.handle(now(0), Event::Observed(Observation::new("ide-status", "connected")));
    assert!(
        matches!(&orders[..], [Order::Indicator { key, text }] if key == "ide-status" && text == "connected")
    );
    assert!(engine.toast().is_none());
}
