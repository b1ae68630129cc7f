//! Connects the UI to the hub, the journal and the person's editor. Also asks the questions of programs in panes.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::fd::BorrowedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use ringer_core::Sender;
use ringer_core::agent::running_tasks_text;
use ringer_core::attention::ReadBy;
use ringer_core::conversation::Charset;
use ringer_core::message::{MessageOrigin, QuestionId, ShownKind};
use ringer_core::toast::{Colour, ToastSpan};
use ringer_hub::Clock;
use ringer_ipc::{HubClient, HubClientError};
use ringer_journal::{Error, IdSource, Journal, OnParentExit, Repository};
use ringer_platform::variable;
use ringer_ui::{
    Agent, Backend, Data, FooterToast, Notification, ProgramAnswer, ProgramQuestion, Request, Response,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::ask::{Asker, SentQuestion, store};
use super::show::{self, AgentPage, PageStyle, RunningCalls};
use super::{answer, mark, mute, setup, why};
use crate::agents::{self, label_of};
use crate::failure::Failure;
use crate::notifications::label_and_text;
use crate::output::set_screen_open;
use crate::places::Places;
use crate::time_arguments::parse_until;
use crate::{context, hub_client};

/// The most notifications that are shown.
const MAX_RECENT: usize = 300;
/// The most notifications needing the person that the hub lists.
const MAX_NEEDING: usize = 1000;
/// How long an agent that has ended stays on the screen.
const ENDED_SHOWN_MS: i64 = 10 * 60_000;
/// How long names of repositories and branches are cached. They are read from disk.
const LABELS_KEPT: Duration = Duration::from_secs(10);
/// The events that the UI follows.
const EVENTS: [&str; 6] = ["notification.", "agent", "toast", "indicator", "mute", "problems"];

#[derive(Debug, Default)]
pub(crate) struct UiBackend {
    hub: Mutex<Option<HubClient>>,
    labels: Mutex<HashMap<PathBuf, (Instant, Option<String>)>>,
    last: Mutex<Data>,
}

impl Backend for UiBackend {
    fn load(&self) -> Data {
        let read = self.read();
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        match read {
            Ok(data) => *last = data,
            // The previous data stays on the screen.
            Err(failure) => last.problem = Some(failure.first_line()),
        }
        last.clone()
    }

    fn follow(&self, changed: &dyn Fn()) {
        let Ok(mut client) = hub_client::hub() else { return };
        let names = json!({ "names": EVENTS });
        if client.call("events.subscribe", &names).is_err() || client.wait_for_ever().is_err() {
            return;
        }
        changed();
        while let Ok(Some(line)) = client.next_line() {
            let is_heartbeat = line.contains("\"heartbeat\"");
            if !is_heartbeat {
                changed();
            }
        }
    }

    fn load_tools(&self) -> Data {
        let doing = RunningCalls::now();
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        for agent in last.agents.iter_mut().filter(|agent| agent.state == "working") {
            agent.text = doing.text(&agent.id, &agent.state).unwrap_or_default();
        }
        last.clone()
    }

    fn follow_tools(&self, changed: &dyn Fn()) {
        show::follow_tool_calls(changed);
    }

    fn follow_machines(&self, changed: &dyn Fn()) {
        if let Ok(home) = context::home() {
            agents::follow_remote_agents(&home, changed);
        }
    }

    fn perform(&self, request: &Request) -> Response {
        Self::try_perform(request).unwrap_or_else(|failure| Response::Failed { text: failure.first_line() })
    }

    fn setup(&self) {
        set_screen_open(false);
        setup::run_in_screen();
        set_screen_open(true);
    }

    fn edit(&self, text: &str) -> Result<String, String> {
        edit(text)
    }

    fn ask(
        &self,
        question: &ProgramQuestion,
        asked: &mut dyn FnMut(),
        stop: BorrowedFd<'_>,
    ) -> ProgramAnswer {
        ask_program_question(question, asked, stop)
    }

    fn close_program_questions(&self) {
        // If this fails, the next server of panes tries again.
        let _ = close_program_questions();
    }
}

impl UiBackend {
    /// Reads from the hub, reusing one connection. A connection whose answer was late or lost is dropped, because a later answer
    /// would belong to another request.
    fn read_from_hub(&self, method: &str, params: &Value) -> Result<Value, Failure> {
        let mut kept = self.hub.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(mut client) = kept.take() {
            match client.call(method, params) {
                // The hub has ended; another one may run.
                Err(HubClientError::NoHub | HubClientError::Silent(_)) => {}
                answer => return Self::keep(&mut kept, client, answer),
            }
        }
        let mut client = hub_client::hub()?;
        let answer = client.call(method, params);
        Self::keep(&mut kept, client, answer)
    }

    fn keep(
        kept: &mut Option<HubClient>,
        client: HubClient,
        answer: Result<Value, HubClientError>,
    ) -> Result<Value, Failure> {
        if matches!(answer, Ok(_) | Err(HubClientError::Refused(_))) {
            *kept = Some(client);
        }
        answer.map_err(hub_client::failure)
    }

    fn read(&self) -> Result<Data, Failure> {
        // In this order, a notification that arrives between the requests is classified correctly. In the other order, a new
        // question would for a moment appear among the rest.
        let recent = self.read_from_hub("notification.list", &json!({ "limit": MAX_RECENT }))?;
        let needs_you = self.read_from_hub("notification.list", &json!({ "needs_you": true }))?;
        let agents = self.read_from_hub("agent.list", &Value::Null)?;
        let status = self.read_from_hub("hub.status", &Value::Null)?;
        let muted = self.read_from_hub("mute.list", &Value::Null)?;
        let muted = rows(&muted);
        let (needs_you, recent) = (rows(&needs_you), rows(&recent));
        let clock = Clock::local();
        let elsewhere =
            context::home().map(|home| agents::remote_agents(&home, &clock).0).unwrap_or_default();
        let agents = &[rows(&agents), &elsewhere].concat()[..];
        let places = Places::of(needs_you.iter().chain(recent).chain(agents));
        let notification = |row: &Value| notification(row, &places, &clock);
        let open: Vec<Notification> = needs_you.iter().map(notification).collect();
        let open_ids: HashSet<&str> = open.iter().map(|one| one.id.as_str()).collect();
        let recent = recent.iter().map(notification).filter(|one| !open_ids.contains(one.id.as_str()));
        let recent: Vec<Notification> = recent.collect();
        let has_history = !agents.is_empty() || !open.is_empty() || !recent.is_empty();
        let mut agents = self.agents(agents, &recent, &places, &clock);
        for agent in &mut agents {
            let own = muted.iter().find(|mute| mute["agent"].as_str() == Some(&agent.sender));
            agent.muted_until_ms = own.map(|mute| mute["until_unix_ms"].as_i64().unwrap_or(i64::MAX));
        }
        let mut indicators = indicators(&status["indicators"]);
        indicators.extend(muted_text(muted));
        let problem = status["problems"][0]["text"].as_str().map(str::to_owned);
        let needing = status["needs_you"].as_u64().and_then(|count| usize::try_from(count).ok()).unwrap_or(0);
        Ok(Data {
            // The hub lists at most 1,000.
            needs_you_unlisted: if open.len() < MAX_NEEDING { 0 } else { needing.saturating_sub(open.len()) },
            needs_you: open,
            recent,
            agents,
            toast: toast(&status["toast_spans"]),
            indicators,
            problem,
            was_read: true,
            has_history,
        })
    }

    /// Returns the agents that run or have just ended; those that need the person come first.
    fn agents(&self, rows: &[Value], recent: &[Notification], places: &Places, clock: &Clock) -> Vec<Agent> {
        let (now, doing) = (IdSource::now().unix_ms, RunningCalls::now());
        let text = |row: &Value, name: &str| row[name].as_str().unwrap_or_default().to_owned();
        let mut agents: Vec<Agent> = rows
            .iter()
            .filter_map(|row| {
                let state = row["state"].as_str()?.to_owned();
                let since_ms = row["since"].as_str().and_then(|stamp| clock.parse_stamp(stamp))?;
                if state == "exited" && now - since_ms > ENDED_SHOWN_MS {
                    return None;
                }
                let surface = row["surface"].as_str().map(str::to_owned);
                let sender = row["name"].as_str().map_or_else(|| text(row, "id"), str::to_owned);
                let is_end = |one: &&Notification| one.from == sender && one.kind == ShownKind::Complete;
                let running = row["running_tasks"].as_u64().and_then(|count| usize::try_from(count).ok());
                let running = running.and_then(running_tasks_text);
                let last_message = || {
                    let last = recent.iter().find(is_end).map(|one| one.text.clone());
                    let parts: Vec<String> = running.into_iter().chain(last).collect();
                    (!parts.is_empty()).then(|| parts.join(": "))
                };
                let id = text(row, "id");
                let activity = if state == "done" { last_message() } else { doing.text(&id, &state) };
                Some(Agent {
                    label: self.label(row),
                    client: text(row, "client"),
                    text: activity.unwrap_or_default(),
                    place: surface.as_deref().map(|surface| places.name(surface)).unwrap_or_default(),
                    id,
                    muted_until_ms: None,
                    sender,
                    state,
                    since_ms,
                    surface,
                })
            })
            .collect();
        agents.sort_by(|one, two| {
            (rank(&one.state), &one.label, &one.id).cmp(&(rank(&two.state), &two.label, &two.id))
        });
        agents
    }

    /// Returns its name, or its repository and branch.
    fn label(&self, row: &Value) -> String {
        if let Some(name) = row["name"].as_str() {
            return name.to_owned();
        }
        if row["machine"].is_string() {
            let directory = row["cwd"].as_str().or(row["id"].as_str());
            return directory.unwrap_or_default().to_owned();
        }
        let cwd = row["cwd"].as_str().map(PathBuf::from);
        let label = cwd.and_then(|cwd| {
            let mut labels = self.labels.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some((read, label)) = labels.get(&cwd)
                && read.elapsed() < LABELS_KEPT
            {
                return label.clone();
            }
            let label = label_of(&cwd);
            labels.insert(cwd, (Instant::now(), label.clone()));
            label
        });
        label.or_else(|| row["client"].as_str().map(str::to_owned)).unwrap_or_default()
    }

    fn try_perform(request: &Request) -> Result<Response, Failure> {
        let id = |id: &String| json!({ "id": id });
        let method = match request {
            Request::GoTo { id } => {
                let opened = hub_client::call("notification.open", &json!({ "id": id }))?;
                return Ok(went(&opened["focus"]));
            }
            Request::GoToSurface { surface } => {
                let focus = hub_client::call("surface.focus", &json!({ "surface_id": surface }))?;
                return Ok(went(&focus));
            }
            Request::Prompt { id } => {
                return Ok(Response::Prompt(Box::new(answer::prompt_details(id)?)));
            }
            Request::Answer { id, words } => {
                let (is_taken, text) = match answer::answer_from_screen(id, words) {
                    Ok(text) => (true, text),
                    Err(failure) => (false, failure.first_line()),
                };
                return Ok(Response::Answered { id: id.clone(), is_taken, text });
            }
            Request::AgentPage { agent, width, verbose, ascii } => {
                let charset = if *ascii { Charset::Ascii } else { Charset::Unicode };
                let style = PageStyle { width: *width, verbose: *verbose, charset };
                let lines = page_lines(agent, style).unwrap_or_else(|failure| vec![failure.first_line()]);
                return Ok(Response::AgentPage { agent: agent.clone(), lines });
            }
            Request::Why { id } => return Ok(Response::Why { lines: why::explained_lines(id)? }),
            Request::Undo => {
                let undone = hub_client::call("notification.undo", &json!({}))?;
                let text = mark::undone_text(&undone);
                return Ok(Response::Done { text: Some(text) });
            }
            Request::Read { id: of } => ("notification.mark_read", id(of)),
            Request::Unread { id: of } => ("notification.mark_unread", id(of)),
            Request::Remove { id: of } => ("notification.clear", id(of)),
            Request::ClearAll => ("notification.clear", json!({ "all": true })),
            Request::Snooze { id, until } => {
                let until_ms = moment(until)?;
                hub_client::call("notification.snooze", &json!({ "id": id, "until_unix_ms": until_ms }))?;
                return Ok(done(format!("It comes back at {}.", when(until_ms))));
            }
            Request::Mute { agent, until } => {
                let until_ms = moment(until)?;
                hub_client::call("mute.set", &json!({ "agent": agent, "until_unix_ms": until_ms }))?;
                return Ok(done(format!("{agent} is muted until {}.", when(until_ms))));
            }
            Request::Unmute { agent } => {
                hub_client::call("mute.remove", &json!({ "agent": agent }))?;
                return Ok(done(format!("{agent} is not muted.")));
            }
        };
        hub_client::call(method.0, &method.1)?;
        Ok(Response::Done { text: None })
    }
}

fn page_lines(agent: &str, style: PageStyle) -> Result<Vec<String>, Failure> {
    let (agent, mut journal) = agents::find(Some(agent))?;
    Ok(AgentPage::read(agent, &mut journal)?.lines(style))
}

fn rows(answer: &Value) -> &[Value] {
    answer.as_array().map_or(&[], Vec::as_slice)
}

fn notification(row: &Value, places: &Places, clock: &Clock) -> Notification {
    let text = |name: &str| row[name].as_str().unwrap_or_default().to_owned();
    let (label, said) = label_and_text(row);
    Notification {
        id: text("id"),
        short_id: text("short_id"),
        from: text("from"),
        label,
        kind: text("kind").parse().unwrap_or(ShownKind::Status),
        text: said,
        sent_ms: row["ts"].as_str().and_then(|stamp| clock.parse_stamp(stamp)).unwrap_or(0),
        place: row["surface"].as_str().map(|surface| places.name(surface)).unwrap_or_default(),
        is_read: row["is_read"].as_bool().unwrap_or(true),
        read_by: ReadBy::deserialize(&row["read_by"]).ok(),
        snoozed_until_ms: row["snoozed_until"].as_str().and_then(|stamp| clock.parse_stamp(stamp)),
    }
}

/// The sort order of agents: those that need the person, those that work, those that have ended.
fn rank(state: &str) -> u8 {
    match state {
        "blocked" => 0,
        "error" | "stuck" => 1,
        "working" | "compacting" | "rate_limited" | "starting" => 2,
        "done" => 3,
        "exited" => 5,
        _ => 4,
    }
}

fn toast(spans: &Value) -> Option<FooterToast> {
    let spans: Vec<ToastSpan> = serde_json::from_value(spans.clone()).ok()?;
    let spans: Vec<(String, Colour)> = spans.into_iter().map(|span| (span.text, span.colour)).collect();
    (!spans.is_empty()).then_some(FooterToast { spans })
}

fn indicators(texts: &Value) -> Vec<String> {
    let texts = texts.as_object().into_iter().flatten();
    texts.filter_map(|(_, text)| text.as_str().map(str::to_owned)).collect()
}

fn went(focus: &Value) -> Response {
    if focus["focused"].as_bool() == Some(true) {
        return Response::Went;
    }
    let why = focus["why"].as_str().unwrap_or("its window cannot be brought to the front");
    let hint = focus["hint"].as_str().map(|hint| format!(" ({hint})")).unwrap_or_default();
    Response::Failed { text: format!("Cannot go there: {why}{hint}") }
}

fn done(text: String) -> Response {
    Response::Done { text: Some(text) }
}

fn moment(until: &str) -> Result<i64, Failure> {
    parse_until(until, IdSource::now().unix_ms).map_err(Failure::usage)
}

/// Formats a moment as a time, with the day unless that is today.
fn when(until_ms: i64) -> String {
    Clock::local().near(until_ms, IdSource::now().unix_ms)
}

/// Formats the mutes as an indicator: `muted: ci (40m left)`.
fn muted_text(muted: &[Value]) -> Option<String> {
    let now_ms = IdSource::now().unix_ms;
    let words: Vec<String> = muted.iter().map(|mute| mute::text(mute, now_ms)).collect();
    (!words.is_empty()).then(|| format!("muted: {}", words.join(", ")))
}

/// Returns the command in `$VISUAL`, or in `$EDITOR`.
fn editor_command() -> Option<OsString> {
    let set = ["VISUAL", "EDITOR"].into_iter().filter_map(variable);
    set.into_iter().find(|command| !command.to_string_lossy().trim().is_empty())
}

/// Returns the editor's name, if one is configured.
pub(crate) fn editor_name() -> Option<String> {
    let command = editor_command()?.to_string_lossy().into_owned();
    let program = command.split_whitespace().next()?;
    Path::new(program).file_name().map(|name| name.to_string_lossy().into_owned())
}

/// Opens a text in the editor. Returns the text when the editor has exited.
pub(crate) fn edit(text: &str) -> Result<String, String> {
    let command = editor_command().ok_or("No editor is set: $VISUAL or $EDITOR.")?;
    let file = TextFile::create(text).map_err(|error| format!("No file for the editor: {error}"))?;
    let mut line = OsString::from("exec ");
    line.push(&command);
    // The command is the person's own and may contain options; the file is its last argument.
    line.push(" \"$1\"");
    let ran = Command::new("/bin/sh").arg("-c").arg(line).arg("sh").arg(&file.path).status();
    match ran {
        Ok(status) if status.success() => {
            fs::read_to_string(&file.path).map_err(|error| format!("The text cannot be read: {error}"))
        }
        Ok(status) => Err(format!("{} has failed: {status}", command.to_string_lossy())),
        Err(error) => Err(format!("The editor cannot be started: {error}")),
    }
}

/// A file that only the person can read. Dropping this deletes it.
struct TextFile {
    path: PathBuf,
}

impl TextFile {
    fn create(text: &str) -> io::Result<Self> {
        let home = context::home().map_err(|failure| io::Error::other(failure.to_string()))?;
        let path = home.path().join(format!("answer-{}.txt", IdSource::now().message_id()));
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        let created = Self { path };
        file.write_all(text.as_bytes()).map(|()| created)
    }
}

impl Drop for TextFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// The category of these questions, by which the next server of panes finds those that a killed one left open.
const CATEGORY: &str = "program_buttons";

/// Asks like `ringer ask --wait` in the pane, and closes the question on a hangup of `stop`.
pub(crate) fn ask_program_question(
    question: &ProgramQuestion,
    asked: &mut dyn FnMut(),
    stop: BorrowedFd<'_>,
) -> ProgramAnswer {
    let Ok(mut sent) = send_question(question) else { return ProgramAnswer::NotAsked };
    asked();
    match sent.journal.wait_for_answer(&mut sent.asked, None, Some(stop)) {
        Ok(Some(answered)) => chosen(answered.answer),
        Ok(None) | Err(_) => close_question(&mut sent.journal, &sent.asked.id),
    }
}

fn send_question(question: &ProgramQuestion) -> Result<SentQuestion, Failure> {
    let asker = Asker {
        // Not the agent of the worktree: the answer is for the program, and not for the agent's inbox.
        sender: Sender::system(),
        name: None,
        repository: Repository::around(&question.directory),
        origin: MessageOrigin {
            pid: question.pid,
            tty: question.tty.clone(),
            cwd: Some(question.directory.to_string_lossy().into_owned()),
            surface: Some(question.surface.clone()),
            workspace: question.workspace.clone(),
            ..MessageOrigin::default()
        },
        category: Some(CATEGORY.to_owned()),
    };
    let wait = Some(OnParentExit::Continue);
    store(context::journal()?, &question.text, &question.options, asker, wait)
}

/// Closes a question without an answer, unless the person has just answered it.
fn close_question(journal: &mut Journal, id: &QuestionId) -> ProgramAnswer {
    match journal.answer(id, None, &Sender::system(), &IdSource::now()) {
        Err(Error::Answered { answer, .. }) => chosen(answer),
        // If this cannot be written, the next server closes it.
        Ok(_) | Err(_) => ProgramAnswer::Closed,
    }
}

fn chosen(answer: Option<String>) -> ProgramAnswer {
    answer.map_or(ProgramAnswer::Closed, ProgramAnswer::Chosen)
}

pub(crate) fn close_program_questions() -> Result<(), Failure> {
    let Some(mut journal) = Journal::open_existing(&context::home()?)? else { return Ok(()) };
    for id in journal.open_questions_of_category(CATEGORY)? {
        close_question(&mut journal, &id);
    }
    Ok(())
}
