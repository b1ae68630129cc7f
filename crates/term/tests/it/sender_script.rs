//! The script that runs inside a multiplexer and sends prepared bytes on command.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::mpsc::channel;
use std::thread;

use ringer_term::{
    Method, Multiplexer, Notification, NotificationId, Osc99Metadata, OutgoingNotification, Protocol, Urgency,
};
use tempfile::TempDir;

use crate::terminal::{DEADLINE, missing};

/// Reads file names and prints the contents of these files, until it is hung up on.
const SCRIPT: &str = "stty -echo; cat ready; while read -r name; do cat \"$name\"; done\n";

/// A directory with the script and the bytes. Everything runs with it as its working directory.
pub(crate) struct SenderScript {
    directory: TempDir,
}

impl SenderScript {
    /// Creates a directory whose script first sends these bytes.
    pub(crate) fn new(ready: &[u8]) -> Self {
        // Not the default place: on macOS its path is too long for the sockets that go in here.
        let directory = tempfile::Builder::new().prefix("ringer").tempdir_in("/tmp").unwrap();
        let script = Self { directory };
        script.prepare("script", SCRIPT.as_bytes());
        script.prepare("ready", ready);
        script
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn prepare(&self, name: &str, bytes: &[u8]) {
        fs::write(self.path().join(name), bytes).unwrap();
    }
}

/// Text that is unlike anything else that a terminal receives, on its own line so that it is never wrapped.
pub(crate) fn mark(name: &str) -> Vec<u8> {
    format!("\r\n<{name}>").into_bytes()
}

/// Runs a short command. Fails if it hangs.
pub(crate) fn output_of(mut command: Command) -> Output {
    let program = command.get_program().to_string_lossy().into_owned();
    let (sender, output) = channel();
    thread::spawn(move || sender.send(command.output()));
    let output = output.recv_timeout(DEADLINE).unwrap_or_else(|_| panic!("{program} hangs"));
    output.unwrap_or_else(|error| missing(&program, &error))
}

/// The methods that carry a text.
pub(crate) const METHODS: [Method; 3] = [Method::Iterm2, Method::Kitty, Method::Ghostty];

/// A notice to send, and the expected output.
pub(crate) struct Sent {
    id: NotificationId,
    title: &'static str,
    body: String,
}

/// A short notice.
pub(crate) fn short() -> Sent {
    Sent::new("Claude Code", "needs you".to_owned())
}

/// A notice of several lines, and of several pieces for screen.
pub(crate) fn long() -> Sent {
    Sent::new("A title, with all: signs", "one; two, three: four = [five]\n".repeat(31))
}

/// A notice of several chunks, with characters whose last bytes look like ST and OSC to a parser of 8-bit controls.
pub(crate) fn unicode() -> Sent {
    let body = "Ü✝;\n👩\u{200d}🚀🚀🚀🚀🚀🚀🚀🚀".repeat(68);
    assert!(body.len() > 3072 && body.chars().count() < 990, "two chunks of base64, and nothing is cut off");
    Sent::new("日本語: title", body)
}

impl Sent {
    pub(crate) fn new(title: &'static str, body: String) -> Self {
        Self { id: NotificationId::new("ring-1").unwrap(), title, body }
    }

    pub(crate) fn bytes(&self, method: Method, layers: &[Multiplexer]) -> Vec<u8> {
        let notice = OutgoingNotification {
            id: &self.id,
            title: Some(self.title),
            body: &self.body,
            urgency: Urgency::Normal,
            icon: None,
        };
        notice.encode(method, layers)
    }

    /// Returns the text as each protocol carries it: one line, and no `;`, where the protocol allows neither.
    pub(crate) fn arrived(&self, method: Method) -> Notification {
        let line = self.body.replace('\n', " ").replace(';', ",");
        let (protocol, title, body) = match method {
            Method::Kitty => (Protocol::Osc99, self.title, self.body.clone()),
            Method::Ghostty => (Protocol::Osc777, self.title, line),
            _ => (Protocol::Osc9, "", format!("{}: {line}", self.title)),
        };
        let id = (method == Method::Kitty).then(|| self.id.clone());
        Notification { protocol, id, title: title.to_owned(), body, metadata: Osc99Metadata::default() }
    }
}

/// Returns the ASCII characters of a text whose other characters were replaced.
pub(crate) fn ascii_of(text: &str) -> String {
    let kept: String = text.chars().filter(|character| character.is_ascii() && *character != '?').collect();
    kept.trim().to_owned()
}
