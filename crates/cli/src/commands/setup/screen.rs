//! The screen of `ringer setup`: the installed clients, the plan for each, the question, the result and the test notification.

use std::fs;
use std::path::Path;

use ringer_agents::setup::{ApplyResult, Client, DetectedClient, Entries, Plan, SetupAction};
use ringer_core::message::MessageId;
use ringer_core::{Draft, Kind, Recipient, Scope, Sender};
use ringer_journal::{IdSource, Journal};
use ringer_term::{Detection, sanitise_line};
use serde_json::Value;

use crate::client_setup::entries;
use crate::commands::{doctor, why};
use crate::confirm::confirm_by_enter;
use crate::failure::{Failure, Outcome};
use crate::output::{print_line, print_text, short_path};
use crate::terminal::terminal_name;
use crate::{context, hub_client, origin};

/// Prints the clients, the notification server and the terminal that were found.
pub(super) fn print_found(plans: &[Plan], found: &[DetectedClient], detection: &Detection) -> Outcome {
    let installed = found
        .iter()
        .filter(|found| found.is_installed() && plans.iter().any(|plan| plan.client == found.client));
    let names: Vec<String> = installed
        .map(|found| {
            let version = found.program.as_deref().and_then(client_version);
            let version = version.map(|version| format!(" {version}")).unwrap_or_default();
            format!("{}{version}", found.client.display_name())
        })
        .collect();
    let clients = if names.is_empty() { "no installed agent".to_owned() } else { names.join(", ") };
    let desktop = doctor::desktop_server().unwrap_or_else(|| "no desktop notifications".to_owned());
    print_line(&format!("Found {clients}; {}; {}.", sanitise_line(&desktop), terminal_name(detection)))
}

/// Prints the entries to write or remove for each client.
pub(super) fn print_plans(plans: &[Plan]) -> Outcome {
    let rows: Vec<(&str, String)> =
        plans.iter().filter_map(|plan| Some((plan.client.as_str(), plan_words(plan)?))).collect();
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    print_text(&rows.iter().map(|(name, words)| format!("  {name:<width$}  {words}\n")).collect::<String>())
}

fn plan_words(plan: &Plan) -> Option<String> {
    match plan.action {
        SetupAction::Setup(_, Entries::McpServer) if plan.is_empty() => {
            let is_taken = plan.changes.iter().any(|change| !change.notes.is_empty());
            Some(if is_taken { "not registered: the name is taken" } else { "registered already" }.to_owned())
        }
        SetupAction::Setup(..) if plan.is_empty() => Some("connected already".to_owned()),
        SetupAction::Setup(..) => Some(entries(plan)),
        SetupAction::Remove(_) => {
            let changing = plan.changes.iter().filter(|change| change.is_change());
            let paths: Vec<String> = changing.map(|change| short_path(change.path())).collect();
            (!paths.is_empty()).then(|| paths.join(", "))
        }
    }
}

pub(super) fn question(clients: usize, remove: bool, mcp: bool) -> String {
    let verb = match (mcp, remove) {
        (true, true) => "Remove the MCP server from",
        (true, false) => "Register the MCP server with",
        (false, true) => "Disconnect",
        (false, false) => "Connect",
    };
    match clients {
        1 => format!("{verb} it?"),
        2 => format!("{verb} both?"),
        3 => format!("{verb} all three?"),
        many => format!("{verb} all {many}?"),
    }
}

/// Prints the result, and how to undo it.
pub(super) fn print_done(applied: &ApplyResult, undo: Option<&str>) -> Outcome {
    let backups: Vec<String> = applied.backups.iter().map(|path| short_path(path)).collect();
    let backups =
        if backups.is_empty() { String::new() } else { format!(" Backups: {}.", backups.join(", ")) };
    let undo = undo.map(|command| format!(" Undo: {command}")).unwrap_or_default();
    print_line(&format!("Done.{backups}{undo}"))
}

/// How many levels above a program its package is searched for: `package/bin/claude`, `package/dist/src/index.js`.
const MAX_LEVELS: usize = 4;
/// The largest `package.json` that is read.
const MAX_BYTES: u64 = 1024 * 1024;

/// Returns the version of a program that npm installed, or whose file is named after its version.
pub(crate) fn client_version(program: &Path) -> Option<String> {
    let name = program.file_name()?.to_str()?;
    let real = fs::canonicalize(program).ok()?;
    let packages = real.ancestors().skip(1).take(MAX_LEVELS).map(|level| level.join("package.json"));
    let version = packages.into_iter().find_map(|file| packaged(&file, name));
    // Claude Code's own installer places the program in `versions/2.1.325`.
    let by_path = || real.file_name()?.to_str().filter(|name| is_version(name)).map(str::to_owned);
    version.or_else(by_path)
}

/// Returns the version of a package that installs a program with this name.
fn packaged(file: &Path, name: &str) -> Option<String> {
    if fs::metadata(file).ok()?.len() > MAX_BYTES {
        return None;
    }
    let package: Value = serde_json::from_slice(&fs::read(file).ok()?).ok()?;
    package["bin"].get(name)?;
    let version = package["version"].as_str()?;
    is_version(version).then(|| version.to_owned())
}

/// Returns true for `2.1.325`, also with a suffix: `0.61.0-nightly.3`.
fn is_version(text: &str) -> bool {
    let numbers = text.split(['-', '+']).next().unwrap_or_default();
    let parts: Vec<&str> = numbers.split('.').collect();
    let is_number = |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'+');
    parts.len() == 3 && parts.iter().all(is_number) && text.len() < 40 && text.bytes().all(is_plain)
}

/// Sends it. With `ask`, asks whether the person has seen it, and explains possible reasons if not.
pub(super) fn send_test(clients: &[Client], ask: bool) -> Outcome {
    let id = append(clients)?;
    if !ask {
        return print_line(&format!("A test notification was sent. If you did not see it: ringer why {id}"));
    }
    if confirm_by_enter("A test notification was sent. Did you see it?", "ringer setup --yes")? {
        return Ok(());
    }
    explain(&id)
}

/// Appends it to the journal, and starts a hub if necessary.
fn append(clients: &[Client]) -> Result<MessageId, Failure> {
    let names: Vec<&str> = clients.iter().map(|client| client.as_str()).collect();
    let text = format!("Ringer is connected to {}", names.join(", "));
    let mut draft = Draft::new(Scope::global(), Sender::system(), Kind::Status, &text)?;
    draft.recipient = Recipient::Person;
    draft.title = Some("Ringer".to_owned());
    draft.origin = origin::message_origin();
    let mut journal = Journal::open(&context::home()?)?;
    let id = journal.append(&draft, &IdSource::now())?;
    hub_client::start_if_not_woken(&journal);
    Ok(id)
}

/// Explains how it was delivered, and what is wrong with the delivery channels.
fn explain(id: &MessageId) -> Outcome {
    print_line("What became of it:")?;
    why::explain_message(id.as_str(), false)?;
    let problems = doctor::delivery_problems();
    if problems.is_empty() {
        return print_line(
            "Every way to you works, as far as Ringer can see. Look for a \"do not disturb\" mode of your desktop, \
             or send a test through every channel: ringer doctor --send",
        );
    }
    print_line("The reason may be:")?;
    print_text(&problems)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_package_or_the_name_of_the_file_says_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        for folder in ["bin", "lib/claude-code/dist", "share/versions"] {
            fs::create_dir_all(path(folder)).unwrap();
        }
        fs::write(path("lib/claude-code/dist/cli.js"), "").unwrap();
        symlink(path("lib/claude-code/dist/cli.js"), path("bin/claude")).unwrap();
        assert_eq!(client_version(&path("bin/claude")), None);
        let package = "{\"version\": \"2.1.325\", \"bin\": {\"claude\": \"dist/cli.js\"}}";
        fs::write(path("lib/claude-code/package.json"), package).unwrap();
        assert_eq!(client_version(&path("bin/claude")).as_deref(), Some("2.1.325"));
        fs::write(path("share/versions/2.1.326"), "").unwrap();
        symlink(path("share/versions/2.1.326"), path("bin/codex")).unwrap();
        assert_eq!(client_version(&path("bin/codex")).as_deref(), Some("2.1.326"));
        symlink(path("lib/claude-code/dist/cli.js"), path("bin/other")).unwrap();
        assert_eq!(client_version(&path("bin/other")), None, "the package is of another program");
    }

    #[test]
    fn what_a_version_is() {
        for version in ["2.1.325", "0.61.0-nightly.3"] {
            assert!(is_version(version), "{version}");
        }
        for other in ["2.1", "v2.1.3", "node_modules", "1.2.x", "1.2.3 \u{1b}"] {
            assert!(!is_version(other), "{other}");
        }
    }
}
