//! A small harness for an agent: it asks a model through the Messages API, runs the commands that the model wants, and lets
//! what waits for the agent enter the conversation as events of its own: a call of `_system_notification` that no model
//! made, and its result.
//!
//! ```text
//! ANTHROPIC_BASE_URL=http://127.0.0.1:8080 cargo run -p ringer --example harness -- worker "make the tests pass"
//! ringer notify --to worker "main is red"     # meanwhile, from anywhere
//! ```
//!
//! It speaks plain HTTP; a server that wants TLS needs a proxy before it. It runs every command without asking.

use std::env;
use std::error::Error;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::{Duration, Instant};

use ringer_core::conversation::{
    Injection, InjectionBudget, NOTIFICATION_TOOL, RateTracker, SyntheticPair, ToolDefinition, system_prompt,
};
use ringer_core::message::{Agent, MessagePart, SessionNonce};
use ringer_journal::{ClaimedParts, EnteredPart, Home, IdSource, InboxUpdate, Journal};
use serde_json::{Value, json};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// How long a model may think.
const PATIENCE: Duration = Duration::from_mins(10);

fn main() -> Outcome<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [agent, prompt] = &arguments[..] else { return Err("usage: harness AGENT PROMPT".into()) };
    let home = match env::var_os("RINGER_HOME") {
        Some(home) => Home::new(home),
        None => Home::new(
            std::path::PathBuf::from(env::var_os("HOME").ok_or("HOME is not set")?)
                .join(".local/state/ringer"),
        ),
    };
    let server = env::var("ANTHROPIC_BASE_URL")?;
    println!("{}", Harness::new(&home, agent, &server)?.run(prompt)?);
    Ok(())
}

/// One agent and its conversation.
pub(crate) struct Harness {
    journal: Journal,
    agent: Agent,
    /// The host and port of the model's server.
    server: String,
    messages: Vec<Value>,
    /// What shows the model that a notification is one.
    nonce: SessionNonce,
    rates: RateTracker,
    begin: Instant,
}

impl Harness {
    pub(crate) fn new(home: &Home, agent: &str, server: &str) -> Outcome<Self> {
        Ok(Self {
            journal: Journal::open(home)?,
            agent: Agent::new(agent)?,
            server: server.strip_prefix("http://").ok_or("the server is not an http:// address")?.to_owned(),
            messages: Vec::new(),
            nonce: SessionNonce::new(IdSource::now().random),
            rates: RateTracker::default(),
            begin: Instant::now(),
        })
    }

    /// Works until the model has no more to do and nothing waits for it. Gives its last words.
    pub(crate) fn run(&mut self, prompt: &str) -> Outcome<String> {
        self.messages.push(json!({ "role": "user", "content": prompt }));
        let mut last_words = None;
        loop {
            // Between two requests is the one place where something can enter. What entered before the last request is
            // confirmed by this, for the model has answered it.
            let claimed = self.claim()?;
            if let (Some(words), None) = (&last_words, &claimed) {
                return Ok(String::clone(words));
            }
            let answer = self.ask();
            // What the server refused waits on. What it took is delivered, and confirmed once the model has answered.
            match (&claimed, &answer) {
                (Some(claimed), Ok(_)) => {
                    self.journal.mark_delivered(&self.agent, claimed, IdSource::now().unix_ms)?;
                }
                (Some(claimed), Err(_)) => self.journal.release(&self.agent, claimed)?,
                (None, _) => {}
            }
            last_words = self.follow(&read_answer(answer?)?)?;
        }
    }

    /// Takes what waits for the agent, and puts it at the end of the conversation.
    fn claim(&mut self) -> Outcome<Option<ClaimedParts>> {
        let (budget, now, stamp) = (InjectionBudget::default(), self.begin.elapsed(), IdSource::now());
        let (agent, before) = (&self.agent, &self.rates);
        let choose = |pending: &[MessagePart], _: &[EnteredPart]| {
            budget.select_parts(now, pending, agent, &mut before.clone())
        };
        let call = stamp.message_id().to_string();
        let update = InboxUpdate { call_id: Some(&call), choose: Some(&choose), ..InboxUpdate::default() };
        let claimed = self.journal.claim_for(&self.agent, &update, &stamp)?;
        if let Some(claimed) = &claimed {
            let entering = budget.blocks_of(now, &claimed.parts, &self.agent, &mut self.rates);
            for injection in &entering {
                self.push_pair(injection);
            }
        }
        Ok(claimed)
    }

    fn push_pair(&mut self, injection: &Injection) {
        let SyntheticPair { call, result } =
            SyntheticPair::new(injection, IdSource::now().random, Some(&self.nonce));
        let call = json!({ "type": "tool_use", "id": call.id.as_str(), "name": call.name, "input": {} });
        match self.messages.last_mut() {
            // After the model's last words the call is one more part of them: two messages of one side are none.
            Some(last) if last["role"] == "assistant" => {
                if let Some(content) = last["content"].as_array_mut() {
                    content.push(call);
                }
            }
            _ => self.messages.push(json!({ "role": "assistant", "content": [call] })),
        }
        let result =
            json!({ "type": "tool_result", "tool_use_id": result.call.as_str(), "content": result.content });
        self.messages.push(json!({ "role": "user", "content": [result] }));
    }

    /// Asks the model. Gives what the server sends after it has taken the request.
    fn ask(&self) -> Outcome<impl BufRead + use<>> {
        let ToolDefinition { name, description, parameters } = ToolDefinition::NOTIFICATION;
        let command = json!({ "type": "object", "properties": { "command": { "type": "string" } }, "required": ["command"] });
        let body = json!({
            "model": env::var("ANTHROPIC_MODEL").unwrap_or_else(|_| "claude-sonnet-4-5".to_owned()),
            "max_tokens": 4096,
            "stream": true,
            "system": system_prompt(&self.nonce),
            "tools": [
                { "name": "Bash", "description": "Runs a shell command.", "input_schema": command },
                { "name": name, "description": description, "input_schema": parameters },
            ],
            "messages": self.messages,
        })
        .to_string();
        let mut stream = TcpStream::connect(&self.server)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        // The older version, so that the answer is not divided into chunks.
        write!(
            stream,
            "POST /v1/messages HTTP/1.0\r\nhost: {}\r\ncontent-type: application/json\r\nanthropic-version: 2023-06-01\r\n\
             x-api-key: {}\r\ncontent-length: {}\r\n\r\n{body}",
            self.server,
            env::var("ANTHROPIC_API_KEY").unwrap_or_default(),
            body.len()
        )?;
        let mut stream = BufReader::new(stream);
        let mut status = String::new();
        stream.read_line(&mut status)?;
        if status.split(' ').nth(1) != Some("200") {
            let mut rest = String::new();
            stream.read_to_string(&mut rest)?;
            return Err(format!("the model's server says: {} {rest}", status.trim_end()).into());
        }
        Ok(stream)
    }

    /// Puts the answer into the conversation and does what it asks for. Gives the model's words if it wants no more.
    fn follow(&mut self, parts: &[Value]) -> Outcome<Option<String>> {
        let calls = parts.iter().filter(|part| part["type"] == "tool_use");
        let results: Vec<Value> = calls.map(run_tool).collect::<Result<_, _>>()?;
        let words = parts.iter().filter_map(|part| part["text"].as_str()).collect();
        self.messages.push(json!({ "role": "assistant", "content": parts }));
        if results.is_empty() {
            return Ok(Some(words));
        }
        self.messages.push(json!({ "role": "user", "content": results }));
        Ok(None)
    }
}

/// The parts of an answer that comes as a stream of events.
fn read_answer(stream: impl BufRead) -> Outcome<Vec<Value>> {
    let mut parts: Vec<Value> = Vec::new();
    // The arguments of a call come as text, piece by piece.
    let mut arguments = String::new();
    for line in stream.lines() {
        let line = line?;
        let Some(data) = line.strip_prefix("data: ") else { continue };
        let event: Value = serde_json::from_str(data)?;
        match event["type"].as_str() {
            Some("content_block_start") => parts.push(event["content_block"].clone()),
            Some("content_block_delta") => {
                let delta = &event["delta"];
                arguments.push_str(delta["partial_json"].as_str().unwrap_or_default());
                if let (Some(part), Some(text)) = (parts.last_mut(), delta["text"].as_str()) {
                    part["text"] = format!("{}{text}", part["text"].as_str().unwrap_or_default()).into();
                }
            }
            Some("content_block_stop") if !arguments.is_empty() => {
                if let Some(part) = parts.last_mut() {
                    part["input"] = serde_json::from_str(&arguments)?;
                }
                arguments.clear();
            }
            Some("message_stop") => return Ok(parts),
            _ => {}
        }
    }
    Err("the answer of the model's server ends too early".into())
}

/// Runs what a model wants. Gives the result.
fn run_tool(call: &Value) -> Outcome<Value> {
    let (is_error, text) = match (call["name"].as_str(), call["input"]["command"].as_str()) {
        (Some("Bash"), Some(command)) => {
            let output = Command::new("sh").args(["-c", command]).output()?;
            let printed = [output.stdout, output.stderr].concat();
            (!output.status.success(), String::from_utf8_lossy(&printed).into_owned())
        }
        (Some(NOTIFICATION_TOOL), _) => (true, "this tool is not for you to call".to_owned()),
        _ => (true, "there is no such tool".to_owned()),
    };
    Ok(json!({ "type": "tool_result", "tool_use_id": call["id"], "is_error": is_error, "content": text }))
}
