//! Real tests: each sends something through a channel once, and waits for the result.

use std::future::Future;
use std::time::{Duration, Instant};

use ringer_config::HookEntry;
use ringer_core::message::{ShownKind, WorkspaceId};
use ringer_core::policy::{AgentContext, HookAnswer, HookInput, HookInputContext, HookInputText};
use ringer_core::{Kind, Sender};
use ringer_deliver::{Desktop, Error, HookProgram, Note, PersonCommand, Popup, Webhook};
use ringer_hub::delivery::setup::hook_program;
use ringer_journal::IdSource;
use serde_json::Value;

use super::row::Row;

/// Timeout of a test, whatever the settings allow.
pub(super) const SEND_TIMEOUT: Duration = Duration::from_secs(10);

fn note() -> Note {
    Note {
        id: IdSource::now().message_id(),
        kind: ShownKind::Complete,
        sender: Sender::system(),
        title: "Ringer".to_owned(),
        subtitle: String::new(),
        body: "ringer doctor: this channel works".to_owned(),
        workspace: WorkspaceId::new("doctor"),
        surface: None,
    }
}

/// Runs a future on this thread.
fn wait<T>(work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime.block_on(work),
        Err(error) => Err(Error::Program { program: "the test".to_owned(), why: error.to_string() }),
    }
}

/// Shows a popup. Returns a description.
pub(super) fn desktop(bus: Option<String>) -> Result<String, Error> {
    wait(async {
        let (desktop, _events) = Desktop::new(bus, Vec::new(), SEND_TIMEOUT / 2);
        let shown = desktop.show(Popup::of(&note())).await?;
        Ok(format!("showed popup {}", shown.handle.number))
    })
}

/// Describes the program that would show a popup, without showing one.
pub(super) fn describe_desktop(bus: &str) -> Result<String, Error> {
    wait(Desktop::describe(bus, SEND_TIMEOUT / 2))
}

/// Returns true if the notification server is paused.
pub(super) fn desktop_is_paused(bus: &str) -> bool {
    wait(async { Ok(Desktop::is_paused(bus, SEND_TIMEOUT / 2).await) }).unwrap_or(false)
}

pub(super) fn sound(wanted: &ringer_config::SoundSetting) -> Result<(), Error> {
    wait(async {
        ringer_hub::delivery::setup::sound(wanted).play(&std::env::var_os("PATH").unwrap_or_default()).await
    })
}

pub(super) fn command(command: PersonCommand) -> Result<(), Error> {
    let command = PersonCommand { timeout: SEND_TIMEOUT, ..command };
    wait(async { command.run(&note()).await })
}

/// Makes one attempt at a webhook, whatever kinds it is configured for.
pub(super) fn webhook(webhook: Webhook) -> Result<(), Error> {
    let webhook = Webhook { timeout: SEND_TIMEOUT, ..webhook };
    wait(async { webhook.send(&note()).await })
}

/// Runs a hook on a sample, and reports what it would change.
pub(super) fn hook(part: String, entry: &HookEntry) -> Row {
    let program = HookProgram { timeout: entry.timeout.min(SEND_TIMEOUT), ..hook_program(entry) };
    let sample = sample(entry);
    let began = Instant::now();
    let answer = wait(async { Ok(program.run(&sample).await) });
    let why = match answer {
        Ok(HookAnswer::Patched(patch)) => {
            let stops = patch.stop;
            let mut patched = sample.clone();
            patched.apply(patch);
            return Row::ok(part, format!("ran on a sample and {}", changes(&sample, &patched, stops)));
        }
        Ok(HookAnswer::Failed(why)) => why,
        Err(error) => error.to_string(),
    };
    if entry.timeout > SEND_TIMEOUT && began.elapsed() >= SEND_TIMEOUT {
        let what = format!(
            "took longer than the {SEND_TIMEOUT:?} it is given here; its own time is {:?}",
            entry.timeout
        );
        return Row::warn(part, what);
    }
    Row::broken(part, format!("failed on a sample: {why}"))
        .fix(format!("run {:?} by hand, or set enabled = false", entry.command))
}

fn sample(entry: &HookEntry) -> HookInput {
    let text = HookInputText {
        workspace_id: "doctor".to_owned(),
        title: "Claude Code".to_owned(),
        subtitle: "ringer doctor".to_owned(),
        body: "Claude is waiting for your input".to_owned(),
        ..HookInputText::default()
    };
    let context = HookInputContext {
        cwd: std::env::current_dir().ok().map(|path| path.to_string_lossy().into_owned()),
        config_path: Some(entry.source.path.to_string_lossy().into_owned()),
        hook_id: Some(entry.id.clone()),
        ..HookInputContext::default()
    };
    let agent = AgentContext { kind: Some(Kind::Waiting.as_str().to_owned()), ..AgentContext::default() };
    HookInput::new(text, context, agent)
}

/// Describes a hook's changes: `set title = "x", desktop = false`.
fn changes(before: &HookInput, after: &HookInput, stops: bool) -> String {
    let value = |hook_input: &HookInput| serde_json::to_value(hook_input).unwrap_or_default();
    let (before, after) = (value(before), value(after));
    let parts = ["notification", "effects"].into_iter().filter_map(|part| {
        let old = before[part].clone();
        Some((old, after[part].as_object()?))
    });
    let changed: Vec<String> = parts
        .flat_map(|(old, new)| {
            let other = new.iter().filter(move |(name, value)| old[name.as_str()] != **value);
            other.map(|(name, value): (&String, &Value)| format!("{name} = {value}"))
        })
        .collect();
    let stop = if stops { ", and skipped the hooks after it" } else { "" };
    if changed.is_empty() {
        format!("changed nothing{stop}")
    } else {
        format!("set {}{stop}", changed.join(", "))
    }
}
