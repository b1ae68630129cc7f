//! What Ringer sets in a server: hooks that ring the doorbell, the badge in the window list, a key, focus events. Each has its
//! own place beside what the person set, and goes without a trace.

use ringer_journal::Home;

use crate::drawing::undraw;
use crate::scan::end_scans;
use crate::server::{DOORBELL, TmuxError, TmuxServer, is_too_old};

/// The place of Ringer's commands among those of a hook.
const PLACE: u32 = 97;
/// After these the state is read again.
const HOOKS: [&str; 11] = [
    "pane-focus-in",
    "client-attached",
    "client-detached",
    "client-session-changed",
    "session-window-changed",
    "window-pane-changed",
    "window-linked",
    "window-unlinked",
    // A pane that is killed or moved, or a new one that is not gone to.
    "window-layout-changed",
    // Another program runs in the active pane, where windows are named after it.
    "window-renamed",
    "pane-exited",
];
/// After these, too, if this version of tmux has them.
const NEWER_HOOKS: [&str; 1] = ["pane-title-changed"];
/// After these, too, if this version has them; and it is noted that this client reports focus.
const FOCUS_HOOKS: [&str; 2] = ["client-focus-in", "client-focus-out"];
/// After this, too; and the window is noted. tmux does not say which pane of it.
const BELL_HOOK: &str = "alert-bell";
/// What window lists show.
const FORMATS: [&str; 2] = ["window-status-format", "window-status-current-format"];
const BADGE: &str = "#{@ringer_badge}";
/// The home of the hub that is to be the host of this server.
const MARK: &str = "@ringer";
/// What a key did before, as tmux lists it, and which key that is.
const KEY_BEFORE: &str = "@ringer_key_before";
const KEY: &str = "@ringer_key";
/// That focus events were off.
const FOCUS_BEFORE: &str = "@ringer_focus_events";

/// Everything that hooks and keys note.
const NOTED: [&str; 6] = ["@ringer_focus", "@ringer_bell", "@ringer_popup", KEY, KEY_BEFORE, FOCUS_BEFORE];

/// How much hooks note at most, in characters.
const MAX_NOTED: usize = 1000;

/// All hooks, and what each does.
fn hooks() -> impl Iterator<Item = (&'static str, String)> {
    let ring = format!("wait-for -S {DOORBELL}");
    // The end of what is noted already: while no hub reads it, it would grow without bound.
    let note = |option: &str, what: &str| {
        format!("set-option -gqF {option} '#{{=-{MAX_NOTED}:{option}}}#{{{what}}} ' ; {ring}")
    };
    let (noted, bell) = (note("@ringer_focus", "client_name"), note("@ringer_bell", "window_id"));
    let plain = HOOKS.into_iter().chain(NEWER_HOOKS).map(move |name| (name, ring.clone()));
    let focus = FOCUS_HOOKS.into_iter().map(move |name| (name, noted.clone()));
    plain.chain(focus).chain([(BELL_HOOK, bell)])
}

/// Whether the hub of a home is the host of a server. Another one may be: that of a test, say.
pub fn is_installed(server: &TmuxServer, home: &Home) -> bool {
    option(server, &["-g"], MARK).is_ok_and(|value| value == mark_of(home))
}

/// How a server names the home of its host.
pub(crate) fn mark_of(home: &Home) -> String {
    home.path().display().to_string()
}

/// Sets hooks and badges. What is there already stays; what the person's own settings replaced comes back.
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

/// Runs a command for each hook, of which it gets the name with Ringer's place, and what it does.
fn for_each_hook(
    server: &TmuxServer,
    command: impl for<'a> Fn(&'a str, &'a str) -> Vec<&'a str>,
) -> Result<(), TmuxError> {
    let mut together: Vec<String> = Vec::new();
    for (name, does) in hooks() {
        let place = format!("{name}[{PLACE}]");
        let words = command(&place, &does);
        if !is_newer(name) {
            together.extend(words.into_iter().chain([";"]).map(str::to_owned));
        } else if let Err(error) = server.run(&words)
            && !matches!(error, TmuxError::Refused(_))
        {
            return Err(error);
        }
    }
    together.pop();
    server.run(&together).map(drop)
}

/// Whether older versions of tmux do not know a hook.
fn is_newer(name: &str) -> bool {
    NEWER_HOOKS.contains(&name) || FOCUS_HOOKS.contains(&name)
}

/// What became of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Binding {
    /// It opens the inbox.
    Set,
    /// The person has bound it to something else.
    Taken(String),
}

/// Binds a key after the prefix to the inbox, unless the person has bound it to something of their own. The program is a word
/// of a shell. The inbox covers the pane behind it, so that one is not looked at meanwhile.
pub fn set_binding(server: &TmuxServer, key: &str, program: &str) -> Result<Binding, TmuxError> {
    // tmux says in an error that a key is not bound.
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

/// What there is of Ringer in a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inspection {
    /// The version of the server, in tmux's words: `3.3a`.
    pub version: String,
    /// Whether Ringer cannot be set up in it.
    pub is_too_old: bool,
    /// Whether the hub of this home is to be its host.
    pub is_installed: bool,
    /// Ringer's hooks that are not there. A `set-hook -g` of the person's own without a place takes them away.
    pub missing_hooks: Vec<&'static str>,
    /// The window lists that show no badge.
    pub missing_badges: Vec<&'static str>,
    /// Whether terminals report focus to it.
    pub has_focus_events: bool,
}

/// Looks at a server and changes nothing.
pub fn inspect(server: &TmuxServer, home: &Home) -> Result<Inspection, TmuxError> {
    let version = server.version()?;
    let is_too_old = is_too_old(&version);
    let listed = if is_too_old {
        String::new()
    } else {
        server.run(&["show-hooks", "-g", ";", "show-hooks", "-gw"])?
    };
    let is_there = |name: &str| {
        let start = format!("{name}[{PLACE}] ");
        listed.lines().any(|line| line.starts_with(&start) && line.contains(DOORBELL))
    };
    // Those that are not set are listed by their names.
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

/// Lets terminals report focus to tmux. Gives whether they did not before.
pub fn turn_on_focus_events(server: &TmuxServer) -> Result<bool, TmuxError> {
    if option(server, &["-g"], "focus-events")? == "on" {
        return Ok(false);
    }
    server.run(&["set-option", "-g", FOCUS_BEFORE, "off", ";", "set-option", "-g", "focus-events", "on"])?;
    Ok(true)
}

/// Takes everything away.
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
        // The only one that is ever replaced.
        if option(server, &["-g"], KEY_BEFORE)?.ends_with("refresh-client") {
            server.run(&["bind-key", "-T", "prefix", &key, "refresh-client"])?;
        }
    }
    if option(server, &["-g"], FOCUS_BEFORE)? == "off" {
        server.run(&["set-option", "-g", "focus-events", "off"])?;
    }
    for name in NOTED {
        server.run(&["set-option", "-gqu", name])?;
    }
    // The host of this server ends when it sees that.
    server.run(&["set-option", "-gqu", MARK, ";", "wait-for", "-S", DOORBELL]).map(drop)
}

fn option(server: &TmuxServer, flags: &[&str], name: &str) -> Result<String, TmuxError> {
    let words: Vec<&str> =
        ["show-options"].into_iter().chain(flags.iter().copied()).chain(["-vq", name]).collect();
    server.run(&words).map(|value| value.trim_end_matches('\n').to_owned())
}

/// A word that ends with a semicolon would end the command.
fn as_argument(value: &str) -> String {
    value.strip_suffix(';').map_or_else(|| value.to_owned(), |rest| format!("{rest}\\;"))
}
