//! Permissions that an agent requests in a run that no person attends. The client refuses them, unless a program allows
//! them.

use serde::{Deserialize, Serialize};

use super::notice::{AgentNotice, Episode};
use crate::agent::{Signal, SignalContent};
use crate::message::{Kind, PERMISSION_REFUSED};

/// The most requests that are kept. Further ones are dropped, so the notice lists only a part of the refusals.
const MAX_KEPT: usize = 16;

/// Requests that are not known to have been allowed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct UnattendedRequests {
    requests: Vec<UnattendedRequest>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct UnattendedRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    call: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

impl UnattendedRequests {
    /// Processes a signal. Returns the notice of the refused requests once the agent goes on without them. The caller sets
    /// its episode.
    pub(super) fn refused_by(&mut self, signal: &Signal) -> Option<AgentNotice> {
        match (&signal.content, &signal.call) {
            (SignalContent::UnattendedPermission, call) => {
                if self.requests.len() < MAX_KEPT {
                    let (call, text) = (call.clone(), signal.text.clone());
                    self.requests.push(UnattendedRequest { call, text });
                }
                None
            }
            // The call ran, so a program allowed it.
            (SignalContent::State(_), Some(call)) => {
                self.requests.retain(|request| request.call.as_ref() != Some(call));
                None
            }
            (SignalContent::State(_), None) => self.take_refused(),
            _ => None,
        }
    }

    fn take_refused(&mut self) -> Option<AgentNotice> {
        let requests = std::mem::take(&mut self.requests);
        let unnamed = || "something that it did not name".to_owned();
        let texts: Vec<String> =
            requests.into_iter().map(|request| request.text.unwrap_or_else(unnamed)).collect();
        (!texts.is_empty()).then(|| AgentNotice {
            episode: Episode::default(),
            upgrade: false,
            kind: Kind::Status,
            category: Some(PERMISSION_REFUSED),
            text: Some(texts.join("; ")),
            running: 0,
            turn: None,
        })
    }
}
