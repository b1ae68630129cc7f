//! Slack's incoming webhooks.

use serde_json::json;
use ureq::http::Uri;

use super::secret::Secret;
use super::service::{Request, Service, plain_text};
use crate::note::Note;

/// Slack truncates or rejects much longer messages. In characters.
const MAX_TEXT: usize = 4000;

/// The address is a password.
pub(super) struct Slack;

impl Service for Slack {
    fn name(&self) -> &'static str {
        "slack"
    }

    /// Escapes `<`: in Slack's markup, `<!channel>` would notify all members.
    fn request(&self, address: &Uri, secret: Option<&Secret>, note: &Note) -> Request {
        let text = plain_text(note, MAX_TEXT);
        let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        Request::new(address, secret, json!({ "text": text, "mrkdwn": false, "unfurl_links": false }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::note::example;
    use crate::webhook::service::request_of;

    #[test]
    fn mentions_no_person() {
        let note = Note { body: "<!channel> & @everyone".into(), ..example() };
        let request = request_of(&Slack, "https://hooks.slack.example/T/B/x", None, &note);
        assert_eq!(request.url, "https://hooks.slack.example/T/B/x");
        assert_eq!(request.body["text"], "Claude Code\nringer\n&lt;!channel&gt; &amp; @everyone");
    }
}
