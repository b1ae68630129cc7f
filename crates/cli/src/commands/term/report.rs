//! `ringer term scan --surface`: reports a program's terminal output to the hub. tmux runs it behind `pipe-pane`.

use std::io::{self, ErrorKind, Read};
use std::time::{Duration, Instant};

use ringer_core::message::SurfaceId;
use ringer_ipc::ProgramReports;
use ringer_journal::ProcessStat;
use ringer_term::{Scanner, TerminalEventKind};
use ringer_tmux::PaneReaderMark;
use serde_json::{Value, json};

use crate::hub_client;

/// tmux writes at most this much at once.
const BUFFER: usize = 64 * 1024;
/// The most reports for one read. A program that sends more floods its terminal, and no person reads all of it.
const MAX_TOGETHER: usize = 16;
/// More frequent bells carry no information.
const BELL_EVERY: Duration = Duration::from_secs(1);

/// Reads until the input or the process ends.
pub(super) fn run(surface: &SurfaceId, lives: Option<u32>) {
    let mark = PaneReaderMark::set(surface);
    let started = lives.and_then(|pid| Some((pid, ProcessStat::of(pid)?.started)));
    let has_ended = || lives.is_some() && !started.is_some_and(is_alive);
    let (mut scanner, mut reports) = (Scanner::new(), ProgramReports::default());
    let (begun, mut rang) = (Instant::now(), None::<Instant>);
    let first = mark.as_ref().and_then(PaneReaderMark::title).map(TerminalEventKind::Title);
    if let Some(report) = first.and_then(|title| reports.report(begun.elapsed(), &title)) {
        tell(surface, report);
    }
    let mut input = io::stdin().lock();
    let mut buffer = vec![0; BUFFER];
    loop {
        let read = match input.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(_) => break,
        };
        let mut told = Vec::new();
        scanner.feed(&buffer[..read], |event| told.extend(reports.report(begun.elapsed(), &event.kind)));
        told.retain(|report: &Value| {
            let is_soon = report["bell"] == true && rang.is_some_and(|at| at.elapsed() < BELL_EVERY);
            if report["bell"] == true && !is_soon {
                rang = Some(Instant::now());
            }
            !is_soon
        });
        told.truncate(MAX_TOGETHER);
        for report in told {
            tell(surface, report);
        }
        // The program's last output was in this read, perhaps with output of the shell after it.
        if has_ended() {
            break;
        }
    }
    if let Some(report) = reports.ended() {
        tell(surface, report);
    }
}

fn is_alive((pid, started): (u32, u64)) -> bool {
    ProcessStat::of(pid).is_some_and(|stat| stat.started == started)
}

/// Errors are ignored: the program continues without a hub.
fn tell(surface: &SurfaceId, mut report: Value) {
    report["surface_id"] = json!(surface);
    let _ = hub_client::call("surface.heard", &report);
}
