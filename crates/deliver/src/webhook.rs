//! Webhooks: ntfy, Slack, Discord, or anything that takes JSON.
//!
//! A redirect is an error: following it would send the text, and perhaps the secret, to a host the person did not name.
//! Addresses and secrets appear in no error: an address of Slack or Discord is a password in itself.

mod request;
mod secret;

use std::fmt;
use std::io::Read;
use std::time::Duration;

use ringer_core::message::ShownKind;
use ureq::Body;
use ureq::http::header::RETRY_AFTER;
use ureq::http::{Response, StatusCode};

use crate::error::Error;
use crate::note::Note;
use crate::program::first_line;

use secret::Secret;

pub use request::{Service, WebhookRequest};
pub use secret::{MAX_SECRET, SecretFile};

/// The timeout of one attempt, from the name lookup to the last byte of the response.
pub const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(10);

/// An HTTP endpoint that gets notifications.
#[derive(Clone)]
pub struct Webhook {
    /// The service, which determines the format of the request.
    pub kind: Service,
    /// The address.
    pub url: String,
    /// The file with the secret for the `Authorization` header, if any.
    pub secret: Option<SecretFile>,
    /// The kinds of notification to send; empty: all.
    pub kinds: Vec<ShownKind>,
    /// The timeout of one attempt, usually [`ATTEMPT_TIMEOUT`].
    pub timeout: Duration,
}

impl fmt::Debug for Webhook {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without the address: a reader of the log could send to it.
        formatter
            .debug_struct("Webhook")
            .field("kind", &self.kind)
            .field("kinds", &self.kinds)
            .finish_non_exhaustive()
    }
}

impl Webhook {
    /// A webhook for every kind of notification, without a secret.
    pub fn new(kind: Service, url: impl Into<String>) -> Self {
        Self { kind, url: url.into(), secret: None, kinds: Vec::new(), timeout: ATTEMPT_TIMEOUT }
    }

    /// Returns true if notifications of this kind are sent.
    pub fn wants(&self, kind: ShownKind) -> bool {
        self.kinds.is_empty() || self.kinds.contains(&kind)
    }

    /// Makes one attempt. After [`Error::Later`] another may succeed.
    pub async fn send(&self, note: &Note) -> Result<(), Error> {
        let request = WebhookRequest::build(self.kind, &self.url, note)?;
        let (secret, timeout) = (self.secret.clone(), self.timeout);
        let host = request.host.clone();
        // Both the file and the network may hang, and neither may hang the caller. A thread that outlives a dropped
        // caller ends with its own timeout.
        let attempt = tokio::task::spawn_blocking(move || attempt(&request, secret.as_ref(), timeout));
        attempt.await.unwrap_or_else(|error| {
            Err(Error::Later { host, why: format!("the attempt broke off: {error}"), after: None })
        })
    }

    /// Makes up to `attempts` attempts. Waits in between as long as the server asks (`Retry-After`), else 1 s, 4 s, 16 s and so
    /// on, up to [`MAX_PAUSE`].
    pub async fn deliver(&self, note: &Note, attempts: u32) -> Result<(), Error> {
        let mut made = 0;
        loop {
            let error = match self.send(note).await {
                Err(error @ Error::Later { .. }) => error,
                done => return done,
            };
            made += 1;
            match pause(made, &error).filter(|_| made < attempts) {
                Some(pause) => tokio::time::sleep(pause).await,
                None => return Err(Error::GaveUp { attempts: made, last: Box::new(error) }),
            }
        }
    }
}

/// Makes one attempt; blocks.
fn attempt(request: &WebhookRequest, secret: Option<&SecretFile>, timeout: Duration) -> Result<(), Error> {
    let secret = secret.map(SecretFile::read).transpose()?;
    let mut config = ureq::Agent::config_builder()
        .max_redirects(0)
        .max_redirects_will_error(false)
        .http_status_as_error(false)
        .timeout_global(Some(timeout))
        .user_agent(concat!("ringer/", env!("CARGO_PKG_VERSION")));
    if request.is_loopback() {
        // A proxy from the environment cannot reach this machine.
        config = config.proxy(None);
    }
    let agent: ureq::Agent = config.build().into();
    let mut call = agent.post(&request.url).content_type("application/json");
    for (name, value) in &request.headers {
        call = call.header(*name, value);
    }
    if let Some(secret) = &secret {
        call = call.header("Authorization", secret.bearer());
    }
    match call.send(&request.body) {
        Ok(response) => check_response(&request.host, response, secret.as_ref()),
        Err(error) => Err(unreachable(&request.host, &error)),
    }
}

/// How much of a response body is read. Then the connection is closed.
pub const MAX_ANSWER_BODY: u64 = 64 * 1024;

/// The longest pause between two attempts. A server that asks for a longer one gets no further attempt.
pub const MAX_PAUSE: Duration = Duration::from_mins(5);

fn check_response(host: &str, response: Response<Body>, secret: Option<&Secret>) -> Result<(), Error> {
    let status = response.status();
    if status.is_success() {
        return Ok(());
    }
    let after = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()).and_then(seconds);
    let host = host.to_owned();
    let why = match first_line_of_body(response) {
        line if line.is_empty() => status.to_string(),
        line => format!("{status}: {}", secret.map_or(line.clone(), |secret| secret.hidden_in(&line))),
    };
    if is_retryable(status) {
        Err(Error::Later { host, why, after })
    } else {
        Err(Error::Refused { host, why })
    }
}

fn is_retryable(status: StatusCode) -> bool {
    status.is_server_error()
        || status == StatusCode::TOO_MANY_REQUESTS
        || status == StatusCode::REQUEST_TIMEOUT
        || status == StatusCode::TOO_EARLY
}

/// Parses a `Retry-After` in seconds, perhaps with a fraction. A date is ignored: ntfy, Slack and Discord send seconds, and
/// otherwise the back-off applies.
fn seconds(value: &str) -> Option<Duration> {
    value.trim().parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
}

fn first_line_of_body(response: Response<Body>) -> String {
    let mut bytes = Vec::new();
    // A truncated body is used as far as it was received.
    let _ = response.into_body().into_reader().take(MAX_ANSWER_BODY).read_to_end(&mut bytes);
    first_line(&bytes)
}

/// The error for a failed connection. The text of the library is not used, because it may repeat the address.
fn unreachable(host: &str, error: &ureq::Error) -> Error {
    let why = match error {
        ureq::Error::Timeout(_) => "no answer in time".to_owned(),
        ureq::Error::HostNotFound => "host not found".to_owned(),
        ureq::Error::ConnectionFailed => "cannot connect".to_owned(),
        ureq::Error::Io(error) => error.to_string(),
        ureq::Error::Rustls(error) => format!("TLS: {error}"),
        ureq::Error::BadUri(_) | ureq::Error::Http(_) => {
            return Error::Address("it cannot be sent to");
        }
        _ => "the connection failed".to_owned(),
    };
    Error::Later { host: host.to_owned(), why, after: None }
}

/// The pause after `made` failed attempts; `None` if there should be no further one.
fn pause(made: u32, error: &Error) -> Option<Duration> {
    let Error::Later { after, .. } = error else { return None };
    let seconds = 4_u64.saturating_pow(made.saturating_sub(1));
    let pause = after.unwrap_or_else(|| Duration::from_secs(seconds).min(MAX_PAUSE));
    (pause <= MAX_PAUSE).then_some(pause)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_chosen_or_all() {
        let mut webhook = Webhook::new(Service::Json, "http://localhost/");
        assert!(webhook.wants(ShownKind::Status));
        webhook.kinds = vec![ShownKind::Error, ShownKind::Question];
        assert!(webhook.wants(ShownKind::Error) && !webhook.wants(ShownKind::Status));
        assert!(!format!("{webhook:?}").contains("localhost"));
    }

    fn later(after: Option<u64>) -> Error {
        Error::Later { host: "h".into(), why: String::new(), after: after.map(Duration::from_secs) }
    }

    #[test]
    fn pauses_grow_and_are_capped_and_the_other_side_is_heard() {
        let pauses: Vec<u64> =
            (1..=7).filter_map(|made| pause(made, &later(None))).map(|pause| pause.as_secs()).collect();
        assert_eq!(pauses, [1, 4, 16, 64, 256, 300, 300]);
        assert_eq!(pause(9, &later(Some(7))), Some(Duration::from_secs(7)));
        assert_eq!(pause(1, &later(Some(301))), None, "come back in an hour: not from here");
        assert_eq!(pause(u32::MAX, &later(None)), Some(MAX_PAUSE));
        assert_eq!(pause(1, &Error::Busy(1)), None);
    }

    #[test]
    fn retry_after_in_seconds_only() {
        assert_eq!(seconds(" 3"), Some(Duration::from_secs(3)));
        assert_eq!(seconds("0.5"), Some(Duration::from_millis(500)));
        for other in ["-1", "NaN", "inf", "Wed, 21 Oct 2026 07:28:00 GMT", "1e300", ""] {
            assert_eq!(seconds(other), None, "{other}");
        }
    }

    #[test]
    fn statuses() {
        let check = |code, expected| {
            assert_eq!(is_retryable(StatusCode::from_u16(code).unwrap()), expected, "{code}");
        };
        for code in [429, 500, 502, 503, 504, 408] {
            check(code, true);
        }
        for code in [301, 302, 307, 400, 401, 403, 404, 410, 413] {
            check(code, false);
        }
    }
}
