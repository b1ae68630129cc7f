//! Webhooks: ntfy, Slack, Discord, or anything that takes JSON.
//!
//! A redirect is a refusal: it would carry the text, and perhaps the secret, to a host the person did not name.
//! Addresses and secrets appear in no error: those of Slack and Discord are passwords in themselves.

mod answer;
mod request;
mod secret;

use std::fmt;
use std::time::Duration;

use ringer_core::message::ShownKind;

use crate::error::Error;
use crate::note::Note;

pub use answer::{MAX_ANSWER_BODY, MAX_PAUSE};
pub use request::{Service, WebhookRequest};
pub use secret::{MAX_SECRET, SecretFile};

/// How long one attempt may take, from the name lookup to the last byte of the answer.
pub const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(10);

/// Where notifications are sent over HTTP.
#[derive(Clone)]
pub struct Webhook {
    /// Whose form the request has.
    pub kind: Service,
    /// Where it goes.
    pub url: String,
    /// The file with the secret, if it wants one.
    pub secret: Option<SecretFile>,
    /// Which kinds of notification it wants; empty: all.
    pub kinds: Vec<ShownKind>,
    /// How long one attempt may take; [`ATTEMPT_TIMEOUT`] as a rule.
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

    /// Whether it wants notifications of this kind.
    pub fn wants(&self, kind: ShownKind) -> bool {
        self.kinds.is_empty() || self.kinds.contains(&kind)
    }

    /// Makes one attempt. [`Error::Later`] means that another may succeed.
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

    /// Sends it, and tries again while that may help, at most `attempts` times. Waits in between as long as the other
    /// side asks, else 1 s, 4 s, 16 s and so on, up to [`MAX_PAUSE`].
    pub async fn deliver(&self, note: &Note, attempts: u32) -> Result<(), Error> {
        let mut made = 0;
        loop {
            let error = match self.send(note).await {
                Err(error @ Error::Later { .. }) => error,
                done => return done,
            };
            made += 1;
            match answer::pause(made, &error).filter(|_| made < attempts) {
                Some(pause) => tokio::time::sleep(pause).await,
                None => return Err(Error::GaveUp { attempts: made, last: Box::new(error) }),
            }
        }
    }
}

/// One attempt, on a thread that may block.
fn attempt(request: &WebhookRequest, secret: Option<&SecretFile>, timeout: Duration) -> Result<(), Error> {
    let secret = secret.map(SecretFile::read).transpose()?;
    let mut config = ureq::Agent::config_builder()
        .max_redirects(0)
        .max_redirects_will_error(false)
        .http_status_as_error(false)
        .timeout_global(Some(timeout))
        .user_agent(concat!("ringer/", env!("CARGO_PKG_VERSION")));
    if request.is_loopback() {
        // A proxy from the environment cannot reach what is on this machine.
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
        Ok(response) => answer::check_response(&request.host, response, secret.as_ref()),
        Err(error) => Err(answer::unreachable(&request.host, &error)),
    }
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
}
