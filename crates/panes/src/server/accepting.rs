//! Accepts connections, and closes those that send no hello.

use std::io;
use std::os::unix::net::UnixListener;
use std::time::{Duration, Instant};

use ringer_platform::{FIRST_FRAME_WITHIN, peer_uid};

use super::Server;
use super::client_link::ClientLink;
use crate::view::ClientId;

/// The most connections. One more replaces the oldest connection that has not sent its hello; if all have, it is closed.
const MAX_CLIENTS: usize = 64;
/// The most connections that are accepted before the existing ones are read. It is less than [`MAX_CLIENTS`], so that a client
/// that has sent its hello is read before new connections could replace it.
const ACCEPTED_AT_ONCE: usize = 16;
/// How long to wait if `accept` fails, for example because too many files are open.
const ACCEPT_WAIT: Duration = Duration::from_secs(1);

impl Server {
    /// Closes the connections whose first frame is late.
    pub(super) fn lose_silent(&mut self, now: Instant) {
        let is_late = |link: &ClientLink| link.first_frame_due().is_some_and(|due| now >= due);
        let late: Vec<ClientId> =
            self.clients.iter().filter(|(_, link)| is_late(link)).map(|(client, _)| *client).collect();
        for client in late {
            self.lose(client);
        }
    }

    /// Makes room for one more client, if necessary by closing the oldest one that has not sent its hello. Returns false if all
    /// have.
    fn has_room(&mut self) -> bool {
        if self.clients.len() < MAX_CLIENTS {
            return true;
        }
        // Ids increase, so the first one is the oldest.
        let silent = self.clients.iter().find(|(_, link)| link.first_frame_due().is_some());
        let Some(silent) = silent.map(|(client, _)| *client) else { return false };
        self.lose(silent);
        true
    }

    pub(super) fn accept(&mut self, listener: &UnixListener, now: Instant) {
        for _ in 0..ACCEPTED_AT_ONCE {
            let stream = match listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => return,
                    io::ErrorKind::Interrupted | io::ErrorKind::ConnectionAborted => continue,
                    _ => {
                        self.accepts_from = Some(now + ACCEPT_WAIT);
                        return;
                    }
                },
            };
            let is_own = peer_uid(&stream).is_ok_and(|uid| uid == rustix::process::geteuid().as_raw());
            if !is_own || !self.has_room() {
                continue;
            }
            if let Ok(link) = ClientLink::new(stream, now) {
                self.next_client += 1;
                self.clients.insert(ClientId(self.next_client), link);
            }
        }
    }
}

impl ClientLink {
    /// The deadline for the first frame. `None` once that has arrived.
    pub(super) fn first_frame_due(&self) -> Option<Instant> {
        (!self.has_said_hello).then(|| self.accepted + FIRST_FRAME_WITHIN)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn a_connection_has_two_seconds_for_its_hello() {
        let now = Instant::now();
        let mut link = ClientLink::new(UnixStream::pair().unwrap().0, now).unwrap();
        assert_eq!(link.first_frame_due(), Some(now + Duration::from_secs(2)));
        link.has_said_hello = true;
        assert_eq!(link.first_frame_due(), None);
    }
}
