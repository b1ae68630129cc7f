//! Checks the channels: desktop, sound, command, webhooks.

use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

use ringer_config::{Config, SoundSetting, WebhookEntry};
use ringer_core::policy::PopupMode;
use ringer_deliver::{Error, PersonCommand};
use ringer_hub::delivery::setup;
use ringer_platform::owned;

use super::hub::{self, HubView};
use super::programs::find;
use super::row::{Check, Row};
use super::send;

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
        return match send::desktop(bus) {
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
    match send::describe_desktop(&bus) {
        Ok(who) => shown(&who, Some(&bus)),
        Err(error @ Error::NoBus(_)) => bad(error.to_string()).fix(NO_BUS),
        Err(error) => bad(error.to_string()).fix(NO_SERVER),
    }
}

/// A row for a notification server that exists. It may be paused.
fn shown(who: &str, bus: Option<&str>) -> Row {
    if bus.is_some_and(send::desktop_is_paused) {
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
    send::describe_desktop(&bus).map_err(|error| error.to_string())
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
    let Some(player) = setup::sound(wanted).player(&hub::search_path()) else {
        return Row::broken(part, "no program found to play it")
            .fix(format!("install pw-play, paplay or canberra-gtk-play, or set {key} = false"));
    };
    if !send {
        return Row::ok(part, format!("{row} by {player}"));
    }
    match send::sound(wanted) {
        Ok(()) => Row::ok(part, format!("{row} just now")),
        Err(error) => {
            Row::broken(part, error.to_string()).fix(format!("start the sound server, or set {key} = false"))
        }
    }
}

fn command(run: Option<PersonCommand>, send: bool) -> Row {
    let part = "command";
    let Some(run) = run else { return Row::unused(part, "not configured") };
    let program = match find(&run.argv) {
        Ok(program) => program,
        Err(why) => return Row::broken(part, why).fix("install it, chmod +x it, or correct notify.command"),
    };
    if !send {
        return Row::ok(part, format!("runs {}", program.display()));
    }
    match send::command(run) {
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
    match send::webhook(webhook) {
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
