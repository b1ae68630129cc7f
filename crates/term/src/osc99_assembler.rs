//! Assembles the chunks of OSC 99 into notifications.

use std::collections::VecDeque;

use crate::event::{Notification, Osc99Metadata, Protocol, Query, TerminalEventKind};
use crate::osc99::NotificationId;
use crate::osc99_chunk::{Chunk, Key, PayloadType};

/// The most unfinished notifications that are kept. At the limit the oldest is dropped.
const MAX_PENDING: usize = 16;
/// The longest text of one unfinished notification, in bytes. A chunk beyond it drops the notification.
const MAX_TEXT: usize = 16 * 1024;
/// An unfinished notification is dropped after this many bytes of the stream. There is no clock here, and counting bytes makes
/// the result independent of how the stream is cut.
const MAX_AGE: u64 = 1024 * 1024;
/// The most finished notifications that are kept, so that late metadata can be added to them.
const MAX_REMEMBERED: usize = 16;

#[derive(Debug, Default)]
pub(crate) struct Osc99Assembler {
    pending: VecDeque<Pending>,
    finished: VecDeque<Notification>,
}

/// A notification that is being sent.
#[derive(Debug)]
struct Pending {
    id: Option<NotificationId>,
    /// The offset of its first chunk.
    offset: u64,
    title: Vec<u8>,
    body: Vec<u8>,
    buttons: Vec<u8>,
    keys: Vec<Key>,
}

impl Osc99Assembler {
    /// Adds the payload after `99;` of a sequence at `offset`. Returns the event that it completes, and its offset.
    pub(crate) fn add_chunk(&mut self, chunk: &[u8], offset: u64) -> Option<(u64, TerminalEventKind)> {
        let chunk = Chunk::parse(chunk)?;
        let event = match chunk.part {
            PayloadType::Query => TerminalEventKind::Query(Query::Osc99 { id: chunk.id }),
            PayloadType::Alive => TerminalEventKind::Query(Query::Alive { id: chunk.id }),
            PayloadType::Close => {
                self.pending.retain(|pending| pending.id != chunk.id);
                self.finished.retain(|finished| finished.id != chunk.id);
                TerminalEventKind::Close { id: chunk.id? }
            }
            PayloadType::Unknown => return None,
            PayloadType::Title | PayloadType::Body | PayloadType::Buttons | PayloadType::Icon => {
                return self.assemble(chunk, offset);
            }
        };
        Some((offset, event))
    }

    /// Returns the last finished notification with an id, including keys that arrived after it.
    pub(crate) fn finished(&self, id: &NotificationId) -> Option<&Notification> {
        self.finished.iter().rev().find(|finished| finished.id.as_ref() == Some(id))
    }

    fn assemble(&mut self, chunk: Chunk<'_>, offset: u64) -> Option<(u64, TerminalEventKind)> {
        self.pending.retain(|pending| pending.offset + MAX_AGE >= offset);
        let begun = self.pending.iter().position(|pending| pending.id == chunk.id);
        let mut pending = begun
            .and_then(|index| self.pending.remove(index))
            .unwrap_or_else(|| Pending::new(chunk.id, offset));
        match chunk.part {
            PayloadType::Title => pending.title.extend_from_slice(&chunk.payload),
            PayloadType::Body => pending.body.extend_from_slice(&chunk.payload),
            PayloadType::Buttons => pending.buttons.extend_from_slice(&chunk.payload),
            // The image data is not reported.
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

    /// Claude Code completes a notification twice: with its body, and again with an empty chunk that sets the action of a
    /// click. A completion without text therefore only adds its keys to the one before it.
    fn finish(&mut self, pending: Pending) -> Option<(u64, TerminalEventKind)> {
        if pending.title.is_empty() && pending.body.is_empty() {
            let id = pending.id.as_ref()?;
            let last = self.finished.iter_mut().rev().find(|finished| finished.id.as_ref() == Some(id))?;
            pending.apply_to(&mut last.metadata);
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
        Some((offset, TerminalEventKind::Notification(notification)))
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

    fn apply_to(&self, metadata: &mut Osc99Metadata) {
        for key in &self.keys {
            key.apply_to(metadata);
        }
        if !self.buttons.is_empty() {
            metadata.buttons =
                String::from_utf8_lossy(&self.buttons).split('\u{2028}').map(str::to_owned).collect();
        }
    }

    fn into_notification(self) -> Notification {
        let mut metadata = Osc99Metadata::default();
        self.apply_to(&mut metadata);
        Notification {
            protocol: Protocol::Osc99,
            title: String::from_utf8_lossy(&self.title).into_owned(),
            body: String::from_utf8_lossy(&self.body).into_owned(),
            id: self.id,
            metadata,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::osc99::Urgency;

    fn events(chunks: &[&str]) -> Vec<(u64, TerminalEventKind)> {
        let mut assembler = Osc99Assembler::default();
        (0..)
            .zip(chunks)
            .filter_map(|(offset, chunk)| assembler.add_chunk(chunk.as_bytes(), offset))
            .collect()
    }

    fn check(chunks: &[&str], expected: &[(u64, &str, &str)]) {
        let found: Vec<(u64, String, String)> = events(chunks)
            .into_iter()
            .map(|(offset, event)| match event {
                TerminalEventKind::Notification(notification) => {
                    (offset, notification.title, notification.body)
                }
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
    fn three_chunks_of_claude_code_are_one_notification() {
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
    fn late_keys_apply_to_the_last_notification_with_that_id() {
        let mut assembler = Osc99Assembler::default();
        for chunk in ["i=1:u=2;title", "i=1:a=-focus,report:t=eA==;", "i=2:u=0;"] {
            assembler.add_chunk(chunk.as_bytes(), 0);
        }
        let last = assembler.finished(&NotificationId::new("1").unwrap()).unwrap();
        assert_eq!((last.title.as_str(), last.metadata.urgency), ("title", Urgency::Critical));
        assert!(!last.metadata.actions.focus && last.metadata.actions.report);
        assert_eq!(last.metadata.types, ["x"]);
    }

    #[test]
    fn close_query_and_alive() {
        let id = NotificationId::new("a").unwrap();
        assert_eq!(
            events(&["i=a:p=close;", "i=a:p=?;", "i=a:p=alive;", "p=close;"]),
            [
                (0, TerminalEventKind::Close { id: id.clone() }),
                (1, TerminalEventKind::Query(Query::Osc99 { id: Some(id.clone()) })),
                (2, TerminalEventKind::Query(Query::Alive { id: Some(id) })),
            ]
        );
        // Closed before it was complete: the next chunk starts a new one.
        let found = events(&["i=a:d=0;gone", "i=a:p=close;", "i=a:p=body;new"]);
        assert!(
            matches!(&found[1].1, TerminalEventKind::Notification(n) if n.title.is_empty() && n.body == "new")
        );
    }

    #[test]
    fn a_hostile_id_is_ignored() {
        let found = events(&["i=a\x1b]:p=?;"]);
        assert_eq!(found, [(0, TerminalEventKind::Query(Query::Osc99 { id: None }))]);
    }

    #[test]
    fn buttons() {
        let found = events(&["i=1:d=0;t", "i=1:p=buttons;Yes\u{2028}No"]);
        assert!(
            matches!(&found[0].1, TerminalEventKind::Notification(n) if n.metadata.buttons == ["Yes", "No"])
        );
    }

    #[test]
    fn pending_is_bounded_in_number_size_and_age() {
        let mut assembler = Osc99Assembler::default();
        for id in 0..1000 {
            assembler.add_chunk(format!("i={id}:d=0;title").as_bytes(), 0);
        }
        assert_eq!(assembler.pending.len(), MAX_PENDING);
        for _ in 0..1000 {
            assembler.add_chunk(format!("i=big:d=0;{}", "x".repeat(MAX_TEXT / 16)).as_bytes(), 0);
        }
        assert!(assembler.pending.iter().map(Pending::size).sum::<usize>() <= MAX_PENDING * MAX_TEXT);
        for _ in 0..1000 {
            assembler.add_chunk(b"i=1:t=eA==:n=eA==;title", 0);
            assembler.add_chunk(b"i=1:t=eA==:n=eA==;", 0);
        }
        assert!(assembler.finished.iter().all(|finished| finished.metadata.types.len() <= 16));
        assembler.add_chunk(b"i=late;title", MAX_AGE + 1);
        assert_eq!(assembler.pending.len(), 0, "old ones are forgotten");
    }
}
