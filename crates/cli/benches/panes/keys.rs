//! From a key to its echo on the screen.

use std::thread;
use std::time::{Duration, Instant};

use super::multiplexer::{ALL, Kind, Multiplexer, WAIT_FOR_FLOOD};
use super::processes::{cpu_time, written};
use super::table::percentile;
use super::terminal::{Place, Reader, Terminal};
use super::{Bench, Options};

/// How many panes there are beside the one with the keys, when one of them floods.
const OTHERS: usize = 7;
const LETTERS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
/// Both programs have these keys, after the prefix.
const SPLIT_RIGHT: &str = "%";
const SPLIT_DOWN: &str = "\"";
/// The terminal erases what was typed in the line: Ctrl-U.
const ERASE_LINE: &str = "\x15";
const GO_LEFT: &str = "\x1b[D";
const GO_RIGHT: &str = "\x1b[C";
const GO_UP: &str = "\x1b[A";

/// Between two keys. The steps are no part of the time between two frames, so that keys come at all times within it.
const SHORTEST_PAUSE: Duration = Duration::from_millis(20);
const PAUSE_STEP: Duration = Duration::from_micros(791);

/// What happens in other panes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Beside {
    Nothing,
    Flood,
}

pub(crate) fn run(bench: &Bench, options: &Options) {
    for (beside, what) in [(Beside::Nothing, "alone"), (Beside::Flood, "8 panes, one of them runs `yes`")] {
        let mut all = ALL.map(|(name, kind)| (name, kind, Keys::default()));
        for round in 0..options.rounds {
            let is_last = round + 1 == options.rounds;
            let share = options.keys / options.rounds;
            let count = if is_last { options.keys - share * round } else { share };
            for (_, kind, keys) in &mut all {
                measure(bench, *kind, beside, count, keys);
            }
        }
        print(
            &format!("a key to its echo, {what} ({} each, in {} rounds)", options.keys, options.rounds),
            &mut all,
        );
    }
}

#[derive(Default)]
struct Keys {
    times: Vec<Duration>,
    measured: Duration,
    cpu: Duration,
    flooded: f64,
}

fn measure(bench: &Bench, kind: Kind, beside: Beside, count: usize, keys: &mut Keys) {
    let multiplexer = bench.multiplexer(kind);
    let mut terminal = multiplexer.open(&[], Reader::Emulator);
    let first = next_prompt(&terminal, &[]);
    if beside == Beside::Flood {
        open_others(&multiplexer, &mut terminal, first);
    }
    terminal.write("cat\r");
    multiplexer.wait_for_running("cat");
    if beside == Beside::Flood {
        multiplexer.begin_flood();
    }
    let (server, flood) = (multiplexer.server(), multiplexer.running("yes"));
    let (begun, cpu) = (Instant::now(), cpu_time(server));
    let flooded: f64 = flood.iter().map(|pid| written(*pid)).sum();
    let mut tag = String::new();
    for number in 0..count {
        let at = number % LETTERS.len();
        if at == 0 {
            // Each line begins with another tag, so that its letters are found wherever the line is. Enter would let `cat` write
            // the line at any time later, between the letters.
            tag = format!("#{}:", number / LETTERS.len());
            terminal.type_until(&format!("{ERASE_LINE}{tag}"), &tag, Place::Anywhere);
        }
        // Not in step with frames: times that differ, as a person types.
        thread::sleep(SHORTEST_PAUSE + PAUSE_STEP * u32::try_from(number * 13 % 31).unwrap_or(0));
        let shown = format!("{tag}{}", &LETTERS[..=at]);
        keys.times.push(terminal.type_until(&LETTERS[at..=at], &shown, Place::Anywhere));
    }
    keys.measured += begun.elapsed();
    keys.cpu += cpu_time(server).saturating_sub(cpu);
    keys.flooded += flood.iter().map(|pid| written(*pid)).sum::<f64>() - flooded;
}

/// Opens the other panes, two columns of four, and goes back to the first one. The second one floods.
fn open_others(multiplexer: &Multiplexer, terminal: &mut Terminal, first: u32) {
    let mut known = vec![first];
    for number in 0..OTHERS {
        let split = match number {
            0 => SPLIT_RIGHT,
            _ => SPLIT_DOWN,
        };
        // The upper four are at the right, below the second one; then the rest is below the first one.
        if number == OTHERS / 2 + 1 {
            go(multiplexer, terminal, GO_LEFT, first);
        }
        terminal.press(&[multiplexer.prefix(), split]);
        known.push(next_prompt(terminal, &known));
    }
    for pane in known[OTHERS / 2 + 2..OTHERS].iter().rev().chain([&first]) {
        go(multiplexer, terminal, GO_UP, *pane);
    }
    // In the second pane, from where the keys come back to the first one.
    terminal.press(&[multiplexer.prefix(), GO_RIGHT]);
    terminal.wait_for("the second pane", |display| display.prompt().filter(|pane| *pane == known[1]));
    terminal.write(&format!("{WAIT_FOR_FLOOD}\r"));
    go(multiplexer, terminal, GO_LEFT, first);
}

/// Goes to a pane with a key after the prefix.
fn go(multiplexer: &Multiplexer, terminal: &mut Terminal, key: &str, pane: u32) {
    terminal.press(&[multiplexer.prefix(), key]);
    terminal.wait_for("the prompt of another pane", |display| display.prompt().filter(|own| *own == pane));
}

/// Waits for the prompt of a shell that was not there before.
pub(super) fn next_prompt(terminal: &Terminal, known: &[u32]) -> u32 {
    terminal.wait_for("a prompt", |display| display.prompt().filter(|pane| !known.contains(pane)))
}

fn print(title: &str, all: &mut [(&str, Kind, Keys)]) {
    println!("| {title} | p50 | p90 | p99 | longest | p50 ratio | p99 ratio | CPU of the server | flood |");
    println!("|---|---:|---:|---:|---:|---:|---:|---:|---:|");
    for (.., keys) in all.iter_mut() {
        keys.times.sort_unstable();
    }
    let Some(baseline) =
        all.last().map(|(.., keys)| [50, 99].map(|percent| percentile(&keys.times, percent)))
    else {
        return;
    };
    for (name, _, keys) in all.iter() {
        let [p50, p90, p99, longest] =
            [50, 90, 99, 100].map(|percent| percentile(&keys.times, percent) * 1e3);
        let seconds = keys.measured.as_secs_f64();
        println!(
            "| {name} | {p50:.2} ms | {p90:.2} ms | {p99:.2} ms | {longest:.2} ms | {:.2} × | {:.2} × | {:.0} % | {:.1} MB/s |",
            p50 / 1e3 / baseline[0],
            p99 / 1e3 / baseline[1],
            100.0 * keys.cpu.as_secs_f64() / seconds,
            keys.flooded / seconds
        );
    }
    println!();
}
