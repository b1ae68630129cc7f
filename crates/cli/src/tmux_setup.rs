//! `ringer setup tmux`: finds the running servers, edits `tmux.conf`, and sets Ringer up in each server. `ringer uninstall` undoes it.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use ringer_journal::Home;
use ringer_platform::{Durability, path_variable, replace_file, variable};
use ringer_term::sanitise_line;
use ringer_tmux::{
    Binding, TmuxError, TmuxServer, install, is_installed, remove, set_binding, turn_on_focus_events,
};
use serde_json::json;

use crate::client_setup::own_path;
use crate::confirm::confirm_or_show;
use crate::failure::{Exit, Failure, Outcome};
use crate::output::{count, eprint_line, print_json, print_line, print_text, short_path};
use crate::{context, hub_client};

const BEGIN: &str = "# ringer: begin (removed by: ringer setup tmux --remove)\n";
const END: &str = "# ringer: end\n";
/// Follows the last line of a file that did not end with a newline: the newline before it is removed with Ringer's lines.
const AFTER_OPEN_LINE: &str = "# ringer: the line above had no newline\n";

/// Returns the directories of this user's tmux sockets: the default one, and that of the server around this process.
pub(crate) fn socket_directories() -> Vec<PathBuf> {
    let parent = path_variable("TMUX_TMPDIR").unwrap_or_else(|| PathBuf::from("/tmp"));
    let usual = parent.join(format!("tmux-{}", rustix::process::geteuid().as_raw()));
    let around = server_around().and_then(|server| Some(server.socket().parent()?.to_owned()));
    let mut directories = vec![usual];
    directories.extend(around.filter(|around| *around != directories[0]));
    directories
}

pub(crate) fn server_around() -> Option<TmuxServer> {
    TmuxServer::from_variable(variable("TMUX")?.to_str()?)
}

/// The fix if the server around this process belongs to another user.
pub(crate) const UNSET_TMUX: &str = "unset TMUX   # su and sudo keep that of another user";

/// Refuses the server around this process if another user could have created its socket.
pub(crate) fn check_server_around() -> Outcome {
    let Some(server) = server_around() else { return Ok(()) };
    match server.run(&["show-options", "-gqv", "@ringer"]) {
        Err(error) if error.refusal().is_some() => {
            let what = format!("tmux at {} is not used", short_path(server.socket()));
            let failure = Failure::new(Exit::NoPermission, what).because(sanitise_line(&error.to_string()));
            Err(failure.hint(UNSET_TMUX))
        }
        _ => Ok(()),
    }
}

pub(crate) fn running_servers() -> Vec<TmuxServer> {
    let servers = socket_directories().into_iter().flat_map(|directory| TmuxServer::in_directory(&directory));
    servers.filter(|server| server.run(&["show-options", "-gqv", "@ringer"]).is_ok()).collect()
}

/// Returns the servers that have the hub of this home as a host.
pub(crate) fn installed_servers(home: &Home) -> Vec<TmuxServer> {
    running_servers().into_iter().filter(|server| is_installed(server, home)).collect()
}

/// `tmux.conf`, and its new content.
#[derive(Debug)]
pub(crate) struct ConfigChange {
    pub(crate) path: PathBuf,
    before: Option<String>,
    after: String,
}

impl ConfigChange {
    /// Adds the line that starts Ringer in each new server.
    pub(crate) fn add(program: &Path, key: Option<&str>) -> Result<Self, Failure> {
        let key = key.map(|key| format!(" --key {key}")).unwrap_or_default();
        let line = format!("run-shell -b \"{} hub tmux{key} >/dev/null 2>&1\"\n", quoted(program)?);
        Self::read(&format!("{BEGIN}{line}{END}"))
    }

    /// Removes the line.
    pub(crate) fn remove() -> Result<Self, Failure> {
        Self::read("")
    }

    fn read(block: &str) -> Result<Self, Failure> {
        let path = config_path()?;
        let before = match fs::read_to_string(&path) {
            Ok(text) => Some(text),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => {
                let what = format!("cannot read {}", path.display());
                return Err(Failure::new(Exit::Data, what).because(error));
            }
        };
        let after = with_block(before.as_deref().unwrap_or_default(), block);
        Ok(Self { path, before, after })
    }

    /// Returns true if the file contains Ringer's lines now.
    pub(crate) fn is_there(&self) -> bool {
        self.before.as_deref().is_some_and(|text| block_of(text).is_some())
    }

    pub(crate) fn is_change(&self) -> bool {
        self.before.as_deref().unwrap_or_default() != self.after
    }

    /// Returns the added and removed lines.
    pub(crate) fn diff(&self) -> String {
        let before = self.before.as_deref().unwrap_or_default();
        let (old, new) = (block_of(before).unwrap_or_default(), block_of(&self.after).unwrap_or_default());
        let lines =
            |sign: char, text: &str| text.lines().map(|line| format!("{sign}{line}\n")).collect::<String>();
        format!("{}{}", lines('-', old), lines('+', new))
    }

    /// Writes the file, through a symbolic link if it is one. Removes a file that would be empty.
    pub(crate) fn write(&self) -> Result<(), Failure> {
        let path = fs::canonicalize(&self.path).unwrap_or_else(|_| self.path.clone());
        let written = if self.after.is_empty() && self.before.is_some() {
            fs::remove_file(&path)
        } else {
            let mode = fs::metadata(&path).map(|metadata| metadata.permissions());
            replace_file(&path, self.after.as_bytes(), Durability::Synced)
                .and_then(|()| mode.map_or(Ok(()), |mode| fs::set_permissions(&path, mode)))
        };
        written.map_err(|error| {
            Failure::new(Exit::CannotCreate, format!("cannot write {}", path.display())).because(error)
        })
    }
}

/// Returns the file that tmux reads: the first of its default places that exists, else `~/.tmux.conf`.
fn config_path() -> Result<PathBuf, Failure> {
    let home = path_variable("HOME").ok_or_else(|| Failure::new(Exit::CannotCreate, "HOME is not set"))?;
    let usual = home.join(".tmux.conf");
    let config = path_variable("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config"));
    let other = config.join("tmux/tmux.conf");
    Ok(if !usual.exists() && other.exists() { other } else { usual })
}

/// Quotes a path as a shell word inside a tmux word in double quotes.
fn quoted(program: &Path) -> Result<String, Failure> {
    let text = program.to_str().unwrap_or_default();
    if text.is_empty() || text.chars().any(|letter| letter.is_control() || "'\"\\$#`".contains(letter)) {
        let what =
            format!("the path of this program cannot be written into tmux.conf: {}", program.display());
        return Err(
            Failure::new(Exit::Data, what).hint("install it elsewhere: cargo install --path crates/cli")
        );
    }
    Ok(format!("'{text}'"))
}

/// Returns Ringer's lines, with their begin and end markers.
fn block_of(text: &str) -> Option<&str> {
    let start = text.find(BEGIN)?;
    let end = start + text[start..].find(END)? + END.len();
    Some(&text[start..end])
}

/// Replaces Ringer's lines in a text.
fn with_block(text: &str, block: &str) -> String {
    let Some(old) = block_of(text) else {
        let is_open = !block.is_empty() && !text.is_empty() && !text.ends_with('\n');
        let between = if is_open { format!("\n{AFTER_OPEN_LINE}") } else { String::new() };
        return format!("{text}{between}{block}");
    };
    if !block.is_empty() {
        return text.replacen(old, block, 1);
    }
    let (before, after) = text.split_once(old).unwrap_or((text, ""));
    let before = match before.strip_suffix(AFTER_OPEN_LINE) {
        // Lines were added later, so they need the newline.
        Some(before) if after.is_empty() => before.strip_suffix('\n').unwrap_or(before),
        Some(before) => before,
        None => before,
    };
    format!("{before}{after}")
}

/// The default key after the prefix that opens the inbox.
pub(crate) const KEY: &str = "r";

/// Configures a server, and makes the hub its host.
pub(crate) fn start_in(server: &TmuxServer, key: Option<&str>, program: &Path) -> Outcome {
    let fail = |error| failed(server, &error);
    install(server, &context::home()?).map_err(fail)?;
    turn_on_focus_events(server).map_err(fail)?;
    if let Some(key) = key
        && let Binding::Taken(binding) = set_binding(server, key, &quoted(program)?).map_err(fail)?
    {
        eprint_line(&format!(
            "note: prefix + {key} is yours already: {}\nhint: bind another key: bind-key R display-popup -E ringer",
            sanitise_line(&binding)
        ));
    }
    hub_client::call("tmux.found", &json!({ "socket": server.socket() })).map(drop)
}

pub(crate) fn failed(server: &TmuxServer, error: &TmuxError) -> Failure {
    let what = format!("cannot set up tmux at {}", short_path(server.socket()));
    let failure = Failure::new(Exit::Unavailable, what).because(sanitise_line(&error.to_string()));
    if matches!(error, TmuxError::TooOld(_)) { failure.hint("tmux -V   # then upgrade it") } else { failure }
}

#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch on the command line")]
pub(crate) struct Options {
    pub(crate) yes: bool,
    pub(crate) dry_run: bool,
    pub(crate) remove: bool,
    pub(crate) json: bool,
}

pub(crate) fn run(arguments: Options) -> Outcome {
    if arguments.remove { disconnect(arguments) } else { connect(arguments) }
}

fn connect(arguments: Options) -> Outcome {
    check_server_around()?;
    let program = own_path()?;
    let change = ConfigChange::add(&program, Some(KEY))?;
    let servers = running_servers();
    if !agreed(arguments, &change, &servers)? {
        return Ok(());
    }
    if change.is_change() {
        change.write()?;
    }
    for server in &servers {
        start_in(server, Some(KEY), &program)?;
    }
    if arguments.json {
        return report(&change, &servers);
    }
    print_line("Done. Undo: ringer setup tmux --remove")
}

fn disconnect(arguments: Options) -> Outcome {
    let change = ConfigChange::remove()?;
    let servers = installed_servers(&context::home()?);
    if !change.is_change() && servers.is_empty() && !arguments.json {
        return print_line("Ringer is not set up in tmux; nothing to remove.");
    }
    if !agreed(arguments, &change, &servers)? {
        return Ok(());
    }
    if change.is_change() {
        change.write()?;
    }
    for server in &servers {
        remove(server).map_err(|error| failed(server, &error))?;
    }
    if arguments.json { report(&change, &servers) } else { print_line("Done.") }
}

/// Shows the changes, and asks.
fn agreed(arguments: Options, change: &ConfigChange, servers: &[TmuxServer]) -> Result<bool, Failure> {
    let show =
        || print_text(&change.diff().lines().map(|line| sanitise_line(line) + "\n").collect::<String>());
    if arguments.json && arguments.dry_run {
        report(change, servers)?;
        return Ok(false);
    }
    if !arguments.json {
        print_text(&described(arguments.remove, change, servers))?;
    }
    if arguments.dry_run {
        show()?;
        return Ok(false);
    }
    let (question, skip) = if arguments.remove {
        ("Disconnect tmux?", "ringer setup tmux --remove --yes")
    } else {
        ("Connect tmux?", "ringer setup tmux --yes")
    };
    let agreed = arguments.yes || confirm_or_show(question, skip, show)?;
    if !agreed {
        eprint_line("Nothing was changed.");
    }
    Ok(agreed)
}

fn described(removes: bool, change: &ConfigChange, servers: &[TmuxServer]) -> String {
    let file = short_path(&change.path);
    let running = match servers.len() {
        0 => "no server runs".to_owned(),
        many => format!("in {} that {}", count(many, "server"), if many == 1 { "runs" } else { "run" }),
    };
    if removes {
        return format!("  tmux  hooks, badges and the key go: the lines in {file}; {running}\n");
    }
    format!(
        "  tmux  a ring around the pane that wants you, its number in the window list, prefix + {KEY} for the inbox;\n        \
         what you look at is read. One line in {file}; {running}: hooks (place 97), focus-events on\n"
    )
}

fn report(change: &ConfigChange, servers: &[TmuxServer]) -> Outcome {
    let sockets: Vec<_> = servers.iter().map(TmuxServer::socket).collect();
    print_json(&json!({
        "file": { "path": change.path, "changes": change.is_change(), "diff": change.diff() },
        "servers": sockets,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_come_once_and_go_without_a_trace() {
        let block = format!("{BEGIN}run-shell x\n{END}");
        for text in ["", "set -g mouse on\n", "a\n\nb\n"] {
            let with = with_block(text, &block);
            assert_eq!(with, format!("{text}{block}"));
            assert_eq!(with_block(&with, &block), with);
            assert_eq!(with_block(&with, ""), text);
        }
        for open in ["set -g mouse on", "# ende \u{e9}", "\n x"] {
            let with = with_block(open, &block);
            assert_eq!(with_block(&with, &block), with);
            assert_eq!(with_block(&with, ""), open, "the last line has no end, as before");
            assert_eq!(with_block(&format!("{with}b\n"), ""), format!("{open}\nb\n"));
        }
        let other = with_block(&format!("a\n{block}b\n"), &format!("{BEGIN}run-shell y\n{END}"));
        assert_eq!(other, format!("a\n{BEGIN}run-shell y\n{END}b\n"));
    }

    #[test]
    fn a_path_that_would_be_read_as_something_else_is_refused() {
        assert_eq!(quoted(Path::new("/opt/my bin/ringer")).unwrap(), "'/opt/my bin/ringer'");
        for path in ["/a'b/ringer", "/a\"b", "/a$b", "/a#{b}", "/a\nb", ""] {
            assert!(quoted(Path::new(path)).is_err(), "{path:?}");
        }
    }
}
