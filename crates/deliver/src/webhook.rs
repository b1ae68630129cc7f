//! Webhooks. Each service is a [`Service`] and a line in [`SERVICES`].
//!
//! A redirect is an error: following it would send the text, and perhaps the secret, to a host the person did not name.
//! Addresses and secrets appear in no error: an address of Slack or Discord is a password in itself.

mod secret;
mod service;
mod telegram;

use std::fmt;
use std::io::Read;
use std::net::IpAddr;
use std::time::Duration;

use ringer_core::message::ShownKind;
use ringer_term::escape_json;
use ureq::Body;
use ureq::http::header::RETRY_AFTER;
use ureq::http::{Response, StatusCode, Uri};

use crate::error::Error;
use crate::note::Note;
use crate::program::first_line;

use service::{Discord, Json, Ntfy, Refusal, Service, Slack, build};
use telegram::Telegram;

pub use secret::{MAX_SECRET, SecretFile};

/// All services, in the order of the documentation.
const SERVICES: &[&dyn Service] = &[&Ntfy, &Slack, &Discord, &Json, &Telegram];

/// The timeout of one attempt, from the name lookup to the last byte of the response.
pub const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(10);

/// An HTTP endpoint that gets notifications.
#[derive(Clone)]
pub struct Webhook {
    /// The name of the service, which determines the format of the request.
    pub kind: &'static str,
    /// The address.
    pub url: String,
    /// The file with the secret, if any.
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
    pub fn new(kind: &'static str, url: impl Into<String>) -> Self {
        Self { kind, url: url.into(), secret: None, kinds: Vec::new(), timeout: ATTEMPT_TIMEOUT }
    }

    /// Returns true if notifications of this kind are sent.
    pub fn wants(&self, kind: ShownKind) -> bool {
        self.kinds.is_empty() || self.kinds.contains(&kind)
    }

    /// Checks the address. Returns its host, which is the only part of it that may be shown.
    pub fn host(&self) -> Result<String, Error> {
        let (_, address) = self.checked()?;
        Ok(host_of(&address).to_owned())
    }

    fn checked(&self) -> Result<(&'static dyn Service, Uri), Error> {
        checked(self.kind, &self.url, self.secret.is_some()).map_err(Error::Address)
    }

    /// Makes one attempt. After [`Error::Later`] another may succeed.
    pub async fn send(&self, note: &Note) -> Result<(), Error> {
        let (service, address) = self.checked()?;
        let host = host_of(&address).to_owned();
        let (webhook, note) = (self.clone(), note.clone());
        // Both the file and the network may hang, and neither may hang the caller. A thread that outlives a dropped
        // caller ends with its own timeout.
        let attempt = tokio::task::spawn_blocking(move || webhook.attempt(service, &address, &note));
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

    /// Makes one attempt; blocks.
    fn attempt(&self, service: &dyn Service, address: &Uri, note: &Note) -> Result<(), Error> {
        let secret = self.secret.as_ref().map(|file| file.read_for(|text| service.check_secret(text)));
        let mut request = build(service, address, secret.transpose()?.as_ref(), note);
        // The path of Slack and Discord is the password. A short one is none, and could be part of any word.
        let path = address.path_and_query().map(|path| path.as_str().to_owned());
        request.hidden.extend(path.filter(|path| path.len() > MAX_SHOWN_PATH));
        let host = host_of(address);
        let mut config = ureq::Agent::config_builder()
            .max_redirects(0)
            .max_redirects_will_error(false)
            .http_status_as_error(false)
            .timeout_global(Some(self.timeout))
            .user_agent(concat!("ringer/", env!("CARGO_PKG_VERSION")));
        if is_loopback(host) {
            // A proxy from the environment cannot reach this machine.
            config = config.proxy(None);
        }
        let agent: ureq::Agent = config.build().into();
        let mut call = agent.post(&request.url).content_type("application/json");
        // The id lets a receiver drop a request that it has already got.
        call = call.header("X-Ringer-Id", header_safe(note.id.as_str()));
        if let Some(authorization) = &request.authorization {
            call = call.header("Authorization", authorization);
        }
        match call.send(escape_json(&request.body.to_string()).as_ref()) {
            Ok(response) => check_response(service, host, response, &request.hidden),
            Err(error) => Err(unreachable(host, &error)),
        }
    }
}

/// Returns the names of all services.
pub fn service_names() -> Vec<&'static str> {
    SERVICES.iter().map(|service| service.name()).collect()
}

/// Checks the address of a webhook. An error says what is missing and what to write, without the address.
pub fn check_address(kind: &str, url: &str, has_secret: bool) -> Result<(), &'static str> {
    checked(kind, url, has_secret).map(|_| ())
}

fn checked(kind: &str, url: &str, has_secret: bool) -> Result<(&'static dyn Service, Uri), &'static str> {
    let service = SERVICES.iter().find(|service| service.name() == kind);
    let service = *service.ok_or("it is for a service that does not exist")?;
    let address: Uri = url.trim().parse().map_err(|_| "it is not a URL")?;
    if !matches!(address.scheme_str(), Some("http" | "https")) {
        return Err("it must begin with https:// or http://");
    }
    if host_of(&address).is_empty() {
        return Err("it names no host");
    }
    service.check(&address, has_secret)?;
    Ok((service, address))
}

fn host_of(address: &Uri) -> &str {
    address.host().unwrap_or_default()
}

fn is_loopback(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Headers are ASCII. They carry ids, which other programs may have chosen.
fn header_safe(text: &str) -> String {
    text.chars().filter(char::is_ascii_graphic).collect()
}

/// The longest path that an error may contain, in bytes.
const MAX_SHOWN_PATH: usize = 8;

/// How much of a response body is read. Then the connection is closed.
pub const MAX_ANSWER_BODY: u64 = 64 * 1024;

/// The longest pause between two attempts. A server that asks for a longer one gets no further attempt.
pub const MAX_PAUSE: Duration = Duration::from_mins(5);

fn check_response(
    service: &dyn Service,
    host: &str,
    response: Response<Body>,
    hidden: &[String],
) -> Result<(), Error> {
    let status = response.status();
    let after = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()).and_then(seconds);
    let Err(Refusal { why, pause }) = service.read_answer(status, &read_body(response)) else {
        return Ok(());
    };
    let why = hidden.iter().fold(why, |why, hidden| why.replace(hidden, "…"));
    let why = match first_line(why.as_bytes()) {
        line if line.is_empty() => status.to_string(),
        line => format!("{status}: {line}"),
    };
    let host = host.to_owned();
    if is_retryable(status) {
        Err(Error::Later { host, why, after: pause.or(after) })
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

fn read_body(response: Response<Body>) -> Vec<u8> {
    let mut bytes = Vec::new();
    // A truncated body is used as far as it was received.
    let _ = response.into_body().into_reader().take(MAX_ANSWER_BODY).read_to_end(&mut bytes);
    bytes
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
    use ringer_term::sanitise_text;

    use super::secret::Secret;
    use super::*;

    #[test]
    fn kinds_are_chosen_or_all() {
        let mut webhook = Webhook::new("json", "http://localhost/");
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

    #[test]
    fn addresses_that_cannot_be_used_are_not_repeated() {
        for url in
            ["", "ftp://h/x", "https://", "/hook", "not an address", "file:///secret", "https://ntfy.sh/"]
        {
            let error = Webhook::new("ntfy", url).host().unwrap_err().to_string();
            assert!(
                error.starts_with("the webhook's url is invalid") && !error.contains("secret"),
                "{error}"
            );
        }
        assert_eq!(Webhook::new("ntfy", "https://ntfy.example:8443/a/x").host().unwrap(), "ntfy.example");
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
            assert_eq!(is_loopback(&Webhook::new("json", url).host().unwrap()), expected, "{url}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_breaks_a_request(title in ".*", body in r"(?s).*[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}]{0,9}") {
            let note = Note { title, body, ..crate::note::example() };
            let secret = Secret::new("1:secret".to_owned());
            for service in service_names() {
                // Has what any service needs: ntfy its topic, Telegram its chat.
                let url = "https://example.org/topic?chat_id=42";
                let (service, address) = checked(service, url, true).unwrap();
                let body = build(service, &address, Some(&secret), &note).body;
                let text = escape_json(&body.to_string()).into_owned();
                proptest::prop_assert!(body.is_object() && escape_json(&text) == text.as_str());
                // Nor does it turn around or hide what is read.
                for text in body.as_object().into_iter().flat_map(serde_json::Map::values) {
                    let text = text.as_str().unwrap_or_default();
                    proptest::prop_assert_eq!(sanitise_text(text), text);
                }
            }
        }

        #[test]
        fn headers_are_ascii(id in ".*") {
            proptest::prop_assert!(header_safe(&id).is_ascii());
        }
    }
}
