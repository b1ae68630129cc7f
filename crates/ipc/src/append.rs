//! Appending a message through the hub that runs: it has the journal open already, so this takes less time than opening it.
//!
//! The hub answers once the message is on disk. If anything fails, the caller appends the same request itself; a request that was
//! appended twice is one message.

use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use ringer_core::message::Tag;
use ringer_core::{Draft, Kind, Scope, Sender};
use ringer_journal::{AppendRequest, Home};
use ringer_platform::owned;
use serde::{Deserialize, Serialize};

use crate::deadline_io::{read_line_until, write_until};

/// What the hub answers once the message is on disk, without the end of the line. If it cannot store it, it closes the
/// connection.
pub const STORED: &[u8] = b"stored";

/// How long the hub may take in all. It takes less than a millisecond; while it is stopped, each message takes this much longer.
const APPEND_WITHIN: Duration = Duration::from_millis(50);

/// The version of this program. A hub of another one may not know everything that a request says.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A request on its way to the hub.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct AppendLine<R> {
    version: String,
    request: R,
}

/// Where the hub of a home takes requests. In the home, beside the journal: a process that can put another socket there can put
/// another journal there, too.
pub fn append_socket(home: &Home) -> PathBuf {
    home.path().join("append.sock")
}

/// Lets the hub append a message. Gives whether it is on disk; if not, a hub that was too slow may still append it a moment later.
pub fn append_through_hub(home: &Home, request: &AppendRequest) -> bool {
    ask(home, request).unwrap_or(false)
}

fn ask(home: &Home, request: &AppendRequest) -> io::Result<bool> {
    let stream = owned::connect(&append_socket(home))?;
    let mut line = serde_json::to_vec(&AppendLine { version: VERSION.to_owned(), request })?;
    line.push(b'\n');
    let end = Instant::now() + APPEND_WITHIN;
    write_until(&stream, &line, end)?;
    Ok(read_line_until(&stream, STORED.len(), end)? == STORED)
}

/// Reads a request as the hub gets it. `None` for what is no notification that a command of this version would send.
pub fn read_append_request(line: &[u8]) -> Option<AppendRequest> {
    let line: AppendLine<AppendRequest> = serde_json::from_slice(line).ok()?;
    let request = line.request;
    (line.version == VERSION && is_valid(&request.draft)).then_some(request)
}

/// Whether a draft keeps the limits that it would have been made with.
fn is_valid(draft: &Draft) -> bool {
    let names = Scope::new(draft.scope.as_str()).and(Sender::new(draft.sender.as_str()).map(drop));
    let body = Draft::new(Scope::global(), Sender::system(), Kind::Status, &draft.body);
    matches!(draft.tag, Tag::Notice(_)) && names.is_ok() && body.is_ok() && draft.check().is_ok()
}
