//! Checks the channels (desktop, sound, command, webhooks), and the programs of hooks and watches.
//!
//! With `--send`, each sends something once and waits for the result.

use std::future::Future;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ringer_config::{Config, HookEntry, SoundSetting, Watch, WebhookEntry};
use ringer_core::message::{ShownKind, WorkspaceId};
use ringer_core::policy::{AgentContext, HookAnswer, HookInput, HookInputContext, HookInputText, PopupMode};
use ringer_core::{Kind, Sender};
use ringer_deliver::{Desktop, Error, HookProgram, Note, PersonCommand, Popup, Webhook};
use ringer_hub::delivery::setup::{self, hook_program};
use ringer_journal::IdSource;
use ringer_platform::{find_program, is_program, owned};
use serde_json::Value;

use super::hub::{self, HubView, search_path};
use super::row::{Check, Row, Verdict};
use super::settings::NamedProgram;

/// Starts a check of each channel. With `send`, each check sends a test.
pub(super) fn begin(config: &Config, send: bool, patience: Duration) -> Vec<Check> {
    let mut checks = Vec::new();
    let popup = config.notify.popup;
    checks.push(Check::begin("desktop", patience, move || vec![desktop(popup, send)]));
    let of_kinds = config.notify.sounds.iter().filter(|(_, sound)| *sound != SoundSetting::Off);
    let of_kinds = of_kinds
        .map(|(kind, sound)| (format!("sound {kind}"), format!("notify.sounds.{kind}"), sound.clone()));
    let usual = ("sound".to_owned(), "notify.sound".to_owned(), config.notify.sound.clone());
    for (part, key, played) in [usual].into_iter().chain(of_kinds) {
        checks.push(Check::begin(part.clone(), patience, move || vec![sound(part, &key, &played, send)]));
    }
    let run = setup::command(config);
    checks.push(Check::begin("command", patience, move || vec![command(run, send)]));
    for entry in config.webhooks.clone() {
        let part = format!("webhook {}", entry.name());
        checks.push(Check::begin(part.clone(), patience, move || vec![webhook(part, &entry, send)]));
    }
    if config.webhooks.is_empty() {
        checks.push(Check::begin("webhook", patience, || vec![Row::unused("webhook", "not configured")]));
    }
    checks
}

pub(super) fn desktop(popup: PopupMode, send: bool) -> Row {
    let part = "desktop";
    let unused = match popup {
        PopupMode::Terminal => "terminal",
        PopupMode::Off => "off",
        PopupMode::Auto | PopupMode::Desktop | PopupMode::Both => "",
    };
    if !unused.is_empty() {
        return Row::ok(part, format!("not used: notify.popup = {unused:?}"));
    }
    // With `auto` the terminal takes over, so nothing is lost.
    let bad = |what: String| {
        if popup == PopupMode::Auto {
            Row::warn(part, what + "; using the terminal instead")
        } else {
            Row::broken(part, what)
        }
    };
    let hub = match HubView::ask() {
        Ok(hub) => hub,
        Err(error) => {
            let what = format!("{error}, so its popups cannot be checked");
            return Row::warn(part, what).fix("ringer hub status");
        }
    };
    // The test goes to the same session bus as the hub's popups.
    let bus = hub.as_ref().map_or_else(hub::own_bus, |hub| hub.bus.clone());
    if send {
        return match send_popup(bus) {
            Ok(how) => Row::ok(part, how),
            Err(error @ Error::NoBus(_)) => bad(error.to_string()).fix(NO_BUS),
            Err(error) => bad(error.to_string()).fix(NO_SERVER),
        };
    }
    if let Some(HubView { bus, server, .. }) = hub {
        return match server {
            Ok(who) => shown(&format!("{who} (reported by the hub)"), bus.as_deref()),
            Err(why) if bus.is_none() => bad(format!("{why} (reported by the hub)")).fix(NO_BUS),
            Err(why) => bad(format!("{why} (reported by the hub)")).fix(NO_SERVER),
        };
    }
    let Some(bus) = bus.or_else(|| cfg!(target_os = "macos").then(String::new)) else {
        return bad("no session bus: DBUS_SESSION_BUS_ADDRESS is not set".to_owned()).fix(NO_BUS);
    };
    match describe_desktop(&bus) {
        Ok(who) => shown(&who, Some(&bus)),
        Err(error @ Error::NoBus(_)) => bad(error.to_string()).fix(NO_BUS),
        Err(error) => bad(error.to_string()).fix(NO_SERVER),
    }
}

/// A row for a notification server that exists. It may be paused.
fn shown(who: &str, bus: Option<&str>) -> Row {
    if bus.is_some_and(desktop_is_paused) {
        return Row::warn("desktop", format!("{who}, but do not disturb is on, so they are not shown now"))
            .fix("turn it off in your desktop's settings (dunst: dunstctl set-paused false)");
    }
    Row::ok("desktop", format!("{who}; test with: ringer doctor --send"))
}

/// Describes the server that would show the hub's popups, or returns the reason why there is none. Shows nothing.
pub(super) fn desktop_server() -> Result<String, String> {
    let hub = HubView::ask().map_err(|error| error.to_string())?;
    if let Some(hub) = hub {
        return hub.server;
    }
    let bus = hub::own_bus().or_else(|| cfg!(target_os = "macos").then(String::new));
    let bus = bus.ok_or_else(|| "no session bus".to_owned())?;
    describe_desktop(&bus).map_err(|error| error.to_string())
}

const NO_BUS: &str = "log in to a desktop, or set notify.popup = \"terminal\"";
const NO_SERVER: &str = if cfg!(target_os = "macos") {
    NO_BUS
} else {
    "start a notification server (mako, dunst, …), or set notify.popup = \"terminal\""
};

fn sound(part: String, key: &str, wanted: &SoundSetting, send: bool) -> Row {
    let row = match wanted {
        SoundSetting::Off => return Row::unused(part, "off"),
        SoundSetting::File(file) if !file.is_file() => {
            return Row::broken(part, format!("{} does not exist", file.display()))
                .fix(format!("correct {key}, or set it to true"));
        }
        SoundSetting::File(file) => format!("{}, played", file.display()),
        SoundSetting::Theme => "the theme's, played".to_owned(),
    };
    let Some(player) = setup::sound(wanted).player(&search_path()) else {
        return Row::broken(part, "no program found to play it")
            .fix(format!("install pw-play, paplay or canberra-gtk-play, or set {key} = false"));
    };
    if !send {
        return Row::ok(part, format!("{row} by {player}"));
    }
    match send_sound(wanted) {
        Ok(()) => Row::ok(part, format!("{row} just now")),
        Err(error) => {
            Row::broken(part, error.to_string()).fix(format!("start the sound server, or set {key} = false"))
        }
    }
}

fn command(run: Option<PersonCommand>, send: bool) -> Row {
    let part = "command";
    let Some(run) = run else { return Row::unused(part, "not configured") };
    let program = match find_command(&run.argv) {
        Ok(program) => program,
        Err(why) => return Row::broken(part, why).fix("install it, chmod +x it, or correct notify.command"),
    };
    if !send {
        return Row::ok(part, format!("runs {}", program.display()));
    }
    match send_command(run) {
        Ok(()) => Row::ok(part, format!("{} ran", program.display())),
        Err(error) => Row::broken(part, error.to_string()).fix("run it by hand, or correct notify.command"),
    }
}

/// Shows the host only: the addresses of Slack and Discord are passwords.
fn webhook(part: String, entry: &WebhookEntry, send: bool) -> Row {
    let webhook = setup::webhook(entry);
    let host = match webhook.host() {
        Ok(host) => host,
        Err(error) => return Row::broken(part, error.to_string()).fix("correct its url"),
    };
    if let Some(row) = entry.secret_file.as_deref().and_then(|file| secret(&part, file)) {
        return row;
    }
    if !send {
        return Row::ok(
            part,
            format!("{} at {host} is configured; test with: ringer doctor --send", entry.kind),
        );
    }
    match send_webhook(webhook) {
        Ok(()) => Row::ok(part, format!("{host} accepted it")),
        Err(error @ Error::Secret { .. }) => {
            Row::broken(part, error.to_string()).fix("correct the secret_file")
        }
        Err(error) => Row::broken(part, error.to_string())
            .fix(format!("check that {host} is up and that url and token are correct")),
    }
}

/// Reports a secret file that cannot be used. Does not read its content.
fn secret(part: &str, file: &Path) -> Option<Row> {
    let why = owned::open_secret(file).err()?;
    let fix = match why.kind() {
        ErrorKind::PermissionDenied => format!("chmod 600 {}   # and let it belong to you", file.display()),
        _ => "correct its secret_file".to_owned(),
    };
    Some(Row::broken(part, format!("the secret cannot be used: {why}")).fix(fix))
}

/// Starts a check of each program. With `send`, hooks that may run get a sample.
pub(super) fn begin_programs(programs: Vec<NamedProgram>, send: bool, patience: Duration) -> Vec<Check> {
    let begin = |named| match named {
        NamedProgram::Hook { entry, trusted } => {
            let part = format!("hook {}", entry.id);
            Check::begin(part.clone(), patience, move || vec![hook(part, &entry, trusted, send)])
        }
        NamedProgram::Watch { entry, trusted } => {
            Check::begin("watch", patience, move || vec![watch(&entry, trusted)])
        }
    };
    programs.into_iter().map(begin).collect()
}

fn hook(part: String, entry: &HookEntry, trusted: bool, send: bool) -> Row {
    if !entry.enabled {
        return Row::ok(part, "disabled");
    }
    let row = look(part.clone(), &entry.command, trusted, entry.source.directory());
    if send && row.verdict == Verdict::Ok { send_to_hook(part, entry) } else { row }
}

fn watch(entry: &Watch, trusted: bool) -> Row {
    let row = look("watch".to_owned(), &entry.command, trusted, entry.source.directory());
    let lost = entry.paths.iter().find(|path| path.parent().is_none_or(|parent| !parent.is_dir()));
    match lost {
        Some(path) if row.verdict == Verdict::Ok => {
            Row::warn("watch", format!("cannot watch {}: its directory does not exist", path.display()))
                .fix("create the directory, then save the config file again")
        }
        _ => row,
    }
}

fn look(part: String, command: &[String], trusted: bool, directory: &Path) -> Row {
    match find_command(command) {
        Err(why) => Row::broken(part, why).fix("install it, chmod +x it, or correct its command"),
        Ok(_) if !trusted => Row::warn(part, format!("{command:?} does not run: it is not trusted"))
            .fix(format!("ringer trust {}", directory.display())),
        Ok(program) => Row::ok(part, format!("runs {}", program.display())),
    }
}

/// Finds the program of a command. Returns the reason in words if there is none.
pub(super) fn find_command(command: &[String]) -> Result<PathBuf, String> {
    let name = command.first().map_or("", String::as_str);
    if name.contains('/') {
        let file = PathBuf::from(name);
        return if is_program(&file) {
            Ok(file)
        } else if file.exists() {
            Err(format!("{name:?} cannot be executed"))
        } else {
            Err(format!("{name:?} does not exist"))
        };
    }
    find_program(&search_path(), name).ok_or_else(|| format!("{name:?} is not on PATH"))
}

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
        icon: None,
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
pub(super) fn send_popup(bus: Option<String>) -> Result<String, Error> {
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

pub(super) fn send_sound(wanted: &SoundSetting) -> Result<(), Error> {
    wait(async { setup::sound(wanted).play(&std::env::var_os("PATH").unwrap_or_default()).await })
}

pub(super) fn send_command(command: PersonCommand) -> Result<(), Error> {
    let command = PersonCommand { timeout: SEND_TIMEOUT, ..command };
    wait(async { command.run(&note()).await })
}

/// Makes one attempt at a webhook, whatever kinds it is configured for.
pub(super) fn send_webhook(webhook: Webhook) -> Result<(), Error> {
    let webhook = Webhook { timeout: SEND_TIMEOUT, ..webhook };
    wait(async { webhook.send(&note()).await })
}

/// Runs a hook on a sample, and reports what it would change.
pub(super) fn send_to_hook(part: String, entry: &HookEntry) -> Row {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_as_they_would_be_run() {
        let words = |name: &str| find_command(&[name.to_owned()]);
        assert_eq!(words("/bin/sh"), Ok(PathBuf::from("/bin/sh")));
        assert_eq!(words("/bin"), Err("\"/bin\" cannot be executed".to_owned()));
        assert_eq!(words("/nowhere/x"), Err("\"/nowhere/x\" does not exist".to_owned()));
        assert!(words("no-such-program-anywhere").is_err() && find_command(&[]).is_err());
    }
}
