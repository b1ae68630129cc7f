//! Connections that are no good servers: they harm neither the panes nor the server.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;

use ringer_panes::keeper::KeeperClient;
use rustix::process::Signal;
use test_support::until;

use crate::support::{TestKeeper, read_until, write};

fn read_line(reader: &mut impl BufRead) -> String {
    let mut line = String::new();
    reader.read_line(&mut line).expect("connected");
    line
}

/// Waits until the keeper closes a connection.
fn wait_for_end(mut stream: &UnixStream) {
    let mut rest = Vec::new();
    match stream.read_to_end(&mut rest) {
        Ok(_) => {}
        Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
    }
}

#[test]
fn garbage_and_half_lines_harm_nothing() {
    let keeper = TestKeeper::new();
    let (mut server, _) = keeper.connect();
    let pane = server.start_pane(&keeper.script("a", "stty -echo -onlcr; echo ready; exec cat"));
    read_until(&pane.master, "ready\n");
    let silent = keeper.connect_raw();
    for garbage in
        [&b"\n"[..], b"{}\n", b"\xff\xfe\x00\n", b"[1,2]\n{\"version\":1}\n", b"{\"version\":-1}\n"]
    {
        let mut stream = keeper.connect_raw();
        stream.write_all(garbage).unwrap();
        wait_for_end(&stream);
    }
    for half in [&b"{\"vers"[..], b"", b"{\"version\":1}"] {
        let mut stream = keeper.connect_raw();
        stream.write_all(half).unwrap();
    }
    let mut endless = keeper.connect_raw();
    // It may be closed before all is written.
    let _ = endless.write_all(&vec![b'x'; 3 * 1024 * 1024]);
    wait_for_end(&endless);
    // After its 2 s.
    wait_for_end(&silent);
    write(&pane.master, "alive\n");
    read_until(&pane.master, "alive\n");
    server.start_pane(&keeper.script("b", "exec cat"));
    assert!(server.is_quiet(), "still the server");
}

#[test]
fn a_crowd_that_says_nothing_keeps_no_server_out() {
    let keeper = TestKeeper::new();
    let crowd: Vec<UnixStream> = (0..70).map(|_| keeper.connect_raw()).collect();
    let mut server = keeper.connect_raw();
    server.write_all(b"{\"version\":1}\n").unwrap();
    // More come before it is read.
    let more: Vec<UnixStream> = (0..70).map(|_| keeper.connect_raw()).collect();
    assert_eq!(read_line(&mut BufReader::new(&server)), "{\"version\":1,\"panes\":0}\n");
    crowd.iter().chain(&more).for_each(wait_for_end);
}

#[test]
fn a_server_that_asks_for_nonsense_is_answered() {
    let keeper = TestKeeper::new();
    let mut stream = keeper.connect_raw();
    let requests = [
        "{\"version\":1}",
        "{\"dance\":{\"id\":\"a\"}}",
        "rubbish",
        "{\"note\":{\"id\":\"none\",\"text\":\"\"}}",
        "{\"forget\":{\"id\":\"none\"}}",
    ];
    stream.write_all((requests.join("\n") + "\n").as_bytes()).unwrap();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    assert_eq!(read_line(&mut reader), "{\"version\":1,\"panes\":0}\n");
    let failure = read_line(&mut reader);
    let expected = "{\"failed\":{\"id\":\"a\",\"why\":\"the request cannot be read: unknown variant `dance`";
    assert!(failure.starts_with(expected), "{failure}");
    assert!(
        read_line(&mut reader).starts_with("{\"failed\":{\"id\":\"\",\"why\":\"the request cannot be read: ")
    );
    let failure = "{\"failed\":{\"id\":\"none\",\"why\":\"there is no pane none\"}}\n";
    assert_eq!([read_line(&mut reader), read_line(&mut reader)], [failure; 2]);
    let _ = stream.write_all(&vec![b'x'; 2 * 1024 * 1024]);
    wait_for_end(&stream);
    assert!(keeper.connect().1.is_empty());
}

#[test]
fn a_server_that_does_not_read_is_disconnected() {
    let keeper = TestKeeper::new();
    let mut stream = keeper.connect_raw();
    stream.write_all(b"{\"version\":1}\n").unwrap();
    let requests = b"x\n".repeat(10_000);
    // 1 MiB of answers are waiting before 30,000 requests are read; the rest is what the socket holds.
    until("it is disconnected", || stream.write_all(&requests).is_err());
    let (mut server, _) = keeper.connect();
    server.start_pane(&keeper.script("a", "exec cat"));
}

#[test]
fn a_newer_version_is_answered_and_may_go_on_with_this_one() {
    let keeper = TestKeeper::new();
    let (mut server, _) = keeper.connect();
    server.start_pane(&keeper.script("a", "exec cat"));
    let mut stream = keeper.connect_raw();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    stream.write_all(b"{\"version\":2,\"new\":true}\n").unwrap();
    assert_eq!(read_line(&mut reader), "{\"version\":1,\"panes\":1}\n");
    server.start_pane(&keeper.script("b", "exec cat"));
    stream.write_all(b"{\"version\":1}\n").unwrap();
    assert_eq!(read_line(&mut reader), "{\"version\":1,\"panes\":2}\n");
    assert!(read_line(&mut reader).starts_with("{\"pane\":{\"id\":\"a\",\"pid\":"));
    until("the first is disconnected", || server.events().is_err());
}

#[test]
#[cfg(target_os = "linux")]
fn another_user_is_refused() {
    use std::fs::{Permissions, set_permissions};
    use std::os::unix::fs::PermissionsExt;
    if !test_support::is_root() {
        return;
    }
    let keeper = TestKeeper::new();
    let (mut server, _) = keeper.connect();
    server.start_pane(&keeper.script("a", "exec cat"));
    set_permissions(keeper.directory(), Permissions::from_mode(0o711)).unwrap();
    set_permissions(keeper.socket(), Permissions::from_mode(0o777)).unwrap();
    let (socket, raw) = (keeper.socket(), || keeper.connect_raw());
    std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            // Of this thread only.
            rustix::thread::set_thread_uid(rustix::thread::Uid::from_raw(65534)).expect("root may");
            let mut stream = raw();
            // It may be closed already.
            let _ = stream.write_all(b"{\"version\":1}\n");
            wait_for_end(&stream);
            let refused = KeeperClient::connect(&socket).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::PermissionDenied, "it does not trust root's keeper, too");
        });
        other.join().unwrap();
    });
    assert!(server.is_quiet(), "still the server");
}

#[test]
fn a_keeper_without_panes_and_connections_ends() {
    let mut keeper = TestKeeper::new();
    let (mut server, _) = keeper.connect();
    server.start_pane(&keeper.script("a", "exec cat"));
    server.forget("a").unwrap();
    drop(server);
    until("it ends", || keeper.has_ended());
    let refused = KeeperClient::connect(&keeper.socket()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
}

#[test]
fn a_keeper_is_ended_by_sigterm_and_its_programs_are_hung_up() {
    let mut keeper = TestKeeper::new();
    let (mut server, _) = keeper.connect();
    let script = "trap ': > hung_up; exit' HUP; echo ready; while :; do sleep 0.02; done";
    let pane = server.start_pane(&keeper.script("a", script));
    read_until(&pane.master, "ready\r\n");
    drop(pane);
    keeper.signal(Signal::HUP);
    keeper.signal(Signal::INT);
    server.start_pane(&keeper.script("b", "exec cat"));
    keeper.signal(Signal::TERM);
    until("it ends", || keeper.has_ended());
    until("its programs are hung up", || keeper.directory().join("hung_up").exists());
}
