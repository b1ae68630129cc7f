//! `ringer setup`.

mod screen;

use std::env;
use std::path::{Path, PathBuf};

use ringer_agents::setup::{
    ApplyResult, BackupTime, Client, ClientPaths, DetectedClient, Entries, FileChange, ObstacleKind, Plan,
    SetupAction, SetupNote, SetupRecords, SetupScope, apply, find, has_mcp_server, obstacles, plan,
    read_files,
};
use ringer_hub::Clock;
use ringer_journal::IdSource;
use ringer_term::sanitise_line;
use serde_json::{Value, json};

use crate::client_setup::{INSTALL, failure, own_path, passing_place, program, setup_paths};
use crate::confirm::{ask_for_line, can_ask, confirm, confirm_by_enter, confirm_or_show};
use crate::failure::{Exit, Failure, Outcome};
use crate::output::{eprint_line, print_json, print_line, print_text};
use crate::probe::detect_and_ask;
use crate::{context, hub_client, tmux_setup};

/// Connect your agents: add Ringer's hooks to their settings
///
/// Finds the installed agents, lists what it will write, asks (`d` shows the changes),
/// makes backups, writes, and sends a test notification. Other entries in the files
/// are not changed. `--mcp` registers `ringer mcp` instead, as the MCP server `ringer`.
///
/// Examples:
///   ringer setup
///   ringer setup claude codex --dry-run
///   ringer setup --mcp              # tools with which agents notify, ask and answer
///   ringer setup tmux               # rings, badges, what you look at is read
///   ringer setup --remove
#[derive(Debug, Default, clap::Args)]
#[command(verbatim_doc_comment)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch on the command line")]
pub(crate) struct Args {
    /// Agents: claude, codex, gemini, opencode, copilot [default: all installed]; or tmux. With --mcp not copilot
    #[arg(value_name = "AGENT")]
    clients: Vec<String>,
    /// Skip the confirmation prompt
    #[arg(long)]
    yes: bool,
    /// Show the changes without writing them
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,
    /// Register the MCP server `ringer` with the agents instead of adding hooks
    #[arg(long, conflicts_with = "project")]
    mcp: bool,
    /// Also turn off Claude Code's popups, so that each notification shows once
    #[arg(long, conflicts_with_all = ["remove", "mcp"])]
    no_client_popups: bool,
    /// Write to this repository's settings, for everyone who works in it
    #[arg(long)]
    project: bool,
    /// Undo: remove Ringer's entries; with --mcp only the MCP server
    #[arg(long)]
    remove: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Args {
    /// Returns true if there are options that the setup of tmux does not have.
    fn is_for_agents_only(&self) -> bool {
        self.project || self.mcp || self.no_client_popups
    }

    fn scope(&self) -> SetupScope {
        if self.project { SetupScope::Project } else { SetupScope::User }
    }

    /// Returns the entries to write or remove. A setup of hooks also updates an MCP server that is already registered.
    fn entries(&self) -> Entries {
        match (self.mcp, self.remove) {
            (true, _) => Entries::McpServer,
            (false, true) => Entries::All,
            (false, false) => Entries::Hooks,
        }
    }

    fn action(&self, client: Client, client_paths: &ClientPaths) -> Result<SetupAction, Failure> {
        let entries = match self.entries() {
            Entries::Hooks if !self.project && has_mcp_server(client, client_paths) => Entries::All,
            entries => entries,
        };
        if self.remove {
            return Ok(SetupAction::Remove(entries));
        }
        Ok(SetupAction::Setup(program(self.project)?, entries))
    }

    /// Returns the command that skips the question.
    fn without_asking(&self) -> &'static str {
        match (self.mcp, self.remove) {
            (true, true) => "ringer setup --mcp --remove --yes",
            (true, false) => "ringer setup --mcp --yes",
            (false, true) => "ringer setup --remove --yes",
            (false, false) => "ringer setup --yes",
        }
    }
}

/// `ringer setup`, started from the UI: shows the changes, asks, and waits until the person has read the rest.
pub(crate) fn run_in_screen() {
    if let Err(failure) = run(&Args::default()) {
        eprint_line(&failure.to_string());
    }
    // The end of the input continues as well.
    let _ = ask_for_line("Press Enter to go back to the inbox. ");
}

pub(crate) fn run(arguments: &Args) -> Outcome {
    match &arguments.clients[..] {
        [name] if name == "tmux" && !arguments.is_for_agents_only() => {
            let Args { yes, dry_run, remove, json, .. } = *arguments;
            return tmux_setup::run(tmux_setup::Options { yes, dry_run, remove, json });
        }
        names if names.iter().any(|name| name == "tmux") => {
            let what = "setup tmux takes no other names, and only --yes, --dry-run, --remove and --json";
            return Err(Failure::usage(what).hint("ringer setup tmux"));
        }
        _ => {}
    }
    let client_paths = setup_paths(arguments.project)?;
    let state = context::home()?.path().to_owned();
    let found = find(&env::var_os("PATH").unwrap_or_default(), &client_paths);
    let plans = make_plans(arguments, &client_paths, &found, &state)?;
    if arguments.json || arguments.dry_run {
        return plain(arguments, &plans, &client_paths, &state);
    }
    if arguments.mcp && !arguments.remove {
        warn_of_place(false);
    } else if !arguments.remove {
        // The terminal's reply arrives as keyboard input, so it is queried before anything is asked. The hub may show the test
        // here and needs to know what this terminal can show.
        let detection = detect_and_ask();
        screen::print_found(&plans, &found, &detection)?;
        warn_of_place(arguments.project);
    }
    let changing: Vec<&Plan> = plans.iter().filter(|plan| !plan.is_empty()).collect();
    if changing.is_empty() {
        print_notes(&notes(arguments, &plans, &client_paths, false));
        return print_line(nothing(arguments, &plans));
    }
    screen::print_plans(&plans)?;
    let question = screen::question(changing.len(), arguments.remove, arguments.mcp);
    let agreed =
        arguments.yes || confirm_or_show(&question, arguments.without_asking(), || print_diffs(&plans))?;
    if !agreed {
        eprint_line("Nothing was changed.");
        return Ok(());
    }
    let applied = apply_plans(&plans, &state)?;
    screen::print_done(&applied, undo(arguments))?;
    print_notes(&notes(arguments, &plans, &client_paths, true));
    if arguments.remove {
        return Ok(());
    }
    if arguments.mcp {
        return print_line("Agents see the server when they start the next time.");
    }
    offer_one_popup(arguments, &changing, &client_paths, &state)?;
    let clients: Vec<Client> = plans.iter().map(|plan| plan.client).collect();
    tell_footer(&changing);
    screen::send_test(&clients, !arguments.yes)
}

/// Makes an open inbox show that agents were connected.
fn tell_footer(plans: &[&Plan]) {
    let connected = |plan: &&Plan| {
        let name = plan.client.as_str();
        json!({ "source": "plugin-install", "subject": name, "text": format!("{name} is connected") })
    };
    let observations: Vec<Value> = plans.iter().map(connected).collect();
    if let Ok(home) = context::home() {
        let _ = hub_client::call_running(&home, "observe", &json!({ "observations": observations }));
    }
}

/// Shows or writes without interaction: the differences, or JSON.
fn plain(arguments: &Args, plans: &[Plan], client_paths: &ClientPaths, state: &Path) -> Outcome {
    let has_changes = plans.iter().any(|plan| !plan.is_empty());
    if arguments.dry_run && !arguments.json {
        print_diffs(plans)?;
        print_notes(&notes(arguments, plans, client_paths, has_changes));
        return if has_changes { Ok(()) } else { print_line(nothing(arguments, plans)) };
    }
    let mut applied = ApplyResult::default();
    if has_changes && !arguments.dry_run {
        if !arguments.yes && !confirm("Write these changes?", arguments.without_asking())? {
            eprint_line("Nothing was changed.");
            return Ok(());
        }
        applied = apply_plans(plans, state)?;
    }
    let written: Vec<PathBuf> = [applied.written, applied.deleted].concat();
    let in_the_way = if arguments.remove || arguments.mcp {
        Vec::new()
    } else {
        obstacle_notes(plans, arguments.scope(), client_paths, !written.is_empty())
    };
    print_json(&report(plans, &written, &in_the_way))
}

/// Returns the message if there is nothing to do.
fn nothing(arguments: &Args, plans: &[Plan]) -> &'static str {
    let has_notes = plans.iter().flat_map(|plan| &plan.changes).any(|change| !change.notes.is_empty());
    match (arguments.mcp, arguments.remove) {
        (true, true) => "The MCP server is not registered with any agent; nothing to remove.",
        // The name belongs to a server of the person's, which the notes mention.
        (true, false) if has_notes => "Nothing to change.",
        (true, false) => "Already registered; nothing to change.",
        (false, true) => "Ringer is not set up in any agent; nothing to remove.",
        (false, false) => "Already set up; nothing to change.",
    }
}

/// Returns the command that reverts a setup.
fn undo(arguments: &Args) -> Option<&'static str> {
    match arguments {
        Args { remove: true, .. } => None,
        Args { mcp: true, .. } => Some("ringer setup --mcp --remove"),
        Args { project: true, .. } => Some("ringer setup --project --remove"),
        _ => Some("ringer setup --remove"),
    }
}

fn make_plans(
    arguments: &Args,
    client_paths: &ClientPaths,
    found: &[DetectedClient],
    state: &Path,
) -> Result<Vec<Plan>, Failure> {
    let records = SetupRecords::load(state).map_err(|error| failure(&error))?;
    let mut plans = Vec::new();
    for client in clients(arguments, found)? {
        let action = arguments.action(client, client_paths)?;
        let files = read_files(client, &action, arguments.scope(), client_paths, &records)
            .map_err(|error| failure(&error))?;
        let mut plan = plan(client, &action, files).map_err(|error| failure(&error))?;
        if arguments.no_client_popups {
            plan.turn_off_client_popups().map_err(|error| failure(&error))?;
        }
        plans.push(plan);
    }
    Ok(plans)
}

fn clients(arguments: &Args, found: &[DetectedClient]) -> Result<Vec<Client>, Failure> {
    let entries = arguments.entries();
    if !arguments.clients.is_empty() {
        let named = arguments.clients.iter().map(|name| {
            let client = name.parse::<Client>()?;
            if client.takes(entries) { Ok(client) } else { Err(takes_no_server(client)) }
        });
        return named.collect();
    }
    let here = found.iter().filter(|found| found.is_installed()).map(|found| found.client);
    let here: Vec<Client> = here.filter(|client| client.takes(entries)).collect();
    if here.is_empty() && !arguments.remove {
        return Err(Failure::new(
            Exit::Unavailable,
            "no supported agent (claude, codex, gemini, opencode, copilot) is installed",
        )
        .hint("ringer setup claude   # to set one up anyway"));
    }
    Ok(if arguments.remove { Client::ALL.to_vec() } else { here })
}

fn takes_no_server(client: Client) -> Failure {
    let what = format!("Ringer does not know how {} takes MCP servers", client.display_name());
    Failure::usage(what).hint(format!("ringer setup {client}"))
}

/// Warns if this program may disappear: hooks refer to it by its path.
fn warn_of_place(project: bool) {
    let passing = own_path().ok().filter(|_| !project).and_then(|path| passing_place(&path));
    if let Some(what) = passing {
        print_notes(&[SetupNote { what, hint: INSTALL.to_owned() }]);
    }
}

/// Collects notes for the person: about the files, and why clients will not run the new entries.
fn notes(arguments: &Args, plans: &[Plan], client_paths: &ClientPaths, is_written: bool) -> Vec<SetupNote> {
    let of_files = plans.iter().flat_map(|plan| &plan.changes).flat_map(|change| change.notes.clone());
    let mut notes: Vec<SetupNote> = of_files.collect();
    if arguments.remove || arguments.mcp {
        return notes;
    }
    let is_offered = can_ask() && !arguments.yes && !arguments.dry_run;
    for plan in plans.iter().filter(|plan| is_written && !is_offered && !plan.is_empty()) {
        notes.extend(plan.client_popups().map(|terminals| two_popups(plan.client, terminals)));
    }
    notes.extend(obstacle_notes(plans, arguments.scope(), client_paths, is_written));
    notes
}

fn two_popups(client: Client, terminals: &str) -> SetupNote {
    SetupNote {
        what: format!("{terminals} show {}'s own popups beside Ringer's", client.display_name()),
        hint: format!("ringer setup {client} --no-client-popups   # turns its own off"),
    }
}

/// Reasons why clients will not run the new entries.
fn obstacle_notes(
    plans: &[Plan],
    scope: SetupScope,
    client_paths: &ClientPaths,
    is_written: bool,
) -> Vec<SetupNote> {
    let found = plans.iter().flat_map(|plan| {
        let is_new = is_written && !plan.is_empty();
        let found = obstacles(plan.client, scope, client_paths, None).into_iter();
        // The plan already has a note that new hooks must be trusted.
        found.filter(move |obstacle| obstacle.kind != ObstacleKind::Untrusted || !is_new)
    });
    found.map(|obstacle| obstacle.note).collect()
}

fn print_notes(notes: &[SetupNote]) {
    for note in notes {
        eprint_line(&format!("note: {}\nhint: {}", sanitise_line(&note.what), sanitise_line(&note.hint)));
    }
}

fn print_diffs(plans: &[Plan]) -> Outcome {
    for change in plans.iter().flat_map(|plan| &plan.changes).filter(|change| change.is_change()) {
        // Line by line, because the contents of a file must not reach the terminal unescaped.
        let diff: String = change.diff().lines().map(|line| sanitise_line(line) + "\n").collect();
        print_text(&diff)?;
    }
    Ok(())
}

fn apply_plans(plans: &[Plan], state: &Path) -> Result<ApplyResult, Failure> {
    let stamp = Clock::local().compact(IdSource::now().unix_ms);
    let time = BackupTime::new(&stamp).map_err(|error| failure(&error))?;
    let mut all = ApplyResult::default();
    for plan in plans.iter().filter(|plan| !plan.is_empty()) {
        let applied = apply(plan, state, &time).map_err(|error| failure(&error))?;
        all.written.extend(applied.written);
        all.deleted.extend(applied.deleted);
        all.backups.extend(applied.backups);
    }
    Ok(all)
}

/// Offers to turn off the clients' own popups.
fn offer_one_popup(arguments: &Args, plans: &[&Plan], client_paths: &ClientPaths, state: &Path) -> Outcome {
    if arguments.yes {
        return Ok(());
    }
    for plan in plans {
        let Some(terminals) = plan.client_popups() else { continue };
        let name = plan.client.display_name();
        let question =
            format!("{name} shows popups of its own in {terminals}, beside Ringer's. Turn them off?");
        if !confirm_by_enter(&question, arguments.without_asking())? {
            continue;
        }
        let records = SetupRecords::load(state).map_err(|error| failure(&error))?;
        let files = read_files(plan.client, &plan.action, arguments.scope(), client_paths, &records)
            .map_err(|error| failure(&error))?;
        let mut silent =
            ringer_agents::setup::plan(plan.client, &plan.action, files).map_err(|error| failure(&error))?;
        silent.turn_off_client_popups().map_err(|error| failure(&error))?;
        apply_plans(&[silent], state)?;
    }
    Ok(())
}

fn report(plans: &[Plan], written: &[PathBuf], in_the_way: &[SetupNote]) -> Value {
    let file = |change: &FileChange| {
        let notes: Vec<&str> = change.notes.iter().map(|note| note.what.as_str()).collect();
        json!({
            "path": change.path(),
            "changes": change.is_change(),
            "written": written.iter().any(|path| path == change.path()),
            "diff": if change.is_change() { change.diff() } else { String::new() },
            "notes": notes,
        })
    };
    let files: Vec<Value> = plans.iter().flat_map(|plan| &plan.changes).map(file).collect();
    let names: Vec<&str> = plans.iter().map(|plan| plan.client.as_str()).collect();
    let in_the_way: Vec<&str> = in_the_way.iter().map(|note| note.what.as_str()).collect();
    json!({ "clients": names, "files": files, "in_the_way": in_the_way })
}
