//! The scanner against a bare search for ESC and against the `vte` parser, on five kinds of output.
//!
//! Run with `cargo xtask bench scanner`. Every round runs all three over the same bytes, in pieces of the size of a
//! PTY read. The result is the median over all rounds of the ratio within one round, so a noisy machine affects all three
//! equally.

use std::hint::black_box;
use std::time::Instant;

use ringer_term::Scanner;

/// Input per round: well beyond the size of the cache.
const SIZE: usize = 32 * 1024 * 1024;
/// The largest read from a PTY.
const PIECE: usize = 64 * 1024;
const ROUNDS: usize = 15;

fn main() {
    println!("| input | scanner | memchr for ESC | vte | scanner / memchr | scanner / vte |");
    println!("|---|---|---|---|---|---|");
    for (name, unit) in inputs() {
        let bytes: Vec<u8> = unit.as_bytes().iter().copied().cycle().take(SIZE).collect();
        let rounds: Vec<[f64; 3]> =
            (0..ROUNDS).map(|_| [rate(&bytes, scan), rate(&bytes, search), rate(&bytes, parse)]).collect();
        let of = |index: usize| median(rounds.iter().map(|round| round[index]));
        let ratio = |index: usize| median(rounds.iter().map(|round| round[0] / round[index]));
        println!(
            "| {name} | {:.0} MB/s | {:.0} MB/s | {:.0} MB/s | {:.2} | {:.1} |",
            of(0),
            of(1),
            of(2),
            ratio(1),
            ratio(2)
        );
    }
}

fn inputs() -> [(&'static str, String); 5] {
    let text = "The quick brown fox jumps over the lazy dog while the build goes on and on.\r\n";
    let colour = (0..64)
        .map(|n| format!("\x1b[38;5;{}mword{n}\x1b[0m \x1b[1;{}mbold\x1b[22m ", n * 4, 30 + n % 8))
        .collect::<String>();
    let cursor = (0..64).map(|n| format!("\x1b[{};{}H\x1b[Kx", n % 40 + 1, n % 120 + 1)).collect::<String>();
    let osc = (0..16)
        .map(|n| {
            format!(
                "\x1b]0;◐ task {n}\x07text\x1b]9;4;1;{n}\x1b\\more\x1b]8;;file:///tmp/{n}\x1b\\link\x1b]8;;\x1b\\\
                 \x1b]99;i={n}:d=0:p=title;Claude Code\x1b\\\x1b]99;i={n}:p=body;needs you\x1b\\"
            )
        })
        .collect::<String>();
    [
        ("plain ASCII", text.repeat(8)),
        ("Unicode", "日本語のテキスト, ünïcödé, эмодзи 👩‍🚀 и кириллица\r\n".repeat(8)),
        ("colour-heavy", colour),
        ("cursor-dense", cursor),
        ("OSC-rich", osc),
    ]
}

/// Returns megabytes per second.
#[expect(clippy::cast_precision_loss, reason = "a rate, not an account")]
fn rate(bytes: &[u8], work: fn(&[u8]) -> usize) -> f64 {
    let start = Instant::now();
    black_box(work(black_box(bytes)));
    bytes.len() as f64 / start.elapsed().as_secs_f64() / 1e6
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn scan(bytes: &[u8]) -> usize {
    let mut scanner = Scanner::new();
    let mut events = 0;
    for piece in bytes.chunks(PIECE) {
        scanner.feed(piece, |event| events += usize::from(event.offset > 0));
    }
    events
}

fn search(bytes: &[u8]) -> usize {
    bytes.chunks(PIECE).map(|piece| memchr::memchr_iter(0x1b, piece).count()).sum()
}

fn parse(bytes: &[u8]) -> usize {
    let mut parser = vte::Parser::new();
    let mut counter = Counter(0);
    for piece in bytes.chunks(PIECE) {
        parser.advance(&mut counter, piece);
    }
    counter.0
}

/// Counts the callbacks of `vte`, so that nothing is optimised away.
struct Counter(usize);

impl vte::Perform for Counter {
    fn print(&mut self, _: char) {
        self.0 += 1;
    }

    fn execute(&mut self, _: u8) {
        self.0 += 1;
    }

    fn csi_dispatch(&mut self, _: &vte::Params, _: &[u8], _: bool, _: char) {
        self.0 += 1;
    }

    fn osc_dispatch(&mut self, _: &[&[u8]], _: bool) {
        self.0 += 1;
    }
}
