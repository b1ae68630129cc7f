//! The trait of the services that webhooks can send to, and what several of them use.

use std::time::Duration;

use ringer_term::sanitise_text;
use serde_json::Value;
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
