//! The Chat Completions API, as opencode 1.18.33 speaks it.

use serde_json::{Value, json};
use test_support::{Answer, Wire};

pub(crate) struct ChatCompletions;

impl Wire for ChatCompletions {
    fn is_turn(&self, path: &str, body: &Value) -> bool {
        // What makes titles has no tools.
        path == "/v1/chat/completions" && body["tools"].as_array().is_some_and(|tools| !tools.is_empty())
    }

    fn events(&self, answer: &Answer, number: usize) -> Vec<Value> {
        let (delta, reason) = match answer {
            Answer::Tool { name, input } => {
                let function = json!({ "name": name, "arguments": input.to_string() });
                let id = format!("call_{number}");
                let call = json!({ "index": 0, "id": id, "type": "function", "function": function });
                (json!({ "role": "assistant", "content": null, "tool_calls": [call] }), "tool_calls")
            }
            Answer::Text(text) => (json!({ "role": "assistant", "content": text }), "stop"),
            Answer::Tools(_) | Answer::Error { .. } => return Vec::new(),
        };
        let chunk = |delta: Value, reason: Value| {
            json!({
                "id": format!("chatcmpl_{number}"), "object": "chat.completion.chunk", "created": 0,
                "model": "stand-in",
                "choices": [{ "index": 0, "delta": delta, "finish_reason": reason }],
            })
        };
        vec![chunk(delta, Value::Null), chunk(json!({}), json!(reason))]
    }

    fn aside(&self, _path: &str) -> Option<Value> {
        None
    }

    fn news(&self, body: &Value) -> Vec<Value> {
        let messages = body["messages"].as_array().map_or(&[][..], Vec::as_slice);
        let last = messages.iter().rposition(|message| message["role"] == "assistant");
        messages[last.map_or(0, |at| at + 1)..].to_vec()
    }
}
