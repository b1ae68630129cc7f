//! The services that webhooks can send to: the trait, what several of them use, and those that need only a few lines.

use std::time::Duration;

use ringer_core::message::ShownKind;
use ringer_term::sanitise_text;
use serde_json::{Value, json};
use ureq::http::{StatusCode, Uri};

use super::secret::Secret;
use crate::note::Note;

/// The longest heading, in characters.
const MAX_HEADING: usize = 200;

/// A service that receives notifications over HTTP.
pub(super) trait Service: Sync {
    /// The word for it in the settings.
    fn name(&self) -> &'static str;

    /// Checks an address whose scheme and host are valid. An error says what is missing and what to write. It does not repeat
    /// the address, which may be a password.
    fn check(&self, _address: &Uri, _has_secret: bool) -> Result<(), &'static str> {
        Ok(())
    }

    /// Checks the content of the secret file. An error does not repeat it.
    fn check_secret(&self, _secret: &str) -> Result<(), &'static str> {
        Ok(())
    }

    /// Builds the request for a note. Address and secret have been checked; the texts of the note are sanitised.
    fn request(&self, address: &Uri, secret: Option<&Secret>, note: &Note) -> Request;

    /// Reads the answer.
    fn read_answer(&self, status: StatusCode, body: &[u8]) -> Result<(), Refusal> {
        if status.is_success() {
            return Ok(());
        }
        Err(Refusal { why: String::from_utf8_lossy(body).into_owned(), pause: None })
    }
}

/// A request. It has no `Debug`, because the address may be a secret.
pub(super) struct Request {
    pub(super) url: String,
    pub(super) body: Value,
    /// The value of the `Authorization` header.
    pub(super) authorization: Option<String>,
    /// Texts that no error may contain: the server may repeat them in its answer.
    pub(super) hidden: Vec<String>,
}

impl Request {
    /// A request with the secret in the `Authorization` header.
    pub(super) fn new(url: &impl ToString, secret: Option<&Secret>, body: Value) -> Self {
        Self {
            url: url.to_string(),
            body,
            authorization: secret.map(|secret| format!("Bearer {}", secret.as_str())),
            hidden: secret.map(|secret| secret.as_str().to_owned()).into_iter().collect(),
        }
    }
}

/// A notification that the server did not accept.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    /// The server's reason; may be empty. Its first line is shown.
    pub(super) why: String,
    /// The pause that the answer's body asks for. Without it, the header `Retry-After` counts.
    pub(super) pause: Option<Duration>,
}

/// Builds the request for a note.
pub(super) fn build(service: &dyn Service, address: &Uri, secret: Option<&Secret>, note: &Note) -> Request {
    // The receiver decodes the JSON escapes and shows the characters that they stand for.
    let note = Note {
        title: sanitise_text(&note.title),
        subtitle: sanitise_text(&note.subtitle),
        body: sanitise_text(&note.body),
        ..note.clone()
    };
    service.request(address, secret, &note)
}

/// Heading and text, one below the other, with at most `most` characters.
pub(super) fn plain_text(note: &Note, most: usize) -> String {
    let text = match sanitise_text(&note.text_below_heading()) {
        body if body.is_empty() => heading(note),
        body => format!("{}\n{body}", heading(note)),
    };
    cut(&text, most)
}

/// The heading as one line.
pub(super) fn heading(note: &Note) -> String {
    cut(&sanitise_text(&note.heading().replace(['\n', '\r'], " ")), MAX_HEADING)
}

/// At most `most` characters; the last one is an ellipsis if the text was cut.
fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most - 1).chain(['…']).collect()
}

/// Builds a request as the settings give it.
#[cfg(test)]
pub(super) fn request_of(service: &dyn Service, url: &str, secret: Option<&str>, note: &Note) -> Request {
    let url: Uri = url.parse().unwrap();
    service.check(&url, secret.is_some()).unwrap();
    let secret = secret.map(|text| Secret::new(text.to_owned()));
    build(service, &url, secret.as_ref(), note)
}

/// Any other endpoint: it gets the whole notification as JSON.
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

/// ntfy turns longer messages into attachments. In bytes.
const NTFY_MAX_TEXT: usize = 4000;

/// ntfy.sh, or a self-hosted server. The address names the topic.
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
        let end = body.floor_char_boundary(NTFY_MAX_TEXT);
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

/// Slack truncates or rejects much longer messages. In characters.
const SLACK_MAX_TEXT: usize = 4000;

/// Slack's incoming webhooks. The address is a password.
pub(super) struct Slack;

impl Service for Slack {
    fn name(&self) -> &'static str {
        "slack"
    }

    /// Escapes `<`: in Slack's markup, `<!channel>` would notify all members.
    fn request(&self, address: &Uri, secret: Option<&Secret>, note: &Note) -> Request {
        let text = plain_text(note, SLACK_MAX_TEXT);
        let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        Request::new(address, secret, json!({ "text": text, "mrkdwn": false, "unfurl_links": false }))
    }
}

/// Discord's limit, in characters.
const DISCORD_MAX_TEXT: usize = 2000;

/// Discord's webhooks. The address is a password.
pub(super) struct Discord;

impl Service for Discord {
    fn name(&self) -> &'static str {
        "discord"
    }

    fn request(&self, address: &Uri, secret: Option<&Secret>, note: &Note) -> Request {
        let text = plain_text(note, DISCORD_MAX_TEXT);
        Request::new(address, secret, json!({ "content": text, "allowed_mentions": { "parse": [] } }))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::note::example;

    #[test]
    fn json_has_the_whole_note() {
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

    #[test]
    fn ntfy_gets_json_at_the_address_of_the_server() {
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
        assert!(request.body["message"].as_str().unwrap().len() <= NTFY_MAX_TEXT);
        assert_eq!(request.authorization, None);
    }

    #[test]
    fn ntfy_refuses_an_address_without_a_topic() {
        let check = |url: &str, expected: bool| {
            assert_eq!(Ntfy.check(&url.parse().unwrap(), false).is_ok(), expected, "{url}");
        };
        check("https://ntfy.sh/x", true);
        check("https://ntfy.sh/x/", true);
        check("https://ntfy.sh/", false);
        check("https://ntfy.sh", false);
        check("https://ntfy.sh?x=/y", false);
    }

    #[test]
    fn slack_mentions_no_person() {
        let note = Note { body: "<!channel> & @everyone".into(), ..example() };
        let request = request_of(&Slack, "https://hooks.slack.example/T/B/x", None, &note);
        assert_eq!(request.url, "https://hooks.slack.example/T/B/x");
        assert_eq!(request.body["text"], "Claude Code\nringer\n&lt;!channel&gt; &amp; @everyone");
    }

    #[test]
    fn discord_mentions_no_person_and_is_cut() {
        let note = Note { body: "<!channel> & @everyone".into(), ..example() };
        let request = request_of(&Discord, "https://discord.example/api/webhooks/1/x", None, &note);
        assert_eq!(request.body["allowed_mentions"], json!({"parse": []}));
        assert_eq!(request.body["content"], "Claude Code\nringer\n<!channel> & @everyone");
        let long = Note { body: "ü".repeat(3000), ..example() };
        let request = request_of(&Discord, "https://discord.example/x", None, &long);
        assert_eq!(request.body["content"].as_str().unwrap().chars().count(), 2000);
    }
}
