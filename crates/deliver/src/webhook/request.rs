//! The request for each service. Pure: an address and a note in, a request out.

use std::net::IpAddr;

use ringer_core::message::ShownKind;
use ringer_term::{escape_json, sanitise_text};
use serde_json::{Value, json};
use ureq::http::Uri;

use crate::error::Error;
use crate::note::Note;

/// Discord's limit, in characters.
const MAX_DISCORD: usize = 2000;
/// Slack truncates or rejects much longer messages. In characters.
const MAX_SLACK: usize = 4000;
/// ntfy turns longer messages into attachments. In bytes.
const MAX_NTFY: usize = 4000;
/// The longest heading, in characters.
const MAX_HEADING: usize = 200;

/// The service behind a webhook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Service {
    /// ntfy.sh or a self-hosted server; the address names the topic.
    Ntfy,
    /// A Slack incoming webhook.
    Slack,
    /// A Discord webhook.
    Discord,
    /// The whole notification as JSON.
    Json,
}

/// A request. It has no `Debug`, because the address may be a secret.
#[derive(Clone, PartialEq, Eq)]
pub struct WebhookRequest {
    /// The address.
    pub url: String,
    /// The host, for errors.
    pub host: String,
    /// Additional headers.
    pub headers: Vec<(&'static str, String)>,
    /// The JSON body.
    pub body: String,
}

impl WebhookRequest {
    /// Builds the request for a note.
    pub fn build(service: Service, url: &str, note: &Note) -> Result<Self, Error> {
        let uri: Uri = url.trim().parse().map_err(|_| Error::Address("it is not a URL"))?;
        if !matches!(uri.scheme_str(), Some("http" | "https")) {
            return Err(Error::Address("it must begin with https:// or http://"));
        }
        // The receiver decodes the JSON escapes and shows the characters that they stand for.
        let note = &Note {
            title: sanitise_text(&note.title),
            subtitle: sanitise_text(&note.subtitle),
            body: sanitise_text(&note.body),
            ..note.clone()
        };
        let host = uri.host().filter(|host| !host.is_empty()).ok_or(Error::Address("it names no host"))?;
        let (url, body) = match service {
            Service::Ntfy => {
                let (root, topic) = ntfy_address(&uri)?;
                (root, ntfy(topic, note))
            }
            Service::Slack => (uri.to_string(), slack(note)),
            Service::Discord => (uri.to_string(), discord(note)),
            Service::Json => (uri.to_string(), generic(note)),
        };
        // Lets a receiver drop a request that it has already got.
        let headers = vec![("X-Ringer-Id", header_safe(note.id.as_str()))];
        Ok(Self { url, host: host.to_owned(), headers, body: escape_json(&body.to_string()).into_owned() })
    }

    pub(super) fn is_loopback(&self) -> bool {
        let host = self.host.trim_start_matches('[').trim_end_matches(']');
        host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
    }
}

/// Headers are ASCII. They carry ids, which other programs may have chosen.
fn header_safe(text: &str) -> String {
    text.chars().filter(char::is_ascii_graphic).collect()
}

/// Splits the address of a topic into the address of the server and the name of the topic. Publishing JSON to the server, and not
/// text to the topic, keeps hostile text out of headers.
fn ntfy_address(uri: &Uri) -> Result<(String, &str), Error> {
    let (before, topic) = uri.path().trim_end_matches('/').rsplit_once('/').unwrap_or_default();
    if topic.is_empty() {
        return Err(Error::Address("it names no topic, as in https://ntfy.sh/my-topic"));
    }
    let scheme = uri.scheme_str().unwrap_or("https");
    let authority = uri.authority().map_or("", |authority| authority.as_str());
    let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    Ok((format!("{scheme}://{authority}{before}/{query}"), topic))
}

fn ntfy(topic: &str, note: &Note) -> Value {
    let body = sanitise_text(&note.text_below_heading());
    let end = body.floor_char_boundary(MAX_NTFY);
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
    json!({
        "topic": topic,
        "title": heading(note),
        "message": body[..end],
        "priority": priority,
        "tags": [tag, note.kind.as_str()],
    })
}

/// Escapes `<`: in Slack's markup, `<!channel>` would notify all members.
fn slack(note: &Note) -> Value {
    let text = cut(&plain(note), MAX_SLACK);
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    json!({ "text": text, "mrkdwn": false, "unfurl_links": false })
}

fn discord(note: &Note) -> Value {
    json!({ "content": cut(&plain(note), MAX_DISCORD), "allowed_mentions": { "parse": [] } })
}

fn generic(note: &Note) -> Value {
    // A note is plain strings; there is nothing in it that could fail.
    let mut value = serde_json::to_value(note).unwrap_or_default();
    value["version"] = 1.into();
    value
}

/// Heading and text, one below the other.
fn plain(note: &Note) -> String {
    match sanitise_text(&note.text_below_heading()) {
        body if body.is_empty() => heading(note),
        body => format!("{}\n{body}", heading(note)),
    }
}

fn heading(note: &Note) -> String {
    cut(&sanitise_text(&note.heading().replace(['\n', '\r'], " ")), MAX_HEADING)
}

/// At most `most` characters; the last one is an ellipsis if the text was cut.
fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::note::example;

    fn built(service: Service, url: &str, note: &Note) -> (WebhookRequest, Value) {
        let Ok(request) = WebhookRequest::build(service, url, note) else { panic!("{url}") };
        let body = serde_json::from_str(&request.body).unwrap();
        (request, body)
    }

    #[test]
    fn ntfy_publishes_json_to_the_server() {
        let hostile = Note { title: "päth\r\nX-Evil: 1".into(), ..example() };
        let (request, body) = built(Service::Ntfy, "https://ntfy.example:8443/a/topic?auth=x", &hostile);
        assert_eq!(request.url, "https://ntfy.example:8443/a/?auth=x");
        assert_eq!(request.host, "ntfy.example");
        assert_eq!(
            body,
            json!({"topic": "topic", "title": "päth X-Evil: 1", "message": "ringer\nMay I?", "priority": 4,
                   "tags": ["question", "question"]})
        );
        assert!(request.headers.iter().all(|(_, value)| value.is_ascii()));
        let long = Note { body: "é".repeat(5000), ..example() };
        let (_, body) = built(Service::Ntfy, "https://ntfy.sh/t", &long);
        assert!(body["message"].as_str().unwrap().len() <= MAX_NTFY);
    }

    #[test]
    fn slack_and_discord_mention_no_person() {
        let note = Note { body: "<!channel> & @everyone".into(), ..example() };
        let (_, slack) = built(Service::Slack, "https://hooks.slack.example/T/B/x", &note);
        assert_eq!(slack["text"], "Claude Code\nringer\n&lt;!channel&gt; &amp; @everyone");
        let (_, discord) = built(Service::Discord, "https://discord.example/api/webhooks/1/x", &note);
        assert_eq!(discord["allowed_mentions"], json!({"parse": []}));
        assert_eq!(discord["content"], "Claude Code\nringer\n<!channel> & @everyone");
        let long = Note { body: "ü".repeat(3000), ..example() };
        let (_, discord) = built(Service::Discord, "https://discord.example/x", &long);
        assert_eq!(discord["content"].as_str().unwrap().chars().count(), 2000);
    }

    #[test]
    fn json_is_the_whole_of_it() {
        let note = example();
        let (request, body) = built(Service::Json, "http://127.0.0.1:9/hook?x=1", &note);
        assert_eq!(request.url, "http://127.0.0.1:9/hook?x=1");
        assert_eq!(
            body,
            json!({"version": 1, "id": note.id.as_str(), "kind": "question", "sender": "claude-1a2b",
                   "title": "Claude Code", "subtitle": "ringer", "body": "May I?", "workspace": "w1",
                   "surface": "s1"})
        );
        assert!(request.is_loopback());
    }

    #[test]
    fn addresses_that_cannot_be_used_are_not_repeated() {
        for url in
            ["", "ftp://h/x", "https://", "/hook", "not an address", "file:///secret", "https://ntfy.sh/"]
        {
            let Err(error) = WebhookRequest::build(Service::Ntfy, url, &example()) else { panic!("{url}") };
            let error = error.to_string();
            assert!(
                error.starts_with("the webhook's url is invalid") && !error.contains("secret"),
                "{error}"
            );
        }
    }

    #[test]
    fn loopback_is_known() {
        for (url, expected) in [
            ("http://localhost/x", true),
            ("http://[::1]:80/x", true),
            ("http://127.9.9.9/x", true),
            ("http://example.org/x", false),
            ("http://10.0.0.1/x", false),
        ] {
            assert_eq!(built(Service::Json, url, &example()).0.is_loopback(), expected, "{url}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_breaks_a_request(title in ".*", body in r"(?s).*[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}]{0,9}") {
            let note = Note { title, body, ..example() };
            for service in [Service::Ntfy, Service::Slack, Service::Discord, Service::Json] {
                let (request, body) = built(service, "https://example.org/topic", &note);
                proptest::prop_assert!(body.is_object() && request.headers.iter().all(|(_, v)| v.is_ascii()));
                proptest::prop_assert_eq!(escape_json(&request.body), request.body.as_str());
                // Nor does it turn around or hide what is read.
                for text in body.as_object().into_iter().flat_map(serde_json::Map::values) {
                    let text = text.as_str().unwrap_or_default();
                    proptest::prop_assert_eq!(sanitise_text(text), text);
                }
            }
        }
    }
}
