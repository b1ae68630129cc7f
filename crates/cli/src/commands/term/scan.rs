//! `ringer term scan`.

use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};

use ringer_core::message::SurfaceId;
use ringer_term::{Scanner, TerminalEvent, escape_json};

use super::report;
use super::view::{EventView, format_text};
use crate::failure::{Exit, Failure, Outcome};
use crate::output::{check_write, eprint_line};

/// Find notifications, titles, progress and bells in terminal output
///
/// Reads a recording or a pipe and prints one line per event, with the offset of
/// its escape sequence. Memory use does not grow with the input.
///
/// Examples:
///   script -q -c claude session.raw; ringer term scan session.raw
///   ringer term scan --json session.raw | jq 'select(.event == "notification")'
///   tail -f -c +0 session.raw | ringer term scan --json
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// File to read; `-` is standard input
    #[arg(default_value = "-")]
    file: PathBuf,
    /// Print one JSON object per event
    #[arg(long)]
    json: bool,
    /// Tell the hub what the program on this surface says, and print nothing
    #[arg(long, hide = true, conflicts_with = "json")]
    surface: Option<String>,
    /// End when this process has ended
    #[arg(long = "while", value_name = "PID", hide = true, requires = "surface")]
    lives: Option<u32>,
}

/// Large enough to be fast, small enough not to matter.
const BUFFER: usize = 256 * 1024;

pub(crate) fn run(arguments: &Args) -> Outcome {
    if let Some(surface) = &arguments.surface {
        report::run(&SurfaceId::new(surface), arguments.lives);
        return Ok(());
    }
    if arguments.file == Path::new("-") {
        if io::stdin().is_terminal() {
            eprint_line("note: reading from the terminal; press Ctrl-D to end");
        }
        return scan(io::stdin().lock(), "standard input", arguments.json);
    }
    let name = arguments.file.display().to_string();
    let file = File::open(&arguments.file).map_err(|error| {
        Failure::open(&name, error).hint("ringer term scan FILE   # or: some-program | ringer term scan")
    })?;
    scan(file, &name, arguments.json)
}

fn scan(mut input: impl Read, name: &str, json: bool) -> Outcome {
    let mut scanner = Scanner::new();
    let mut buffer = vec![0; BUFFER];
    let mut out = BufWriter::new(io::stdout().lock());
    loop {
        let read = match input.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => {
                return Err(Failure::new(Exit::NoInput, format!("cannot read {name}")).because(error));
            }
        };
        let mut written = Ok(());
        scanner.feed(&buffer[..read], |event| {
            if written.is_ok() {
                written = write_event(&mut out, &event, json);
            }
        });
        // Flushed after every read, so that a growing pipe can be followed. A reader that has gone ends the scan.
        match written.and_then(|()| out.flush()) {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(()),
            written => check_write(written)?,
        }
    }
}

fn write_event(out: &mut impl Write, event: &TerminalEvent, json: bool) -> io::Result<()> {
    if json {
        let json = serde_json::to_string(&EventView::of(event))?;
        writeln!(out, "{}", escape_json(&json))
    } else {
        writeln!(out, "{:>10}  {}", event.offset, format_text(&event.kind))
    }
}
