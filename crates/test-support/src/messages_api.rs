//! The Messages API, as Claude Code 2.1.325 speaks it.

use serde_json::{Value, json};

use crate::model::{Answer, Wire};

/// The Messages API, as used by Claude Code and other clients.
#[derive(Debug)]
pub struct Messages;

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
        let reason = match answer {
            Answer::Tool { name, input } => {
                events.extend(tool_call(number, 0, name, input));
                "tool_use"
            }
            Answer::Tools(calls) => {
                let calls = calls.iter().enumerate();
                events.extend(calls.flat_map(|(index, (name, input))| tool_call(number, index, name, input)));
                "tool_use"
            }
            Answer::Text(text) => {
                let words = text.split_inclusive(' ');
                let words = words.map(|word| json!({ "type": "text_delta", "text": word }));
                events.extend(block(0, &json!({ "type": "text", "text": "" }), words));
                "end_turn"
            }
            Answer::Error { .. } => return Vec::new(),
        };
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

fn tool_call(number: usize, index: usize, name: &str, input: &Value) -> Vec<Value> {
    let call =
        json!({ "type": "tool_use", "id": format!("toolu_{number}_{index}"), "name": name, "input": {} });
    block(index, &call, [json!({ "type": "input_json_delta", "partial_json": input.to_string() })])
}

/// Returns the events that stream one content block in pieces.
fn block(index: usize, begun: &Value, pieces: impl IntoIterator<Item = Value>) -> Vec<Value> {
    let start = json!({ "type": "content_block_start", "index": index, "content_block": begun });
    let piece = |delta| json!({ "type": "content_block_delta", "index": index, "delta": delta });
    let stop = json!({ "type": "content_block_stop", "index": index });
    [start].into_iter().chain(pieces.into_iter().map(piece)).chain([stop]).collect()
}

fn usage() -> Value {
    json!({
        "input_tokens": 100, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 10,
    })
}
