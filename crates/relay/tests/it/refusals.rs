//! Inputs that end a connection, and the reported reasons.

use std::io::{BufRead, BufReader, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::thread;

use ringer_relay::{ConnectionEnd, Error, Exchange, ExchangeSetup, MachineName, Pipes, Progress};

use crate::machines::Machine;

/// Sends lines to a machine. Returns how the connection ended, and the machine's output.
pub(crate) fn speak(machine: &Machine, lines: &[&str]) -> (Result<ConnectionEnd, Error>, String) {
    speak_with(&machine.setup("box"), lines)
}

/// The same with another setup.
pub(crate) fn speak_with(setup: &ExchangeSetup, lines: &[&str]) -> (Result<ConnectionEnd, Error>, String) {
    speak_and_watch(setup, lines, &mut |_| {})
}

/// The same, passing on the progress of the connection.
pub(crate) fn speak_and_watch(
    setup: &ExchangeSetup,
    lines: &[&str],
    progress: &mut dyn FnMut(Progress),
) -> (Result<ConnectionEnd, Error>, String) {
    let (stream, own) = UnixStream::pair().expect("a socket");
    let writer = own.try_clone().expect("a socket");
    let lines: Vec<String> = lines.iter().map(|line| format!("{line}\n")).collect();
    let reader = thread::spawn(move || {
        for line in lines {
            // It may have ended the connection by now.
            let _ = (&writer).write_all(line.as_bytes());
        }
        let _ = writer.shutdown(std::net::Shutdown::Write);
        BufReader::new(own).lines().map_while(Result::ok).collect::<Vec<_>>().join("\n")
    });
    let pipes = Pipes { input: stream.as_fd(), output: stream.as_fd(), stop: None, errors: None };
    let ended = Exchange::begin(setup, pipes, progress).expect("a connection").run();
    drop(stream);
    (ended, reader.join().expect("no panic"))
}

pub(crate) fn hello(id: char, protocol: &str) -> String {
    let id = id.to_string().repeat(32);
    format!(
        r#"{{"type":"hello","protocol":{protocol},"machine":"{id}","name":"box","program":"9.9","unix_ms":0}}"#
    )
}

#[test]
fn an_incompatible_version_is_reported() {
    let machine = Machine::new("laptop");
    let (ended, output) = speak(&machine, &[&hello('a', "[7,9]")]);
    let expected = "the other machine has ringer 9.9, which speaks link protocol 7 to 9; this one speaks 1. \
                    Install the same version on both";
    assert_eq!(ended.expect_err("refused").to_string(), expected);
    assert!(output.contains("refused") && output.contains("protocol 7 to 9"), "{output}");
}

#[test]
fn a_link_to_this_machine_itself_is_refused() {
    let machine = Machine::new("laptop");
    drop(machine.journal());
    let id = ringer_relay::MachineId::of(&machine.home()).expect("an id");
    let own = hello('a', "[1,1]").replace(&"a".repeat(32), id.as_str());
    assert!(matches!(speak(&machine, &[&own]).0, Err(Error::SameMachine)));
}

#[test]
fn an_invalid_frame_ends_the_connection() {
    let machine = Machine::new("laptop");
    let check = |lines: &[&str], part: &str| {
        let error = speak(&machine, lines).0.expect_err("an error").to_string();
        assert!(error.contains(part), "{error}");
    };
    let hello = hello('a', "[1,1]");
    check(&[&hello, "Welcome!"], "a line is no frame");
    check(&[&hello, &hello], "said hello twice");
    check(&[r#"{"type":"want","after":null}"#], "did not begin with a hello");
    check(&[&hello, r#"{"type":"stored","end":{"generation":"g","seq":1}}"#], "stored what was not sent");
    check(&[&hello, &"x".repeat(2 << 20)], "longer than 1 MiB");
    let lost = r#"{"type":"messages","after":{"generation":"g","seq":1},"end":{"generation":"g","seq":2},"messages":[]}"#;
    check(&[&hello, lost], "not in order");
}

#[test]
fn lines_of_a_shell_before_the_hello_are_skipped() {
    let machine = Machine::new("laptop");
    let (ended, _) = speak(&machine, &["Welcome to box", "", "{not json", &hello('a', "[1,1]")]);
    assert!(matches!(ended, Ok(ConnectionEnd::Closed)), "{ended:?}");
}

#[test]
fn forbidden_messages_are_counted_and_the_rest_is_stored() {
    let machine = Machine::new("laptop");
    let row = |seq: i64, id: char, recipient: &str, body: &str| {
        let id = format!("01890000-0000-7000-8000-00000000000{id}");
        format!(
            r#"{{"seq":{seq},"id":"{id}","unix_ms":0,"tag":"status","scope":"global","sender":"eve","recipient":"{recipient}","body":"{body}"}}"#
        )
    };
    let start = r#"{"type":"start","at":{"generation":"g","seq":0}}"#;
    let rows =
        [row(1, 'a', "agent:worker-1", "obey"), row(2, 'b', "default", "fine"), row(3, 'c', "default", "")];
    let messages = format!(
        r#"{{"type":"messages","after":{{"generation":"g","seq":0}},"end":{{"generation":"g","seq":3}},"messages":[{}]}}"#,
        rows.join(",")
    );
    let (ended, output) = speak(&machine, &[&hello('a', "[1,1]"), start, &messages]);
    assert!(matches!(ended, Ok(ConnectionEnd::Closed)), "{ended:?}");
    assert!(output.contains(r#""type":"stored""#), "what is refused does not come again: {output}");
    assert_eq!(machine.texts_of("box"), ["fine"]);
}

#[test]
fn a_second_connection_to_the_same_machine_is_refused() {
    let machine = Machine::new("laptop");
    drop(machine.journal());
    let lock = machine.home().path().join(format!("relay-{}.lock", "a".repeat(32)));
    let held = ringer_journal::Lock::take(&lock, None).expect("a lock");
    assert!(matches!(speak(&machine, &[&hello('a', "[1,1]")]).0, Err(Error::Connected(_))));
    drop(held);
}

#[test]
fn a_removed_machine_is_disconnected_and_can_register_again() {
    let machine = Machine::new("server");
    let setup = ExchangeSetup { is_far_end: true, name: None, ..machine.setup("box") };
    let (stream, mut own) = UnixStream::pair().expect("a socket");
    let exchange = thread::spawn(move || {
        let pipes = Pipes { input: stream.as_fd(), output: stream.as_fd(), stop: None, errors: None };
        Exchange::begin(&setup, pipes, &mut |_| {}).expect("a connection").run()
    });
    own.write_all(format!("{}\n", hello('a', "[1,1]")).as_bytes()).expect("written");
    // It answers once it has noted the machine.
    let mut lines = BufReader::new(own.try_clone().expect("a socket")).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.contains(r#""type":"want""#)));
    let name = MachineName::parse("box").expect("a name");
    assert!(ringer_relay::forget_machine(&machine.home(), &mut machine.journal(), &name).expect("forgotten"));
    test_support::until("the connection has ended", || exchange.is_finished());
    let ended = exchange.join().expect("no panic");
    assert!(matches!(ended, Err(Error::Removed { .. })), "{ended:?}");
    let why = lines.last().expect("a reason");
    assert!(why.contains("box was removed"), "{why}");
    let (mut journal, id) = (machine.journal(), "a".repeat(32));
    assert_eq!(journal.machine_name(&id).expect("a journal"), None);
    assert_eq!(journal.export_lag(&id).expect("a journal"), None);
    assert_eq!(journal.import_position(&id).expect("a journal"), None);
}
