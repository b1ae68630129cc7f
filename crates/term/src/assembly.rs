//! OSC 99 comes in chunks; here they become notifications.

use std::collections::VecDeque;

use crate::chunk99::{Chunk, Key, Part};
use crate::event::{EventKind, Keys, Notification, Protocol, Query};
use crate::id::NotificationId;

/// Notifications begun and not finished. One more drops the oldest.
const MAX_PENDING: usize = 16;
/// Text of one unfinished notification. A chunk that goes over it drops the notification.
const MAX_TEXT: usize = 16 * 1024;
/// An unfinished notification is dropped when the stream has gone on for this many bytes: there is no clock here, and
/// counting bytes keeps the outcome independent of how the stream was cut.
const MAX_AGE: u64 = 1024 * 1024;
/// Finished notifications that late keys can still be added to.
const MAX_REMEMBERED: usize = 16;

#[derive(Debug, Default)]
pub(crate) struct Assembly {
    pending: VecDeque<Pending>,
    finished: VecDeque<Notification>,
}

/// A notification that is being sent.
#[derive(Debug)]
struct Pending {
    id: Option<NotificationId>,
    /// Where its first chunk starts.
    offset: u64,
    title: Vec<u8>,
    body: Vec<u8>,
    buttons: Vec<u8>,
    keys: Vec<Key>,
}

impl Assembly {
    /// Takes what follows `99;`, of a sequence at `offset`. Gives the event that it completes, and where that started.
    pub(crate) fn take(&mut self, chunk: &[u8], offset: u64) -> Option<(u64, EventKind)> {
        let chunk = Chunk::parse(chunk)?;
        let event = match chunk.part {
            Part::Query => EventKind::Query(Query::Osc99 { id: chunk.id }),
            Part::Alive => EventKind::Query(Query::Alive { id: chunk.id }),
            Part::Close => {
                self.pending.retain(|pending| pending.id != chunk.id);
                self.finished.retain(|finished| finished.id != chunk.id);
                EventKind::Close { id: chunk.id? }
            }
            Part::Unknown => return None,
            Part::Title | Part::Body | Part::Buttons | Part::Icon => return self.assemble(chunk, offset),
        };
        Some((offset, event))
    }

    /// The last finished notification of an id, with the keys that came after it.
    pub(crate) fn finished(&self, id: &NotificationId) -> Option<&Notification> {
        self.finished.iter().rev().find(|finished| finished.id.as_ref() == Some(id))
    }

    fn assemble(&mut self, chunk: Chunk<'_>, offset: u64) -> Option<(u64, EventKind)> {
        self.pending.retain(|pending| pending.offset + MAX_AGE >= offset);
        let begun = self.pending.iter().position(|pending| pending.id == chunk.id);
        let mut pending = begun
            .and_then(|index| self.pending.remove(index))
            .unwrap_or_else(|| Pending::new(chunk.id, offset));
        match chunk.part {
            Part::Title => pending.title.extend_from_slice(&chunk.payload),
            Part::Body => pending.body.extend_from_slice(&chunk.payload),
            Part::Buttons => pending.buttons.extend_from_slice(&chunk.payload),
            // The picture itself concerns only a terminal that draws it.
            _ => {}
        }
        pending.keys.extend(chunk.keys);
        if pending.size() > MAX_TEXT {
            return None;
        }
        if !chunk.done {
            if self.pending.len() == MAX_PENDING {
                self.pending.pop_front();
            }
            self.pending.push_back(pending);
            return None;
        }
        self.finish(pending)
    }

    /// Claude Code completes a notification twice: with its body, and again with an empty chunk that says what a click
    /// does. A completion without text therefore only adds its keys to the one before it.
    fn finish(&mut self, pending: Pending) -> Option<(u64, EventKind)> {
        if pending.title.is_empty() && pending.body.is_empty() {
            let id = pending.id.as_ref()?;
            let last = self.finished.iter_mut().rev().find(|finished| finished.id.as_ref() == Some(id))?;
            pending.apply_to(&mut last.keys);
            return None;
        }
        let offset = pending.offset;
        let notification = pending.into_notification();
        if notification.id.is_some() {
            self.finished.retain(|finished| finished.id != notification.id);
            if self.finished.len() == MAX_REMEMBERED {
                self.finished.pop_front();
            }
            self.finished.push_back(notification.clone());
        }
        Some((offset, EventKind::Notification(notification)))
    }
}

impl Pending {
    fn new(id: Option<NotificationId>, offset: u64) -> Self {
        Self { id, offset, title: vec![], body: vec![], buttons: vec![], keys: vec![] }
    }

    fn size(&self) -> usize {
        let keys: usize = self.keys.iter().map(Key::size).sum();
        self.title.len() + self.body.len() + self.buttons.len() + keys
    }

    fn apply_to(&self, keys: &mut Keys) {
        for key in &self.keys {
            key.apply_to(keys);
        }
        if !self.buttons.is_empty() {
            keys.buttons =
                String::from_utf8_lossy(&self.buttons).split('\u{2028}').map(str::to_owned).collect();
        }
    }

    fn into_notification(self) -> Notification {
        let mut keys = Keys::default();
        self.apply_to(&mut keys);
        Notification {
            protocol: Protocol::Osc99,
            title: String::from_utf8_lossy(&self.title).into_owned(),
            body: String::from_utf8_lossy(&self.body).into_owned(),
            id: self.id,
            keys,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::osc99::Urgency;

    fn events(chunks: &[&str]) -> Vec<(u64, EventKind)> {
        let mut assembly = Assembly::default();
        (0..).zip(chunks).filter_map(|(offset, chunk)| assembly.take(chunk.as_bytes(), offset)).collect()
    }

    fn check(chunks: &[&str], expected: &[(u64, &str, &str)]) {
        let found: Vec<(u64, String, String)> = events(chunks)
            .into_iter()
            .map(|(offset, event)| match event {
                EventKind::Notification(notification) => (offset, notification.title, notification.body),
                other => panic!("{other:?}"),
            })
            .collect();
        let expected: Vec<(u64, String, String)> =
            expected.iter().map(|(offset, title, body)| (*offset, (*title).into(), (*body).into())).collect();
        assert_eq!(found, expected, "{chunks:?}");
    }

    #[test]
    fn one_chunk_is_a_title() {
        check(&[";Hello"], &[(0, "Hello", "")]);
        check(&["p=body;Hello"], &[(0, "", "Hello")]);
        check(&[";", "i=1;", "p=strange;x", "no second semicolon"], &[]);
    }

    #[test]
    fn claude_code_sends_three_chunks_and_means_one() {
        let chunks = ["i=3436:d=0:p=title;Claude Code", "i=3436:p=body;needs you", "i=3436:d=1:a=focus;"];
        check(&chunks, &[(0, "Claude Code", "needs you")]);
    }

    #[test]
    fn our_own_three_chunks() {
        check(&["i=1:d=0:p=title;T", "i=1:d=0:p=body;B", "i=1:d=1:a=focus;"], &[(0, "T", "B")]);
    }

    #[test]
    fn ids_do_not_mix() {
        check(
            &["i=1:d=0;one", "i=2:d=0;two", "d=0;none", "i=2:p=body;b2", "i=1:p=body;b1", "p=body;b0"],
            &[(1, "two", "b2"), (0, "one", "b1"), (2, "none", "b0")],
        );
    }

    #[test]
    fn base64_pieces_join_before_they_are_decoded_as_text() {
        // "é" cut in half.
        check(&["i=1:d=0:e=1:p=body;w8M=", "i=1:e=1:p=body;qQ=="], &[(0, "", "\u{fffd}é")]);
        check(&["i=1:d=0:e=1:p=body;w6k=", "i=1:p=body; plain"], &[(0, "", "é plain")]);
        check(&["i=1:e=1;not base64!"], &[]);
    }

    #[test]
    fn late_keys_reach_the_last_of_that_id() {
        let mut assembly = Assembly::default();
        for chunk in ["i=1:u=2;title", "i=1:a=-focus,report:t=eA==;", "i=2:u=0;"] {
            assembly.take(chunk.as_bytes(), 0);
        }
        let last = assembly.finished(&NotificationId::new("1").unwrap()).unwrap();
        assert_eq!((last.title.as_str(), last.keys.urgency), ("title", Urgency::Critical));
        assert!(!last.keys.actions.focus && last.keys.actions.report);
        assert_eq!(last.keys.types, ["x"]);
    }

    #[test]
    fn close_query_and_alive() {
        let id = NotificationId::new("a").unwrap();
        assert_eq!(
            events(&["i=a:p=close;", "i=a:p=?;", "i=a:p=alive;", "p=close;"]),
            [
                (0, EventKind::Close { id: id.clone() }),
                (1, EventKind::Query(Query::Osc99 { id: Some(id.clone()) })),
                (2, EventKind::Query(Query::Alive { id: Some(id) })),
            ]
        );
        // Closed before it was complete: what follows starts afresh.
        let found = events(&["i=a:d=0;gone", "i=a:p=close;", "i=a:p=body;new"]);
        assert!(matches!(&found[1].1, EventKind::Notification(n) if n.title.is_empty() && n.body == "new"));
    }

    #[test]
    fn a_hostile_id_is_no_id() {
        let found = events(&["i=a\x1b]:p=?;"]);
        assert_eq!(found, [(0, EventKind::Query(Query::Osc99 { id: None }))]);
    }

    #[test]
    fn buttons() {
        let found = events(&["i=1:d=0;t", "i=1:p=buttons;Yes\u{2028}No"]);
        assert!(matches!(&found[0].1, EventKind::Notification(n) if n.keys.buttons == ["Yes", "No"]));
    }

    #[test]
    fn pending_is_bounded_in_number_size_and_age() {
        let mut assembly = Assembly::default();
        for id in 0..1000 {
            assembly.take(format!("i={id}:d=0;title").as_bytes(), 0);
        }
        assert_eq!(assembly.pending.len(), MAX_PENDING);
        for _ in 0..1000 {
            assembly.take(format!("i=big:d=0;{}", "x".repeat(MAX_TEXT / 16)).as_bytes(), 0);
        }
        assert!(assembly.pending.iter().map(Pending::size).sum::<usize>() <= MAX_PENDING * MAX_TEXT);
        for _ in 0..1000 {
            assembly.take(b"i=1:t=eA==:n=eA==;title", 0);
            assembly.take(b"i=1:t=eA==:n=eA==;", 0);
        }
        assert!(assembly.finished.iter().all(|finished| finished.keys.types.len() <= 16));
        assembly.take(b"i=late;title", MAX_AGE + 1);
        assert_eq!(assembly.pending.len(), 0, "old ones are forgotten");
    }
}
