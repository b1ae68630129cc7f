//! What a program writes arrives as it would without.

use std::fs;
use std::path::PathBuf;

use super::pane::{RINGER, output_of, run_script};

/// Recordings of real clients.
pub(super) fn recordings() -> Vec<PathBuf> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../term/tests/fixtures/captures");
    let files = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let found: Vec<PathBuf> = files.filter(|file| file.extension().is_some_and(|end| end == "bin")).collect();
    assert!(found.len() >= 10, "{folder}");
    found
}

#[test]
fn recordings_of_real_clients_arrive_byte_for_byte() {
    for recording in recordings() {
        let file = recording.to_str().expect("a path");
        let straight = output_of(&["cat", file]);
        assert!(!straight.is_empty());
        assert!(output_of(&[RINGER, "run", "--", "cat", file]) == straight, "{file}");
    }
}

#[test]
fn a_binary_flood_arrives_byte_for_byte() {
    let folder = tempfile::tempdir().expect("a directory");
    let file = folder.path().join("flood");
    // Every byte, and UTF-8 that is cut by every read.
    let mut flood: Vec<u8> = (0..=255u8).cycle().take(1_000_000).collect();
    flood.extend("✳é😀".bytes().cycle().take(1_000_001));
    fs::write(&file, &flood).expect("a file");
    // Without the terminal's own changes: newlines stay newlines.
    let pane = run_script(&format!("stty raw -echo; cat {}", file.display()));
    let (written, status) = pane.end();
    assert!(status.success());
    assert!(written == flood, "{} bytes of {}", written.len(), flood.len());
}

#[test]
fn an_escape_alone_arrives() {
    let mut pane = run_script("stty -echo; printf '\\033'; read line; echo end");
    pane.wait_for("\x1b");
    pane.type_bytes(b"\n");
    pane.wait_for("end");
}

#[test]
fn the_last_output_arrives_although_another_process_keeps_the_terminal() {
    let pane = run_script("trap '' HUP; sleep 30 & echo the last words");
    let (written, status) = pane.end();
    assert!(status.success());
    assert!(String::from_utf8_lossy(&written).contains("the last words"));
}
