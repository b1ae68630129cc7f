//! Panes that are used at random for long: what the server still holds afterwards.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use super::keys::next_prompt;
use super::multiplexer::{ALL, Kind};
use super::processes::{cpu_time, resident};
use super::terminal::{Reader, Terminal};
use super::{Bench, Options};

const SEED: u64 = 17;
/// More lines than either program keeps.
const FLOOD_LINES: usize = 20_000;
/// Until then, what the panes keep grows; after it, nothing should.
const WARM_UP_SHARE: u32 = 10;

pub(crate) fn run(bench: &Bench, options: &Options) {
    let file = bench.directory().join("flood");
    let line = "a line that is written by a flood, with \x1b[1;31msome\x1b[0m \x1b[38;5;33mcolours\x1b[0m\n";
    fs::write(&file, line.repeat(FLOOD_LINES)).expect("a file");
    println!(
        "| used at random for {} s | actions | RSS at the beginning | RSS after a tenth | RSS at the end | CPU |",
        options.soak.as_secs()
    );
    println!("|---|---:|---:|---:|---:|---:|");
    for (name, kind) in ALL {
        soak(bench, name, kind, &file, options.soak);
    }
    println!();
}

fn soak(bench: &Bench, name: &str, kind: Kind, file: &Path, time: Duration) {
    let multiplexer = bench.multiplexer(kind);
    let mut terminal = multiplexer.open(&[], Reader::Emulator);
    let first = next_prompt(&terminal, &[]);
    terminal.press(&[multiplexer.prefix(), "%"]);
    next_prompt(&terminal, &[first]);
    let (server, begun) = (multiplexer.server(), Instant::now());
    let (beginning, mut warm, mut actions) = (resident(server), None, 0_u32);
    let mut random = Random(SEED);
    let (mut floods, mut size) = (0, (120, 40));
    while begun.elapsed() < time {
        match random.below(4) {
            0 => {
                let (columns, lines) = (80 + random.below(120), 20 + random.below(40));
                size = (columns, lines);
                terminal.resize(columns, lines);
            }
            1 => {
                floods += 1;
                flood(&mut terminal, file, floods);
            }
            2 => {
                terminal.press(&[multiplexer.prefix(), "d"]);
                terminal.wait_for_end();
                terminal = multiplexer.attach();
                terminal.resize(size.0, size.1);
                next_prompt(&terminal, &[]);
            }
            // A second window, which is closed without a word.
            _ => {
                let second = multiplexer.attach();
                next_prompt(&second, &[]);
            }
        }
        next_prompt(&terminal, &[]);
        actions += 1;
        if warm.is_none() && begun.elapsed() > time / WARM_UP_SHARE {
            warm = Some(resident(server));
        }
    }
    println!(
        "| {name} | {actions} | {beginning:.1} MB | {:.1} MB | {:.1} MB | {:.1} s |",
        warm.unwrap_or(beginning),
        resident(server),
        cpu_time(server).as_secs_f64()
    );
}

/// Lets a pane write more than is kept, and waits until its end is on the screen.
fn flood(terminal: &mut Terminal, file: &Path, number: u32) {
    let end = format!("end-{number}-");
    // The quotes are in what is typed, and not in what is shown.
    terminal.write(&format!("cat {}; echo e''nd-{number}-\r", file.display()));
    terminal.wait_for(&end, |display| display.text().contains(&end).then_some(()));
}

/// The same numbers in each run.
struct Random(u64);

impl Random {
    /// A number less than `end`, by xorshift.
    fn below(&mut self, end: u16) -> u16 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        u16::try_from(self.0 % u64::from(end)).unwrap_or(0)
    }
}
