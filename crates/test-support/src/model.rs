//! A stand-in for a model's server, on loopback. It passes every request to the test and returns the test's answers.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::without_nonces;

/// How long to wait for a client's request. Far more than any client needs.
const DEADLINE: Duration = Duration::from_secs(90);

/// The longest request, in bytes. The system prompt and tools of a client take about 100 KiB.
const MAX_REQUEST: u64 = 16 << 20;

/// The model's answer to one request.
#[derive(Debug, Clone)]
pub enum Answer {
    /// A text.
    Text(&'static str),
    /// A tool call.
    Tool {
        /// The name of the tool.
        name: &'static str,
        /// The tool's input.
        input: Value,
    },
    /// Several tool calls at once. Only used with the Messages API and with Chat Completions.
    Tools(Vec<(&'static str, Value)>),
    /// An error, for this request and for all retries until the test gives another answer.
    Error {
        /// The HTTP status.
        status: u16,
        /// The server's name for the error.
        kind: &'static str,
    },
}

impl Answer {
    /// Returns a call of one tool.
    pub fn tool(name: &'static str, input: Value) -> Self {
        Self::Tool { name, input }
    }
}

/// The protocol between a model's server and its clients.
pub trait Wire: Send + Sync {
    /// Returns true if a request is part of the agent's turn, and not for a title or a token count.
    fn is_turn(&self, path: &str, body: &Value) -> bool;
    /// Returns the events of a stream. The `type` of an event, if it has one, is its name.
    fn events(&self, answer: &Answer, number: usize) -> Vec<Value>;
    /// Returns the response to a request that is not part of a turn. `None` means a stream with a short text.
    fn aside(&self, path: &str) -> Option<Value>;
    /// Returns the messages since the model's last answer.
    fn news(&self, body: &Value) -> Vec<Value>;
}

/// A request, as the model would see it.
#[derive(Debug)]
pub struct ModelRequest {
    body: Value,
    news: Vec<Value>,
}

impl ModelRequest {
    /// Returns the whole request.
    pub fn body(&self) -> &Value {
        &self.body
    }

    /// Counts the occurrences of a text since the model's last answer. Nonces of notifications are removed first.
    pub fn count_new(&self, text: &str) -> usize {
        self.news.iter().map(|part| count(part, text)).sum()
    }

    /// Formats the messages since the model's last answer, for the message of a failed test.
    pub fn news(&self) -> String {
        self.news.iter().map(|part| format!("{part:#}\n")).collect()
    }
}

fn count(value: &Value, text: &str) -> usize {
    match value {
        Value::String(own) => without_nonces(own).matches(text).count(),
        Value::Array(parts) => parts.iter().map(|part| count(part, text)).sum(),
        Value::Object(members) => members.values().map(|part| count(part, text)).sum(),
        _ => 0,
    }
}

/// A server for one test. Requests wait for their answer; answers may be queued in advance.
#[derive(Debug)]
pub struct Model {
    address: SocketAddr,
    requests: Receiver<ModelRequest>,
    answers: Sender<Answer>,
    over: Arc<AtomicBool>,
}

impl Model {
    /// Starts a server that speaks this protocol.
    ///
    /// # Panics
    ///
    /// If no port is free.
    pub fn new(wire: &'static dyn Wire) -> Self {
        let bound =
            TcpListener::bind(("127.0.0.1", 0)).and_then(|listener| Ok((listener.local_addr()?, listener)));
        let (address, listener) =
            bound.unwrap_or_else(|error| panic!("the stand-in server finds no port: {error}"));
        let (sender, requests) = channel();
        let (answers, given) = channel();
        let over = Arc::new(AtomicBool::new(false));
        let answered = Mutex::new(Answers { given, failing: None });
        let state = ServerState { wire, requests: sender, answers: answered, answered: AtomicUsize::new(0) };
        thread::spawn({
            let over = Arc::clone(&over);
            move || serve(&listener, &Arc::new(state), &over)
        });
        Self { address, requests, answers, over }
    }

    /// Returns the base URL, without a path.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Waits for the next request of the agent's turn.
    ///
    /// # Panics
    ///
    /// If no request arrives in time.
    #[track_caller]
    pub fn request(&self) -> ModelRequest {
        match self.requests.recv_timeout(DEADLINE) {
            Ok(request) => request,
            Err(RecvTimeoutError::Timeout) => panic!("the client asked the model nothing in time"),
            Err(RecvTimeoutError::Disconnected) => panic!("the stand-in server has ended"),
        }
    }

    /// Returns true if there is a request that the test has not read, and drops that request.
    pub fn has_request(&self) -> bool {
        self.requests.try_recv().is_ok()
    }

    /// Answers the oldest unanswered request, or the next one.
    ///
    /// # Panics
    ///
    /// If the server has ended.
    #[track_caller]
    pub fn answer(&self, answer: Answer) {
        assert!(self.answers.send(answer).is_ok(), "the stand-in server has ended");
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        // The accept loop sleeps until a client connects.
        let _ = TcpStream::connect(self.address);
    }
}

/// State shared by all connections.
struct ServerState {
    wire: &'static dyn Wire,
    requests: Sender<ModelRequest>,
    answers: Mutex<Answers>,
    answered: AtomicUsize,
}

struct Answers {
    given: Receiver<Answer>,
    /// The error that requests get until the test gives another answer.
    failing: Option<Answer>,
}

fn serve(listener: &TcpListener, state: &Arc<ServerState>, over: &AtomicBool) {
    for stream in listener.incoming().flatten() {
        if over.load(Ordering::Relaxed) {
            return;
        }
        let state = Arc::clone(state);
        // An error means that the client hung up, which is up to the test.
        thread::spawn(move || state.talk(stream));
    }
}

impl ServerState {
    /// Serves one request and closes the connection, so no response needs a `content-length`.
    fn talk(&self, mut stream: TcpStream) -> io::Result<()> {
        let (path, body) = read(&stream)?;
        if !self.wire.is_turn(&path, &body) {
            return match self.wire.aside(&path) {
                Some(aside) => write_json(&mut stream, 200, &aside),
                None => write_events(&mut stream, &self.wire.events(&Answer::Text("a title"), 0)),
            };
        }
        let news = self.wire.news(&body);
        let asked = self.requests.send(ModelRequest { body, news });
        // If either fails, the test has ended.
        let (Ok(()), Some(answer)) = (asked, self.answer()) else { return Ok(()) };
        let number = self.answered.fetch_add(1, Ordering::Relaxed);
        if let Answer::Error { status, kind } = answer {
            let error = json!({ "type": kind, "code": kind, "message": "the stand-in was told to fail" });
            return write_json(&mut stream, status, &json!({ "type": "error", "error": error }));
        }
        write_events(&mut stream, &self.wire.events(&answer, number))
    }

    fn answer(&self) -> Option<Answer> {
        let mut answers = self.answers.lock().ok()?;
        let answer = match &answers.failing {
            Some(error) => answers.given.try_recv().unwrap_or_else(|_| error.clone()),
            None => answers.given.recv().ok()?,
        };
        answers.failing = matches!(answer, Answer::Error { .. }).then(|| answer.clone());
        Some(answer)
    }
}

/// Reads the path and the body of a request. A body that is not JSON becomes null.
fn read(stream: &TcpStream) -> io::Result<(String, Value)> {
    let mut reader = BufReader::new(stream.take(MAX_REQUEST));
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = Vec::new();
    reader.take(length).read_to_end(&mut body)?;
    Ok((path, serde_json::from_slice(&body).unwrap_or_default()))
}

fn write_json(stream: &mut TcpStream, status: u16, value: &Value) -> io::Result<()> {
    write_head(stream, status, "application/json")?;
    write!(stream, "{value}")
}

fn write_events(stream: &mut TcpStream, events: &[Value]) -> io::Result<()> {
    write_head(stream, 200, "text/event-stream")?;
    for event in events {
        if let Some(name) = event["type"].as_str() {
            writeln!(stream, "event: {name}")?;
        }
        write!(stream, "data: {event}\n\n")?;
        stream.flush()?;
    }
    Ok(())
}

fn write_head(stream: &mut TcpStream, status: u16, kind: &str) -> io::Result<()> {
    write!(stream, "HTTP/1.1 {status} -\r\ncontent-type: {kind}\r\nconnection: close\r\n\r\n")
}
