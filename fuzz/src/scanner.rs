//! Arbitrary bytes, cut at arbitrary places: the same events as in one piece.

use ringer_term::{Scanner, TerminalEvent};

pub fn run(data: &[u8]) {
    // The first byte chooses how long the pieces are.
    let Some((&length, stream)) = data.split_first() else { return };
    let whole = events(std::iter::once(stream));
    let pieces = events(stream.chunks(usize::from(length).max(1)));
    assert_eq!(whole, pieces);
    assert!(whole.iter().all(|event| event.offset < stream.len() as u64));
}

fn events<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> Vec<TerminalEvent> {
    let mut scanner = Scanner::new();
    let mut events = Vec::new();
    for piece in pieces {
        scanner.feed(piece, |event| events.push(event));
    }
    events
}
