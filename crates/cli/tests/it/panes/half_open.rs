//! Connections that say nothing, or half of something, at the socket of the panes.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;

use test_support::DEADLINE;

use super::session::Session;

/// A connection that has sent these bytes. It may be closed before it has.
fn half_open(session: &Session, sent: &[u8]) -> UnixStream {
    let mut stream = UnixStream::connect(session.sockets().join("ui.sock")).expect("a server");
    stream.set_read_timeout(Some(DEADLINE)).expect("a socket");
    let _ = stream.write_all(sent);
    stream
}

fn wait_for_end(mut stream: &UnixStream) {
    match stream.read_to_end(&mut Vec::new()) {
        Ok(_) => {}
        Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
    }
}

#[test]
fn a_crowd_that_says_nothing_locks_no_client_out() {
    let session = Session::new();
    session.open("program", "exec cat");
    // The beginning of a frame is no frame.
    let crowd: Vec<UnixStream> =
        (0..200).map(|number| half_open(&session, if number % 2 == 0 { b"" } else { b"\x01\x40" })).collect();
    session.run(&["pane", "send", "program", "it is heard among them"]);
    // Those that are left are closed, although nobody else wants their places.
    crowd.iter().for_each(wait_for_end);
}

#[test]
fn a_client_that_has_said_hello_stays_however_many_come() {
    let session = Session::new();
    let mut window = session.attach();
    window.command("echo begun-$((40+2))");
    window.until("begun-42");
    let crowd: Vec<UnixStream> = (0..200).map(|_| half_open(&session, b"")).collect();
    crowd.iter().for_each(wait_for_end);
    window.command("echo still-$((40+3))");
    window.until("still-43");
}
