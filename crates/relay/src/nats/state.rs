//! The state of this machine in its team's stream, across connections: pure rules.
//!
//! The stream is transport, not a record: its server may lose messages that it acknowledged. Every machine has its own messages,
//! so lost messages are republished, and receivers recognise duplicates by id.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TeamState {
    /// The creation time of the stream, as the server states it. A recreated stream has a different one.
    pub(crate) stream: String,
    /// The same in milliseconds since 1970. 0 until it is known.
    made_ms: i64,
    /// This machine's furthest message in the stream.
    #[serde(default)]
    pub(crate) last: Option<LastPublished>,
    /// The stream was given every message of this machine after this number.
    pub(crate) covered_from: i64,
    /// All of these have this number in the stream, or a higher one. 0 if that is not known.
    covered_at: u64,
    /// Messages after this number are being republished.
    #[serde(default)]
    pub(crate) again_from: Option<i64>,
    /// The last completed republication.
    #[serde(default)]
    again_done: Option<CompletedRepublication>,
    /// How far the stream had everything at two times.
    #[serde(default)]
    checkpoints: Option<Checkpoints>,
    /// Earlier streams, oldest first. At most [`MAX_EARLIER`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    earlier: Vec<EarlierStream>,
    /// The number of the last message before this machine joined the team. Messages up to it are never published.
    pub(crate) began: i64,
    /// The stream in which this machine joined the team.
    joined_stream: String,
    /// When this machine joined the team, in milliseconds since 1970.
    pub(crate) joined_ms: i64,
}

/// How much a server may lose in a crash, in milliseconds: messages that it acknowledged in the hour before its last
/// acknowledgement are republished. NATS syncs every two minutes unless its operator configures another interval.
const MAX_LOSS_MS: i64 = 3_600_000;
/// The most streams that are remembered. One may come back: a server is started without its disk, and then with it.
const MAX_EARLIER: usize = 16;

/// Two records of how much the stream had. The first is at least [`MAX_LOSS_MS`] older than the last acknowledgement, if this
/// machine has published for that long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Checkpoints {
    older: Checkpoint,
    newer: Checkpoint,
}

/// At `unix_ms`, in milliseconds since 1970, the stream had everything up to `seq`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Checkpoint {
    unix_ms: i64,
    seq: i64,
}

/// An earlier stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct EarlierStream {
    /// The creation time of the stream.
    stream: String,
    /// The number up to which it has everything of this machine, even if its server lost its last moments.
    published: i64,
}

/// A completed republication.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct CompletedRepublication {
    /// The number before its first message.
    from: i64,
    /// When the stream had all of it, in milliseconds since 1970.
    unix_ms: i64,
}

/// A message in the stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LastPublished {
    /// Its number there.
    pub(crate) sequence: u64,
    /// Its `Nats-Msg-Id`.
    pub(crate) message_id: String,
}

impl TeamState {
    /// Returns the state of a machine that joins now. `next` is the number of the next message of the stream.
    pub(crate) fn joined(stream: &str, next: u64, seq: i64, unix_ms: i64) -> Self {
        Self {
            stream: stream.to_owned(),
            made_ms: 0,
            last: None,
            covered_from: seq,
            covered_at: next,
            again_from: None,
            again_done: None,
            checkpoints: None,
            earlier: Vec::new(),
            began: seq,
            joined_stream: stream.to_owned(),
            joined_ms: unix_ms,
        }
    }

    pub(crate) fn read(note: &str) -> Option<Self> {
        serde_json::from_str(note).ok()
    }

    pub(crate) fn encode(&self) -> String {
        // Plain data cannot fail to encode.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// The stream is a different one. A recreated stream has nothing of this machine, and other machines request what they lack.
    /// An earlier stream that came back lacks what was published in between. Machines that were away meanwhile do not know that,
    /// and assume that it is complete: so all of that is republished. A stream that is older than this machine's membership, or
    /// was forgotten here, has nothing of this machine, and those machines do not know that either.
    pub(crate) fn switch_stream(&mut self, stream: &str, made_ms: i64, next: u64, published: i64) {
        let safe = self.checkpoints.map_or(published, |checkpoints| checkpoints.older.seq);
        let left = EarlierStream { stream: self.stream.clone(), published: self.begin(published).min(safe) };
        let returned = self.earlier.iter().position(|earlier| earlier.stream == stream);
        let returned = returned.map(|at| self.earlier.remove(at));
        self.earlier.push(left);
        self.earlier.drain(..self.earlier.len().saturating_sub(MAX_EARLIER));
        stream.clone_into(&mut self.stream);
        (self.last, self.covered_from, self.covered_at) = (None, published, next);
        (self.again_from, self.again_done) = (None, None);
        if let Some(returned) = returned {
            self.again(returned.published);
        } else if made_ms < self.made_ms {
            self.again(self.began);
        }
    }

    /// Sets the creation time of the connected stream, in milliseconds since 1970.
    pub(crate) fn set_stream_created(&mut self, made_ms: i64) {
        self.made_ms = made_ms;
    }

    /// The stream has everything up to a number at this time.
    pub(crate) fn arrived(&mut self, seq: i64, unix_ms: i64) {
        let now = Checkpoint { unix_ms, seq };
        let checkpoints = self.checkpoints.get_or_insert(Checkpoints { older: now, newer: now });
        if unix_ms.saturating_sub(checkpoints.newer.unix_ms) >= MAX_LOSS_MS {
            *checkpoints = Checkpoints { older: checkpoints.newer, newer: now };
        }
    }

    /// The stream has a message of this machine. A duplicate keeps its earlier number, which may not be the furthest.
    pub(crate) fn acknowledged(&mut self, message: LastPublished) {
        if self.last.as_ref().is_none_or(|last| last.sequence < message.sequence) {
            self.last = Some(message);
        }
    }

    /// The server lost the end of the stream. Republishes everything that it acknowledged in the hour before its last
    /// acknowledgement, and what was republished since then, however old it is. Without such a record, republishes what was
    /// written in the last hour, after `written_since`.
    pub(crate) fn stream_lost_end(&mut self, written_since: i64, unix_ms: i64) {
        let hour_ago = Checkpoint { unix_ms: unix_ms.saturating_sub(MAX_LOSS_MS), seq: written_since };
        let older = self.checkpoints.map_or(hour_ago, |checkpoints| checkpoints.older);
        let (since_ms, from) = (older.unix_ms.min(hour_ago.unix_ms), older.seq.min(written_since));
        let again = self.again_done.take().filter(|again| again.unix_ms >= since_ms);
        self.again(again.map_or(from, |again| again.from.min(from)));
        self.last = None;
    }

    /// Returns the default start time of that republication, in milliseconds since 1970.
    pub(crate) fn lost_since(unix_ms: i64) -> i64 {
        unix_ms.saturating_sub(MAX_LOSS_MS)
    }

    /// Begins a connection. `next` is the number of the next message of the stream. If the server lost the end of the stream, it
    /// is smaller than before.
    pub(crate) fn connected(&mut self, next: u64) {
        self.covered_at = self.covered_at.min(next);
    }

    /// Returns the lowest number in the stream of the messages that [`Self::covers`] describes.
    pub(crate) fn covered_at(&self) -> u64 {
        self.covered_at
    }

    /// Messages were removed from the stream. It still has every message after `covered_from`, or all that it had if that is
    /// `None`, at `covered_at` or a higher number.
    pub(crate) fn removed(&mut self, covered_from: Option<i64>, covered_at: u64) {
        self.covered_from = covered_from.unwrap_or(self.covered_from).max(self.began);
        self.covered_at = covered_at;
    }

    /// Messages after a number must be republished, because another machine lacks them or the server lost them. Returns true if
    /// that exceeds the current republication.
    pub(crate) fn again(&mut self, seq: i64) -> bool {
        let seq = seq.max(self.began);
        let is_more = self.again_from.is_none_or(|from| seq < from);
        if is_more {
            self.again_from = Some(seq);
        }
        is_more
    }

    /// Another machine lacks messages after a number. Returns true if something must be republished for it.
    pub(crate) fn wanted(&mut self, seq: i64) -> bool {
        seq.max(self.began) < self.covered_from && self.again(seq)
    }

    /// Returns the number after which the stream is given every message of this machine, in order. `None` if that is every
    /// message since it joined.
    pub(crate) fn covers(&self) -> Option<i64> {
        let from = self.again_from.map_or(self.covered_from, |again| again.min(self.covered_from));
        (from > self.began).then_some(from)
    }

    /// Returns true if this is the stream in which this machine joined: it receives everything that others published since then.
    pub(crate) fn is_first_stream(&self) -> bool {
        self.stream == self.joined_stream
    }

    /// Returns where publishing begins, if the stream has everything up to `published`.
    pub(crate) fn begin(&self, published: i64) -> i64 {
        self.again_from.unwrap_or(published).min(published).max(self.began)
    }

    /// The republication is complete.
    pub(crate) fn republished(&mut self, unix_ms: i64) {
        if let Some(from) = self.again_from.take() {
            self.covered_from = self.covered_from.min(from);
            let before = self.again_done.as_ref().map_or(from, |again| again.from);
            self.again_done = Some(CompletedRepublication { from: from.min(before), unix_ms });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = MAX_LOSS_MS;

    #[test]
    fn a_new_stream_gets_missing_messages_once() {
        let mut state = TeamState::joined("monday", 1, 10, 0);
        assert_eq!(state.begin(50), 50);
        assert!(!state.wanted(20), "the stream has the messages");
        state.switch_stream("tuesday", 0, 1, 50);
        assert!(!state.wanted(60) && !state.wanted(50));
        assert!(state.wanted(40));
        assert!(!state.wanted(45), "republication is in progress");
        assert!(state.wanted(30), "this machine lacks more");
        assert_eq!((state.begin(50), state.covers()), (30, Some(30)));
        state.republished(7);
        assert_eq!((state.covered_from, state.again_from, state.begin(50)), (30, None, 50));
        assert!(!state.wanted(30));
        assert!(state.wanted(0) && state.covers().is_none());
        assert_eq!(state.begin(50), 10, "messages from before joining are never published");
        assert_eq!(TeamState::read(&state.encode()), Some(state));
    }

    #[test]
    fn a_lost_end_of_the_stream_is_republished() {
        let mut state = TeamState::joined("monday", 1, 10, 0);
        state.stream_lost_end(45, HOUR + 5);
        assert_eq!(state.begin(50), 45);
        state.republished(7);
        state.switch_stream("tuesday", 0, 1, 50);
        assert!(state.wanted(20));
        state.republished(7);
        state.stream_lost_end(45, HOUR + 5);
        assert_eq!(state.begin(50), 20, "the republished messages were also at the end");
        state.republished(7);
        state.stream_lost_end(45, HOUR + 8);
        assert_eq!(state.begin(50), 45, "the republication is more than an hour old");
    }

    /// The server comes back a day after its crash, and the last message that it took was written weeks before.
    #[test]
    fn the_last_acknowledged_messages_are_republished_whatever_their_age() {
        let mut state = TeamState::joined("monday", 1, 10, 0);
        for (published, hour) in [(10, 1), (40, 2), (60, 9)] {
            state.arrived(published, hour * HOUR);
            state.arrived(published + 5, hour * HOUR + HOUR / 2);
        }
        state.stream_lost_end(90, 33 * HOUR);
        assert_eq!(state.begin(90), 40, "65 was the last, and 40 was there more than an hour before");
        let mut state = TeamState::joined("monday", 1, 10, 0);
        state.arrived(10, HOUR);
        state.stream_lost_end(90, 33 * HOUR);
        assert_eq!(state.begin(90), 10);
    }

    #[test]
    fn a_returning_stream_gets_the_messages_it_missed() {
        let mut state = TeamState::joined("monday", 1, 10, 0);
        state.arrived(20, HOUR);
        state.switch_stream("tuesday", 0, 1, 50);
        assert_eq!((state.begin(50), state.covers()), (50, Some(50)));
        state.switch_stream("monday", 0, 7, 80);
        assert_eq!((state.begin(80), state.covers()), (20, Some(20)));
        assert_eq!(state.earlier.len(), 1, "the returned stream is the current one");
        let mut unfinished = TeamState::joined("monday", 1, 10, 0);
        unfinished.again(30);
        unfinished.switch_stream("tuesday", 0, 1, 50);
        unfinished.switch_stream("monday", 0, 7, 80);
        assert_eq!(unfinished.begin(80), 30, "the republication was unfinished");
        for day in 0..20 {
            state.switch_stream(&format!("day {day}"), 0, 1, 80);
        }
        assert_eq!(state.earlier.len(), MAX_EARLIER);
        assert_eq!(TeamState::read(&state.encode()), Some(state));
    }

    /// This machine joined the team while its first stream was away.
    #[test]
    fn an_older_unknown_stream_gets_everything() {
        let mut state = TeamState::joined("tuesday", 1, 10, 0);
        state.set_stream_created(2_000);
        state.switch_stream("monday", 1_000, 7, 80);
        assert_eq!((state.begin(80), state.covers()), (10, None));
        state.set_stream_created(1_000);
        state.republished(7);
        state.switch_stream("wednesday", 3_000, 1, 90);
        assert_eq!(
            (state.begin(90), state.covers()),
            (90, Some(90)),
            "a new one: machines say what they lack"
        );
    }

    #[test]
    fn no_request_is_served_twice() {
        let mut state = TeamState::joined("monday", 1, 10, 0);
        state.switch_stream("tuesday", 0, 1, 50);
        let mut rounds = 0;
        for _ in 0..100 {
            if state.wanted(0) {
                rounds += 1;
                state.republished(7);
            }
        }
        assert_eq!(rounds, 1);
    }

    #[test]
    fn removed_messages_are_republished() {
        let mut state = TeamState::joined("monday", 1, 10, 0);
        assert!(!state.wanted(20), "the stream has the messages");
        state.removed(Some(30), 90);
        assert!(!state.wanted(30) && state.wanted(20));
        assert_eq!((state.begin(50), state.covers(), state.covered_at()), (20, Some(20), 90));
        state.republished(7);
        assert!(!state.wanted(20));
        state.connected(80);
        assert_eq!(state.covered_at(), 80, "the server lost the end");
        state.removed(Some(0), 95);
        assert!(state.covers().is_none() && !state.wanted(0), "what was before the team does not count");
        state.switch_stream("tuesday", 0, 1, 50);
        state.removed(None, 99);
        assert_eq!((state.covers(), state.covered_at()), (Some(50), 99), "the new stream never had more");
    }
}
