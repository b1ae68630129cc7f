//! A client of the server, frame by frame: one of another version, or one that does what the real one does in a moment that
//! cannot be chosen.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use serde_json::{Value, json};
use test_support::DEADLINE;

use super::session::Session;

const HELLO: u8 = 1;
pub(super) const TERMINAL_BACK: u8 = 4;
pub(super) const REQUEST: u8 = 5;
pub(super) const WELCOME: u8 = 65;
pub(super) const OUTPUT: u8 = 66;
pub(super) const BYE: u8 = 68;
pub(super) const ANSWER: u8 = 69;

pub(super) struct RawClient {
    stream: UnixStream,
}

impl RawClient {
    /// Connects, and says hello as a client of this version of the protocol.
    pub(super) fn connect(session: &Session, version: u32, terminal: &Value) -> Self {
        let stream = UnixStream::connect(session.sockets().join("ui.sock")).expect("a server");
        stream.set_read_timeout(Some(DEADLINE)).expect("a socket");
        let hello = json!({
            "version": version, "program": "9.9.9", "terminal": terminal, "environment": [], "directory": "/",
        });
        let mut client = Self { stream };
        client.send(HELLO, &hello);
        client
    }

    pub(super) fn send(&mut self, kind: u8, body: &Value) {
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let length = u32::try_from(body.len()).expect("a length").to_le_bytes();
        self.stream.write_all(&[&[kind][..], &length, &body].concat()).expect("it reads");
    }

    /// The kind of the next frame.
    pub(super) fn next_kind(&mut self) -> u8 {
        let mut header = [0; 5];
        self.stream.read_exact(&mut header).expect("a frame");
        let length = u32::from_le_bytes(header[1..].try_into().expect("four bytes"));
        self.stream.read_exact(&mut vec![0; length as usize]).expect("its body");
        header[0]
    }

    /// The kinds of the frames up to one of this kind.
    pub(super) fn kinds_until(&mut self, last: u8) -> Vec<u8> {
        let mut kinds = vec![self.next_kind()];
        while kinds.last() != Some(&last) {
            kinds.push(self.next_kind());
        }
        kinds
    }

    /// Waits until the server has closed the connection.
    pub(super) fn wait_for_end(mut self) {
        self.stream.read_to_end(&mut Vec::new()).expect("its end");
    }
}
