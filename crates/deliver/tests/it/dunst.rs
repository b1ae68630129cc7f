//! A real notification server: dunst, on a virtual screen.

use std::process::{Child, Command, Stdio};

use ringer_core::agent::{PermissionRequest, PopupAnswer, PromptContent};
use ringer_deliver::{Desktop, DesktopEvent, DisplayedPopup, Error, Popup, PreviousPopup};
use test_support::{DEADLINE, SessionBus, VirtualScreen, in_time, started};

use crate::wait::{id, popup, until};

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

fn dunstctl(bus: &SessionBus, arguments: &[&str]) -> String {
    let output =
        Command::new("dunstctl").args(arguments).env("DBUS_SESSION_BUS_ADDRESS", bus.address()).output();
    let output = started("dunstctl", output);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

async fn displayed(bus: &SessionBus, expected: &str) {
    until(&format!("{expected} displayed"), async || {
        let counted = dunstctl(bus, &["count", "displayed"]) == expected;
        counted && dunstctl(bus, &["count", "waiting"]) == "0"
    })
    .await;
}

/// Starts dunst on a screen of its own, with this in its `[global]` section.
fn dunst(bus: &SessionBus, global: &str) -> (Running, VirtualScreen) {
    let screen = VirtualScreen::start();
    let config = bus
        .file("dunstrc", &format!("[global]\nidle_threshold = 0\n{global}[urgency_normal]\ntimeout = 0\n"));
    let dunst = start(
        Command::new("dunst")
            .arg("-config")
            .arg(config)
            .env("DISPLAY", screen.display())
            .env_remove("WAYLAND_DISPLAY")
            .env("DBUS_SESSION_BUS_ADDRESS", bus.address())
            .stdout(Stdio::null()),
    );
    (dunst, screen)
}

/// Shows a popup as soon as dunst is there.
async fn show_first(desktop: &Desktop, popup: Popup) -> DisplayedPopup {
    let mut first = None;
    until("dunst is there", async || {
        match in_time("an answer", desktop.show(popup.clone())).await {
            Ok(shown) => first = Some(shown),
            Err(Error::Desktop(_)) => {}
            Err(error) => panic!("{error}"),
        }
        first.is_some()
    })
    .await;
    first.expect("shown")
}

/// What dunst hands to Pango to be drawn, and what of it Pango would show as text, for the newest popup.
fn drawn(bus: &SessionBus) -> String {
    let history: serde_json::Value = serde_json::from_str(&dunstctl(bus, &["history"])).expect("JSON");
    history["data"][0][0]["message"]["data"].as_str().expect("a text").to_owned()
}

#[tokio::test]
async fn markup_is_text_whatever_dunst_is_told_to_make_of_it() {
    for (global, expected) in [
        ("markup = full\n", "&lt;b&gt;1 &amp; 2&lt;/b&gt; &amp;lt;"),
        ("markup = no\n", "‹b›1 ＆ 2‹/b› ＆lt;"),
        ("", "‹b›1 ＆ 2‹/b› ＆lt;"),
    ] {
        let bus = SessionBus::start();
        let _running = dunst(&bus, global);
        let (desktop, _events) = Desktop::new(Some(bus.address()), Vec::new(), DEADLINE);
        show_first(&desktop, Popup { body: "<b>1 & 2</b> &lt;".to_owned(), ..popup("a", "s1") }).await;
        displayed(&bus, "1").await;
        dunstctl(&bus, &["close"]);
        displayed(&bus, "0").await;
        let drawn = drawn(&bus);
        assert!(drawn.ends_with(&format!("\n{expected}")), "{global:?}: {drawn}");
    }
}

#[tokio::test]
async fn dunst_replaces_withdraws_and_tells() {
    let bus = SessionBus::start();
    let _running = dunst(&bus, "");
    let (desktop, mut events) = Desktop::new(Some(bus.address()), Vec::new(), DEADLINE);
    let first = show_first(&desktop, popup("a", "s1")).await;
    displayed(&bus, "1").await;
    let described = Desktop::describe(&bus.address(), DEADLINE).await.expect("a server");
    assert!(described.starts_with("dunst ") && described.ends_with(" shows popups"), "{described}");

    let second = desktop.show(popup("b", "s1")).await.expect("shown");
    assert_eq!(second, first, "the same popup, with another text");
    displayed(&bus, "1").await;
    desktop.show(popup("c", "s2")).await.expect("shown");
    displayed(&bus, "2").await;

    // A hub that was restarted and knows the number; and one that has lost it, but has the tag.
    let known =
        vec![PreviousPopup { key: "s1".to_owned(), id: id("b"), handle: first.handle.clone(), offer: None }];
    let (restarted, _told) = Desktop::new(Some(bus.address()), known, DEADLINE);
    assert_eq!(restarted.show(popup("d", "s1")).await.expect("shown"), first);
    displayed(&bus, "2").await;
    let (forgetful, mut told) = Desktop::new(Some(bus.address()), Vec::new(), DEADLINE);
    forgetful.show(popup("e", "s1")).await.expect("shown");
    displayed(&bus, "2").await;

    forgetful.withdraw(id("e")).await.expect("told");
    displayed(&bus, "1").await;
    // As if the person had closed it.
    dunstctl(&bus, &["close"]);
    assert_eq!(in_time("an event", events.recv()).await, Some(DesktopEvent::Dismissed(id("c"))));
    displayed(&bus, "0").await;

    forgetful.show(popup("f", "s3")).await.expect("shown");
    displayed(&bus, "1").await;
    // As if the person had clicked it.
    dunstctl(&bus, &["action"]);
    assert!(
        matches!(in_time("an event", told.recv()).await, Some(DesktopEvent::Show(shown, _)) if shown == id("f"))
    );
}

/// dunst shows buttons as a menu, for which it runs a program that reads the entries and prints one.
#[tokio::test]
async fn on_dunst_a_click_shows_and_an_entry_of_its_menu_answers() {
    let bus = SessionBus::start();
    let _running = dunst(&bus, "markup = full\ndmenu = grep Allow\n");
    let (desktop, mut events) = Desktop::new(Some(bus.address()), Vec::new(), DEADLINE);
    let (tool, request) = ("Bash".to_owned(), "make a && make b".to_owned());
    let request = PermissionRequest { tool, request, whole: true, always: Vec::new() };
    let prompt = Some(Box::new(PromptContent::Permission(request)));
    let asking = |id: &str| {
        let body = "Bash: make a && make b".to_owned();
        Popup { body, subtitle: String::new(), prompt: prompt.clone(), ..popup(id, id) }
    };
    show_first(&desktop, asking("a")).await;
    displayed(&bus, "1").await;
    dunstctl(&bus, &["context"]);
    let allowed = DesktopEvent::Answer(id("a"), PopupAnswer::Allow);
    assert_eq!(in_time("an event", events.recv()).await, Some(allowed));
    // dunst leaves it on the screen.
    desktop.withdraw(id("a")).await.expect("told");
    displayed(&bus, "0").await;
    desktop.show(asking("b")).await.expect("shown");
    displayed(&bus, "1").await;
    dunstctl(&bus, &["action"]);
    assert_eq!(in_time("an event", events.recv()).await, Some(DesktopEvent::Show(id("b"), None)));
    desktop.withdraw(id("b")).await.expect("told");
    displayed(&bus, "0").await;

    // dunst reports clicks to the connection that has shown a popup. The next hub takes its place.
    let DisplayedPopup { handle, offer } = desktop.show(asking("c")).await.expect("shown");
    displayed(&bus, "1").await;
    drop((desktop, events));
    let known = vec![PreviousPopup { key: "c".to_owned(), id: id("c"), handle: handle.clone(), offer }];
    let (restarted, mut events) = Desktop::new(Some(bus.address()), known, DEADLINE);
    restarted.status().await.server.expect("it is taken over");
    displayed(&bus, "1").await;
    dunstctl(&bus, &["context"]);
    let allowed = DesktopEvent::Answer(id("c"), PopupAnswer::Allow);
    assert_eq!(in_time("an event", events.recv()).await, Some(allowed));
    restarted.withdraw(id("c")).await.expect("told");
    displayed(&bus, "0").await;
}

#[tokio::test]
async fn dunst_says_when_it_keeps_popups_back() {
    let bus = SessionBus::start();
    let _running = dunst(&bus, "");
    let (desktop, _events) = Desktop::new(Some(bus.address()), Vec::new(), DEADLINE);
    show_first(&desktop, popup("a", "s1")).await;
    assert!(!Desktop::is_paused(&bus.address(), DEADLINE).await);
    dunstctl(&bus, &["set-paused", "true"]);
    assert!(Desktop::is_paused(&bus.address(), DEADLINE).await);
    assert!(!Desktop::is_paused("unix:path=/nowhere", DEADLINE).await);
}
