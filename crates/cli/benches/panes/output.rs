//! Much output in one pane.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::multiplexer::{ALL, Multiplexer};
use super::processes::{cpu_time, resident};
use super::table::{median, percentile};
use super::terminal::{Place, Reader, Terminal};
use super::{Bench, Options};

/// Shows a file each time it is told a mark, and the mark after it. What is typed is not echoed.
const SCRIPT: &str =
    "stty -echo\nprintf ready\nwhile read -r mark; do cat \"$1\"; printf '\\n%s' \"$mark\"; done\n";
const TEXT: &str = "the quick brown fox jumps over the lazy dog, and runs on until the line is long enough\n";
const COLOURS: &str =
    "\x1b[1;34mthe quick\x1b[0m \x1b[38;5;208mbrown\x1b[m fox \x1b[38;2;1;2;3mjumps\x1b[0m\r\n";
/// Letters that no file has; a mark is some of them in a row.
const LETTERS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
const MARK_LENGTH: usize = 12;

pub(crate) fn run(bench: &Bench, options: &Options) {
    let script = bench.directory().join("script");
    fs::write(&script, SCRIPT).expect("a file");
    let files = [("text", TEXT), ("colours", COLOURS)]
        .map(|(name, line)| (name, fill(bench.directory(), name, line, options.bytes)));
    for (reader, where_to) in [(Reader::Discarding, "read at once"), (Reader::Emulator, "into an emulator")] {
        for (name, file) in &files {
            let megabytes = options.bytes >> 20;
            println!(
                "| {megabytes} MB of {name}, {where_to} ({} runs each, in turn) | shortest | median | ratio of the medians | CPU of the server | CPU with the window's process | RSS of the server |",
                options.rounds
            );
            println!("|---|---:|---:|---:|---:|---:|---:|");
            measure(bench, options, &script, file, reader);
        }
    }
}

/// Whole lines: a sequence that is cut off would swallow the mark.
fn fill(directory: &Path, name: &str, line: &str, bytes: usize) -> PathBuf {
    let path = directory.join(name);
    fs::write(&path, line.repeat(bytes.div_ceil(line.len()))).expect("a file");
    path
}

#[derive(Default)]
struct Times {
    shown: Vec<Duration>,
    server: Vec<Duration>,
    all: Vec<Duration>,
}

fn measure(bench: &Bench, options: &Options, script: &Path, file: &Path, reader: Reader) {
    let program = ["sh", script.to_str().expect("a path in UTF-8"), file.to_str().expect("a path in UTF-8")];
    let mut contenders: Vec<(&str, Multiplexer, Terminal, u32, Times)> = Vec::new();
    for (name, kind) in ALL {
        let multiplexer = bench.multiplexer(kind);
        let terminal = multiplexer.open(&program, reader);
        // Nothing is typed before the script turned the echo off.
        terminal.wait_until_ready();
        let server = multiplexer.server();
        contenders.push((name, multiplexer, terminal, server, Times::default()));
    }
    for round in 0..options.rounds {
        // Each letter is another one than in the round before: a program may leave out what is on the screen already.
        let begin = round % (LETTERS.len() - MARK_LENGTH);
        let mark = &LETTERS[begin..begin + MARK_LENGTH];
        for (_, _, terminal, server, times) in &mut contenders {
            let (before, client) = (cpu_time(*server), cpu_time(terminal.pid));
            times.shown.push(terminal.type_until(&format!("{mark}\r"), mark, Place::BeforeCursor));
            let used = cpu_time(*server).saturating_sub(before);
            times.server.push(used);
            times.all.push(used + cpu_time(terminal.pid).saturating_sub(client));
        }
    }
    let medians: Vec<f64> = contenders.iter_mut().map(|(.., times)| median(&mut times.shown)).collect();
    let baseline = medians.last().copied().unwrap_or_default();
    for ((name, _, _, server, times), shown) in contenders.iter_mut().zip(&medians) {
        println!(
            "| {name} | {:.2} s | {shown:.2} s | {:.2} × | {:.2} s | {:.2} s | {:.1} MB |",
            percentile(&times.shown, 0),
            shown / baseline,
            median(&mut times.server),
            median(&mut times.all),
            resident(*server)
        );
    }
    println!();
}
