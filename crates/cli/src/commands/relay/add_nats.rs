//! `ringer relay add nats`.

use std::path::{Path, PathBuf};

use ringer_config::RelayEntry;
use ringer_journal::{Home, Journal};
use ringer_relay::{BUILD_WITH_NATS, Error, TeamSetup, WITHOUT_NATS, forget_team, join_team};
use ringer_term::sanitise_line;

use super::settings_file::{SettingsFile, link_failure, settings};
use crate::confirm::confirm_by_enter;
use crate::failure::{Exit, Failure, Outcome};
use crate::hub_client;
use crate::output::{print_line, short_path};

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
pub(super) struct Args {
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

pub(super) fn run(arguments: &Args, home: &Home) -> Outcome {
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
