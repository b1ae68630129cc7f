//! `opencode serve`: an opencode whose sessions go on, asked over HTTP as its terminal and its other clients do.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};
use test_support::until_within;

use crate::environment::{ClientEnvironment, DEADLINE};
use crate::session::Session;

/// What it prints before its address.
const LISTENING: &str = "listening on http://";

pub(crate) struct Server {
    address: String,
    _process: Session,
}

impl Server {
    #[track_caller]
    pub(crate) fn start(environment: &ClientEnvironment) -> Self {
        let process = environment.start("opencode", &["serve", "--hostname", "127.0.0.1", "--port", "0"]);
        let line = process.line_with(LISTENING);
        let address = line.split(LISTENING).nth(1).expect("an address").trim().to_owned();
        Self { address, _process: process }
    }

    /// Begins a session. Gives its id.
    #[track_caller]
    pub(crate) fn begin(&self) -> String {
        self.post("/session", &json!({}))["id"].as_str().expect("an id").to_owned()
    }

    /// Says something to a session, which begins a turn.
    #[track_caller]
    pub(crate) fn say(&self, session: &str, text: &str) {
        let message = json!({ "parts": [{ "type": "text", "text": text }] });
        self.post(&format!("/session/{session}/prompt_async"), &message);
    }

    /// Ends the turn of a session, as pressing Escape twice does.
    pub(crate) fn abort(&self, session: &str) {
        self.post(&format!("/session/{session}/abort"), &json!({}));
    }

    /// Waits until a session is between two turns, and Ringer's plugin has told everything: it does one thing after the
    /// other, and opencode waits for it only when it puts its plugins away.
    #[track_caller]
    pub(crate) fn settle(&self, session: &str) {
        until_within(DEADLINE, "the session is idle", || {
            self.call("GET", "/session/status", &Value::Null).get(session).is_none()
        });
        self.post("/instance/dispose", &json!({}));
    }

    /// What a session has asked for.
    #[track_caller]
    pub(crate) fn asked(&self) -> String {
        let asked = self.call("GET", "/permission", &Value::Null);
        asked[0]["id"].as_str().expect("something was asked for").to_owned()
    }

    /// Allows once what a session has asked for, as its dialog does.
    #[track_caller]
    pub(crate) fn allow(&self) {
        assert!(self.allow_in_time(&self.asked()), "it was answered before");
    }

    /// Allows something once. Gives whether it still waited.
    #[track_caller]
    pub(crate) fn allow_in_time(&self, id: &str) -> bool {
        let path = format!("/permission/{id}/reply");
        let (head, body) = self.ask("POST", &path, &json!({ "reply": "once" }));
        assert!(is_ok(&head) || head.starts_with("HTTP/1.1 404"), "{head}: {body}");
        is_ok(&head)
    }

    #[track_caller]
    fn post(&self, path: &str, body: &Value) -> Value {
        self.call("POST", path, body)
    }

    /// One request that is done. Gives the answer, null if there is none.
    #[track_caller]
    fn call(&self, method: &str, path: &str, body: &Value) -> Value {
        let (head, body) = self.ask(method, path, body);
        assert!(is_ok(&head), "{method} {path}: {head}: {body}");
        serde_json::from_str(&body).unwrap_or_default()
    }

    /// One request on a connection of its own. Gives the head of the answer and its body.
    #[track_caller]
    fn ask(&self, method: &str, path: &str, body: &Value) -> (String, String) {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let mut stream = TcpStream::connect(&self.address).expect("the server listens");
        stream.set_read_timeout(Some(DEADLINE)).expect("a deadline");
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\ncontent-type: application/json\r\n",
            self.address
        );
        let request = format!("{head}content-length: {}\r\n\r\n{body}", body.len());
        stream.write_all(request.as_bytes()).expect("the server reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("the server answers");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        (head.to_owned(), body.to_owned())
    }
}

fn is_ok(head: &str) -> bool {
    head.starts_with("HTTP/1.1 20")
}
