//! A stand-in for a model's server, on loopback: it hands every request to the test, and answers what the test says.

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

/// How long a client may take until it asks. Nothing is expected to come near it.
const DEADLINE: Duration = Duration::from_secs(90);

/// The longest request that is read. A client's system prompt and tools have about 100 KiB.
const MAX_REQUEST: u64 = 16 << 20;

/// What the model answers to one request.
#[derive(Debug, Clone)]
pub enum Answer {
    /// These words.
    Text(&'static str),
    /// A call of a tool.
    Tool {
        /// The tool.
        name: &'static str,
        /// What it is called with.
        input: Value,
    },
    /// Several calls at once. Only the Messages API has a use for it here.
    Tools(Vec<(&'static str, Value)>),
    /// Also to all that the client tries until the next answer.
    Error {
        /// The status of HTTP.
        status: u16,
        /// What the server calls it.
        kind: &'static str,
    },
}

impl Answer {
    /// A call of one tool.
    pub fn tool(name: &'static str, input: Value) -> Self {
        Self::Tool { name, input }
    }
}

/// What a model's server and its clients say to each other.
pub trait Wire: Send + Sync {
    /// Whether a request is for the agent's own turn, and not for a title or a count.
    fn is_turn(&self, path: &str, body: &Value) -> bool;
    /// The events of a stream. The `type` of each is its name, if it has one.
    fn events(&self, answer: &Answer, number: usize) -> Vec<Value>;
    /// What to say to a request that is not for a turn. `None` for a stream of a few words.
    fn aside(&self, path: &str) -> Option<Value>;
    /// What has come since the model's last answer.
    fn news(&self, body: &Value) -> Vec<Value>;
}

/// What the model would have seen.
#[derive(Debug)]
pub struct ModelRequest {
    body: Value,
    news: Vec<Value>,
}

impl ModelRequest {
    /// The whole request.
    pub fn body(&self) -> &Value {
        &self.body
    }

    /// How often this text is in what has come since the model's last answer, where notifications count as without their nonces.
    pub fn count_new(&self, text: &str) -> usize {
        self.news.iter().map(|part| count(part, text)).sum()
    }

    /// What has come since the model's last answer, for a test that has failed.
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

/// A server of its own for each test. Requests wait for their answer; answers may be given ahead.
#[derive(Debug)]
pub struct Model {
    address: SocketAddr,
    requests: Receiver<ModelRequest>,
    answers: Sender<Answer>,
    over: Arc<AtomicBool>,
}

impl Model {
    /// A server that speaks this.
    ///
    /// # Panics
    ///
    /// If it finds no port.
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

    /// Where clients find it, without a path.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The next request of the agent's turn.
    ///
    /// # Panics
    ///
    /// If none comes in time.
    #[track_caller]
    pub fn request(&self) -> ModelRequest {
        match self.requests.recv_timeout(DEADLINE) {
            Ok(request) => request,
            Err(RecvTimeoutError::Timeout) => panic!("the client asked the model nothing in time"),
            Err(RecvTimeoutError::Disconnected) => panic!("the stand-in server has ended"),
        }
    }

    /// Whether a request has come that the test has not looked at.
    pub fn has_request(&self) -> bool {
        self.requests.try_recv().is_ok()
    }

    /// Answers the oldest request that has none, or the next one.
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
        // It sleeps until a client connects.
        let _ = TcpStream::connect(self.address);
    }
}

/// What the connections share.
struct ServerState {
    wire: &'static dyn Wire,
    requests: Sender<ModelRequest>,
    answers: Mutex<Answers>,
    answered: AtomicUsize,
}

struct Answers {
    given: Receiver<Answer>,
    /// The error that every request gets.
    failing: Option<Answer>,
}

fn serve(listener: &TcpListener, state: &Arc<ServerState>, over: &AtomicBool) {
    for stream in listener.incoming().flatten() {
        if over.load(Ordering::Relaxed) {
            return;
        }
        let state = Arc::clone(state);
        // A client that hangs up has its reasons.
        thread::spawn(move || state.talk(stream));
    }
}

impl ServerState {
    /// One request, one answer: the connection is closed after it, which spares both sides the counting.
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
        // Without one the test has ended.
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

/// The path and the body of a request. What is no JSON is null.
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
