//! Arbitrary chunks of OSC 99: bounded, and what comes out goes round once more unchanged.

use ringer_term::{Notification, NotificationId, Osc99Message, Scanner, TerminalEventKind, Terminator};
use ringer_term::{sanitise_block, sanitise_line};

pub fn run(data: &[u8]) {
    let mut scanner = Scanner::new();
    let mut seen = Vec::new();
    for chunk in data.split(|byte| *byte == 0) {
        let sequence = [b"\x1b]99;", chunk, b"\x1b\\"].concat();
        scanner.feed(&sequence, |event| {
            if let TerminalEventKind::Notification(notification) = event.kind {
                seen.push(notification);
            }
        });
    }
    for notification in seen {
        assert!(notification.title.len() + notification.body.len() <= 3 * 16 * 1024);
        goes_round(&notification);
    }
}

fn goes_round(notification: &Notification) {
    let id = notification.id.clone().unwrap_or_else(|| NotificationId::four_digits(7));
    let (title, body) = (sanitise_line(&notification.title), sanitise_block(&notification.body));
    let sequence =
        Osc99Message { title: &title, body: &body, ..Osc99Message::new(&id) }.encode(Terminator::Bel);
    let mut back = None;
    Scanner::new().feed(sequence.as_bytes(), |event| back = Some(event.kind));
    match back {
        Some(TerminalEventKind::Notification(again)) => assert_eq!((again.title, again.body), (title, body)),
        // Text that was nothing but controls leaves nothing to show.
        None => assert!(title.is_empty() && body.is_empty()),
        Some(other) => panic!("{other:?}"),
    }
}
