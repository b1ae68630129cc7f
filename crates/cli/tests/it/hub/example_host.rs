//! The example of a host: what `examples/host.py` draws, as a program that speaks the protocol for the first time.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;

use test_support::{DEADLINE, started};

use super::environment::HubEnvironment;
use crate::ringer::check;

const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/host.py");

struct Host {
    child: Child,
    lines: Receiver<String>,
}

impl Host {
    fn start(environment: &HubEnvironment) -> Self {
        let mut command: Command = environment.program("/usr/bin/python3");
        command.args([EXAMPLE, "a", "b"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = started("python3", command.spawn());
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        let (drawn, lines) = channel();
        thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| drawn.send(line)));
        Self { child, lines }
    }

    #[track_caller]
    fn draws(&mut self, line: &str) {
        assert_eq!(self.lines.recv_timeout(DEADLINE).expect("a line"), line);
    }

    fn look_at(&mut self, surface: &str) {
        let input = self.child.stdin.as_mut().expect("a pipe");
        writeln!(input, "{surface}").expect("it reads");
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn it_draws_rings_and_going_there_ends_them() {
    let environment = HubEnvironment::new();
    environment.run(&["hub", "start"]);
    let mut host = Host::start(&environment);
    host.draws("a quiet");
    host.draws("b quiet");
    let tell_in = |surface: &str, kind: &str, text: &str| {
        check(environment.ringer(&["notify", "--kind", kind, text]).env("RINGER_SURFACE", surface), 0);
    };
    let tell = |kind: &str, text: &str| tell_in("b", kind, text);
    tell("error", "main is red");
    host.draws("b (( error 1 ))");
    // Where the person looks, the ring is brief.
    host.look_at("b");
    host.draws("b quiet");
    tell("complete", "done");
    host.draws("b (( None 0 ))");
    host.draws("b quiet");
    // That the person looks elsewhere is known once what was unread there is read.
    tell_in("a", "error", "main is red, too");
    host.draws("a (( error 1 ))");
    host.look_at("a");
    host.draws("a quiet");
    tell("question", "Which one?");
    host.draws("b (( question 1 ))");
    // It goes there when it is asked to.
    environment.run(&["jump"]);
    host.draws("went to b");
    host.draws("b quiet");
    tell("question", "Which other one?");
    host.draws("b (( question 1 ))");
    // A host that comes later is told what rings.
    let mut other = Host::start(&environment);
    other.draws("a quiet");
    other.draws("b (( question 1 ))");
    // It ends with its hub.
    environment.run(&["hub", "stop"]);
    assert_eq!(host.lines.recv_timeout(DEADLINE), Err(RecvTimeoutError::Disconnected));
}
