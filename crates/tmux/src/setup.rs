//! Installs Ringer in a server: hooks that ring the doorbell, the badge in the window list, a key, focus events. All of it
//! coexists with the person's settings and can be removed completely.

use ringer_journal::Home;

use crate::drawing::undraw;
use crate::scan::end_scans;
use crate::server::{DOORBELL, TmuxError, TmuxServer, is_too_old};

/// The index of Ringer's command in a hook array.
const HOOK_INDEX: u32 = 97;
/// These hooks ring the doorbell.
const HOOKS: [&str; 11] = [
    "pane-focus-in",
    "client-attached",
    "client-detached",
    "client-session-changed",
    "session-window-changed",
    "window-pane-changed",
    "window-linked",
    "window-unlinked",
    // A pane is killed or moved, or a new one is opened in the background.
    "window-layout-changed",
    // With automatic-rename: the active pane runs another program.
    "window-renamed",
    "pane-exited",
];
/// These, too, if this version of tmux has them.
const NEWER_HOOKS: [&str; 1] = ["pane-title-changed"];
/// These, too, if this version has them. They also record that the client reports focus.
const FOCUS_HOOKS: [&str; 2] = ["client-focus-in", "client-focus-out"];
/// These, too. They also record the window in an option; tmux does not say which pane.
const ALERT_HOOKS: [(&str, &str); 3] = [
    ("alert-bell", "@ringer_bell"),
    // With monitor-activity and monitor-silence.
    ("alert-activity", "@ringer_activity"),
    ("alert-silence", "@ringer_activity"),
];
/// The formats of the window list.
const FORMATS: [&str; 2] = ["window-status-format", "window-status-current-format"];
const BADGE: &str = "#{@ringer_badge}";
/// The option with the home of the hub that is the host of this server.
const MARK: &str = "@ringer";
/// The previous binding of the key, as `list-keys` prints it, and the key.
const KEY_BEFORE: &str = "@ringer_key_before";
const KEY: &str = "@ringer_key";
/// Set if focus events were off.
const FOCUS_BEFORE: &str = "@ringer_focus_events";

/// The options that hooks and setup write.
const RECORDS: [&str; 7] =
    ["@ringer_focus", "@ringer_bell", "@ringer_activity", "@ringer_popup", KEY, KEY_BEFORE, FOCUS_BEFORE];

/// The longest record of a hook, in characters.
const MAX_RECORD: usize = 1000;

/// All hooks with their commands.
fn hooks() -> impl Iterator<Item = (&'static str, String)> {
    let ring = format!("wait-for -S {DOORBELL}");
    // Only the end of the record is kept: while no hub reads it, it would grow without bound.
    let record = |option: &str, what: &str| {
        format!("set-option -gqF {option} '#{{=-{MAX_RECORD}:{option}}}#{{{what}}} ' ; {ring}")
    };
    let focus = record("@ringer_focus", "client_name");
    let alerts = ALERT_HOOKS.map(|(name, option)| (name, record(option, "window_id")));
    let plain = HOOKS.into_iter().chain(NEWER_HOOKS).map(move |name| (name, ring.clone()));
    let focus = FOCUS_HOOKS.into_iter().map(move |name| (name, focus.clone()));
    plain.chain(focus).chain(alerts)
}

/// Returns true if the hub of this home is the host of the server. A hub with another home may be, for example in a test.
pub fn is_installed(server: &TmuxServer, home: &Home) -> bool {
    option(server, &["-g"], MARK).is_ok_and(|value| value == mark_of(home))
}

/// The value of [`MARK`] for a home.
pub(crate) fn mark_of(home: &Home) -> String {
    home.path().display().to_string()
}

/// Sets hooks and badges. Those that are set already stay; those that the person's settings have replaced are set again.
pub fn install(server: &TmuxServer, home: &Home) -> Result<(), TmuxError> {
    let version = server.version()?;
    if is_too_old(&version) {
        return Err(TmuxError::TooOld(version));
    }
    for_each_hook(server, |name, command| vec!["set-hook", "-g", name, command])?;
    server.run(&["set-option", "-g", MARK, &as_argument(&mark_of(home))])?;
    for format in FORMATS {
        if !option(server, &["-gw"], format)?.contains(BADGE) {
            server.run(&["set-option", "-gwa", format, BADGE])?;
        }
    }
    Ok(())
}

/// Runs a tmux command for each hook. `command` gets the name of the hook with the index, and its command.
fn for_each_hook(
    server: &TmuxServer,
    command: impl for<'a> Fn(&'a str, &'a str) -> Vec<&'a str>,
) -> Result<(), TmuxError> {
    let mut batch: Vec<String> = Vec::new();
    for (name, action) in hooks() {
        let hook = format!("{name}[{HOOK_INDEX}]");
        let words = command(&hook, &action);
        if !is_newer(name) {
            batch.extend(words.into_iter().chain([";"]).map(str::to_owned));
        } else if let Err(error) = server.run(&words)
            && !matches!(error, TmuxError::Refused(_))
        {
            return Err(error);
        }
    }
    batch.pop();
    server.run(&batch).map(drop)
}

/// Returns true for hooks that older versions of tmux do not have.
fn is_newer(name: &str) -> bool {
    NEWER_HOOKS.contains(&name) || FOCUS_HOOKS.contains(&name)
}

/// The result of [`set_binding`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Binding {
    /// The key opens the inbox.
    Set,
    /// The person has bound the key to something else.
    Taken(String),
}

/// Binds a key in the prefix table to the inbox, unless the person has bound it to something else. `program` is a shell command.
/// While the inbox covers a pane, the person does not look at that pane, so the client is recorded in `@ringer_popup`.
pub fn set_binding(server: &TmuxServer, key: &str, program: &str) -> Result<Binding, TmuxError> {
    // tmux fails if the key is not bound.
    let before = server.run(&["list-keys", "-T", "prefix", key]).unwrap_or_default();
    let before = before.lines().next().unwrap_or_default().trim().to_owned();
    let is_ours = before.contains("@ringer_popup");
    let is_free = before.is_empty() || before.ends_with(&format!("prefix {key} refresh-client"));
    if !is_ours && !is_free {
        return Ok(Binding::Taken(before));
    }
    if !is_ours {
        server.run(&["set-option", "-g", KEY, key, ";", "set-option", "-g", KEY_BEFORE, &before])?;
    }
    let look = ["wait-for", "-S", DOORBELL];
    let mut words = vec!["bind-key", key, "set-option", "-gaqF", "@ringer_popup", "#{client_name} ", "\\;"];
    words.extend(look);
    words.extend(["\\;", "display-popup", "-w", "90%", "-h", "85%", "-E", program, "\\;"]);
    words.extend(["set-option", "-gqu", "@ringer_popup", "\\;"]);
    words.extend(look);
    server.run(&words)?;
    Ok(Binding::Set)
}

/// The state of the installation in a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inspection {
    /// The version of the server, such as `3.3a`.
    pub version: String,
    /// The version is not supported.
    pub is_too_old: bool,
    /// The hub of this home is its host.
    pub is_installed: bool,
    /// Hooks that are not set. A `set-hook -g` without an index removes them.
    pub missing_hooks: Vec<&'static str>,
    /// Formats of the window list without the badge.
    pub missing_badges: Vec<&'static str>,
    /// Terminals report focus to tmux.
    pub has_focus_events: bool,
}

/// Inspects the installation without changing anything.
pub fn inspect(server: &TmuxServer, home: &Home) -> Result<Inspection, TmuxError> {
    let version = server.version()?;
    let is_too_old = is_too_old(&version);
    let listed = if is_too_old {
        String::new()
    } else {
        server.run(&["show-hooks", "-g", ";", "show-hooks", "-gw"])?
    };
    let is_there = |name: &str| {
        let start = format!("{name}[{HOOK_INDEX}] ");
        listed.lines().any(|line| line.starts_with(&start) && line.contains(DOORBELL))
    };
    // Hooks that are not set are listed by their names.
    let is_known = |name: &str| listed.lines().any(|line| line.split(['[', ' ']).next() == Some(name));
    let mut missing_badges = Vec::new();
    for format in FORMATS {
        if !option(server, &["-gw"], format)?.contains(BADGE) {
            missing_badges.push(format);
        }
    }
    Ok(Inspection {
        version,
        is_too_old,
        is_installed: is_installed(server, home),
        missing_hooks: hooks()
            .map(|(name, _)| name)
            .filter(|name| !is_there(name) && (is_known(name) || !is_newer(name)))
            .collect(),
        missing_badges,
        has_focus_events: option(server, &["-g"], "focus-events")? == "on",
    })
}

/// Turns on focus events. Returns true if they were off.
pub fn turn_on_focus_events(server: &TmuxServer) -> Result<bool, TmuxError> {
    if option(server, &["-g"], "focus-events")? == "on" {
        return Ok(false);
    }
    server.run(&["set-option", "-g", FOCUS_BEFORE, "off", ";", "set-option", "-g", "focus-events", "on"])?;
    Ok(true)
}

/// Removes Ringer from a server.
pub fn remove(server: &TmuxServer) -> Result<(), TmuxError> {
    undraw(server)?;
    end_scans(server)?;
    for_each_hook(server, |name, _| vec!["set-hook", "-gu", name])?;
    for format in FORMATS {
        let value = option(server, &["-gw"], format)?;
        if value.contains(BADGE) {
            server.run(&["set-option", "-gw", format, &as_argument(&value.replace(BADGE, ""))])?;
        }
    }
    let key = option(server, &["-g"], KEY)?;
    let bound = server.run(&["list-keys", "-T", "prefix", &key]).unwrap_or_default();
    if !key.is_empty() && bound.contains("@ringer_popup") {
        server.run(&["unbind-key", "-T", "prefix", &key])?;
        // The default binding is the only one that is ever replaced.
        if option(server, &["-g"], KEY_BEFORE)?.ends_with("refresh-client") {
            server.run(&["bind-key", "-T", "prefix", &key, "refresh-client"])?;
        }
    }
    if option(server, &["-g"], FOCUS_BEFORE)? == "off" {
        server.run(&["set-option", "-g", "focus-events", "off"])?;
    }
    for name in RECORDS {
        server.run(&["set-option", "-gqu", name])?;
    }
    // The host of this server stops when it sees this.
    server.run(&["set-option", "-gqu", MARK, ";", "wait-for", "-S", DOORBELL]).map(drop)
}

fn option(server: &TmuxServer, flags: &[&str], name: &str) -> Result<String, TmuxError> {
    let words: Vec<&str> =
        ["show-options"].into_iter().chain(flags.iter().copied()).chain(["-vq", name]).collect();
    server.run(&words).map(|value| value.trim_end_matches('\n').to_owned())
}

/// Escapes a trailing semicolon, which would end the command.
fn as_argument(value: &str) -> String {
    value.strip_suffix(';').map_or_else(|| value.to_owned(), |rest| format!("{rest}\\;"))
}
