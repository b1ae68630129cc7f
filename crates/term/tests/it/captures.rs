//! Replays recordings of real clients: however the stream is split, the scanner finds the events in the manifest.

mod meaning;
mod recording;
mod turns;

use ringer_term::{Scanner, TerminalEvent};

use recording::{Recording, recordings};

fn events<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<TerminalEvent> {
    let (mut scanner, mut events) = (Scanner::new(), Vec::new());
    for piece in pieces {
        scanner.feed(piece, |event| events.push(event));
    }
    events
}

/// Compares one by one: two lists of a hundred events in a failure message are hard to compare.
fn check(recording: &Recording, found: &[TerminalEvent], how: &str) {
    for (index, (found, expected)) in found.iter().zip(&recording.expected).enumerate() {
        assert_eq!(found, expected, "{}, {how}: event {index}", recording.name);
    }
    assert_eq!(found.len(), recording.expected.len(), "{}, {how}: number of events", recording.name);
}

#[test]
fn every_recording_read_at_once() {
    for recording in recordings() {
        check(&recording, &events([recording.bytes.as_slice()]), "at once");
    }
}

#[test]
fn every_recording_read_byte_by_byte() {
    for recording in recordings() {
        check(&recording, &events(recording.bytes.chunks(1)), "byte by byte");
    }
}

#[test]
fn every_recording_read_as_it_was_recorded() {
    for recording in recordings() {
        check(&recording, &events(recording.reads.iter().map(|read| recording.read(read))), "as recorded");
    }
}

#[test]
fn every_recording_cut_inside_every_sequence() {
    for recording in recordings() {
        for sequence in &recording.sequences {
            for inside in 1..sequence.raw.len() {
                let (before, after) = recording.bytes.split_at(sequence.offset + inside);
                check(&recording, &events([before, after]), &format!("cut at {}", before.len()));
            }
        }
    }
}
