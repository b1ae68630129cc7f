//! Discord's webhooks.

use serde_json::json;
use ureq::http::Uri;

use super::secret::Secret;
use super::service::{Request, Service, plain_text};
use crate::note::Note;

/// Discord's limit, in characters.
const MAX_TEXT: usize = 2000;

/// The address is a password.
pub(super) struct Discord;

impl Service for Discord {
    fn name(&self) -> &'static str {
        "discord"
    }

    fn request(&self, address: &Uri, secret: Option<&Secret>, note: &Note) -> Request {
        let text = plain_text(note, MAX_TEXT);
        Request::new(address, secret, json!({ "content": text, "allowed_mentions": { "parse": [] } }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::note::example;
    use crate::webhook::service::request_of;

    #[test]
    fn mentions_no_person_and_is_cut() {
        let note = Note { body: "<!channel> & @everyone".into(), ..example() };
        let request = request_of(&Discord, "https://discord.example/api/webhooks/1/x", None, &note);
        assert_eq!(request.body["allowed_mentions"], json!({"parse": []}));
        assert_eq!(request.body["content"], "Claude Code\nringer\n<!channel> & @everyone");
        let long = Note { body: "ü".repeat(3000), ..example() };
        let request = request_of(&Discord, "https://discord.example/x", None, &long);
        assert_eq!(request.body["content"].as_str().unwrap().chars().count(), 2000);
    }
}
