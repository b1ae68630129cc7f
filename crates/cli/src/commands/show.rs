//! `ringer show`: the page of one agent, which the inbox shows, too.

use std::path::Path;

use ringer_core::conversation::{
    Charset, ConversationMessage, Injection, InjectionSource, NotificationBlock, TaskNotification,
    TranscriptView, collapse, read_plain_task, read_task,
};
use ringer_core::message::{Agent, Kind, MessagePart, ShownKind, Tag};
use ringer_hub::{Clock, agents};
use ringer_journal::{AgentSummary, EnteredPart, IdSource, Journal, NewestCalls, Repository, RunningTools};
use ringer_platform::variable;
use ringer_term::sanitise_line;
use ringer_ui::columns::{cut_end, cut_middle, pad};
use ringer_ui::{age, state_word};
use serde_json::{Value, json};

use crate::agents::{self, label_of};
use crate::context;
use crate::failure::{Failure, Outcome};
use crate::notifications::{self, label_and_text};
use crate::output::{has_unicode, print_json, print_text, short_path};
use crate::places::Places;
use crate::table::Style;

/// Show one agent: what it does, what waits for it, and what entered its turns
///
/// Several background commands that completed one after the other are shown as one;
/// those that failed or were killed never are.
///
/// Examples:
///   ringer show                  # the only agent of this repository
///   ringer show api/auth
///   ringer show claude-6be1e699 -v
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Agent: its name, its id, its repository and branch, or a piece of one of these
    #[arg(value_name = "AGENT")]
    agent: Option<String>,
    /// Show every background task, and its whole text
    #[arg(short, long)]
    verbose: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Args) -> Outcome {
    let (agent, mut journal) = agents::find(arguments.agent.as_deref())?;
    context::warn_if_repaired(&journal);
    let page = AgentPage::read(agent, &mut journal)?;
    if arguments.json {
        return print_json(&page.json());
    }
    let lines = page.lines(PageStyle {
        width: Style::of_stdout().width(),
        verbose: arguments.verbose,
        charset: charset(),
    });
    print_text(&lines.iter().map(|line| format!("{line}\n")).collect::<String>())
}

/// The characters that the terminal can show.
pub(super) fn charset() -> Charset {
    let is_dumb = variable("TERM").is_some_and(|term| term == "dumb");
    if is_dumb || !has_unicode() { Charset::Ascii } else { Charset::Unicode }
}

/// The newest messages that entered its turns; `ringer log` shows the others.
const MAX_ENTERED: usize = 50;
/// The most waiting messages that are listed.
const MAX_WAITING: usize = 10;

#[derive(Debug, Clone, Copy)]
pub(crate) struct PageStyle {
    /// The width of a line, in columns.
    pub(crate) width: usize,
    /// Shows every background task with its whole text.
    pub(crate) verbose: bool,
    pub(crate) charset: Charset,
}

#[derive(Debug)]
pub(crate) struct AgentPage {
    agent: AgentSummary,
    label: String,
    repository: Option<Repository>,
    manager: Option<String>,
    place: String,
    doing: Option<String>,
    /// Questions and notifications that need the person, as the hub lists them.
    open: Vec<Value>,
    /// Messages that wait for the agent, in order.
    waiting: Vec<MessagePart>,
    /// Messages that entered its turns, oldest first.
    entered: Vec<EnteredPart>,
    clock: Clock,
    now_ms: i64,
}

impl AgentPage {
    pub(crate) fn read(agent: AgentSummary, journal: &mut Journal) -> Result<Self, Failure> {
        let (clock, now_ms) = (Clock::local(), IdSource::now().unix_ms);
        let id = Agent::new(&agent.id)?;
        let sender = agent.name.clone().unwrap_or_else(|| agent.id.clone());
        let cwd = agent.cwd.as_deref().map(Path::new);
        let label = agent.name.clone().or_else(|| cwd.and_then(label_of)).unwrap_or_else(|| agent.id.clone());
        let row = json!({ "surface": agent.surface });
        let places = Places::of(std::iter::once(&row));
        let info = journal.agent_info(&id)?;
        let open = notifications::needing_person(&notifications::read()?, &clock, |record| {
            *record.sender == *sender.as_str()
        });
        Ok(Self {
            label,
            repository: cwd.and_then(Repository::around),
            manager: info.and_then(|info| info.manager).map(|manager| manager.as_str().to_owned()),
            place: agent.surface.as_deref().map(|surface| places.name(surface)).unwrap_or_default(),
            doing: RunningCalls::now().text(&agent.id, agent.state.as_deref().unwrap_or_default()),
            open,
            waiting: journal.pending_for(&id, now_ms)?,
            entered: journal.entered(&id, now_ms, MAX_ENTERED + 1)?,
            agent,
            clock,
            now_ms,
        })
    }

    /// Returns the page as one JSON object.
    pub(crate) fn json(&self) -> Value {
        let mut value = agents(std::slice::from_ref(&self.agent), &self.clock).pop().unwrap_or_default();
        let to = Agent::new(&self.agent.id).ok();
        let message = |part: &MessagePart| {
            let injection = to.as_ref().and_then(|to| Injection::of(part, to));
            json!({
                "id": part.message.id.as_str(),
                "source": injection.as_ref().map(|injection| injection.source.to_string()),
                "text": injection.as_ref().map(Injection::text),
                "sent": self.clock.stamp(part.message.unix_ms),
            })
        };
        let newest = &self.entered[self.entered.len().saturating_sub(MAX_ENTERED)..];
        let entered = newest.iter().map(|entered| {
            let mut value = message(&entered.part);
            value["delivered"] = self.clock.stamp(entered.delivered_ms).into();
            value["seen"] = entered.seen_ms.map(|ms| self.clock.stamp(ms)).into();
            value
        });
        value["label"] = self.label.as_str().into();
        value["repository"] = self.repository.as_ref().map(|of| of.worktree.display().to_string()).into();
        value["branch"] = self.repository.as_ref().and_then(Repository::branch).into();
        value["manager"] = self.manager.clone().into();
        value["doing"] = self.doing.clone().into();
        value["open"] = self.open.clone().into();
        value["waiting"] = self.waiting.iter().map(message).collect::<Vec<_>>().into();
        value["entered"] = entered.collect::<Vec<_>>().into();
        value
    }

    /// Returns the page as lines, each safe to print.
    pub(crate) fn lines(&self, style: PageStyle) -> Vec<String> {
        let mut lines = vec![cut_end(&self.heading(style), style.width)];
        let facts = self.facts();
        let widest = facts.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        let room = style.width.saturating_sub(widest + 4);
        for (name, text) in facts {
            // Cut in the middle: the ends of a path and of a command matter, too.
            let text = cut_middle(&one_line(&text), room);
            lines.push(format!("  {}  {text}", pad(name, widest)));
        }
        lines.extend(self.open_lines(style));
        lines.extend(self.waiting_lines(style));
        lines.extend(self.entered_lines(style));
        lines
    }

    /// `api/auth · claude · working since 14:03 (2m)`
    fn heading(&self, style: PageStyle) -> String {
        let waits_for = self.open.first().and_then(|row| row["kind"].as_str()?.parse::<ShownKind>().ok());
        let state = self.agent.state.as_deref().map(|state| state_word(state, waits_for));
        let since = self.agent.since_ms.map(|since| {
            let near = self.clock.near(since, self.now_ms);
            format!(" since {near} ({})", age(self.now_ms.saturating_sub(since)))
        });
        let state = state.map(|state| format!("{state}{}", since.unwrap_or_default()));
        let parts = [Some(self.label.clone()), self.agent.client.clone(), state];
        let parts: Vec<String> = parts.into_iter().flatten().map(|part| one_line(&part)).collect();
        parts.join(separator(style.charset))
    }

    fn facts(&self) -> Vec<(&'static str, String)> {
        let branch = self.repository.as_ref().and_then(Repository::branch);
        let repository = self.repository.as_ref().map(|repository| {
            let path = short_path(&repository.worktree);
            branch.map_or_else(|| path.clone(), |branch| format!("{path}, branch {branch}"))
        });
        let facts = [
            ("id", Some(self.agent.id.clone())),
            ("doing", self.doing.clone()),
            ("where", Some(self.place.clone())),
            ("directory", self.agent.cwd.as_deref().map(|cwd| short_path(Path::new(cwd)))),
            ("repository", repository),
            ("lead", self.agent.lead.then(|| "of this repository".to_owned())),
            ("manager", self.manager.clone()),
        ];
        let known = facts.into_iter().filter_map(|(name, text)| Some((name, text?)));
        known.filter(|(_, text)| !text.is_empty()).collect()
    }

    fn open_lines(&self, style: PageStyle) -> Vec<String> {
        let line = |row: &Value| {
            let text = |name: &str| one_line(row[name].as_str().unwrap_or_default());
            let (_, said) = label_and_text(row);
            let start = format!("  {}  {}  ", text("short_id"), text("kind"));
            let room = style.width.saturating_sub(start.chars().count());
            format!("{start}{}", cut_middle(&one_line(&said), room))
        };
        section("Needs you", self.open.iter().map(line))
    }

    fn waiting_lines(&self, style: PageStyle) -> Vec<String> {
        let Ok(to) = Agent::new(&self.agent.id) else { return Vec::new() };
        let line = |part: &MessagePart| {
            let injection = Injection::of(part, &to)?;
            let time = self.clock.near(part.message.unix_ms, self.now_ms);
            let line = format!("  {time}  {}: {}", injection.source, injection.text());
            Some(cut_end(&format!("  {}", one_line(&line)), style.width))
        };
        let more = self.waiting.len().saturating_sub(MAX_WAITING);
        let more = (more > 0).then(|| format!("  and {more} more"));
        let lines = self.waiting.iter().take(MAX_WAITING).filter_map(line);
        section("Waits to enter its turn", lines.chain(more))
    }

    fn entered_lines(&self, style: PageStyle) -> Vec<String> {
        let Ok(to) = Agent::new(&self.agent.id) else { return Vec::new() };
        let older = self.entered.len() > MAX_ENTERED;
        let newest = &self.entered[self.entered.len().saturating_sub(MAX_ENTERED)..];
        let entries = newest.iter().filter_map(|entered| Entry::of(entered, &to));
        let view = TranscriptView { verbose: style.verbose, fullscreen: true };
        let shown = collapse(entries.collect::<Vec<Entry>>(), view);
        let older = older.then(|| "  older ones: ringer log".to_owned());
        let boxes = shown.iter().flat_map(|entry| {
            let time = entry.delivered_ms.map(|ms| self.clock.near(ms, self.now_ms));
            let seen = (!entry.is_seen).then(|| "not seen yet".to_owned());
            let notes: Vec<String> = time.into_iter().chain(seen).collect();
            let block = NotificationBlock::new(&entry.source, entry.text(style.verbose), &notes);
            block.draw(style.width, style.charset)
        });
        section("Entered its turns", older.into_iter().chain(boxes))
    }
}

/// Returns lines under a heading, after a blank line. Returns nothing if there are no lines.
fn section(heading: &str, lines: impl Iterator<Item = String>) -> Vec<String> {
    let lines: Vec<String> = lines.collect();
    if lines.is_empty() {
        return lines;
    }
    [String::new(), heading.to_owned()].into_iter().chain(lines).collect()
}

fn separator(charset: Charset) -> &'static str {
    match charset {
        Charset::Unicode => " · ",
        Charset::Ascii => ", ",
    }
}

fn one_line(text: &str) -> String {
    sanitise_line(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

struct Entry {
    source: InjectionSource,
    text: String,
    /// `None` for an entry that stands for several messages.
    delivered_ms: Option<i64>,
    is_seen: bool,
    /// True if its kind says that something is wrong. It is always shown.
    is_bad_news: bool,
}

impl Entry {
    fn of(entered: &EnteredPart, to: &Agent) -> Option<Self> {
        let injection = Injection::of(&entered.part, to)?;
        Some(Self {
            text: injection.text().to_owned(),
            source: injection.source,
            delivered_ms: Some(entered.delivered_ms),
            is_seen: entered.seen_ms.is_some(),
            is_bad_news: !matches!(
                entered.part.message.draft.tag,
                Tag::Notice(Kind::Status | Kind::Complete)
            ),
        })
    }

    /// Returns the client's summary of a background task, or the whole text if `verbose`.
    fn text(&self, verbose: bool) -> &str {
        match read_task(&self.text) {
            Some(task) if !verbose => task.summary,
            _ => &self.text,
        }
    }
}

impl ConversationMessage for Entry {
    fn user_text(&self) -> Option<&str> {
        Some(&self.text)
    }

    fn task(&self) -> Option<TaskNotification<'_>> {
        let is_sent = || self.source == InjectionSource::BackgroundTask && !self.is_bad_news;
        read_task(&self.text).or_else(|| is_sent().then(|| read_plain_task(&self.text)))
    }

    fn replacement(text: String) -> Self {
        Self {
            source: InjectionSource::BackgroundTask,
            text,
            delivered_ms: None,
            is_seen: true,
            is_bad_news: false,
        }
    }
}

/// The tool calls that agents run now.
#[derive(Debug, Default)]
pub(crate) struct RunningCalls {
    calls: NewestCalls,
}

impl RunningCalls {
    pub(crate) fn now() -> Self {
        let calls = context::home().map(|home| RunningTools::of(&home).newest());
        Self { calls: calls.unwrap_or_default() }
    }

    /// Returns the tool that a working agent runs, in its client's words. A call that was left behind when its agent was killed
    /// is ignored.
    pub(crate) fn text(&self, id: &str, state: &str) -> Option<String> {
        let agent = Agent::new(id).ok().filter(|_| state == "working")?;
        self.calls.text(&agent)
    }
}

/// Calls `changed` whenever a tool call begins or ends. Returns if the system cannot watch for it.
#[cfg(target_os = "linux")]
pub(crate) fn follow_tool_calls(changed: &dyn Fn()) {
    let Ok(home) = context::home() else { return };
    let tools = RunningTools::of(&home);
    let Ok(directories) = ringer_platform::DirectoryChanges::begin(tools.watched_directories()) else {
        return;
    };
    while directories.wait().is_ok() {
        changed();
    }
}

/// Not watched on this system: the inbox reads the calls together with everything else.
#[cfg(not(target_os = "linux"))]
pub(crate) fn follow_tool_calls(_changed: &dyn Fn()) {}
