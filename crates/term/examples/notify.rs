//! Notifies you in the terminal that this runs in: `cargo run -p ringer-term --example notify -- "all tests pass"`.

use std::io::{IsTerminal, Write, stdout};

use ringer_term::{
    AppleBell, Channel, Env, NotificationId, OutgoingNotification, Urgency, choose_method, detect,
};

fn main() -> std::io::Result<()> {
    let body = std::env::args().nth(1).unwrap_or_else(|| "hello".to_owned());
    let detection = detect(&Env::new(std::env::vars()).tty(stdout().is_terminal()));
    let choice = choose_method(Channel::Auto, &detection, AppleBell::default());
    let id = NotificationId::four_digits(u16::try_from(std::process::id() % 10_000).unwrap_or(0).into());
    let notification = OutgoingNotification {
        id: &id,
        title: Some("ringer-term"),
        body: &body,
        urgency: Urgency::Normal,
        icon: None,
    };
    let mut out = stdout().lock();
    out.write_all(&notification.encode(choice.method, &detection.multiplexers))?;
    writeln!(out, "{:?}: {}", choice.method, choice.reason)
}
