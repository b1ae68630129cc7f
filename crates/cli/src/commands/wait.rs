//! `ringer wait`.

use std::time::{Duration, Instant};

use ringer_core::agent::{AgentState, BlockedOn};
use ringer_core::message::Agent;
use ringer_ipc::HubClientError;
use ringer_term::sanitise_line;
use ringer_ui::state_word;
use serde_json::json;

use crate::failure::{Exit, Failure, Outcome};
use crate::output::{print_json, print_line};
use crate::time_arguments::parse_duration;
use crate::{agents, hub_client};

/// Wait until an agent is done, needs you or has ended
///
/// Returns at once if that is so already. Exits with 0 when it is so, with 75 on a timeout,
/// and with 69 if the agent ended instead.
///
/// Examples:
///   ringer wait api/auth && ringer tell web "the api is ready"
///   ringer wait infra --until needs-me --timeout 1h
///   ringer wait infra --next     # not this time, the next
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// The agent: its name, `repository/branch`, or id
    who: String,
    /// What to wait for, separated by commas
    #[arg(long, value_enum, value_name = "STATE", value_delimiter = ',', default_values = ["done", "needs-me", "ended"])]
    until: Vec<Until>,
    /// Wait for the next time, even if it is so already
    #[arg(long)]
    next: bool,
    /// Give up after this long: 30s, 10m, 2h
    #[arg(long, value_name = "SPAN", value_parser = parse_duration)]
    timeout: Option<Duration>,
    /// Print the agent and its state as one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Until {
    /// Its turn has ended well
    Done,
    /// It waits for a prompt, however its turn ended
    Idle,
    /// It asks something, failed, or is stuck
    NeedsMe,
    /// Its session has ended
    Ended,
}

impl Until {
    fn is_so(self, state: AgentState) -> bool {
        match self {
            Self::Done => state == AgentState::Done,
            Self::Idle => {
                matches!(
                    state,
                    AgentState::Ready
                        | AgentState::Done
                        | AgentState::Error
                        | AgentState::Blocked(BlockedOn::Input)
                )
            }
            Self::NeedsMe => {
                matches!(state, AgentState::Blocked(_) | AgentState::Error | AgentState::Stuck)
            }
            Self::Ended => state == AgentState::Exited,
        }
    }
}

pub(crate) fn run(arguments: &Args) -> Outcome {
    let end = arguments.timeout.map(|timeout| Instant::now() + timeout);
    // Before the state is read, so that no change in between is missed.
    let mut hub = subscribed()?;
    let (summary, mut journal) = agents::find(Some(&arguments.who))?;
    let agent = Agent::new(&summary.id)?;
    let who = sanitise_line(&agents::shown_name(&summary));
    let first = journal.agent_state_since(&agent)?;
    loop {
        let now = journal.agent_state_since(&agent)?;
        let is_so = |state: AgentState| arguments.until.iter().any(|until| until.is_so(state));
        let reached = now.filter(|(state, _)| is_so(*state) && (!arguments.next || now != first));
        if let Some((state, _)) = reached {
            let state = state.as_str();
            if arguments.json {
                return print_json(&json!({ "agent": summary.id, "name": who, "state": state }));
            }
            return print_line(&format!("{who}: {}", state_word(state, None)));
        }
        if now.is_some_and(|(state, _)| state == AgentState::Exited) {
            return Err(Failure::new(Exit::Unavailable, format!("{who} has ended")).hint("ringer status"));
        }
        let late = || {
            Failure::new(Exit::TryAgain, format!("{who} is not there yet"))
                .hint(format!("ringer show {who}   # what it does"))
        };
        hub = match end.map(|end| end.saturating_duration_since(Instant::now())) {
            Some(Duration::ZERO) => return Err(late()),
            Some(left) => hub.answer_within(left).map_err(hub_client::failure)?,
            None => hub,
        };
        match hub.next_line() {
            Ok(Some(_)) => {}
            Err(HubClientError::Late { .. }) => return Err(late()),
            // The hub was replaced.
            Ok(None) | Err(HubClientError::NoHub) => hub = subscribed()?,
            Err(error) => return Err(hub_client::failure(error)),
        }
    }
}

/// Connects to a hub that sends a line whenever the state of an agent changes.
fn subscribed() -> Result<ringer_ipc::HubClient, Failure> {
    let mut hub = hub_client::hub()?;
    hub.call("events.subscribe", &json!({ "names": ["agent"] })).map_err(hub_client::failure)?;
    hub.wait_for_ever().map_err(hub_client::failure)?;
    Ok(hub)
}
