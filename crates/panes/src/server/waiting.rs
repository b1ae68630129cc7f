//! Waits for events on all descriptors of the server.

use std::io;
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::client_link::ClientLink;
use super::program::{Program, ReadyProgram};
use super::{IDLE_END, Server};
use crate::layout::PaneId;
use crate::view::ClientId;

/// A client, and whether its terminal is readable and writable.
type ReadyTerminal = (ClientId, bool, bool);

/// The descriptors that are ready.
#[expect(clippy::struct_excessive_bools, reason = "one for each descriptor; all can hold at once")]
#[derive(Debug, Default)]
pub(super) struct Ready {
    pub(super) listener: bool,
    pub(super) keeper: bool,
    pub(super) hub: bool,
    pub(super) saver: bool,
    pub(super) questions: bool,
    pub(super) ends: bool,
    pub(super) clients: Vec<(ClientId, bool, bool)>,
    /// Clients whose terminals are readable.
    pub(super) typed: Vec<ClientId>,
    pub(super) programs: Vec<ReadyProgram>,
}

impl Server {
    pub(super) fn wait(&self, listener: &UnixListener, ends: &UnixStream) -> io::Result<Ready> {
        let now = Instant::now();
        let accepts = if self.accepts_from.is_none() { PollFlags::IN } else { PollFlags::empty() };
        let mut fds = vec![
            PollFd::new(listener, accepts),
            PollFd::from_borrowed_fd(self.hub.as_fd(), PollFlags::IN),
            PollFd::new(ends, PollFlags::IN),
            PollFd::from_borrowed_fd(self.saver.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.questions.as_fd(), PollFlags::IN),
        ];
        let first_client = fds.len();
        for link in self.clients.values() {
            fds.push(PollFd::from_borrowed_fd(link.as_fd(), link.events()));
        }
        let first_terminal = fds.len();
        let mut terminals = Vec::new();
        for (client, link) in &self.clients {
            let is_read = self.state.view(*client).is_some_and(|view| !view.is_in_inbox);
            if let Some((terminal, flags)) = link.terminal_events(is_read) {
                terminals.push(*client);
                fds.push(PollFd::from_borrowed_fd(terminal, flags));
            }
        }
        let first_program = fds.len();
        let polled: Vec<&PaneId> =
            self.programs.iter().filter(|(_, program)| program.is_open(now)).map(|(pane, _)| pane).collect();
        for program in polled.iter().filter_map(|pane| self.programs.get(*pane)) {
            let flags =
                if program.has_output_waiting() { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
            fds.push(PollFd::from_borrowed_fd(program.as_fd(), flags));
        }
        // Last, because it is optional.
        let keeper_at = (!self.is_keeper_gone).then(|| {
            fds.push(PollFd::from_borrowed_fd(self.keeper.as_fd(), PollFlags::IN));
            fds.len() - 1
        });
        let timeout = self.timeout(now).and_then(|left| Timespec::try_from(left).ok());
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let is_readable = |at: usize| {
            fds.get(at)
                .is_some_and(|fd| fd.revents().intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR))
        };
        // A PTY that a process has opened again, but not written to yet, is not readable.
        let is_due = |pane: &PaneId| {
            self.programs.get(pane).and_then(Program::next_look).is_some_and(|look| look <= now)
        };
        let is_writable = |at: usize| fds.get(at).is_some_and(|fd| fd.revents().contains(PollFlags::OUT));
        let terminals: Vec<ReadyTerminal> = (first_terminal..)
            .zip(terminals)
            .map(|(at, client)| (client, is_readable(at), is_writable(at)))
            .collect();
        let takes_more =
            |client: ClientId| terminals.iter().any(|(own, _, is_writable)| *own == client && *is_writable);
        Ok(Ready {
            listener: is_readable(0),
            hub: is_readable(1),
            ends: is_readable(2),
            saver: is_readable(3),
            questions: is_readable(4),
            keeper: keeper_at.is_some_and(is_readable),
            clients: (first_client..)
                .zip(self.clients.keys())
                .map(|(at, client)| (*client, is_readable(at), is_writable(at) || takes_more(*client)))
                .collect(),
            typed: terminals
                .iter()
                .filter(|(_, is_readable, _)| *is_readable)
                .map(|(client, ..)| *client)
                .collect(),
            programs: (first_program..)
                .zip(polled)
                .map(|(at, pane)| (pane.clone(), is_readable(at) || is_due(pane), is_writable(at)))
                .filter(|(_, is_readable, is_writable)| *is_readable || *is_writable)
                .collect(),
        })
    }

    /// The time until the next timer, if there is one.
    fn timeout(&self, now: Instant) -> Option<Duration> {
        let takes_frames = self.clients.values().any(|link| link.is_window && !link.is_busy());
        let frame = self.frames.due().filter(|_| takes_frames);
        let inputs = self.clients.values().filter_map(ClientLink::input_due);
        let silent = self.clients.values().filter_map(ClientLink::hello_due);
        let idle = self.idle_since.map(|since| since + IDLE_END);
        let change = self.state.next_change(now);
        let closed = self.programs.values().filter_map(Program::next_look);
        let own = [frame, self.saver.due(now), idle, change, self.accepts_from].into_iter().flatten();
        let due = inputs.chain(silent).chain(closed).chain(own).min();
        due.map(|due| due.saturating_duration_since(now))
    }
}
