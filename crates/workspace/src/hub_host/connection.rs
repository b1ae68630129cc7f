//! A connection to the hub, as the thread that talks to it has it.

use std::collections::VecDeque;
use std::sync::Arc;

use ringer_ipc::HubWriter;

use super::answers::Answers;
use super::said::{Said, drop_oldest, keep};

pub(super) struct Connection {
    writer: HubWriter,
    /// Requests that were written.
    sent: u64,
    pub(super) answers: Arc<Answers>,
}

impl Connection {
    pub(super) fn new(writer: HubWriter, answers: Arc<Answers>) -> Self {
        Self { writer, sent: 0, answers }
    }

    /// Requests that were written.
    pub(super) fn sent(&self) -> u64 {
        self.sent
    }

    /// Gives whether the hub took it. If not, it is kept.
    pub(super) fn send(&mut self, request: Arc<Said>, unsaid: &mut VecDeque<Arc<Said>>) -> bool {
        self.sent += 1;
        // Before it is written: the answer may come at once.
        let is_expected = request.is_said_once() && self.answers.expect(self.sent, &request);
        let is_taken = self.writer.send(request.method, &request.params).is_ok();
        if !is_taken && !is_expected {
            keep(request, unsaid);
        }
        is_taken
    }

    /// What the hub has not answered has to be said to the next one.
    pub(super) fn end(self, unsaid: &mut VecDeque<Arc<Said>>) {
        for request in self.answers.take_unanswered().into_iter().rev() {
            unsaid.push_front(request);
        }
        drop_oldest(unsaid);
    }
}
