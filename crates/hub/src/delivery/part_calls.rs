//! Calls of parts that may block. Each is made on a thread of its own.

use std::sync::Arc;
use std::time::Duration;

use ringer_core::agent::PopupAnswer;
use ringer_core::message::SurfaceId;
use ringer_ipc::part::{
    AnswerOutcome, AnsweredQuestion, Answerer, PaneControl, Part, TitleOutcome, Unreachable,
};
use ringer_term::{Env, OuterTerminal};

/// Deadline of an answer: 2 s for the client to take it, plus the wait for the journal's write lock before that.
const ANSWER_DEADLINE: Duration = Duration::from_secs(15);
/// Deadline of an answer to an agent on another machine. An ssh connection has 30 s.
const ELSEWHERE_DEADLINE: Duration = Duration::from_secs(32);

/// The parts of a hub that answer questions and control panes.
#[derive(Clone, Default)]
pub(crate) struct PartCalls {
    answerer: Option<Arc<dyn Answerer>>,
    panes: Option<Arc<dyn PaneControl>>,
}

impl PartCalls {
    pub(crate) fn of(parts: &[Box<dyn Part>]) -> Self {
        Self {
            answerer: parts.iter().find_map(|part| part.answerer()),
            panes: parts.iter().find_map(|part| part.pane_control()),
        }
    }

    /// Passes on the person's answer, and waits until it is accepted or too late.
    pub(crate) async fn answer(&self, asked: AnsweredQuestion, answer: PopupAnswer) -> AnswerOutcome {
        let Some(answerer) = self.answerer.clone() else {
            return AnswerOutcome::OnlyThere("this hub gives no answers to agents".to_owned());
        };
        let deadline =
            if matches!(asked, AnsweredQuestion::Remote(_)) { ELSEWHERE_DEADLINE } else { ANSWER_DEADLINE };
        let giving = tokio::task::spawn_blocking(move || answerer.answer(&asked, &answer));
        match tokio::time::timeout(deadline, giving).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_)) => AnswerOutcome::NotTaken("an error in Ringer; see the hub's log".to_owned()),
            Err(_) => AnswerOutcome::NotTaken(format!("not confirmed within {deadline:?}")),
        }
    }

    /// Brings a pane to the front. Returns the name of its multiplexer.
    pub(crate) async fn focus(&self, surface: SurfaceId) -> Result<String, Unreachable> {
        self.of_pane(move |panes| panes.focus(&surface).map(|()| panes.name().to_owned())).await
    }

    /// Returns the terminal device of a pane.
    pub(crate) async fn tty(&self, surface: SurfaceId) -> Result<String, Unreachable> {
        self.of_pane(move |panes| panes.tty(&surface)).await
    }

    pub(crate) async fn mark_title(&self, surface: SurfaceId, set: bool) -> TitleOutcome {
        let outcome = self.call(move |panes| panes.mark_title(&surface, set)).await;
        outcome.unwrap_or(TitleOutcome::Gone)
    }

    /// Describes the terminal around the pane of a process with this environment.
    pub(crate) async fn outer_terminal(&self, environment: Env) -> Option<OuterTerminal> {
        self.call(move |panes| panes.outer_terminal(&environment)).await.flatten()
    }

    async fn of_pane<T: Send + 'static>(
        &self,
        call: impl FnOnce(&dyn PaneControl) -> Result<T, Unreachable> + Send + 'static,
    ) -> Result<T, Unreachable> {
        let result = self.call(call).await;
        result.unwrap_or_else(|| Err(Unreachable::new("this hub has no control of panes")))
    }

    /// Returns `None` if no part controls panes, or if the call panicked.
    async fn call<T: Send + 'static>(
        &self,
        call: impl FnOnce(&dyn PaneControl) -> T + Send + 'static,
    ) -> Option<T> {
        let panes = self.panes.clone()?;
        tokio::task::spawn_blocking(move || call(panes.as_ref())).await.ok()
    }
}
