//! A client of `ringer mcp`, on the wire.

use serde_json::{Value, json};
use test_support::until;

use crate::home::TestEnvironment;
use crate::ringer::json as read_json;
use crate::stdio_client::StdioClient;

/// A client that has said who it is, and the server.
pub(crate) struct Client {
    pub(crate) stdio: StdioClient,
    /// The notifications that came meanwhile.
    pub(crate) notifications: Vec<Value>,
    next_id: u32,
}

impl Client {
    pub(crate) fn start(environment: &TestEnvironment, agent: &str) -> Self {
        let mut client = Self::unknown(environment, &[("RINGER_AGENT", agent)]);
        let hello = client.initialize("2025-06-18");
        assert_eq!(hello["protocolVersion"], "2025-06-18");
        client
    }

    pub(crate) fn unknown(environment: &TestEnvironment, variables: &[(&str, &str)]) -> Self {
        let stdio = StdioClient::start(environment, &["mcp"], variables);
        Self { stdio, notifications: Vec::new(), next_id: 0 }
    }

    #[track_caller]
    pub(crate) fn initialize(&mut self, version: &str) -> Value {
        let client = json!({ "name": "test", "version": "1" });
        let hello = json!({ "protocolVersion": version, "capabilities": {}, "clientInfo": client });
        let answer = self.request("initialize", &hello);
        self.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        answer["result"].clone()
    }

    pub(crate) fn send(&mut self, message: &Value) {
        self.stdio.write(format!("{message}\n").as_bytes());
    }

    /// Sends a request. Gives its id.
    pub(crate) fn begin(&mut self, method: &str, params: &Value) -> u32 {
        self.next_id += 1;
        self.send(&json!({ "jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params }));
        self.next_id
    }

    pub(crate) fn begin_call(&mut self, tool: &str, arguments: &Value) -> u32 {
        self.begin("tools/call", &json!({ "name": tool, "arguments": arguments }))
    }

    #[track_caller]
    pub(crate) fn message(&self) -> Value {
        serde_json::from_slice(&self.stdio.line()).expect("JSON")
    }

    /// The answer to a request.
    #[track_caller]
    pub(crate) fn answer(&mut self, id: u32) -> Value {
        loop {
            let message = self.message();
            if message.get("id").is_some() {
                assert_eq!(message["id"], id, "{message}");
                return message;
            }
            self.notifications.push(message);
        }
    }

    #[track_caller]
    pub(crate) fn request(&mut self, method: &str, params: &Value) -> Value {
        let id = self.begin(method, params);
        self.answer(id)
    }

    /// Calls a tool. Gives whether it failed, and its text.
    #[track_caller]
    pub(crate) fn try_call(&mut self, tool: &str, arguments: &Value) -> (bool, String) {
        let id = self.begin_call(tool, arguments);
        text_of(&self.answer(id))
    }

    #[track_caller]
    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> String {
        let (failed, text) = self.try_call(tool, arguments);
        assert!(!failed, "{text}");
        text
    }

    /// The next notification of this method.
    #[track_caller]
    pub(crate) fn notification(&mut self, method: &str) -> Value {
        let is_it = |message: &Value| message["method"] == method;
        loop {
            if let Some(at) = self.notifications.iter().position(is_it) {
                return self.notifications.remove(at)["params"].clone();
            }
            let message = self.message();
            assert!(message.get("id").is_none(), "{message}");
            self.notifications.push(message);
        }
    }
}

/// Whether a tool failed, and its text. There is one text, and nothing that clients would show in its place.
#[track_caller]
pub(crate) fn text_of(answer: &Value) -> (bool, String) {
    let result = &answer["result"];
    assert_eq!(result["content"].as_array().map(Vec::len), Some(1), "{answer}");
    assert_eq!(result.get("structuredContent").or(result.get("_meta")), None, "{answer}");
    let text = result["content"][0]["text"].as_str().expect("a text");
    (result["isError"] == true, text.to_owned())
}

/// The id of the one question that is open.
#[track_caller]
pub(crate) fn open_question(environment: &TestEnvironment) -> String {
    let mut id = None;
    until("a question is open", || {
        let open = read_json(&environment.run(&["questions", "--json"]));
        id = open[0]["question_id"].as_str().map(str::to_owned);
        id.is_some()
    });
    id.expect("it is open")
}
