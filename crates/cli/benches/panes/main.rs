//! Panes beside tmux: how long much output takes to the screen and what it costs, how long a key takes to its echo while another
//! pane floods, what quiet panes hold in memory and how often they wake their server, and what is left after hours of use.
//!
//! Run with `cargo xtask bench panes`, which names the program to try in `RINGER`. Both programs run in a terminal of 120 columns
//! and 40 lines that is read at once. No hub runs. For trying, `RINGER_BENCH_MEGABYTES`, `RINGER_BENCH_ROUNDS` and
//! `RINGER_BENCH_KEYS` choose smaller numbers, `RINGER_BENCH_IDLE` and `RINGER_BENCH_SOAK` are times in seconds, and
//! `RINGER_BENCH_PARTS` names the parts to run: `output`, `keys`, `quiet`, `soak`.

#![expect(clippy::expect_used, reason = "a measurement that cannot go on has failed")]

mod cleanup;
mod keys;
mod multiplexer;
mod output;
mod processes;
mod quiet;
mod soak;
mod table;
mod terminal;

use std::path::{Path, PathBuf};
use std::time::Duration;

use cleanup::Cleanup;
use multiplexer::{Kind, Multiplexer};

/// How much is measured.
struct Options {
    /// The size of a file that is shown.
    bytes: usize,
    rounds: usize,
    /// For each program, with and without a flood.
    keys: usize,
    /// How long quiet panes are watched.
    idle: Duration,
    /// How long panes are used at random; not at all if it is zero.
    soak: Duration,
}

fn main() {
    if cleanup::is_guard() {
        return cleanup::guard();
    }
    let Some(ringer) = std::env::var_os("RINGER").map(PathBuf::from) else {
        // As when all targets are tried.
        eprintln!("RINGER names no program; cargo xtask bench panes does");
        return;
    };
    let chosen = |name: &str, default: usize| {
        std::env::var(name).ok().and_then(|number| number.parse().ok()).unwrap_or(default)
    };
    let seconds = |name: &str, default| Duration::from_secs(chosen(name, default) as u64);
    let options = Options {
        bytes: chosen("RINGER_BENCH_MEGABYTES", 100) * 1024 * 1024,
        rounds: chosen("RINGER_BENCH_ROUNDS", 5).max(1),
        keys: chosen("RINGER_BENCH_KEYS", 300),
        idle: seconds("RINGER_BENCH_IDLE", 60),
        soak: seconds("RINGER_BENCH_SOAK", 0),
    };
    let parts = std::env::var("RINGER_BENCH_PARTS").unwrap_or_else(|_| "output keys quiet soak".to_owned());
    let is_chosen = |part: &str| parts.split([' ', ',']).any(|name| name == part);
    let bench = Bench { ringer, cleanup: Cleanup::start() };
    if is_chosen("output") {
        output::run(&bench, &options);
    }
    if is_chosen("keys") {
        keys::run(&bench, &options);
    }
    if is_chosen("quiet") {
        quiet::run(&bench, &options);
    }
    if is_chosen("soak") && !options.soak.is_zero() {
        soak::run(&bench, &options);
    }
}

/// Where everything of one run is.
struct Bench {
    ringer: PathBuf,
    cleanup: Cleanup,
}

impl Bench {
    /// One of the programs with a home of its own, and no pane yet.
    fn multiplexer(&self, kind: Kind) -> Multiplexer {
        Multiplexer::new(kind, &self.ringer, self.directory())
    }

    fn directory(&self) -> &Path {
        self.cleanup.directory()
    }
}
