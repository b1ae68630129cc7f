//! `ringer term scan`: prints the events in terminal output, or reports them to the hub. tmux runs the latter behind `pipe-pane`.

use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ringer_core::message::SurfaceId;
use ringer_ipc::ProgramReports;
use ringer_journal::ProcessStat;
use ringer_term::{
    NotificationId, Query, Scanner, TerminalEvent, TerminalEventKind, escape_json, sanitise_line,
};
use ringer_tmux::PaneReaderMark;
use serde::Serialize;
use serde_json::{Value, json};

use crate::failure::{Exit, Failure, Outcome};
use crate::hub_client;
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
        report_to_hub(&SurfaceId::new(surface), arguments.lives);
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

/// tmux writes at most this much at once.
const PIPE_BUFFER: usize = 64 * 1024;
/// The most reports for one read. A program that sends more floods its terminal, and no person reads all of it.
const MAX_TOGETHER: usize = 16;
/// More frequent bells carry no information.
const BELL_EVERY: Duration = Duration::from_secs(1);

/// Reads until the input or the process ends.
pub(super) fn report_to_hub(surface: &SurfaceId, lives: Option<u32>) {
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
    let mut buffer = vec![0; PIPE_BUFFER];
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

/// An event as JSON. `event` and `offset` come first, then the fields of its kind.
#[derive(Serialize)]
pub(super) struct EventView<'a> {
    event: &'static str,
    offset: u64,
    #[serde(flatten)]
    detail: Detail<'a>,
}

/// The fields of each kind of event.
#[derive(Serialize)]
#[serde(untagged)]
enum Detail<'a> {
    Notification(NotificationView<'a>),
    Close { id: &'a str },
    Progress { state: &'static str, value: Option<u8> },
    Title { text: &'a str },
    Bell {},
    Status(StatusView<'a>),
    Query { protocol: &'static str, about: &'static str, id: Option<&'a str> },
    Hyperlink { uri: &'a str, id: Option<&'a str> },
    Cwd { cwd: &'a str },
    Prompt { mark: &'static str, exit_code: Option<i32> },
    Other {},
}

#[derive(Serialize)]
struct NotificationView<'a> {
    protocol: &'static str,
    id: Option<&'a str>,
    title: Option<&'a str>,
    body: &'a str,
    urgency: &'static str,
    occasion: &'static str,
    focus: bool,
    report: bool,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    buttons: &'a [String],
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    report_close: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    application: Option<&'a str>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    icons: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    sound: Option<&'a str>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    types: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_ms: Option<u32>,
}

#[derive(Serialize)]
struct StatusView<'a> {
    state: &'static str,
    kind: Option<&'static str>,
    app: Option<&'a str>,
    message: Option<&'a str>,
    title: Option<&'a str>,
    id: Option<&'a str>,
    progress: Option<u8>,
}

impl<'a> EventView<'a> {
    pub(super) fn of(event: &'a TerminalEvent) -> Self {
        let (name, detail) = describe(&event.kind);
        Self { event: name, offset: event.offset, detail }
    }
}

fn describe(kind: &TerminalEventKind) -> (&'static str, Detail<'_>) {
    match kind {
        TerminalEventKind::Notification(notification) => {
            let keys = &notification.metadata;
            let view = NotificationView {
                protocol: notification.protocol.as_str(),
                id: notification.id.as_ref().map(NotificationId::as_str),
                title: Some(notification.title.as_str()).filter(|title| !title.is_empty()),
                body: &notification.body,
                urgency: keys.urgency.as_str(),
                occasion: keys.occasion.as_str(),
                focus: keys.actions.focus,
                report: keys.actions.report,
                buttons: &keys.buttons,
                report_close: keys.report_close,
                application: keys.application.as_deref(),
                icons: &keys.icons,
                sound: keys.sound.as_deref(),
                types: &keys.types,
                expires_ms: keys.expires_ms,
            };
            ("notification", Detail::Notification(view))
        }
        TerminalEventKind::Close { id } => ("close", Detail::Close { id: id.as_str() }),
        TerminalEventKind::Progress(progress) => {
            let value = progress.value().map(ringer_term::Percent::get);
            ("progress", Detail::Progress { state: progress.state(), value })
        }
        TerminalEventKind::Title(text) => ("title", Detail::Title { text }),
        TerminalEventKind::Bell => ("bell", Detail::Bell {}),
        TerminalEventKind::Status(status) => {
            let view = StatusView {
                state: status.state.as_str(),
                kind: status.kind.map(ringer_term::BlockedKind::as_str),
                app: status.app.as_deref(),
                message: status.message.as_deref(),
                title: status.title.as_deref(),
                id: status.id.as_deref(),
                progress: status.progress,
            };
            ("status", Detail::Status(view))
        }
        TerminalEventKind::Query(query) => ("query", describe_query(query)),
        TerminalEventKind::Hyperlink { id, uri } => {
            ("hyperlink", Detail::Hyperlink { uri, id: id.as_deref() })
        }
        TerminalEventKind::Cwd(cwd) => ("cwd", Detail::Cwd { cwd }),
        TerminalEventKind::Prompt(prompt) => {
            ("prompt", Detail::Prompt { mark: prompt.mark.as_str(), exit_code: prompt.exit_code })
        }
        _ => ("other", Detail::Other {}),
    }
}

fn describe_query(query: &Query) -> Detail<'_> {
    let (protocol, about, id) = match query {
        Query::Osc99 { id } => ("osc99", "support", id.as_ref()),
        Query::Alive { id } => ("osc99", "alive", id.as_ref()),
        Query::Osc7501 => ("osc7501", "support", None),
        _ => ("other", "other", None),
    };
    Detail::Query { protocol, about, id: id.map(NotificationId::as_str) }
}

/// Formats an event as one safe line.
pub(super) fn format_text(kind: &TerminalEventKind) -> String {
    let (name, detail) = describe(kind);
    let text = match detail {
        Detail::Notification(notification) => match notification.title {
            Some(title) => format!("{}  {title}: {}", notification.protocol, notification.body),
            None => format!("{}  {}", notification.protocol, notification.body),
        },
        Detail::Close { id } => id.to_owned(),
        Detail::Progress { state, value: Some(value) } => format!("{state} {value}"),
        Detail::Progress { state, value: None } => state.to_owned(),
        Detail::Title { text } => text.to_owned(),
        Detail::Bell {} | Detail::Other {} => String::new(),
        Detail::Status(status) => [Some(status.state), status.kind, status.app, status.title, status.message]
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
            .join("  "),
        Detail::Query { protocol, about, .. } => format!("{protocol}  {about}"),
        Detail::Hyperlink { uri, .. } => uri.to_owned(),
        Detail::Cwd { cwd } => cwd.to_owned(),
        Detail::Prompt { mark, exit_code: Some(code) } => format!("{mark} {code}"),
        Detail::Prompt { mark, exit_code: None } => mark.to_owned(),
    };
    format!("{name:<12}  {}", sanitise_line(&text)).trim_end().to_owned()
}
