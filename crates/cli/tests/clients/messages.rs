//! The Messages API, as Claude Code 2.1.325 speaks it.

use serde_json::{Value, json};

use crate::model::{Answer, Wire};

pub(crate) struct Messages;

impl Wire for Messages {
    fn is_turn(&self, path: &str, body: &Value) -> bool {
        let tools = body["tools"].as_array().map_or(&[][..], Vec::as_slice);
        path.split('?').next() == Some("/v1/messages") && tools.iter().any(|tool| tool["name"] == "Bash")
    }

    fn events(&self, answer: &Answer, number: usize) -> Vec<Value> {
        let mut events = vec![json!({ "type": "message_start", "message": {
            "id": format!("msg_{number}"), "type": "message", "role": "assistant", "model": "stand-in",
            "content": [], "stop_reason": null, "stop_sequence": null, "usage": usage(),
        } })];
        let start =
            |block: Value| json!({ "type": "content_block_start", "index": 0, "content_block": block });
        let delta = |delta: Value| json!({ "type": "content_block_delta", "index": 0, "delta": delta });
        let reason = match answer {
            Answer::Tool { name, input } => {
                let id = format!("toolu_{number}");
                events.push(start(json!({ "type": "tool_use", "id": id, "name": name, "input": {} })));
                events.push(delta(json!({ "type": "input_json_delta", "partial_json": input.to_string() })));
                "tool_use"
            }
            Answer::Text(text) => {
                events.push(start(json!({ "type": "text", "text": "" })));
                let words = text.split_inclusive(' ');
                events.extend(words.map(|word| delta(json!({ "type": "text_delta", "text": word }))));
                "end_turn"
            }
            Answer::Error { .. } => return Vec::new(),
        };
        events.push(json!({ "type": "content_block_stop", "index": 0 }));
        let end = json!({ "stop_reason": reason, "stop_sequence": null });
        events.push(json!({ "type": "message_delta", "delta": end, "usage": { "output_tokens": 10 } }));
        events.push(json!({ "type": "message_stop" }));
        events
    }

    fn aside(&self, path: &str) -> Option<Value> {
        if path.contains("count_tokens") {
            return Some(json!({ "input_tokens": 100 }));
        }
        Some(json!({
            "id": "msg_aside", "type": "message", "role": "assistant", "model": "stand-in", "usage": usage(),
            "content": [{ "type": "text", "text": "{\"title\": \"a title\"}" }],
            "stop_reason": "end_turn", "stop_sequence": null,
        }))
    }

    fn news(&self, body: &Value) -> Vec<Value> {
        let messages = body["messages"].as_array().map_or(&[][..], Vec::as_slice);
        let last = messages.iter().rposition(|message| message["role"] == "assistant");
        messages[last.map_or(0, |at| at + 1)..].to_vec()
    }
}

fn usage() -> Value {
    json!({
        "input_tokens": 100, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 10,
    })
}
