//! ntfy.sh, or a self-hosted server.

use ringer_core::message::ShownKind;
use ringer_term::sanitise_text;
use serde_json::json;
use ureq::http::Uri;

use super::secret::Secret;
use super::service::{Request, Service, heading};
use crate::note::Note;

/// ntfy turns longer messages into attachments. In bytes.
const MAX_TEXT: usize = 4000;

/// The address names the topic.
pub(super) struct Ntfy;

impl Service for Ntfy {
    fn name(&self) -> &'static str {
        "ntfy"
    }

    fn check(&self, address: &Uri, _has_secret: bool) -> Result<(), &'static str> {
        let (_, topic) = split(address);
        if topic.is_empty() { Err("it names no topic, as in https://ntfy.sh/my-topic") } else { Ok(()) }
    }

    fn request(&self, address: &Uri, secret: Option<&Secret>, note: &Note) -> Request {
        let (server, topic) = split(address);
        let body = sanitise_text(&note.text_below_heading());
        let end = body.floor_char_boundary(MAX_TEXT);
        let (priority, tag) = match note.kind {
            ShownKind::Error => (5, "rotating_light"),
            ShownKind::Question => (4, "question"),
            ShownKind::Permission => (4, "key"),
            ShownKind::Waiting => (4, "hourglass"),
            ShownKind::Stuck => (4, "warning"),
            ShownKind::Complete => (3, "white_check_mark"),
            ShownKind::Idle => (2, "zzz"),
            ShownKind::Status => (2, "information_source"),
        };
        let body = json!({
            "topic": topic,
            "title": heading(note),
            "message": body[..end],
            "priority": priority,
            "tags": [tag, note.kind.as_str()],
        });
        Request::new(&server, secret, body)
    }
}

/// Splits the address of a topic into the address of the server and the name of the topic. Publishing JSON to the server, and not
/// text to the topic, keeps hostile text out of headers.
fn split(address: &Uri) -> (String, &str) {
    let (before, topic) = address.path().trim_end_matches('/').rsplit_once('/').unwrap_or_default();
    let scheme = address.scheme_str().unwrap_or("https");
    let authority = address.authority().map_or("", |authority| authority.as_str());
    let query = address.query().map(|query| format!("?{query}")).unwrap_or_default();
    (format!("{scheme}://{authority}{before}/{query}"), topic)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::note::example;
    use crate::webhook::service::request_of;

    #[test]
    fn publishes_json_to_the_server() {
        let hostile = Note { title: "päth\r\nX-Evil: 1".into(), ..example() };
        let request =
            request_of(&Ntfy, "https://ntfy.example:8443/a/topic?auth=x", Some("hunter2"), &hostile);
        assert_eq!(request.url, "https://ntfy.example:8443/a/?auth=x");
        assert_eq!(request.authorization.as_deref(), Some("Bearer hunter2"));
        assert_eq!(
            request.body,
            json!({"topic": "topic", "title": "päth X-Evil: 1", "message": "ringer\nMay I?", "priority": 4,
                   "tags": ["question", "question"]})
        );
        let long = Note { body: "é".repeat(5000), ..example() };
        let request = request_of(&Ntfy, "https://ntfy.sh/t", None, &long);
        assert!(request.body["message"].as_str().unwrap().len() <= MAX_TEXT);
        assert_eq!(request.authorization, None);
    }

    #[test]
    fn an_address_without_a_topic() {
        let check = |url: &str, expected: bool| {
            assert_eq!(Ntfy.check(&url.parse().unwrap(), false).is_ok(), expected, "{url}");
        };
        check("https://ntfy.sh/x", true);
        check("https://ntfy.sh/x/", true);
        check("https://ntfy.sh/", false);
        check("https://ntfy.sh", false);
        check("https://ntfy.sh?x=/y", false);
    }
}
