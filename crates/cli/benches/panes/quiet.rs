//! Many panes in which nothing happens.

use std::thread;
use std::time::{Duration, Instant};

use super::keys::next_prompt;
use super::multiplexer::{ALL, Multiplexer};
use super::processes::{cpu_time, resident, switches};
use super::terminal::{Reader, Terminal};
use super::{Bench, Options};

const PANES: usize = 50;
/// How long all shells may take to start.
const START_WITHIN: Duration = Duration::from_mins(2);
/// After this, what the last pane set off is over: the server saves its session a second after a change.
const SETTLED: Duration = Duration::from_secs(5);

pub(crate) fn run(bench: &Bench, options: &Options) {
    let all = ALL.map(|(name, kind)| {
        let multiplexer = bench.multiplexer(kind);
        let terminal = multiplexer.open(&[], Reader::Emulator);
        next_prompt(&terminal, &[]);
        let empty = resident(multiplexer.server());
        for _ in 1..PANES {
            multiplexer.open_quietly();
        }
        wait_for_shells(&multiplexer);
        (name, multiplexer, terminal, empty)
    });
    // The time that passes is what is waited for.
    thread::sleep(SETTLED);
    let processes: Vec<(String, u32, Option<f64>)> = all
        .iter()
        .flat_map(|(name, multiplexer, terminal, empty)| of(name, multiplexer, terminal, *empty))
        .collect();
    let before: Vec<(u64, Duration)> =
        processes.iter().map(|(_, pid, _)| (switches(*pid), cpu_time(*pid))).collect();
    // The time that passes is what is measured.
    thread::sleep(options.idle);
    println!(
        "| {PANES} quiet panes | RSS | RSS with one pane | woken in {} s | CPU |\n|---|---:|---:|---:|---:|",
        options.idle.as_secs()
    );
    for ((name, pid, empty), (woken, cpu)) in processes.iter().zip(before) {
        println!(
            "| {name} | {:.1} MB | {} | {} | {} ms |",
            resident(*pid),
            empty.map(|empty| format!("{empty:.1} MB")).unwrap_or_default(),
            switches(*pid) - woken,
            cpu_time(*pid).saturating_sub(cpu).as_millis()
        );
    }
    println!();
}

fn of(
    name: &str,
    multiplexer: &Multiplexer,
    terminal: &Terminal,
    empty: f64,
) -> Vec<(String, u32, Option<f64>)> {
    let mut processes = vec![(format!("{name}: server"), multiplexer.server(), Some(empty))];
    processes.extend(multiplexer.keeper().map(|keeper| (format!("{name}: keeper"), keeper, None)));
    processes.push((format!("{name}: the window's process"), terminal.pid, None));
    processes
}

fn wait_for_shells(multiplexer: &Multiplexer) {
    let over = Instant::now() + START_WITHIN;
    while multiplexer.shells().len() < PANES {
        assert!(Instant::now() < over, "only {} shells run", multiplexer.shells().len());
        thread::sleep(Duration::from_millis(50));
    }
}
