//! The page of one agent, on top of the list. It is read anew whenever something has changed.

use crate::backend::Request;
use crate::columns::text_room;
use crate::pager::Pager;

/// The page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AgentView {
    agent: String,
    /// `None` until it was read for the first time.
    text: Option<Pager>,
    /// Whether each background task is shown, with its whole text.
    verbose: bool,
    /// Whether it is being read.
    is_loading: bool,
    /// Whether something has changed since that began.
    is_stale: bool,
}

impl AgentView {
    pub(crate) fn new(agent: String) -> Self {
        Self { agent, text: None, verbose: false, is_loading: false, is_stale: false }
    }

    pub(crate) fn text(&self) -> Option<&Pager> {
        self.text.as_ref()
    }

    pub(crate) fn text_mut(&mut self) -> Option<&mut Pager> {
        self.text.as_mut()
    }

    pub(crate) fn is_verbose(&self) -> bool {
        self.verbose
    }

    pub(crate) fn toggle_verbose(&mut self) {
        self.verbose = !self.verbose;
    }

    /// Asks for the page as it is now. One reading at a time: an older one must not come after a newer one.
    pub(crate) fn load(&mut self, columns: u16, ascii: bool) -> Option<Request> {
        if self.is_loading {
            self.is_stale = true;
            return None;
        }
        self.is_loading = true;
        self.is_stale = false;
        let (agent, verbose) = (self.agent.clone(), self.verbose);
        Some(Request::AgentPage { agent, width: text_room(columns), verbose, ascii })
    }

    /// The page of an agent was read. Gives whether it is to be read again.
    pub(crate) fn loaded(&mut self, agent: &str, lines: Vec<String>) -> bool {
        if agent != self.agent {
            return false;
        }
        self.is_loading = false;
        match &mut self.text {
            Some(text) => text.replace(lines),
            None => self.text = Some(Pager::new("Agent", lines)),
        }
        self.is_stale
    }
}
