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
use super::stream_probe::{domains_of_streams, why_not_made};
use super::subject::{AGENTS, all_of, stream_name};

/// How long the server may take to let a machine in.
const CONNECTS_WITHIN: Duration = Duration::from_secs(10);
/// How long it may take to answer a request.
const ANSWERS_WITHIN: Duration = Duration::from_secs(10);
/// How often the server is asked whether it is there. Two that are not answered end the connection.
const PING: Duration = Duration::from_secs(20);
/// How long a stream keeps messages, if Ringer makes it: as long as journals do.
const MAX_AGE: Duration = Duration::from_hours(24 * 30);
/// How long the server knows a `Nats-Msg-Id`. Later repeats are known by machines.
const DUPLICATES: Duration = Duration::from_mins(10);
/// Messages that came and are not looked at yet, of each subscription: what is more is dropped. Those of the stream are asked for,
/// and never so many.
const MOST_UNREAD: usize = 4_096;
/// What a server has to take in one message: the longest one of Ringer, with its headers.
const NEEDED_PAYLOAD: usize = 512 * 1024;
/// The oldest version that has what is used here.
const OLDEST: (u32, u32) = (2, 9);

/// A connection.
pub(crate) struct Connection {
    pub(crate) client: Client,
    pub(crate) context: Context,
    /// The address of the server.
    pub(crate) address: String,
    /// What ends it, in words.
    pub(crate) problems: Receiver<String>,
    /// What the server does not allow and the connection goes on without, in words: lists of agents.
    pub(crate) refusals: Receiver<String>,
}

impl Connection {
    pub(crate) async fn open(setup: &TeamSetup) -> Result<Self, Error> {
        let (sender, mut problems) = channel(8);
        let (refusal_sender, refusals) = channel(8);
        let mut options = ConnectOptions::new()
            .name(format!("ringer {}", setup.machine))
            .connection_timeout(CONNECTS_WITHIN)
            .request_timeout(Some(ANSWERS_WITHIN))
            .ping_interval(PING)
            .subscription_capacity(MOST_UNREAD)
            // Below it are answers for this machine alone, if the server's operator sets permissions so.
            .custom_inbox_prefix(format!("_INBOX.{}", setup.machine))
            .ignore_discovered_servers()
            .max_reconnects(1)
            .event_callback(move |event| {
                let problem = problem_of(&event);
                let is_refusal = problem.as_deref().is_some_and(is_about_agents);
                let sender = if is_refusal { refusal_sender.clone() } else { sender.clone() };
                async move {
                    // If there is no room, other problems are there to be told.
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
        if version(&info.version).is_none_or(|version| version < OLDEST) {
            return Err(Error::Team(format!(
                "the server has NATS {}; {}.{} or newer is needed",
                words(&info.version),
                OLDEST.0,
                OLDEST.1
            )));
        }
        if info.max_payload < NEEDED_PAYLOAD {
            return Err(Error::Team(format!(
                "the server takes messages of {} bytes only; set max_payload: {NEEDED_PAYLOAD} or more there",
                info.max_payload
            )));
        }
        let context = match &setup.domain {
            None => context::ContextBuilder::new().timeout(ANSWERS_WITHIN),
            Some(domain) => context::ContextBuilder::new().domain(domain).timeout(ANSWERS_WITHIN),
        };
        let context = context.backpressure_on_inflight(true).build(client.clone());
        // What was before the connection stood is no problem of it.
        while problems.try_recv().is_ok() {}
        Ok(Self { client, context, address, problems, refusals })
    }

    /// The version of the server.
    pub(crate) fn version(&self) -> String {
        words(&self.client.server_info().version)
    }

    /// What the server said about a request that failed, if it said something, else the error.
    pub(crate) fn refused(&mut self, what: &str, error: &str) -> Error {
        let why = self.problems.try_recv().unwrap_or_else(|_| words(error));
        Error::Team(format!("{what}: {why}"))
    }

    /// The stream of the team, which is made if it is not there.
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
        if let Some(why) = why_not_made(setup, &domains) {
            // If it is on this server by now, another machine has just made it.
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

/// Connects to the first of the addresses that lets this machine in. They are tried from a random one on, so that machines are
/// spread over the servers of a cluster, and one that is reached and does not work is not the only one that is tried.
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

/// Whether the stream still has a message that it acknowledged. One that is older than what it keeps counts as had.
pub(crate) async fn has(stream: &Stream, last: &LastPublished) -> Result<bool, Error> {
    let state = &stream.cached_info().state;
    if last.sequence < state.first_sequence {
        return Ok(true);
    }
    if last.sequence > state.last_sequence {
        return Ok(false);
    }
    // If it is not there, it may have been removed by an operator. But a server that lost its end may know the last number of
    // before, and leaves out what it lost.
    Ok(message_id_at(stream, last.sequence).await?.as_deref() == Some(last.message_id.as_str()))
}

/// The `Nats-Msg-Id` of the message of that number. `None` if it is not there, or has none.
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

/// The number of the first message that the stream has.
pub(crate) async fn first_number(stream: &Stream) -> Result<u64, Error> {
    Ok(info_of(stream).await?.state.first_sequence)
}

/// What the server says of the stream now.
pub(crate) async fn info_of(stream: &Stream) -> Result<Info, Error> {
    let info = stream.get_info().await;
    info.map_err(|error| Error::Team(words(&format!("the stream cannot be asked for: {error}"))))
}

/// What an event means for a connection. `None` if it goes on.
fn problem_of(event: &Event) -> Option<String> {
    match event {
        Event::Disconnected | Event::Closed => Some("the connection to the server was lost".to_owned()),
        Event::LameDuckMode => Some("the server is about to stop".to_owned()),
        Event::ServerError(error) => Some(words(&error.to_string())),
        Event::ClientError(error) => Some(words(&error.to_string())),
        _ => None,
    }
}

/// Whether the server does not allow lists of agents. An operator may have given permissions before there were any.
fn is_about_agents(problem: &str) -> bool {
    let problem = problem.to_lowercase();
    problem.contains("permissions violation") && problem.contains(&format!("\"{AGENTS}"))
}

/// A text of the server or the library, as people read it.
pub(crate) fn words(text: &str) -> String {
    text.chars().filter(|character| !character.is_control()).take(300).collect()
}

/// Why something cannot be done.
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
    fn what_a_connection_goes_on_without_is_known() {
        let not_allowed = |what: &str| format!("nats: Permissions Violation for {what}");
        assert!(is_about_agents(&not_allowed("Publish to \"ringer-agents.t.box\"")));
        assert!(is_about_agents(&not_allowed("Subscription to \"ringer-agents.t.*\"")));
        assert!(!is_about_agents(&not_allowed("Publish to \"ringer.t.box.s.all\"")));
        assert!(!is_about_agents("no responders for \"ringer-agents.t.box\""));
    }

    #[test]
    fn versions_are_compared_by_their_numbers() {
        assert_eq!(version("2.9.10"), Some((2, 9)));
        assert!(version("2.11.0-RC.1") > Some(OLDEST) && version("2.8.4") < Some(OLDEST));
        assert_eq!(version("none"), None);
    }
}
