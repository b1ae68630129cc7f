//! Any other endpoint: it gets the whole notification as JSON.

use ureq::http::Uri;

use super::secret::Secret;
use super::service::{Request, Service};
use crate::note::Note;

/// Ringer's own format.
pub(super) struct Json;

impl Service for Json {
    fn name(&self) -> &'static str {
        "json"
    }

    fn request(&self, address: &Uri, secret: Option<&Secret>, note: &Note) -> Request {
        // A note is plain strings; there is nothing in it that could fail.
        let mut body = serde_json::to_value(note).unwrap_or_default();
        body["version"] = 1.into();
        Request::new(address, secret, body)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::note::example;
    use crate::webhook::service::request_of;

    #[test]
    fn it_is_the_whole_note() {
        let note = example();
        let request = request_of(&Json, "http://127.0.0.1:9/hook?x=1", None, &note);
        assert_eq!(request.url, "http://127.0.0.1:9/hook?x=1");
        assert_eq!(
            request.body,
            json!({"version": 1, "id": note.id.as_str(), "kind": "question", "sender": "claude-1a2b",
                   "title": "Claude Code", "subtitle": "ringer", "body": "May I?", "workspace": "w1",
                   "surface": "s1"})
        );
    }
}
