//! Waiting for something to be so, with a deadline that a slow machine keeps.

use std::fs;
use std::future::Future;
use std::path::Path;
use std::time::Duration;

use ringer_core::message::{SurfaceId, WorkspaceId};
use ringer_core::{Kind, MessageId, Sender};
use ringer_deliver::Note;
use tokio::time::{Instant, interval, timeout};

/// Longer than anything here takes on the slowest machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Waits until something is so.
pub(crate) async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    // Looked at again and again: nobody tells of these things.
    let mut look = interval(Duration::from_millis(10));
    while !is_so().await {
        assert!(Instant::now() < end, "never happened: {what}");
        look.tick().await;
    }
}

/// The result of something that has to come.
pub(crate) async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    timeout(PATIENCE, future).await.unwrap_or_else(|_| panic!("never came: {what}"))
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

/// Whether a process runs. A zombie does not: in a container, nobody may ever reap it.
pub(crate) fn runs(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

/// A note with this text.
pub(crate) fn note(id: &str, body: &str) -> Note {
    Note {
        id: MessageId::parse(id).expect("an id"),
        kind: Kind::Question,
        sender: Sender::new("claude-1a2b").expect("a sender"),
        title: "Claude Code".to_owned(),
        subtitle: String::new(),
        body: body.to_owned(),
        workspace: WorkspaceId::new("w1"),
        surface: Some(SurfaceId::new("s1")),
    }
}
