//! Determines which messages of this machine the stream still has, after some were removed.

use async_nats::jetstream::stream::{Config, DiscardPolicy, Info, RawMessageErrorKind, Stream};
use ringer_journal::{IdSource, Journal};

use crate::error::Error;
use crate::team_setup::TeamSetup;

use super::connection::words;
use super::payload::TeamPayload;
use super::publications::publications;
use super::receiving::is_personal_mark;
use super::subject::all_of_machine;

/// The most messages of this machine that are examined to find the first one of its journal: the others are requests.
const MAX_EXAMINED: usize = 100;
/// The number of messages per read.
const BATCH: usize = 256;

/// The range of this machine's messages that the stream has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Coverage {
    /// The stream has every message of the journal after this number that it should retain. `None` if it has removed nothing that
    /// it should retain.
    pub(crate) from: Option<i64>,
    /// All of these have this number in the stream, or a higher one.
    pub(crate) at: u64,
}

/// Determines the coverage of messages up to `published`, a number of the journal.
pub(crate) async fn coverage(
    setup: &TeamSetup,
    journal: &mut Journal,
    stream: &Stream,
    info: &Info,
    published: i64,
) -> Result<Coverage, Error> {
    let first = first_own(setup, journal, stream, info.state.first_sequence).await?;
    let at = first.map_or(info.state.last_sequence.saturating_add(1), |first| first.number);
    let until = first.map_or(published, |first| first.whole_after);
    let from = match retained_since(&info.config) {
        None => None,
        Some(since_ms) => {
            let since = journal.own_since(since_ms)?;
            last_outgoing(setup, journal, since, until)?
        }
    };
    Ok(Coverage { from, at })
}

/// Returns the time since which the stream retains messages, in milliseconds since 1970. Older messages may have expired; the
/// time is shortened by a tenth, because clocks differ. Returns `None` if the stream discards old messages when full:
/// republishing would discard more.
fn retained_since(config: &Config) -> Option<i64> {
    let is_limited = config.max_bytes > 0 || config.max_messages > 0;
    let removes_old = is_limited && config.discard == DiscardPolicy::Old;
    // A subject's oldest message is discarded unless new ones are refused per subject.
    let removes_of_subject = config.max_messages_per_subject > 0
        && !(config.discard == DiscardPolicy::New && config.discard_new_per_subject);
    if removes_old || removes_of_subject {
        return None;
    }
    if config.max_age.is_zero() {
        return Some(0);
    }
    let kept_ms = i64::try_from((config.max_age * 9 / 10).as_millis()).unwrap_or(i64::MAX);
    Some(IdSource::now().unix_ms.saturating_sub(kept_ms))
}

/// A message of this machine in the stream.
#[derive(Debug, Clone, Copy)]
struct FirstOwnMessage {
    /// The stream has every message after this number of the journal, with all of its publications.
    whole_after: i64,
    /// The number in the stream.
    number: u64,
}

/// Finds the first message of this machine's journal in the stream. All later messages of the journal follow it.
async fn first_own(
    setup: &TeamSetup,
    journal: &mut Journal,
    stream: &Stream,
    first: u64,
) -> Result<Option<FirstOwnMessage>, Error> {
    let own = journal.generation()?;
    let subjects = all_of_machine(&setup.team, &setup.machine);
    let mut from = first.max(1);
    for _ in 0..MAX_EXAMINED {
        let found = match stream.get_first_raw_message_by_subject(&subjects, from).await {
            Ok(found) => found,
            Err(error) if matches!(error.kind(), RawMessageErrorKind::NoMessageFound) => return Ok(None),
            Err(error) => return Err(Error::Team(words(&format!("the stream cannot be read: {error}")))),
        };
        match TeamPayload::read(&found.payload) {
            Some(TeamPayload::Message { generation, message, .. }) if generation == own => {
                // If it is one of many marks, earlier ones may have been removed.
                let before = i64::from(!is_personal_mark(&message));
                let whole_after = message.seq.saturating_sub(before);
                return Ok(Some(FirstOwnMessage { whole_after, number: found.sequence }));
            }
            _ => from = found.sequence.saturating_add(1),
        }
    }
    Ok(None)
}

/// Returns the last message after a number and up to another that is published to the team.
fn last_outgoing(
    setup: &TeamSetup,
    journal: &mut Journal,
    after: i64,
    until: i64,
) -> Result<Option<i64>, Error> {
    let (mut examined_to, mut last) = (after, None);
    while examined_to < until {
        let batch = journal.own_after(examined_to, BATCH)?;
        for message in batch.messages.iter().filter(|message| message.seq <= until) {
            if !publications(setup, journal, message)?.is_empty() {
                last = Some(message.seq);
            }
        }
        if !batch.more {
            break;
        }
        examined_to = batch.looked_at;
    }
    Ok(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn retention_depends_on_the_limits_of_the_stream() {
        assert_eq!(retained_since(&Config::default()), Some(0));
        let old = Config { max_bytes: 100, ..Config::default() };
        assert_eq!(retained_since(&old), None);
        assert_eq!(retained_since(&Config { discard: DiscardPolicy::New, ..old }), Some(0));
        let subject =
            Config { max_messages_per_subject: 9, discard: DiscardPolicy::New, ..Config::default() };
        assert_eq!(retained_since(&subject), None, "the oldest of a subject is removed all the same");
        assert_eq!(retained_since(&Config { discard_new_per_subject: true, ..subject }), Some(0));
        let days = Config { max_age: Duration::from_hours(240), ..Config::default() };
        let since = retained_since(&days).unwrap();
        let nine_days = IdSource::now().unix_ms - 9 * 24 * 3_600_000;
        assert!((nine_days - since).abs() < 3_600_000);
    }
}
