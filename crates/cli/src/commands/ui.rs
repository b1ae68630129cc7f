//! `ringer` without a command: the inbox in a terminal, a table elsewhere.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal};
use std::sync::Arc;

use ringer_config::Config;
use ringer_hub::Clock;
use ringer_panes::PaneKeys;
use ringer_platform::variable;
use ringer_term::{Channel, choose_method, sanitise_line};
use ringer_ui::{Backend, KeyMap, Palette, Settings, Theme};

use super::config::{self, MOUSE_OFF, THEME_MOUSE, THEME_NAME};
use super::ui_backend::{UiBackend, editor_name};
use crate::context;
use crate::failure::{Exit, Failure, Outcome};
use crate::output::{has_unicode, print_bytes, print_text, set_screen_open};
use crate::probe::detect_here;
use crate::terminal::apple_bell;

pub(crate) fn run() -> Outcome {
    let is_dumb = variable("TERM").is_none_or(|term| term == "dumb");
    if is_dumb || !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        return welcome();
    }
    show(settings()).map_err(|error| {
        Failure::new(Exit::InputOutput, "the terminal cannot be used").because(error).hint("ringer status")
    })
}

/// Shows the inbox in a window of panes, until the person closes it or jumps somewhere.
pub(crate) fn show_inbox() -> io::Result<()> {
    show(Settings { quit_after_jump: true, ..settings() })
}

fn show(settings: Settings) -> io::Result<()> {
    let backend: Arc<dyn Backend> = Arc::new(UiBackend::default());
    set_screen_open(true);
    let ran = ringer_ui::run(&backend, settings);
    set_screen_open(false);
    ran
}

/// Returns the person's settings. The hub reports a broken file as a problem.
pub(crate) fn user_settings() -> Config {
    let read = config::user_config(&config::environment());
    read.and_then(|(_, config)| config.ok()).unwrap_or_default()
}

fn settings() -> Settings {
    let config = user_settings();
    let own = config.keys.iter().filter(|(name, _)| !PaneKeys::is_own(name));
    let own = own.map(|(name, keys)| (name.clone(), keys.clone())).collect();
    let (keys, invalid) = KeyMap::with(&own);
    let of_panes = PaneKeys::with(&config.keys).1;
    let invalid = invalid.iter().map(ToString::to_string).chain(of_panes);
    let mut warnings: Vec<String> = invalid.map(|error| format!("[keys] {error}")).collect();
    let palette = palette(&config.theme).unwrap_or_else(|error| {
        warnings.push(format!("[theme] {error}"));
        Palette::default()
    });
    Settings {
        keys,
        theme: Theme { palette, ascii: !has_unicode() },
        mouse: config.theme.get(THEME_MOUSE).is_none_or(|mouse| mouse != MOUSE_OFF),
        quit_after_jump: is_in_popup(),
        machine: machine(),
        time_of_day: |unix_ms| Clock::local().time_of_day(unix_ms),
        editor: editor_name(),
        warning: warnings.into_iter().next(),
    }
}

/// Returns the configured colours, as far as the terminal supports them.
fn palette(theme: &BTreeMap<String, String>) -> Result<Palette, String> {
    if variable("NO_COLOR").is_some_and(|value| !value.is_empty()) {
        return Ok(Palette::None);
    }
    let named = theme.get(THEME_NAME).map_or(Ok(Palette::default()), |name| Palette::named(name))?;
    let has_all_colours = variable("COLORTERM").is_some_and(|value| value == "truecolor" || value == "24bit");
    let needs_all = matches!(named, Palette::Dark | Palette::Light);
    Ok(if needs_all && !has_all_colours { Palette::Terminal } else { named })
}

/// Returns true in a popup of tmux, which has the server's environment and no pane.
fn is_in_popup() -> bool {
    variable("TMUX").is_some() && variable("TMUX_PANE").is_none()
}

fn machine() -> String {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    name.split('.').next().unwrap_or_default().to_owned()
}

/// Shows what needs the person. In a terminal also describes the terminal, and suggests commands.
pub(crate) fn welcome() -> Outcome {
    let has_journal = context::home().is_ok_and(|home| home.database().exists());
    if has_journal {
        print_bytes(super::status::overview()?.as_bytes())?;
    }
    if !io::stdout().is_terminal() {
        return if has_journal { Ok(()) } else { print_text("Nothing needs you.\nNo agents are running.\n") };
    }
    let detection = detect_here();
    let choice = choose_method(Channel::Auto, &detection, apple_bell(&detection));
    let terminal = match &detection.terminal {
        Some(name) => format!("{} ({})", sanitise_line(name), sanitise_line(&detection.evidence)),
        None => "unknown".to_owned(),
    };
    print_text(&format!(
        "{gap}Ringer {version}: notifications for coding agents.\n\
             \n\
             this terminal     {terminal}\n\
             notified through  {method}: {reason}\n\
             \n\
             Try:\n\
             \x20 ringer setup                  connect your agents\n\
             \x20 ringer listen &               wait for messages, like a lead agent\n\
             \x20 ringer notify \"hello\"         send a notification\n\
             \x20 ringer term notify \"hello\"    show a notification through this terminal\n\
             \x20 ringer doctor                 check your setup\n\
             \x20 ringer help                   list all commands\n",
        gap = if has_journal { "\n" } else { "" },
        version = env!("CARGO_PKG_VERSION"),
        method = choice.method.as_str(),
        reason = sanitise_line(&choice.reason),
    ))
}
