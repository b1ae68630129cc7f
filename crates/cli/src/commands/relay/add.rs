//! `ringer relay add` and `ringer relay remove`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use ringer_config::RelayEntry;
use ringer_journal::{Home, Journal};
use ringer_platform::shell_word;
use ringer_relay::{
    BUILD_WITH_NATS, ConfiguredName, Error, Hello, LinkProcess, MachineName, Purpose, RemoteRequest,
    TeamSetup, WITHOUT_NATS, forget_machine, forget_team, join_team, register_machine,
};
use ringer_term::sanitise_line;
use serde_json::Value;

use super::settings_file::{SettingsFile, link_failure, only_a_person, settings};
use crate::confirm::{can_ask, confirm, confirm_by_enter};
use crate::failure::{Exit, Failure, Outcome};
use crate::output::{print_line, short_path};
use crate::{context, hub_client};

/// Time limit for the other machine's greeting, including ssh's own connection.
const GREETS_WITHIN: Duration = Duration::from_secs(30);

/// The most that is read of the answer to [`FIND`]: a path, and the output of the shell's start-up files before it.
const MAX_FOUND: usize = 16 * 1024;

/// Finds `ringer` on the other machine, because a non-interactive shell often has a short PATH.
const FIND: &str = "for ringer in ringer \"$HOME/.cargo/bin/ringer\" \"$HOME/.local/bin/ringer\" \
                    /usr/local/bin/ringer /opt/homebrew/bin/ringer; do \
                    if path=$(command -v \"$ringer\"); then printf 'ringer is %s\\n' \"$path\"; exit 0; fi; done; exit 127";

/// Connect another machine to this one
///
/// Looks for `ringer` there, shows what it will write, and asks whether what agents
/// ask there may be answered from here. Keys and hosts are those of your own ssh.
///
/// Examples:
///   ringer relay add ssh box
///   ringer relay add ssh me@build.lan --name build --may-answer --yes
///   ringer relay add command --name dev -- docker exec -i dev ringer relay serve --stdio
///   ringer relay add nats tls://nats.example.org --team platform --credentials me.creds
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Args {
    #[command(subcommand)]
    way: Way,
}

#[derive(Debug, clap::Subcommand)]
enum Way {
    /// Over ssh
    Ssh {
        /// The host, as `ssh` takes it
        host: String,
        /// Path of `ringer` there [default: it is looked for]
        #[arg(long, value_name = "PATH")]
        program: Option<String>,
        #[command(flatten)]
        options: Options,
    },
    Nats(NatsArgs),
    /// Over any program that runs `ringer relay serve --stdio` there
    Command {
        /// The program and its arguments
        #[arg(required = true, last = true)]
        argv: Vec<String>,
        #[command(flatten)]
        options: Options,
    },
}

#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch on the command line")]
struct Options {
    /// What the machine is called here [default: the host, or what it calls itself]
    #[arg(long)]
    name: Option<String>,
    /// Let this machine answer what agents ask there, and write to them
    #[arg(long, conflicts_with = "no_answers")]
    may_answer: bool,
    /// Answer what agents ask there only on that machine
    #[arg(long)]
    no_answers: bool,
    /// Let messages of agents there reach the lead agent of the same repository here
    #[arg(long)]
    may_reach_lead: bool,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
}

pub(super) fn run(arguments: &Args) -> Outcome {
    let home = context::home()?;
    only_a_person(&home)?;
    let (mut entry, options) = match &arguments.way {
        Way::Nats(arguments) => return join_nats(arguments, &home),
        Way::Ssh { host, program, options } => {
            if host.starts_with('-') || host.contains(char::is_whitespace) {
                return Err(Failure::usage(format!("{:?} is no host", sanitise_line(host)))
                    .hint("ringer relay add ssh box"));
            }
            let program = match program {
                Some(program) => Some(program.clone()),
                None => find_program(host)?,
            };
            (RelayEntry { ssh: Some(host.clone()), program, ..RelayEntry::default() }, options)
        }
        Way::Command { argv, options } => {
            (RelayEntry { command: argv.clone(), ..RelayEntry::default() }, options)
        }
    };
    let hello = greet(&home, &entry, Purpose::Answer)?;
    let mut journal = Journal::open(&home)?;
    // The machine may already be connected to this one, and then has a name.
    let known = journal.machine_name(hello.machine.as_str())?;
    // A person knows a machine by the name that they type for ssh.
    let host = entry.ssh.as_deref().and_then(|host| MachineName::parse(host.rsplit('@').next()?));
    let name = options.name.clone().or(known).or(host.map(|host| host.to_string()));
    let name = name.unwrap_or_else(|| MachineName::from_text(&hello.name).to_string());
    let name = MachineName::parse(&name).ok_or_else(|| {
        Failure::usage(format!("{:?} cannot be the name of a machine", sanitise_line(&name)))
            .hint("ringer relay add … --name box   # letters, digits, `-`, `_` and `.`")
    })?;
    let links: Vec<String> = settings()?.relays.iter().map(|relay| relay.machine().to_owned()).collect();
    if links.iter().any(|link| link == name.as_str()) {
        return Err(Failure::usage(format!("there is a machine named {name} already"))
            .hint(format!("ringer relay remove {name}, or another --name")));
    }
    entry.name = Some(name.to_string());
    print_line(&format!(
        "{name} answers: ringer {}. Linked, messages of each machine come to the other one.",
        sanitise_line(&hello.program)
    ))?;
    entry.may_answer = may_answer(options, &name)?;
    entry.may_reach_lead = options.may_reach_lead;
    let mut file = SettingsFile::open()?;
    let path = short_path(file.path());
    if !options.yes && !confirm_by_enter(&format!("Add {name} to {path}?"), "ringer relay add … --yes")? {
        return print_line("Nothing was changed.");
    }
    // From here on the other machine keeps messages for this one.
    let hello = greet(&home, &entry, Purpose::Register)?;
    let given = ConfiguredName::for_link(name.clone(), &entry.argv(), links);
    register_machine(&home, &mut journal, Some(&given), &hello).map_err(link_failure)?;
    file.add(&entry);
    file.write()?;
    // A running hub reloads the file now; otherwise one is started, which connects.
    hub_client::start_in_background();
    print_line(&format!("Added. To see it: ringer relay status. To undo: ringer relay remove {name}"))
}

fn may_answer(options: &Options, name: &MachineName) -> Result<bool, Failure> {
    if options.may_answer || options.no_answers {
        return Ok(options.may_answer);
    }
    if options.yes || !can_ask() {
        return Ok(false);
    }
    let question = format!(
        "May this machine answer what agents on {name} ask, and write to them, the lead agent included?"
    );
    confirm_by_enter(&question, "ringer relay add … --may-answer")
}

/// Asks the other machine for its greeting.
fn greet(home: &Home, entry: &RelayEntry, purpose: Purpose) -> Result<Hello, Failure> {
    // The home must exist, because it holds this machine's id.
    Journal::open(home)?;
    let program = env!("CARGO_PKG_VERSION");
    let question = RemoteRequest::begin(home, &entry.argv(), program, purpose, GREETS_WITHIN);
    let question = question.map_err(|error| {
        let hint = match &entry.ssh {
            Some(host) => {
                format!("ssh {} ringer --version   # has to work without a question", shell_word(host))
            }
            None => entry.command.iter().map(|word| shell_word(word)).collect::<Vec<_>>().join(" "),
        };
        Failure::new(Exit::Unavailable, sanitise_line(&error.to_string())).hint(hint)
    })?;
    Ok(question.hello().clone())
}

/// Finds the path of `ringer` on a host. Returns `None` if its shell finds it without a path.
fn find_program(host: &str) -> Result<Option<String>, Failure> {
    let script = format!("sh -c {}", shell_word(FIND));
    let mut ssh = Command::new("ssh");
    ssh.args(["-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=15", "--", host, &script]);
    let cannot_connect = |why: &str| {
        let host = sanitise_line(host);
        Failure::new(Exit::Unavailable, format!("cannot connect to {host}: {}", sanitise_line(why)))
            .hint(format!("ssh {host}   # has to work without a question; accept its key, load yours"))
    };
    let ran = LinkProcess::run_to_end(ssh, MAX_FOUND, GREETS_WITHIN);
    let ran = ran.map_err(|error| cannot_connect(&error.to_string()))?;
    let found = ran.text.lines().find_map(|line| line.strip_prefix("ringer is ")).map(str::to_owned);
    match (found, ran.code) {
        (Some(path), _) if path.starts_with('/') => Ok(Some(path)),
        (Some(_), _) => Ok(None),
        (None, Some(127)) => {
            let host = sanitise_line(host);
            Err(Failure::new(Exit::Unavailable, format!("no ringer was found on {host}"))
                .hint(format!("install it there, or name it: ringer relay add ssh {host} --program PATH")))
        }
        (None, _) => Err(cannot_connect(ran.last_error_line().as_deref().unwrap_or("ssh said nothing"))),
    }
}

pub(super) fn remove(name: &str, yes: bool) -> Outcome {
    let home = context::home()?;
    only_a_person(&home)?;
    let config = settings()?;
    let mut journal = Journal::open(&home)?;
    let Some(entry) = config.relays.iter().find(|relay| relay.machine() == name) else {
        return forget(&home, &mut journal, name);
    };
    let mut file = SettingsFile::open()?;
    let question = format!("Remove {name} from {}?", short_path(file.path()));
    if !yes && !confirm(&question, &format!("ringer relay remove {name} --yes"))? {
        return print_line("Nothing was changed.");
    }
    file.remove(|table| {
        let text = |key: &str| table.get(key).and_then(|item| item.as_str());
        match (&entry.name, &entry.ssh) {
            _ if entry.nats.is_some() => text("nats").is_some() && text("team") == Some(name),
            (Some(name), _) => text("name") == Some(name),
            (None, ssh) => text("name").is_none() && text("ssh") == ssh.as_deref(),
        }
    });
    file.write()?;
    // A running hub disconnects now, before the machine is forgotten, because a new connection would register it again. A hub
    // that
    // does not answer reads the file later.
    let _ = hub_client::call_running(&home, "hub.reload", &Value::Null);
    if let Some(team) = TeamSetup::of(&home, &entry.link()) {
        forget_team(&team, &mut journal).map_err(link_failure)?;
    }
    if let Some(name) = MachineName::parse(name) {
        forget_machine(&home, &mut journal, &name).map_err(link_failure)?;
    }
    print_line(&format!("Removed. Messages of {name} stay in the list."))
}

/// Forgets a machine that is not in the settings: it connects to this one, or was removed from the file by hand.
fn forget(home: &Home, journal: &mut Journal, name: &str) -> Outcome {
    let is_known = match MachineName::parse(name) {
        Some(name) => forget_machine(home, journal, &name).map_err(link_failure)?,
        None => false,
    };
    if is_known {
        return print_line(&format!(
            "Forgot {name}, and ended its connection. If it connects again, it is a new machine; to keep it out, remove its \
             key from ~/.ssh/authorized_keys."
        ));
    }
    Err(Failure::new(Exit::Data, format!("no machine is named {:?}", sanitise_line(name)))
        .hint("ringer relay list"))
}

/// Join a team of machines, over a NATS server
///
/// What is written on each machine of a team comes to all others. The server needs
/// JetStream. Its operator gives each machine credentials that let it publish as
/// itself only; `docs/machines.md` has them.
///
/// Examples:
///   ringer relay add nats tls://nats.example.org --team platform --credentials me.creds
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch on the command line")]
pub(super) struct NatsArgs {
    /// Address of the server, such as tls://nats.example.org:4222; those of a cluster with commas between them
    url: String,
    /// Name of the team
    #[arg(long)]
    team: String,
    /// File with the credentials of this machine (JWT or nkey); chmod 600
    #[arg(long, value_name = "FILE")]
    credentials: Option<PathBuf>,
    /// JetStream domain of the server that has the stream, if the address is that of a leaf node
    #[arg(long)]
    domain: Option<String>,
    /// Certificate that the server's one is signed with [default: those that the system trusts]
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// What this machine is called in the team [default: its host name]
    #[arg(long)]
    name: Option<String>,
    /// Let other machines of the team answer what agents ask here, and write to them
    #[arg(long)]
    may_answer: bool,
    /// Let messages of agents of the team reach the lead agent of the same repository here
    #[arg(long)]
    may_reach_lead: bool,
    /// Let what is read, cleared or snoozed on one machine count on all
    #[arg(long)]
    share_marks: bool,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
}

pub(super) fn join_nats(arguments: &NatsArgs, home: &Home) -> Outcome {
    let absolute = |path: &Option<PathBuf>| path.as_deref().map(absolute).transpose();
    let entry = RelayEntry {
        name: arguments.name.clone(),
        nats: Some(arguments.url.clone()),
        domain: arguments.domain.clone(),
        team: Some(arguments.team.clone()),
        credentials: absolute(&arguments.credentials)?,
        ca: absolute(&arguments.ca)?,
        may_answer: arguments.may_answer,
        may_reach_lead: arguments.may_reach_lead,
        share_marks: arguments.share_marks,
        ..RelayEntry::default()
    };
    if let Some((what, example)) = entry.wrong_team() {
        return Err(Failure::usage(format!("the team {}", sanitise_line(&what)))
            .hint(format!("ringer relay add nats …   # in the settings: {example}")));
    }
    let team = entry.machine().to_owned();
    if settings()?.relays.iter().any(|relay| relay.machine() == team) {
        return Err(Failure::usage(format!("there is a machine or team named {team} already"))
            .hint(format!("ringer relay remove {team}")));
    }
    let Some(setup) = TeamSetup::of(home, &entry.link()) else { return Ok(()) };
    let server = join_team(&setup).map_err(|error| cannot_join(&error))?;
    print_line(&format!(
        "nats-server {} answers. In the team {team}, this machine is {}. What is written on each machine of the \
         team comes to all others; the server's operator can read it.",
        sanitise_line(&server),
        setup.machine()
    ))?;
    let mut file = SettingsFile::open()?;
    let path = short_path(file.path());
    let question = format!("Add the team {team} to {path}?");
    if !arguments.yes && !confirm_by_enter(&question, "ringer relay add nats … --yes")? {
        forget_team(&setup, &mut Journal::open(home)?).map_err(link_failure)?;
        return print_line("Nothing was changed.");
    }
    let entry = RelayEntry { name: Some(setup.machine().to_owned()), ..entry };
    file.add(&entry);
    file.write()?;
    // A running hub reloads the file now; otherwise one is started, which connects.
    hub_client::start_in_background();
    print_line(&format!("Added. To see it: ringer relay status. To undo: ringer relay remove {team}"))
}

fn cannot_join(error: &Error) -> Failure {
    match error {
        Error::WithoutNats => Failure::new(Exit::Unavailable, WITHOUT_NATS).hint(BUILD_WITH_NATS),
        error => Failure::new(Exit::Unavailable, sanitise_line(&error.to_string()))
            .hint("docs/machines.md says what the server's operator sets"),
    }
}

/// Makes a path absolute, because the hub runs in another directory.
fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    path.canonicalize().map_err(|error| Failure::open(&short_path(path), error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_without_nats_says_how_to_build_one_with_it() {
        assert_eq!(
            cannot_join(&Error::WithoutNats).to_string(),
            "error: this ringer was built without NATS, which teams need\n\
             hint: cargo install --path crates/cli --features nats"
        );
    }
}
