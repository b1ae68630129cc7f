//! Arbitrary lines on the hub's socket: any cut of the stream gives the same lines, and each request has one answer, all of
//! which can be read and printed.

use std::cell::RefCell;

use ringer_hub::OfflineHub;
use ringer_ipc::{MAX_LINE, Response};
use ringer_journal::Home;
use serde_json::Value;
use tempfile::TempDir;

use crate::input::{assert_printable, home, split};

/// Inputs that one hub gets. What it keeps of them must not make it slow.
const INPUTS: u32 = 500;
/// A refusal says what was wrong, and does not repeat it.
const MAX_REFUSAL: usize = 16 * 1024;

thread_local! {
    static HUB: RefCell<Option<Hub>> = const { RefCell::new(None) };
}

struct Hub {
    hub: OfflineHub,
    inputs: u32,
    _home: TempDir,
}

impl Hub {
    fn open() -> Self {
        let directory = home();
        let hub = OfflineHub::open_alone(&Home::new(directory.path().join("home"))).expect("a new home has room");
        Self { hub, inputs: 0, _home: directory }
    }
}

pub fn run(data: &[u8]) {
    let Some((stream, pieces)) = split(data) else { return };
    let lines = OfflineHub::lines([stream]);
    assert_eq!(lines, OfflineHub::lines(pieces));
    HUB.with_borrow_mut(|hub| {
        // After a panic there is none, so that an input can be tried again.
        let mut running = hub.take().filter(|hub| hub.inputs < INPUTS).unwrap_or_else(Hub::open);
        running.inputs += 1;
        lines.unwrap_or_default().iter().for_each(|line| ask(&mut running.hub, line));
        *hub = Some(running);
    });
}

fn ask(hub: &mut OfflineHub, line: &[u8]) {
    let sent = hub.answer(line).expect("every request has an answer");
    for line in &sent {
        assert_printable(std::str::from_utf8(line).expect("what is sent is text"));
        assert!(serde_json::from_slice::<Value>(line).is_ok());
    }
    let answer: Response =
        serde_json::from_slice(sent.last().expect("the answer is the last")).expect("an answer");
    assert!(answer.ok == answer.error.is_none());
    let said = answer.error.map_or(0, |error| error.message.len());
    assert!(said <= MAX_REFUSAL, "{said} bytes of a refusal for {} bytes", line.len());
    assert!(line.len() <= MAX_LINE);
}
