//! Programs in panes: how they start, what they have, how they end.

use std::ffi::OsString;
#[cfg(target_os = "linux")]
use std::fs;
use std::os::unix::ffi::OsStringExt;

use ringer_panes::keeper::{KeeperEvent, StartPane};
use ringer_platform::Ending;
use rustix::process::{getsid, test_kill_process};
use rustix::termios::{Winsize, tcsetwinsize};
use test_support::until;

use crate::support::{TestKeeper, TestServer, process, read_to_end, read_until, write};

#[test]
fn a_program_has_a_terminal_of_its_own_and_what_it_was_given() {
    let keeper = TestKeeper::new();
    let (mut server, panes) = keeper.connect();
    assert!(panes.is_empty());
    let script = "stty -onlcr; tty; stty size; pwd; env; echo .; read line; echo \"got $line\"";
    let mut pane = keeper.script("a", script);
    pane.environment.push(("COLOUR".into(), "blue".into()));
    (pane.columns, pane.lines) = (101, 33);
    let pane = server.start_pane(&pane);
    let said = read_until(&pane.master, "\n.\n");
    let directory = keeper.directory().canonicalize().unwrap();
    let expected = format!("{}\n33 101\n{}\n", pane.tty, directory.display());
    let variables = said.strip_prefix(&expected).unwrap_or_else(|| panic!("{said:?} and not {expected:?}"));
    let names: Vec<&str> = variables.lines().filter_map(|line| Some(line.split_once('=')?.0)).collect();
    // Shells add the others.
    let known = ["PATH", "COLOUR", "PWD", "OLDPWD", "SHLVL", "_"];
    assert!(names.iter().all(|name| known.contains(name)) && variables.contains("COLOUR=blue\n"), "{said}");
    assert_eq!(getsid(Some(process(pane.pid))), Ok(process(pane.pid)), "it leads its session");
    write(&pane.master, "hello\n");
    read_until(&pane.master, "got hello\n");
    assert_eq!(server.wait_for_ending("a"), Ending::Exit(0));
}

/// The directory of a pane may be removed while its program runs.
#[test]
fn a_program_starts_above_a_directory_that_is_gone() {
    let keeper = TestKeeper::new();
    let (mut server, _) = keeper.connect();
    for (id, directory) in [("a", keeper.directory().join("gone/deeper")), ("b", "/none/deeper".into())] {
        let pane = server.start_pane(&StartPane { directory, ..keeper.script(id, "pwd; echo .") });
        let above = if id == "a" { keeper.directory().canonicalize().unwrap() } else { "/".into() };
        assert_eq!(read_until(&pane.master, ".\r\n"), format!("{}\r\n.\r\n", above.display()));
    }
}

#[test]
fn arguments_need_not_be_text() {
    let keeper = TestKeeper::new();
    let (mut server, _) = keeper.connect();
    let mut pane = keeper.script("a", "printf %s \"$1\" | od -An -tx1; echo .");
    pane.argv.extend(["sh".into(), OsString::from_vec(b"a\xff\xc3".to_vec())]);
    let pane = server.start_pane(&pane);
    assert_eq!(read_until(&pane.master, ".\r\n").trim(), "61 ff c3\r\n.");
}

#[test]
#[cfg(target_os = "linux")]
fn a_program_ignores_and_blocks_no_signal() {
    let keeper = TestKeeper::new();
    let (mut server, _) = keeper.connect();
    let pane = keeper.script("a", "exec cat");
    let pane = server.start_pane(&pane);
    let status = || fs::read_to_string(format!("/proc/{}/status", pane.pid)).unwrap();
    until("the shell is `cat`", || status().starts_with("Name:\tcat\n"));
    for field in ["SigIgn:\t", "SigBlk:\t"] {
        let status = status();
        let mask = status.lines().find_map(|line| line.strip_prefix(field)).unwrap();
        // Above 31 are signals without a meaning, which the process that runs the tests may ignore.
        assert_eq!(u64::from_str_radix(mask, 16).unwrap() & 0x7fff_ffff, 0, "{status}");
    }
}

#[test]
fn a_program_sees_the_size_that_the_server_sets() {
    let keeper = TestKeeper::new();
    let (mut server, _) = keeper.connect();
    let script = "trap 'stty size' WINCH; echo ready; while :; do sleep 0.02; done";
    let pane = server.start_pane(&keeper.script("a", script));
    read_until(&pane.master, "ready\r\n");
    tcsetwinsize(&pane.master, Winsize { ws_row: 10, ws_col: 20, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
    read_until(&pane.master, "10 20\r\n");
}

#[test]
fn an_ending_is_told_and_kept_until_the_pane_is_forgotten() {
    let keeper = TestKeeper::new();
    let (mut server, _) = keeper.connect();
    server.start_pane(&keeper.script("code", "exit 7"));
    assert_eq!(server.wait_for_ending("code"), Ending::Exit(7));
    server.start_pane(&keeper.script("signal", "kill -9 $$"));
    assert_eq!(server.wait_for_ending("signal"), Ending::Signal(9));
    drop(server);
    let (mut server, panes) = keeper.connect();
    let endings: Vec<_> = panes.iter().map(|pane| (pane.id.as_str(), pane.ending)).collect();
    assert_eq!(endings, [("code", Some(Ending::Exit(7))), ("signal", Some(Ending::Signal(9)))]);
    server.forget("code").unwrap();
    server.forget("code").unwrap();
    assert_eq!(server.wait_for_failure(), ("code".to_owned(), "there is no pane code".to_owned()));
    assert!(server.is_quiet(), "what is known is not told again");
    drop(server);
    let (_server, panes) = keeper.connect();
    assert_eq!(panes.iter().map(|pane| pane.id.as_str()).collect::<Vec<_>>(), ["signal"]);
}

/// An ending without a server is in what the next one gets, with the last output.
#[test]
fn the_last_words_of_a_program_are_kept() {
    let keeper = TestKeeper::new();
    let (mut server, _) = keeper.connect();
    let pane = server.start_pane(&keeper.script("a", "read line; echo \"bye $line\"; exit 3"));
    drop(server);
    write(&pane.master, "now\n");
    let pid = process(pane.pid);
    drop(pane);
    until("the keeper has noticed its end", || test_kill_process(pid).is_err());
    let (_server, mut panes) = keeper.connect();
    let pane = panes.remove(0);
    assert_eq!(pane.ending, Some(Ending::Exit(3)));
    // What the keeper had not read yet is still in the terminal.
    let said = [pane.output, read_to_end(&pane.master)].concat();
    assert_eq!(String::from_utf8(said).unwrap(), "now\r\nbye now\r\n");
}

#[test]
fn a_forgotten_program_is_hung_up_even_if_the_server_keeps_its_terminal() {
    let keeper = TestKeeper::new();
    let (mut server, _) = keeper.connect();
    let script = "trap ': > hung_up; exit' HUP; echo ready; while :; do sleep 0.02; done";
    let pane = server.start_pane(&keeper.script("a", script));
    read_until(&pane.master, "ready\r\n");
    server.forget("a").unwrap();
    until("it is hung up", || keeper.directory().join("hung_up").exists());
    #[cfg(target_os = "linux")]
    until("no zombie stays", || !fs::exists(format!("/proc/{}", pane.pid)).unwrap());
    assert!(keeper.connect().1.is_empty());
}

#[test]
#[cfg(target_os = "linux")]
fn no_program_has_the_terminal_of_another() {
    let keeper = TestKeeper::new();
    let (mut server, _) = keeper.connect();
    let panes = ["a", "b", "c"].map(|id| server.start_pane(&keeper.script(id, "exec cat")));
    for pane in &panes {
        let links: Vec<String> = fs::read_dir(format!("/proc/{}/fd", pane.pid))
            .unwrap()
            .filter_map(|entry| fs::read_link(entry.unwrap().path()).ok())
            .map(|target| target.display().to_string())
            .collect();
        let of_terminals: Vec<&String> = links.iter().filter(|link| link.contains("/pt")).collect();
        assert_eq!(of_terminals, [&pane.tty; 3], "{links:?}");
        let sockets = links.iter().filter(|link| link.starts_with("socket:")).count();
        assert_eq!(sockets, 0, "{links:?}");
    }
}

#[test]
fn what_cannot_start_says_why_and_leaves_nothing() {
    let keeper = TestKeeper::new();
    let (mut server, _) = keeper.connect();
    let pane = keeper.script("a", "exec cat");
    server.start_pane(&pane);
    let check = |server: &mut TestServer, pane: StartPane, expected: &str| {
        server.start(&pane).unwrap();
        assert_eq!(server.wait_for_failure(), (pane.id, expected.to_owned()));
    };
    check(&mut server, pane.clone(), "there is a pane a already");
    let pane = StartPane { id: "b".to_owned(), ..pane };
    check(
        &mut server,
        StartPane { argv: Vec::new(), ..pane.clone() },
        "there is no program to start: `argv` is empty",
    );
    check(
        &mut server,
        StartPane { argv: vec!["/none".into()], ..pane.clone() },
        "cannot start /none: No such file or directory (os error 2)",
    );
    check(
        &mut server,
        StartPane { note: "x".repeat(64 * 1024 + 1), ..pane.clone() },
        "a note of 65537 bytes is longer than 65536 bytes",
    );
    let huge = StartPane { note: "x".repeat(1024 * 1024), ..pane };
    assert_eq!(server.start(&huge).unwrap_err().kind(), std::io::ErrorKind::InvalidInput);
    assert_eq!(keeper.connect().1.len(), 1);
}

#[test]
fn fifty_panes_work_at_once() {
    let keeper = TestKeeper::new();
    let (mut server, _) = keeper.connect();
    let ids: Vec<String> = (0..50).map(|number| format!("pane {number}")).collect();
    for id in &ids {
        server.start(&keeper.script(id, "exec cat")).unwrap();
    }
    let mut started = Vec::new();
    server.wait_for(|event| match event {
        KeeperEvent::Started { id, master, .. } => {
            started.push((id, master));
            (started.len() == ids.len()).then_some(())
        }
        other => panic!("{other:?}"),
    });
    assert!(started.iter().map(|(id, _)| id).eq(&ids), "in the order of the requests");
    for (id, master) in &started {
        write(master, &format!("{id}\n"));
    }
    for (id, master) in &started {
        read_until(master, &format!("{id}\r\n{id}\r\n"));
    }
    drop((server, started));
    let (mut server, panes) = keeper.connect();
    assert!(panes.iter().map(|pane| &pane.id).eq(&ids));
    for pane in &panes {
        write(&pane.master, "again\n");
        read_until(&pane.master, "again\r\nagain\r\n");
    }
    for id in &ids {
        server.forget(id).unwrap();
    }
    assert!(keeper.connect().1.is_empty());
}
