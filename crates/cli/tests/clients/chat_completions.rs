//! The Chat Completions API, as opencode 1.18.33 and Copilot CLI 1.0.102 speak it.

use serde_json::{Value, json};
use test_support::{Answer, Wire};

pub(crate) struct ChatCompletions;

impl Wire for ChatCompletions {
    fn is_turn(&self, path: &str, body: &Value) -> bool {
        // What makes titles has no tools.
        path == "/v1/chat/completions" && body["tools"].as_array().is_some_and(|tools| !tools.is_empty())
    }

    fn events(&self, answer: &Answer, number: usize) -> Vec<Value> {
        let call = |(index, (name, input)): (usize, (&str, &Value))| {
            let function = json!({ "name": name, "arguments": input.to_string() });
            let id = format!("call_{number}_{index}");
            json!({ "index": index, "id": id, "type": "function", "function": function })
        };
        let calls: Vec<Value> = match answer {
            Answer::Tool { name, input } => vec![call((0, (name, input)))],
            Answer::Tools(tools) => {
                let tools = tools.iter().map(|(name, input)| (*name, input));
                tools.enumerate().map(call).collect()
            }
            Answer::Text(_) => Vec::new(),
            Answer::Error { .. } => return Vec::new(),
        };
        let (delta, reason) = match answer {
            Answer::Text(text) => (json!({ "role": "assistant", "content": text }), "stop"),
            _ => (json!({ "role": "assistant", "content": null, "tool_calls": calls }), "tool_calls"),
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
