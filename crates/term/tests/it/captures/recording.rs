//! A recording: a client's output with its timing, and the sequences in it.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use ringer_term::TerminalEvent;
use serde_json::Value;

use super::meaning;

pub(super) struct Recording {
    pub(super) name: String,
    pub(super) bytes: Vec<u8>,
    /// The reads in which the bytes arrived.
    pub(super) reads: Vec<Read>,
    /// Every OSC, DCS and BEL, as the manifest lists them.
    pub(super) sequences: Vec<Sequence>,
    /// Their meaning.
    pub(super) expected: Vec<TerminalEvent>,
}

pub(super) struct Read {
    pub(super) at: Duration,
    offset: usize,
    length: usize,
}

pub(super) struct Sequence {
    pub(super) offset: usize,
    pub(super) raw: String,
}

impl Recording {
    pub(super) fn read(&self, read: &Read) -> &[u8] {
        &self.bytes[read.offset..read.offset + read.length]
    }
}

/// Every recording of the manifest.
pub(super) fn recordings() -> Vec<Recording> {
    let manifest: Value = serde_json::from_slice(&file("MANIFEST.json")).unwrap();
    manifest.as_object().unwrap().iter().map(|(name, entry)| recording(name, entry)).collect()
}

fn recording(name: &str, entry: &Value) -> Recording {
    let bytes = file(&format!("{name}.bin"));
    assert_eq!(bytes.len(), number(entry, "bytes"), "{name}: was the recording copied as binary?");
    let index = String::from_utf8(file(&format!("{name}.idx"))).unwrap();
    let reads: Vec<Read> = index.lines().map(|line| read(&serde_json::from_str(line).unwrap())).collect();
    assert_eq!(reads.iter().map(|read| read.length).sum::<usize>(), bytes.len(), "{name}: reads cover it");
    let sequences: Vec<Sequence> = entry["events"].as_array().unwrap().iter().map(sequence).collect();
    for sequence in &sequences {
        let there = &bytes[sequence.offset..sequence.offset + sequence.raw.len()];
        assert_eq!(there, sequence.raw.as_bytes(), "{name}: the manifest is of this recording");
    }
    let expected = meaning::events(&sequences);
    Recording { name: name.to_owned(), bytes, reads, sequences, expected }
}

fn read(line: &Value) -> Read {
    let at = Duration::from_secs_f64(line["t"].as_f64().unwrap());
    Read { at, offset: number(line, "off"), length: number(line, "len") }
}

fn sequence(entry: &Value) -> Sequence {
    Sequence { offset: number(entry, "off"), raw: entry["seq"].as_str().unwrap().to_owned() }
}

fn number(value: &Value, key: &str) -> usize {
    usize::try_from(value[key].as_u64().unwrap()).unwrap()
}

fn file(name: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/captures").join(name);
    fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
