//! Waiting for conditions and processes, and the notifications that the tests send.

use std::fs;
use std::path::Path;
use std::time::Duration;

use ringer_core::message::{ShownKind, SurfaceId, WorkspaceId};
use ringer_core::{MessageId, Sender};
use ringer_deliver::Note;
#[cfg(not(target_os = "macos"))]
use ringer_deliver::Popup;
use test_support::DEADLINE;
use tokio::time::{Instant, interval};

/// Waits until something is so.
pub(crate) async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let end = Instant::now() + DEADLINE;
    // Polled, because no event announces these things.
    let mut look = interval(Duration::from_millis(10));
    while !is_so().await {
        assert!(Instant::now() < end, "never happened: {what}");
        look.tick().await;
    }
}

/// Waits until a process has written its number into a file.
pub(crate) async fn pid_in(file: &Path) -> i32 {
    let mut pid = None;
    until("a process writes its number", async || {
        pid = fs::read_to_string(file).ok().filter(|text| text.ends_with('\n'));
        pid.is_some()
    })
    .await;
    pid.as_deref().map(str::trim).and_then(|text| text.parse().ok()).expect("a number")
}

/// Whether a process runs. A zombie does not: in a container it may never be reaped.
pub(crate) fn runs(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

/// A note with this text.
pub(crate) fn note(id: &str, body: &str) -> Note {
    Note {
        id: MessageId::parse(id).expect("an id"),
        kind: ShownKind::Question,
        sender: Sender::new("claude-1a2b").expect("a sender"),
        title: "Claude Code".to_owned(),
        subtitle: String::new(),
        body: body.to_owned(),
        workspace: WorkspaceId::new("w1"),
        surface: Some(SurfaceId::new("s1")),
        icon: None,
    }
}

/// A popup of this id for this surface. Each has its own text: dunst makes one of two that read the same.
#[cfg(not(target_os = "macos"))]
pub(crate) fn popup(id: &str, key: &str) -> Popup {
    Popup { key: key.to_owned(), ..Popup::of(&note(id, &format!("May I do {id}?"))) }
}

#[cfg(not(target_os = "macos"))]
pub(crate) fn id(text: &str) -> MessageId {
    MessageId::parse(text).expect("an id")
}
