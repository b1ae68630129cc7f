//! What working agents do: the tools that run, as their hooks told of them.

use ringer_core::message::Agent;
use ringer_journal::{NewestCalls, RunningTools};

use crate::context;

/// What the agents do, as it is now.
#[derive(Debug, Default)]
pub(crate) struct Doing {
    calls: NewestCalls,
}

impl Doing {
    /// Looks which tools run.
    pub(crate) fn now() -> Self {
        let calls = context::home().map(|home| RunningTools::of(&home).newest());
        Self { calls: calls.unwrap_or_default() }
    }

    /// What an agent in a state does; as its client said it. What a tool left behind that was killed with its agent counts
    /// for nothing.
    pub(crate) fn text(&self, id: &str, state: &str) -> Option<String> {
        let agent = Agent::new(id).ok().filter(|_| state == "working")?;
        self.calls.text(&agent)
    }
}

/// Calls whenever a tool begins or ends. Returns where the system does not tell.
#[cfg(target_os = "linux")]
pub(crate) fn follow(changed: &dyn Fn()) {
    let Ok(home) = context::home() else { return };
    let tools = RunningTools::of(&home);
    let Ok(directories) = ringer_platform::DirectoryChanges::begin(tools.watched_directories()) else {
        return;
    };
    while directories.wait().is_ok() {
        changed();
    }
}

/// Not followed here: it is read with everything else.
#[cfg(not(target_os = "linux"))]
pub(crate) fn follow(_changed: &dyn Fn()) {}
