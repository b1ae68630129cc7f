//! The Gemini API, as Gemini CLI 0.61.0 speaks it.

use serde_json::{Value, json};
use test_support::{Answer, Wire};

pub(crate) struct GenerateContent;

impl Wire for GenerateContent {
    fn is_turn(&self, path: &str, body: &Value) -> bool {
        let has_tools = body["tools"].as_array().is_some_and(|tools| !tools.is_empty());
        path.contains(":streamGenerateContent") && has_tools
    }

    fn events(&self, answer: &Answer, number: usize) -> Vec<Value> {
        let part = match answer {
            Answer::Tool { name, input } => {
                json!({ "functionCall": { "id": format!("call_{number}"), "name": name, "args": input } })
            }
            Answer::Text(text) => json!({ "text": text }),
            Answer::Tools(_) | Answer::Error { .. } => return Vec::new(),
        };
        vec![response(&part, number)]
    }

    fn aside(&self, path: &str) -> Option<Value> {
        if path.contains(":countTokens") {
            return Some(json!({ "totalTokens": 100 }));
        }
        // Who speaks next, which model is for what: JSON in a text.
        let text = json!({ "reasoning": "none", "next_speaker": "user" }).to_string();
        Some(response(&json!({ "text": text }), 0))
    }

    fn news(&self, body: &Value) -> Vec<Value> {
        let contents = body["contents"].as_array().map_or(&[][..], Vec::as_slice);
        let last = contents.iter().rposition(|content| content["role"] == "model");
        contents[last.map_or(0, |at| at + 1)..].to_vec()
    }
}

fn response(part: &Value, number: usize) -> Value {
    json!({
        "candidates": [{
            "index": 0, "finishReason": "STOP", "content": { "role": "model", "parts": [part] },
        }],
        "usageMetadata": { "promptTokenCount": 100, "candidatesTokenCount": 10, "totalTokenCount": 110 },
        "modelVersion": "stand-in", "responseId": format!("response_{number}"),
    })
}
