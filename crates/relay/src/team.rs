//! The interface to teams for the hub and commands. Each connection has its own runtime, which ends with it.

use std::os::unix::net::UnixStream;

use ringer_journal::Journal;

use crate::error::Error;
use crate::exchange::ConnectionEnd;
use crate::frame::AnswerOutput;
use crate::position::forget_first_position;
use crate::team_agents::TeamAgents;
use crate::team_setup::{TeamProgress, TeamSetup};

#[cfg(feature = "nats")]
use std::cell::OnceCell;
#[cfg(feature = "nats")]
use std::os::fd::AsFd;

/// Connects to the team's server, and exchanges messages until the connection is lost or `stop` is closed.
#[cfg(feature = "nats")]
pub(crate) fn run_team(
    setup: &TeamSetup,
    stop: &UnixStream,
    progress: &mut dyn FnMut(TeamProgress),
) -> Result<ConnectionEnd, Error> {
    let runtime = runtime()?;
    let failed = |source| Error::Io { what: "cannot wait for the end".to_owned(), source };
    let ended = runtime.block_on(async {
        let stop = crate::nats::readable(stop.as_fd()).map_err(failed)?;
        let connected = OnceCell::new();
        let ended = tokio::select! {
            biased;
            // Only closing makes it readable.
            _ = stop.readable() => Ok(ConnectionEnd::Stopped),
            ended = crate::nats::exchange(setup, &connected, progress) => ended,
        };
        if let (Ok(ConnectionEnd::Stopped), Some(client)) = (&ended, connected.get()) {
            crate::nats::leave(setup, client).await;
        }
        ended
    });
    // A pending name lookup must not delay the end.
    runtime.shutdown_background();
    ended
}

/// Joins a team. Returns the version of its server. Messages written from now on are for the team.
#[cfg(feature = "nats")]
pub fn join_team(setup: &TeamSetup) -> Result<String, Error> {
    let runtime = runtime()?;
    let joined = runtime.block_on(crate::nats::join(setup));
    runtime.shutdown_background();
    joined
}

/// Answers what a message of a machine of the team asks. Returns the outcome there.
#[cfg(feature = "nats")]
pub fn answer_in_team(
    setup: &TeamSetup,
    machine: &str,
    message: &str,
    words: &[String],
    as_json: bool,
) -> Result<AnswerOutput, Error> {
    let Some(machine) = setup.word_of(machine) else {
        return Err(Error::Team("it is no machine of the team".to_owned()));
    };
    let runtime = runtime()?;
    let answered = runtime.block_on(crate::nats::answer(setup, machine, message, words, as_json));
    runtime.shutdown_background();
    answered
}

#[cfg(feature = "nats")]
fn runtime() -> Result<tokio::runtime::Runtime, Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|source| Error::Io { what: "no runtime can be started".to_owned(), source })
}

/// Fails, because this build has no team support.
#[cfg(not(feature = "nats"))]
pub(crate) fn run_team(
    _: &TeamSetup,
    _: &UnixStream,
    _: &mut dyn FnMut(TeamProgress),
) -> Result<ConnectionEnd, Error> {
    Err(Error::WithoutNats)
}

/// Fails, because this build has no team support.
#[cfg(not(feature = "nats"))]
pub fn join_team(_: &TeamSetup) -> Result<String, Error> {
    Err(Error::WithoutNats)
}

/// Fails, because this build has no team support.
#[cfg(not(feature = "nats"))]
pub fn answer_in_team(_: &TeamSetup, _: &str, _: &str, _: &[String], _: bool) -> Result<AnswerOutput, Error> {
    Err(Error::WithoutNats)
}

/// Forgets a team. The messages of its machines stay.
pub fn forget_team(setup: &TeamSetup, journal: &mut Journal) -> Result<(), Error> {
    let key = setup.export_key();
    journal.forget_team(&key)?;
    forget_first_position(&setup.home, &key);
    TeamAgents::forget(&setup.home, &setup.team);
    Ok(())
}
