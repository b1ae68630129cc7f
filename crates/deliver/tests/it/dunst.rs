//! A real notification server: dunst, on a screen that nobody sees.

use std::process::{Child, Command, Stdio};

use ringer_deliver::{Desktop, DesktopEvent, Error, Known};
use test_support::started;

use crate::bus::{Bus, first_line};
use crate::server::{id, popup};
use crate::wait::{PATIENCE, soon, until};

/// A process that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(command: &mut Command) -> Running {
    let name = command.get_program().to_string_lossy().into_owned();
    let child = command.stderr(Stdio::null()).spawn();
    Running(started(&name, child))
}

fn dunstctl(bus: &Bus, arguments: &[&str]) -> String {
    let output =
        Command::new("dunstctl").args(arguments).env("DBUS_SESSION_BUS_ADDRESS", bus.address()).output();
    let output = started("dunstctl", output);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

async fn displayed(bus: &Bus, expected: &str) {
    until(&format!("{expected} displayed"), async || {
        let counted = dunstctl(bus, &["count", "displayed"]) == expected;
        counted && dunstctl(bus, &["count", "waiting"]) == "0"
    })
    .await;
}

#[tokio::test]
async fn dunst_replaces_withdraws_and_tells() {
    let bus = Bus::start();
    let mut screen = start(
        Command::new("Xvfb")
            .args(["-displayfd", "1", "-nolisten", "tcp", "-screen", "0", "640x480x24"])
            .stdout(Stdio::piped()),
    );
    let display = format!(":{}", first_line(&mut screen.0, "Xvfb"));
    let config = bus.file("dunstrc", "[global]\nidle_threshold = 0\n[urgency_normal]\ntimeout = 0\n");
    let _dunst = start(
        Command::new("dunst")
            .arg("-config")
            .arg(config)
            .env("DISPLAY", display)
            .env_remove("WAYLAND_DISPLAY")
            .env("DBUS_SESSION_BUS_ADDRESS", bus.address())
            .stdout(Stdio::null()),
    );
    let (desktop, mut events) = Desktop::new(Some(bus.address()), Vec::new(), PATIENCE);
    let mut first = None;
    until("dunst is there", async || {
        match soon("an answer", desktop.show(popup("a", "s1"))).await {
            Ok(shown) => first = Some(shown),
            Err(Error::Desktop(_)) => {}
            Err(error) => panic!("{error}"),
        }
        first.is_some()
    })
    .await;
    let first = first.expect("shown");
    displayed(&bus, "1").await;
    let described = Desktop::describe(&bus.address(), PATIENCE).await.expect("somebody");
    assert!(described.starts_with("dunst ") && described.ends_with(" shows popups"), "{described}");

    let second = desktop.show(popup("b", "s1")).await.expect("shown");
    assert_eq!(second, first, "the same popup, with another text");
    displayed(&bus, "1").await;
    desktop.show(popup("c", "s2")).await.expect("shown");
    displayed(&bus, "2").await;

    // A hub that was restarted and knows the number; and one that has lost it, but has the tag.
    let known = vec![Known { key: "s1".to_owned(), id: id("b"), shown: first.clone() }];
    let (restarted, _told) = Desktop::new(Some(bus.address()), known, PATIENCE);
    assert_eq!(restarted.show(popup("d", "s1")).await.expect("shown"), first);
    displayed(&bus, "2").await;
    let (forgetful, mut told) = Desktop::new(Some(bus.address()), Vec::new(), PATIENCE);
    forgetful.show(popup("e", "s1")).await.expect("shown");
    displayed(&bus, "2").await;

    forgetful.withdraw(id("e")).await.expect("told");
    displayed(&bus, "1").await;
    // As if the person had closed it.
    dunstctl(&bus, &["close"]);
    assert_eq!(soon("an event", events.recv()).await, Some(DesktopEvent::Dismissed(id("c"))));
    displayed(&bus, "0").await;

    forgetful.show(popup("f", "s3")).await.expect("shown");
    displayed(&bus, "1").await;
    // As if the person had clicked it.
    dunstctl(&bus, &["action"]);
    assert!(
        matches!(soon("an event", told.recv()).await, Some(DesktopEvent::Show(shown, _)) if shown == id("f"))
    );
}
