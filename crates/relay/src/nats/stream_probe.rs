//! Finds the streams that store this machine's publications. A team has one. A leaf node with its own streams can have a second
//! one with the same name: both store everything while the leaf node is connected to its hub, and messages are lost when it is
//! not.

use std::time::Duration;

use async_nats::header::NATS_MESSAGE_ID;
use async_nats::{Client, HeaderMap, StatusCode};
use ringer_journal::IdSource;
use serde::Deserialize;
use tokio::time::{Instant, timeout_at};

use crate::team_setup::TeamSetup;

use super::next::next;
use super::payload::TeamPayload;
use super::subject::{Audience, TeamSubject, stream_name};

/// Time limit for the streams' replies: the round trip, also to a hub on another continent.
const REPLY_TIMEOUT: Duration = Duration::from_secs(1);

/// The most streams in a report.
const MAX_DOMAINS: usize = 8;

/// A stream's acknowledgement.
#[derive(Deserialize)]
struct StreamAck {
    stream: String,
    #[serde(default)]
    domain: String,
}

/// Publishes a message that machines ignore. Returns the `jetstream` domain of each stream of the team that stored it; the domain
/// is empty if none is configured.
pub(crate) async fn domains_of_streams(
    client: &Client,
    setup: &TeamSetup,
) -> Result<Vec<String>, async_nats::Error> {
    let inbox = client.new_inbox();
    let mut answers = client.subscribe(inbox.clone()).await?;
    let subject = TeamSubject { machine: &setup.machine, scope: "link", audience: Audience::Want };
    let hello = TeamPayload::Hello { sent_ms: IdSource::now().unix_ms };
    // It has an id like every message of Ringer, because a machine that joins next may start reading after it.
    let headers = HeaderMap::from_iter([(NATS_MESSAGE_ID, inbox.as_str().into())]);
    let subject = subject.text(&setup.team);
    client.publish_with_reply_and_headers(subject, inbox, headers, hello.encode().into()).await?;
    let (until, name) = (Instant::now() + REPLY_TIMEOUT, stream_name(&setup.team));
    let mut domains = Vec::new();
    while let Ok(Some(answer)) = timeout_at(until, next(&mut answers)).await {
        if answer.status == Some(StatusCode::NO_RESPONDERS) {
            break;
        }
        // A stream with another name is one that the server's operator uses for something else.
        let ack = serde_json::from_slice::<StreamAck>(&answer.payload).ok();
        let ack = ack.filter(|ack| ack.stream == name && domains.len() < MAX_DOMAINS);
        domains.extend(ack.map(|ack| sanitise(&ack.domain)));
    }
    // The replies arrive in any order.
    domains.sort();
    Ok(domains)
}

/// Returns the reason if these streams must not exist. `None` if there is exactly one.
pub(crate) fn several_streams_error(setup: &TeamSetup, domains: &[String]) -> Option<String> {
    let name = stream_name(&setup.team);
    let named: Vec<&str> = domains.iter().map(String::as_str).filter(|domain| !domain.is_empty()).collect();
    let in_domains =
        if named.is_empty() { String::new() } else { format!(" (JetStream domains: {})", named.join(", ")) };
    (domains.len() > 1).then(|| {
        format!(
            "{} streams {name} take what this machine publishes{in_domains}, so a leaf node has one beside its hub, and \
             messages are lost when it is cut off; remove that one (nats stream rm {name}), and set `domain` on the \
             machines there",
            domains.len()
        )
    })
}

/// Returns the reason why this machine must not create the team's stream on its server: streams in these domains already store
/// its messages.
pub(crate) fn misplaced_stream_error(setup: &TeamSetup, domains: &[String]) -> Option<String> {
    let name = stream_name(&setup.team);
    let what = format!(
        "the stream {name} is not on this server, but on one that is connected to it as its hub or leaf node, and a team has \
         one stream"
    );
    Some(match domains.first()?.as_str() {
        "" => format!("{what}; set a domain in the `jetstream` settings of that server, and `domain` here"),
        domain => format!("{what}; set domain = \"{domain}\" (ringer relay add nats … --domain {domain})"),
    })
}

/// Sanitises a domain for people.
fn sanitise(domain: &str) -> String {
    domain.chars().filter(|character| !character.is_control()).take(40).collect()
}
