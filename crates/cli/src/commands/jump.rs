//! `ringer jump`.

use ringer_core::MessageId;
use ringer_core::message::MACHINE_PREFIX;
use ringer_platform::shell_word;
use ringer_term::sanitise_line;
use serde_json::{Value, json};

use super::relay;
use crate::failure::{Exit, Failure, Outcome};
use crate::output::{print_json, print_line};
use crate::tmux_setup::server_around;
use crate::{context, hub_client};

/// Jump to the session that needs you and mark its notification read
///
/// Goes to the most urgent unread notification that it can reach; of several, to the oldest. It
/// can reach panes, panes of tmux, windows of X11 and kitty, and surfaces of other hosts
/// (docs/windows.md, docs/protocol.md), but no pane that is closed. If it can reach none, the
/// notification stays unread and the exit code is 69. For a session on another machine it opens
/// a tmux window with ssh, or prints the command outside tmux.
///
/// Examples:
///   ringer jump
///   ringer jump api/auth
///   ringer jump k3fx
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Agent, repository or id, as `ringer list` shows them [default: the most urgent unread]
    #[arg(value_name = "WHO")]
    id: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Attaches to the tmux of a machine, whatever it shows.
const ATTACH: &str = "tmux attach";

pub(crate) fn run(arguments: &Args) -> Outcome {
    let answer = match &arguments.id {
        Some(id) => hub_client::call("notification.open", &json!({ "id": id }))?,
        None => hub_client::call("notification.jump_to_unread", &Value::Null)?,
    };
    if answer.is_null() {
        return if arguments.json { print_json(&answer) } else { print_line("No unread notifications.") };
    }
    let text = |name: &str| answer["notification"][name].as_str().unwrap_or_default().to_owned();
    if arguments.json {
        print_json(&answer)?;
    } else {
        print_line(&sanitise_line(&format!("{}  {}", text("from"), text("body"))))?;
        if let Some(passed) = answer["passed_over"].as_u64().filter(|passed| *passed > 0) {
            print_line(&format!(
                "Passed over, because Ringer cannot go there: {passed}. To see all: ringer list --unread"
            ))?;
        }
    }
    let focus = &answer["focus"];
    if focus["focused"].as_bool() == Some(true) {
        return Ok(());
    }
    if text("workspace").starts_with(MACHINE_PREFIX) {
        let id = MessageId::parse(&text("id"));
        let id = id.map_err(|invalid| Failure::new(Exit::Software, invalid.to_string()))?;
        // The place contains the machine's name at that time; the journal knows the current one.
        if let Some(machine) = context::journal_to_read()?.machine_of(&id)?.flatten() {
            return go_to_machine(&machine, &text("surface"), id.as_str(), arguments.json);
        }
    }
    let why = focus["why"].as_str().unwrap_or("its window cannot be focused");
    let hint =
        focus["hint"].as_str().map_or_else(|| format!("ringer read {}", text("short_id")), str::to_owned);
    let what = format!("cannot jump, the notification stays unread: {}", sanitise_line(why));
    Err(Failure::new(Exit::Unavailable, what).hint(sanitise_line(&hint)))
}

/// Goes to a session on another machine: opens a tmux window with ssh, if this is tmux.
fn go_to_machine(machine: &str, surface: &str, id: &str, is_silent: bool) -> Outcome {
    let found = relay::machines().into_iter().find(|relay| relay.machine() == machine);
    let Some(host) = found.and_then(|relay| relay.ssh) else {
        return Err(stays_unread(machine).hint("ringer relay list"));
    };
    let there = attach_command(surface);
    let Some(server) = server_around() else {
        let typed = if there == ATTACH { there } else { shell_word(&there) };
        let typed = format!("ssh -t {} {typed}", shell_word(&host));
        return Err(stays_unread(machine).hint(sanitise_line(&typed)));
    };
    // Given several words, tmux starts the program directly, without a shell.
    let failed = match server.run(&["new-window", "-n", machine, "--", "ssh", "-t", "--", &host, &there]) {
        Ok(_) => {
            hub_client::call("notification.mark_read", &json!({ "id": id }))?;
            let said = format!("Opened a window of tmux that connects to {machine}.");
            return if is_silent { Ok(()) } else { print_line(&said) };
        }
        Err(error) => error.to_string(),
    };
    Err(stays_unread(machine).because(sanitise_line(failed.trim())).hint("tmux new-window"))
}

fn stays_unread(machine: &str) -> Failure {
    let what = format!("the session is on {}; the notification stays unread", sanitise_line(machine));
    Failure::new(Exit::Unavailable, what)
}

/// Returns the command to run on the other machine: it goes to the pane, if the session is in tmux. The machine itself names
/// the pane, and can only name panes that exist there.
fn attach_command(surface: &str) -> String {
    let pane = || {
        let (_, surface) = surface.strip_prefix(MACHINE_PREFIX)?.split_once(':')?;
        let (server, pane) = surface.strip_prefix("tmux:")?.rsplit_once(':')?;
        let (socket, _) = server.rsplit_once(':')?;
        let is_pane = pane.strip_prefix('%').is_some_and(|number| number.parse::<u32>().is_ok());
        (is_pane && socket.starts_with('/')).then_some((socket, pane))
    };
    match pane() {
        Some((socket, pane)) => {
            let tmux = format!("tmux -S {}", shell_word(socket));
            let pane = shell_word(pane);
            format!("{tmux} select-window -t {pane} ';' select-pane -t {pane} ';' attach-session -t {pane}")
        }
        None => ATTACH.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::attach_command;

    #[test]
    fn a_pane_of_another_machine_is_named_and_nothing_else_runs() {
        assert_eq!(
            attach_command("machine:box:tmux:/tmp/tmux-0/default:77:%2"),
            "tmux -S /tmp/tmux-0/default select-window -t '%2' ';' select-pane -t '%2' ';' attach-session -t '%2'"
        );
        let quoted = attach_command("machine:box:tmux:/tmp/$(touch x);:77:%2");
        assert!(quoted.starts_with("tmux -S '/tmp/$(touch x);' select-window"), "{quoted}");
        for surface in ["", "machine:box", "machine:box:tty:/dev/pts/3", "machine:box:tmux:/s:77:%2;reboot"] {
            assert_eq!(attach_command(surface), "tmux attach", "{surface}");
        }
    }
}
