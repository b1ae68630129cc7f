//! Servers that come and go: the programs run on, and nothing of their output is lost but what does not fit.

use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::time::Instant;

use rustix::process::Signal;
use test_support::{DEADLINE, until};

use crate::support::{TestKeeper, read_to_end, read_until, write};

const RING: usize = 1024 * 1024;
/// 2.7 MB of lines that all differ.
const LINES: u32 = 400_000;

/// A program that writes these lines when a line comes, then waits for another.
fn much(after: &str) -> String {
    format!(
        "stty -echo -onlcr; echo ready; read line; seq 1 {LINES}; : > {after}; read line; echo \"got $line\"; exec cat"
    )
}

fn all_lines() -> String {
    (1..=LINES).map(|number| format!("{number}\n")).collect()
}

#[test]
fn a_program_runs_on_without_a_server_and_its_last_output_is_kept() {
    let keeper = TestKeeper::new();
    let (mut server, _) = keeper.connect();
    let pane = server.start_pane(&keeper.script("a", &much("written")));
    read_until(&pane.master, "ready\n");
    write(&pane.master, "go\n");
    drop((server, pane));
    until("everything is written", || keeper.directory().join("written").exists());
    let (_server, mut panes) = keeper.connect();
    let pane = panes.remove(0);
    assert_eq!(pane.output.len(), RING);
    // What the keeper had not read yet is still in the terminal.
    write(&pane.master, "on\n");
    let rest = read_until(&pane.master, "got on\n");
    let got = [pane.output, rest.into_bytes()].concat();
    let expected = all_lines() + "got on\n";
    assert_eq!(pane.dropped + got.len() as u64, expected.len() as u64);
    assert!(expected.as_bytes().ends_with(&got), "the end, byte for byte");
}

/// Between two servers no byte is lost, dropped or repeated, wherever the change comes.
#[test]
fn many_servers_read_one_stream() {
    let keeper = TestKeeper::new();
    let (mut server, _) = keeper.connect();
    let script = "stty -onlcr; for i in $(seq 1 3000); do echo $i; done; echo end; exec cat";
    let pane = server.start_pane(&keeper.script("a", script));
    drop(server);
    let mut got = Vec::new();
    let end = Instant::now() + DEADLINE;
    drop(pane);
    while !got.ends_with(b"end\n") {
        assert!(Instant::now() < end, "{}", String::from_utf8_lossy(&got));
        let (mut server, mut panes) = keeper.connect();
        let pane = panes.remove(0);
        assert_eq!(pane.dropped, 0);
        got.extend_from_slice(&pane.output);
        // It has what was kept.
        server.note("a", "").unwrap();
        let mut buffer = [0; 500];
        if let Ok(count) = rustix::io::read(&pane.master, &mut buffer) {
            got.extend_from_slice(&buffer[..count]);
        }
        drop(server);
    }
    let expected: String = (1..=3000).map(|number| format!("{number}\n")).collect();
    assert_eq!(String::from_utf8(got).unwrap(), expected + "end\n");
}

#[test]
fn a_new_server_takes_over_and_gets_the_same_terminal_and_the_note() {
    let keeper = TestKeeper::new();
    let (mut first, _) = keeper.connect();
    let mut pane = keeper.script("a", "stty -echo; exec cat");
    pane.note = "at the beginning".to_owned();
    let old = first.start_pane(&pane);
    first.note("a", "later \u{e4}\n").unwrap();
    let text = "x".repeat(64 * 1024);
    first.start_pane(&keeper.script("b", "exec cat"));
    first.note("b", &text).unwrap();
    // An answer to a later request: the notes have been read.
    first.forget("none").unwrap();
    first.wait_for_failure();
    let (mut second, panes) = keeper.connect();
    until("the first is disconnected", || match first.events() {
        Ok(events) => {
            assert!(events.is_empty());
            false
        }
        Err(error) => error.kind() == ErrorKind::UnexpectedEof,
    });
    assert_eq!(first.forget("a").unwrap_err().kind(), ErrorKind::UnexpectedEof);
    let notes: Vec<_> = panes.iter().map(|pane| pane.note.as_str()).collect();
    assert_eq!(notes, ["later \u{e4}\n", text.as_str()]);
    let new = &panes[0];
    assert_eq!((new.pid, &new.tty, new.ending), (old.pid, &old.tty, None));
    drop(old);
    write(&new.master, "alive\n");
    assert!(read_until(&new.master, "alive\r\n").ends_with("alive\r\n"));
    assert!(second.is_quiet());
}

/// A server that does not read stalls its panes: the keeper does not read for it.
#[test]
fn the_keeper_does_not_read_while_a_server_is_connected() {
    let keeper = TestKeeper::new();
    let (mut server, _) = keeper.connect();
    let pane = server.start_pane(&keeper.script("a", &much("written")));
    read_until(&pane.master, "ready\n");
    write(&pane.master, "go\n");
    until("it writes", || rustix::io::ioctl_fionread(&pane.master).is_ok_and(|waiting| waiting > 0));
    let (_second, mut panes) = keeper.connect();
    let adopted = panes.remove(0);
    assert_eq!((adopted.output.len(), adopted.dropped), (0, 0));
    assert!(!keeper.directory().join("written").exists());
    write(&adopted.master, "on\n");
    assert!(read_until(&adopted.master, "got on\n") == all_lines() + "got on\n");
}

/// What a server did not get because it went too early is not lost.
#[test]
fn a_server_that_goes_while_it_takes_over_loses_nothing() {
    let keeper = TestKeeper::new();
    let (mut server, _) = keeper.connect();
    for id in ["a", "b", "c"] {
        let pane = server.start_pane(&keeper.script(id, &much(id)));
        read_until(&pane.master, "ready\n");
        write(&pane.master, "go\n");
    }
    drop(server);
    for id in ["a", "b", "c"] {
        until("everything is written", || keeper.directory().join(id).exists());
    }
    for _ in 0..5 {
        let mut stream = keeper.connect_raw();
        stream.write_all(b"{\"version\":1}\n").unwrap();
        let mut line = String::new();
        BufReader::new(&stream).read_line(&mut line).unwrap();
        assert_eq!(line, "{\"version\":1,\"panes\":3}\n");
    }
    let (_server, panes) = keeper.connect();
    let expected = all_lines();
    for pane in panes {
        write(&pane.master, "on\n");
        let rest = read_until(&pane.master, "got on\n");
        let got = [pane.output, rest.into_bytes()].concat();
        assert!(format!("{expected}got on\n").as_bytes().ends_with(&got));
        assert_eq!(pane.dropped + got.len() as u64, (expected.len() + "got on\n".len()) as u64);
    }
}

/// A server is killed after it was sent everything, and before it has saved that.
#[test]
fn what_was_kept_stays_until_a_server_has_made_a_request() {
    let keeper = TestKeeper::new();
    let (mut server, _) = keeper.connect();
    let pane = server
        .start_pane(&keeper.script("a", "stty -echo -opost; echo ready; read line; echo kept; exec cat"));
    read_until(&pane.master, "ready\n");
    drop(server);
    write(&pane.master, "go\n");
    let output = || String::from_utf8(keeper.connect().1.remove(0).output).unwrap();
    until("it is kept", || output() == "kept\n");
    let (mut server, panes) = keeper.connect();
    assert_eq!(panes[0].output, b"kept\n", "again");
    server.note("a", "").unwrap();
    // The answer to a later request: the note has been read.
    server.forget("none").unwrap();
    server.wait_for_failure();
    assert_eq!(output(), "");
}

/// The keeper cannot answer a server that was killed, and still does what it had asked for.
#[test]
fn what_a_server_asked_for_before_it_was_killed_is_done() {
    let keeper = TestKeeper::new();
    let (mut server, _) = keeper.connect();
    server.start_pane(&keeper.script("a", "exec cat"));
    drop(server);
    let mut stream = keeper.connect_raw();
    stream.write_all(b"{\"version\":1}\n").unwrap();
    // The welcome and the pane: requests of a server that has not received all panes are not read.
    assert_eq!(BufReader::new(&stream).lines().map_while(Result::ok).take(2).count(), 2);
    keeper.signal(Signal::STOP);
    // The note is too long to be read at once with what is to be answered.
    let note = "x".repeat(20 * 1024);
    writeln!(stream, "nonsense\n{{\"note\":{{\"id\":\"a\",\"text\":\"{note}\"}}}}").unwrap();
    drop(stream);
    keeper.signal(Signal::CONT);
    assert_eq!(keeper.connect().1[0].note, note);
}

/// What makes each server crash must not do so for ever.
#[test]
fn what_was_kept_is_handed_over_to_three_servers_at_most() {
    let keeper = TestKeeper::new();
    let (mut server, _) = keeper.connect();
    let pane = server.start_pane(&keeper.script("a", "stty -echo -opost; echo ready; exec cat"));
    read_until(&pane.master, "ready\n");
    drop(server);
    write(&pane.master, "on\n");
    let output = || String::from_utf8(keeper.connect().1.remove(0).output).unwrap();
    let mut times = 0;
    until("it is kept, and gone again", || {
        let is_kept = output() == "on\n";
        times += usize::from(is_kept);
        times > 0 && !is_kept
    });
    assert_eq!(times, 3);
}

/// While no process has a terminal open, reading it is an error; it is read again when the program has opened it again.
#[test]
fn a_terminal_that_was_closed_for_a_while_is_read_again() {
    let keeper = TestKeeper::new();
    let (mut server, _) = keeper.connect();
    let script = format!(
        "stty -onlcr; tty=$(tty); exec < /dev/null > /dev/null 2>&1; : > closed
         while [ ! -e go ]; do sleep 0.02; done; seq 1 {LINES} > $tty; : > written; exec sleep 1000"
    );
    let pane = server.start_pane(&keeper.script("a", &script));
    until("the terminal is closed", || keeper.directory().join("closed").exists());
    drop(server);
    let closed = rustix::io::read(&pane.master, &mut [0; 10]);
    assert!(matches!(closed, Ok(0) | Err(rustix::io::Errno::IO)), "{closed:?}");
    fs::write(keeper.directory().join("go"), "").unwrap();
    // More than a terminal holds: the keeper reads.
    until("everything is written", || keeper.directory().join("written").exists());
    let (_server, mut panes) = keeper.connect();
    let adopted = panes.remove(0);
    let mut got = adopted.output;
    until("everything is read", || {
        got.extend_from_slice(&read_to_end(&adopted.master));
        got.len() as u64 + adopted.dropped == all_lines().len() as u64
    });
    assert!(all_lines().as_bytes().ends_with(&got));
}
