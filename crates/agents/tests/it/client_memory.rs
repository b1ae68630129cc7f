//! Reads fifty megabytes of a tool's result in less than one megabyte of memory.
//!
//! The peak memory is measured by Linux, in a separate process, because other tests of this program run at the same time.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "helpers of tests, outside any test function")]

use std::io::{self, Read};
use std::process::Command;

use ringer_agents::client::{Client, read_from};

const GREAT: usize = 50 * 1024 * 1024;
/// Large enough to be noticed, for inputs that are not worth ten seconds.
const LARGE: usize = 8 * 1024 * 1024;
/// The shortest input that runs the same parts of the program.
const LITTLE: usize = 64 * 1024;
const MOST: u64 = 1024 * 1024;

/// A prefix, the same piece many times, a suffix; never in memory as a whole.
fn long(length: usize, opening: &'static str, piece: &'static [u8], ending: &'static str) -> impl Read {
    struct Pieces(&'static [u8], usize);
    impl Read for Pieces {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            if buffer.len() < self.0.len() || self.1 == 0 {
                return Ok(0);
            }
            self.1 -= 1;
            buffer[..self.0.len()].copy_from_slice(self.0);
            Ok(self.0.len())
        }
    }
    opening.as_bytes().chain(Pieces(piece, length / piece.len())).chain(ending.as_bytes())
}

fn greatest_size() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

/// Reads inputs of these lengths: one that is skipped, and others that are partly kept.
fn read_all(great: usize, large: usize) {
    const TEXT: &[u8] = &[b'x'; 4096];
    let read = |source: Box<dyn Read>| read_from(Client::Claude, "PostToolUse", source).unwrap();
    let report = read(Box::new(long(great, "{\"tool_response\": \"", TEXT, "\", \"tool_use_id\": \"t1\"}")));
    assert_eq!(report.call_id.as_deref(), Some("t1"));
    // Texts and lists that are truncated; an endless name; one member again and again.
    read(Box::new(long(large, "{\"last_assistant_message\": \"", TEXT, "\"}")));
    read(Box::new(long(large, "{\"background_tasks\": [", b"{\"command\": \"make\"},", "1]}")));
    read(Box::new(long(large, "{\"", TEXT, "\": 1}")));
    let again = b"\"prompt\": {\"message\": \"aaaaaaaaaaaaaaaaaaaaaaaa\"},";
    read(Box::new(long(large, "{", again, "\"a\": 1}")));
}

#[test]
#[ignore = "run by the test below, in a process of its own"]
fn measured() {
    // The first calls touch pages of the program, not of the input.
    read_all(LITTLE, LITTLE);
    let before = greatest_size();
    read_all(GREAT, LARGE);
    let grown = greatest_size() - before;
    println!("grew by {grown} bytes");
    assert!(grown < MOST, "grew by {grown} bytes");
}

#[test]
fn a_great_tool_result_takes_little_memory() {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "client_memory::measured", "--ignored", "--test-threads", "1"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}
