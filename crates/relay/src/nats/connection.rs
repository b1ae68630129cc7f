//! A connection to the server of a team, and its stream.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use async_nats::jetstream::stream::{Config, Info, RawMessageErrorKind, Stream};
use async_nats::jetstream::{Context, ErrorCode, context};
use async_nats::{Client, ConnectOptions, Event};
use tokio::sync::mpsc::{Receiver, channel};

use crate::error::Error;
use crate::team_setup::{TeamSetup, read_secret};

use super::state::LastPublished;
use super::stream_probe::{domains_of_streams, misplaced_stream_error};
use super::subject::{AGENTS, all_of, stream_name};

/// Time limit for a connection, including the login.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Time limit for the reply to a request.
const REPLY_TIMEOUT: Duration = Duration::from_secs(10);
/// Interval between pings. Two pings without a reply end the connection.
const PING: Duration = Duration::from_secs(20);
/// The maximum age of messages in a stream that Ringer creates: the same as in journals.
const MAX_AGE: Duration = Duration::from_hours(24 * 30);
/// How long the server remembers a `Nats-Msg-Id`. Machines recognise later duplicates themselves.
const DUPLICATES: Duration = Duration::from_mins(10);
/// The capacity of each subscription; messages beyond it are dropped. Messages of the stream are pulled, and never reach this
/// number.
const SUBSCRIPTION_CAPACITY: usize = 4_096;
/// The payload size that a server must accept: Ringer's longest message, with its headers.
const MIN_PAYLOAD: usize = 512 * 1024;
/// The oldest server version with all required features.
const MIN_VERSION: (u32, u32) = (2, 9);

pub(crate) struct Connection {
    pub(crate) client: Client,
    pub(crate) context: Context,
    /// The address of the server.
    pub(crate) address: String,
    /// Problems that end the connection, in words.
    pub(crate) problems: Receiver<String>,
    /// Permissions that are missing but not required, in words: lists of agents.
    pub(crate) refusals: Receiver<String>,
}

impl Connection {
    pub(crate) async fn open(setup: &TeamSetup) -> Result<Self, Error> {
        let (sender, mut problems) = channel(8);
        let (refusal_sender, refusals) = channel(8);
        let mut options = ConnectOptions::new()
            .name(format!("ringer {}", setup.machine))
            .connection_timeout(CONNECT_TIMEOUT)
            .request_timeout(Some(REPLY_TIMEOUT))
            .ping_interval(PING)
            .subscription_capacity(SUBSCRIPTION_CAPACITY)
            // The subject prefix of replies to this machine alone, if the server's operator restricts permissions.
            .custom_inbox_prefix(format!("_INBOX.{}", setup.machine))
            .ignore_discovered_servers()
            .max_reconnects(1)
            .event_callback(move |event| {
                let problem = connection_problem(&event);
                let is_refusal = problem.as_deref().is_some_and(is_agent_list_refusal);
                let sender = if is_refusal { refusal_sender.clone() } else { sender.clone() };
                async move {
                    // A full channel already contains a problem to report.
                    let _ = problem.map(|problem| sender.try_send(problem));
                }
            });
        if let Some(path) = &setup.credentials {
            let secret = read_secret(path)?;
            let no_credentials = || Error::Team(format!("{} holds no credentials of NATS", path.display()));
            options = if secret.contains("-----BEGIN") {
                options.credentials(&secret).map_err(|_| no_credentials())?
            } else {
                options.nkey(secret.trim().to_owned())
            };
        }
        if let Some(ca) = &setup.ca {
            options = options.add_root_certificates(ca.clone());
        }
        let (client, address) = connect(&options, &setup.urls).await?;
        let info = client.server_info();
        if version(&info.version).is_none_or(|version| version < MIN_VERSION) {
            return Err(Error::Team(format!(
                "the server has NATS {}; {}.{} or newer is needed",
                words(&info.version),
                MIN_VERSION.0,
                MIN_VERSION.1
            )));
        }
        if info.max_payload < MIN_PAYLOAD {
            return Err(Error::Team(format!(
                "the server takes messages of {} bytes only; set max_payload: {MIN_PAYLOAD} or more there",
                info.max_payload
            )));
        }
        let context = match &setup.domain {
            None => context::ContextBuilder::new().timeout(REPLY_TIMEOUT),
            Some(domain) => context::ContextBuilder::new().domain(domain).timeout(REPLY_TIMEOUT),
        };
        let context = context.backpressure_on_inflight(true).build(client.clone());
        // Problems before the connection was established are irrelevant.
        while problems.try_recv().is_ok() {}
        Ok(Self { client, context, address, problems, refusals })
    }

    /// Returns the version of the server.
    pub(crate) fn version(&self) -> String {
        words(&self.client.server_info().version)
    }

    /// Returns the server's reason for a failed request, else the error.
    pub(crate) fn refused(&mut self, what: &str, error: &str) -> Error {
        let why = self.problems.try_recv().unwrap_or_else(|_| words(error));
        Error::Team(format!("{what}: {why}"))
    }

    /// Returns the stream of the team, creating it if necessary.
    pub(crate) async fn stream(&mut self, setup: &TeamSetup) -> Result<Stream, Error> {
        let name = stream_name(&setup.team);
        let subjects = all_of(&setup.team);
        let missing = match self.context.get_stream(&name).await {
            Ok(stream) if stream.cached_info().config.subjects.contains(&subjects) => return Ok(stream),
            Ok(_) => {
                return Err(Error::Team(format!(
                    "the stream {name} does not have the subjects {subjects}; its operator sets them: \
                     nats stream edit {name} --subjects '{subjects}'"
                )));
            }
            Err(error) => error,
        };
        let is_missing = matches!(missing.kind(), context::GetStreamErrorKind::JetStream(ref error)
            if error.error_code() == ErrorCode::STREAM_NOT_FOUND);
        if !is_missing {
            let mut what = format!("the stream {name} cannot be asked for");
            if setup.domain.is_none() && !self.client.server_info().jetstream {
                what.push_str(
                    "; the server has no JetStream (if it is a leaf node, set `domain` to the JetStream domain of its hub)",
                );
            }
            return Err(self.refused(&what, &missing.to_string()));
        }
        let domains = domains_of_streams(&self.client, setup).await;
        let domains =
            domains.map_err(|error| self.refused("a message cannot be published", &error.to_string()))?;
        if let Some(why) = misplaced_stream_error(setup, &domains) {
            // If the server has it by now, another machine has just created it.
            return self.context.get_stream(&name).await.map_err(|_| Error::Team(why));
        }
        let config = Config {
            name: name.clone(),
            subjects: vec![subjects.clone()],
            max_age: MAX_AGE,
            duplicate_window: DUPLICATES,
            ..Config::default()
        };
        match self.context.create_stream(config).await {
            Ok(stream) => Ok(stream),
            Err(error) => {
                let what = format!(
                    "the stream {name} is not there, and this machine may not make it; its operator types: \
                     nats stream add {name} --subjects '{subjects}' --max-age 30d --dupe-window 10m --defaults"
                );
                Err(self.refused(&what, &error.to_string()))
            }
        }
    }
}

/// Connects to the first address that lets this machine in. Starts at a random one, so that machines are spread over the servers
/// of a cluster, and tries the others if a server is reachable but does not work.
async fn connect(options: &ConnectOptions, urls: &[String]) -> Result<(Client, String), Error> {
    let first = usize::from(RandomState::new().hash_one(urls).to_le_bytes()[0]) % urls.len().max(1);
    let mut failures = Vec::new();
    for url in urls[first..].iter().chain(&urls[..first]) {
        match options.clone().require_tls(url.starts_with("tls://")).connect(url).await {
            Ok(client) => return Ok((client, url.clone())),
            Err(error) => failures.push(words(&format!("{url}: {error}"))),
        }
    }
    Err(Error::Team(failures.join("; ")))
}

/// Returns true if the stream still has a message that it acknowledged. A message before the first one of the stream counts as
/// present.
pub(crate) async fn has(stream: &Stream, last: &LastPublished) -> Result<bool, Error> {
    let state = &stream.cached_info().state;
    if last.sequence < state.first_sequence {
        return Ok(true);
    }
    if last.sequence > state.last_sequence {
        return Ok(false);
    }
    // If it is missing, an operator may have removed it. But a server that lost its end may remember the last number, and skip
    // the lost ones.
    Ok(message_id_at(stream, last.sequence).await?.as_deref() == Some(last.message_id.as_str()))
}

/// Returns the `Nats-Msg-Id` of the message with that number. `None` if the message is missing, or has no id.
pub(crate) async fn message_id_at(stream: &Stream, number: u64) -> Result<Option<String>, Error> {
    // Numbers begin at 1, and the server refuses to look for others.
    if number == 0 {
        return Ok(None);
    }
    match stream.get_raw_message(number).await {
        Ok(found) => Ok(found.headers.get("Nats-Msg-Id").map(|id| id.as_str().to_owned())),
        Err(error) if matches!(error.kind(), RawMessageErrorKind::NoMessageFound) => Ok(None),
        Err(error) => Err(failed("the stream cannot be read", &error)),
    }
}

/// Returns the number of the first message in the stream.
pub(crate) async fn first_number(stream: &Stream) -> Result<u64, Error> {
    Ok(stream_info(stream).await?.state.first_sequence)
}

/// Fetches the current state of the stream from the server.
pub(crate) async fn stream_info(stream: &Stream) -> Result<Info, Error> {
    let info = stream.get_info().await;
    info.map_err(|error| Error::Team(words(&format!("the stream cannot be asked for: {error}"))))
}

/// Returns the problem if an event ends the connection.
fn connection_problem(event: &Event) -> Option<String> {
    match event {
        Event::Disconnected | Event::Closed => Some("the connection to the server was lost".to_owned()),
        Event::LameDuckMode => Some("the server is about to stop".to_owned()),
        Event::ServerError(error) => Some(words(&error.to_string())),
        Event::ClientError(error) => Some(words(&error.to_string())),
        _ => None,
    }
}

/// Returns true if the server forbids lists of agents. An operator may have set the permissions before the lists existed.
fn is_agent_list_refusal(problem: &str) -> bool {
    let problem = problem.to_lowercase();
    problem.contains("permissions violation") && problem.contains(&format!("\"{AGENTS}"))
}

/// Sanitises a text of the server or the library for people.
pub(crate) fn words(text: &str) -> String {
    text.chars().filter(|character| !character.is_control()).take(300).collect()
}

pub(crate) fn failed(what: &str, error: &dyn std::fmt::Display) -> Error {
    Error::Team(words(&format!("{what}: {error}")))
}

fn version(text: &str) -> Option<(u32, u32)> {
    let mut parts = text.split('.').map(|part| part.parse::<u32>().ok());
    Some((parts.next()??, parts.next()??))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_optional_permissions_are_recognised() {
        let not_allowed = |what: &str| format!("nats: Permissions Violation for {what}");
        assert!(is_agent_list_refusal(&not_allowed("Publish to \"ringer-agents.t.box\"")));
        assert!(is_agent_list_refusal(&not_allowed("Subscription to \"ringer-agents.t.*\"")));
        assert!(!is_agent_list_refusal(&not_allowed("Publish to \"ringer.t.box.s.all\"")));
        assert!(!is_agent_list_refusal("no responders for \"ringer-agents.t.box\""));
    }

    #[test]
    fn versions_are_compared_by_their_numbers() {
        assert_eq!(version("2.9.10"), Some((2, 9)));
        assert!(version("2.11.0-RC.1") > Some(MIN_VERSION) && version("2.8.4") < Some(MIN_VERSION));
        assert_eq!(version("none"), None);
    }
}
