//! Arbitrary bytes between the keeper and the panes' server, both ways. Requests: any cut of the stream gives the same ones,
//! they are understood as they were meant, and refusals are bounded. Panes that are handed over: none without its
//! terminal, and no more output than was sent.

use std::io::Write;
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use ringer_panes::descriptor_socket;
use ringer_panes::keeper::{KeeperClient, rewrite_requests};

use crate::input::split;

/// An id of 256 bytes and a reason of 1024, each of which JSON may write as `\u0000`.
const MAX_REFUSAL: usize = 8 * 1024;
/// A socket that nobody reads yet takes as much.
const MAX_SENT: usize = 64 * 1024;

pub fn run(data: &[u8]) {
    match data.split_first() {
        Some((b'k', sent)) => hand_over(sent),
        Some(_) => read_requests(data),
        None => {}
    }
}

fn read_requests(data: &[u8]) {
    let Some((stream, pieces)) = split(data) else { return };
    let requests = rewrite_requests([stream]).ok();
    assert_eq!(requests, rewrite_requests(pieces).ok());
    for request in requests.unwrap_or_default() {
        match request {
            Ok(mut line) => {
                let once = line.clone();
                line.push(b'\n');
                assert_eq!(rewrite_requests([&line[..]]).expect("a short line"), [Ok(once)]);
            }
            Err(refusal) => {
                assert!(refusal.len() <= MAX_REFUSAL, "{} bytes", refusal.len());
                assert!(!refusal.contains(&b'\n'));
            }
        }
    }
}

/// The first byte says how many descriptors are sent.
fn hand_over(data: &[u8]) {
    let Some((descriptors, sent)) = data.split_first().filter(|(_, sent)| sent.len() <= MAX_SENT) else {
        return;
    };
    let (mut keeper, server) = UnixStream::pair().expect("descriptors");
    server.set_nonblocking(true).expect("a socket");
    let descriptors = usize::from(descriptors % 4).min(sent.len());
    for byte in &sent[..descriptors] {
        descriptor_socket::send(&keeper, &[*byte], Some(server.as_fd())).expect("room for a byte");
    }
    keeper.write_all(&sent[descriptors..]).expect("room for what is sent");
    keeper.shutdown(Shutdown::Write).expect("a socket");
    let Ok((mut client, panes)) = KeeperClient::over(server) else { return };
    assert!(panes.len() <= descriptors);
    assert!(panes.iter().map(|pane| pane.output.len()).sum::<usize>() <= sent.len());
    let _ = client.events();
}
