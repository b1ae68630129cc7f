//! The Responses API, as Codex 0.166.0 speaks it.

use serde_json::{Value, json};
use test_support::{Answer, Wire};

pub(crate) struct Responses;

impl Wire for Responses {
    fn is_turn(&self, path: &str, body: &Value) -> bool {
        // The thread that makes titles has no tools.
        path == "/v1/responses" && body["tools"].as_array().is_some_and(|tools| !tools.is_empty())
    }

    fn events(&self, answer: &Answer, number: usize) -> Vec<Value> {
        let item = match answer {
            Answer::Tool { name, input } => {
                let mut call = json!({
                    "type": "function_call", "id": format!("fc_{number}"), "call_id": format!("call_{number}"),
                    "name": name, "arguments": input.to_string(), "status": "completed",
                });
                // The tools of an MCP server are in a namespace.
                let of_server = name.rsplit_once("__").filter(|_| name.starts_with("mcp__"));
                if let Some((namespace, name)) = of_server {
                    call["namespace"] = namespace.into();
                    call["name"] = name.into();
                }
                call
            }
            Answer::Text(text) => json!({
                "type": "message", "id": format!("msg_{number}"), "role": "assistant", "status": "completed",
                "content": [{ "type": "output_text", "text": text, "annotations": [] }],
            }),
            Answer::Tools(_) | Answer::Error { .. } => return Vec::new(),
        };
        let response = |status: &str, output: Value| {
            json!({
                "id": format!("resp_{number}"), "object": "response", "model": "stand-in",
                "status": status, "output": output, "usage": {
                    "input_tokens": 100, "input_tokens_details": { "cached_tokens": 0 },
                    "output_tokens": 10, "output_tokens_details": { "reasoning_tokens": 0 },
                    "total_tokens": 110,
                },
            })
        };
        vec![
            json!({ "type": "response.created", "response": response("in_progress", json!([])) }),
            json!({ "type": "response.output_item.added", "output_index": 0, "item": item }),
            json!({ "type": "response.output_item.done", "output_index": 0, "item": item }),
            json!({ "type": "response.completed", "response": response("completed", json!([item])) }),
        ]
    }

    fn aside(&self, _path: &str) -> Option<Value> {
        Some(json!({ "object": "list", "data": [], "models": [] }))
    }

    fn news(&self, body: &Value) -> Vec<Value> {
        let items = body["input"].as_array().map_or(&[][..], Vec::as_slice);
        let of_model = |item: &Value| item["role"] == "assistant" || item["type"] == "function_call";
        let last = items.iter().rposition(of_model);
        items[last.map_or(0, |at| at + 1)..].to_vec()
    }
}
