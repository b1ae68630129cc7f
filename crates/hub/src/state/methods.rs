//! The methods of the socket, each registered beside its code. `docs/protocol.md` describes them.
//!
//! Requests are handled in order, each once the hub has read the messages that were in the journal before it. A request that
//! writes to the journal is answered once the hub has read its own messages back.

mod hosts;
pub(super) mod method;
mod mutes;
mod notifications;
mod status;
mod surfaces;
mod toasts;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use ringer_core::Now;
use ringer_ipc::ApiError;
use serde_json::json;

use self::method::{Call, Handled, Method, NoParams, Result};
use super::request_queue::{QueuedRequest, RequestStep};
use super::{Finish, HubState};
use crate::message::{Action, Answer, FocusWaiter, Request};

static METHODS: LazyLock<BTreeMap<&'static str, Method>> = LazyLock::new(|| {
    let list =
        Method::new("hub.methods", |hub, _, _: NoParams| Ok(Handled::value(json!(hub.method_names()))));
    let all = [
        vec![list],
        status::methods(),
        notifications::methods(),
        mutes::methods(),
        surfaces::methods(),
        hosts::methods(),
        toasts::methods(),
    ];
    all.into_iter().flatten().map(|method| (method.name, method)).collect()
});

/// Returns the names of the hub's own methods. The server itself handles `hub.stop`.
fn own_methods() -> impl Iterator<Item = &'static str> {
    METHODS.keys().copied().chain(["hub.stop"])
}

impl HubState {
    fn method_names(&self) -> Vec<&'static str> {
        own_methods().chain(self.parts.methods()).collect()
    }

    /// Handles a request, or finishes one whose messages have been read.
    pub(super) fn answer_request(&mut self, now: Now, request: QueuedRequest<Finish>) {
        let QueuedRequest { id, step, up_to, deadline } = request;
        let handled = match step {
            RequestStep::Handle(request) => self
                .handle_request(now, request)
                .unwrap_or_else(|error| Handled::Done(Answer::Value(Err(error)))),
            RequestStep::Finish(finish) => Handled::Done(finish(self, now)),
        };
        self.write_changes(now);
        match handled {
            Handled::Done(answer) => {
                let behind = self.unread_up_to(up_to);
                self.act(Action::Answer { id, answer, behind });
            }
            Handled::AfterIngest(finish) => {
                // Waits for everything that it wrote, and for at least one more read of the journal.
                let up_to = self.journal.last_seq().unwrap_or(i64::MAX).max(self.ingest.seq() + 1);
                let step = RequestStep::Finish(finish);
                self.requests.put_back(QueuedRequest { id, step, up_to, deadline });
                self.ingest.schedule();
            }
            Handled::AfterFocus { target, surface, opening } => {
                self.ask_focus(now, target, surface, FocusWaiter::Request { id, up_to, opening });
            }
        }
    }

    fn handle_request(&mut self, now: Now, request: Request) -> Result<Handled> {
        let Request { method, params, connection, peer } = request;
        if let Some(found) = METHODS.get(method.as_str()) {
            return (found.handle)(self, Call { now, connection, peer }, params);
        }
        let answer = self.parts.call(&method, &params).unwrap_or_else(|| {
            Err(ApiError::new("unknown_method", format!("unknown method {method:?}; hub.methods lists them")))
        });
        answer.map(Handled::value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_method_is_on_the_protocol_page() {
        let page = include_str!("../../../../docs/protocol.md");
        for name in own_methods() {
            assert!(page.contains(&format!("`{name}`")), "{name} is not described in docs/protocol.md");
        }
    }
}
