//! The windows in which the original plan lost messages or broke, one test a row of the table in the design notes.
//!
//! Each provokes its window with real processes, as surely as that can be done, and shows that nothing is lost in it.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::process::Signal;
use serde_json::Value;

use crate::background::Background;
use crate::half_printed::HalfPrinted;
use crate::home::{TestEnvironment, lines, texts};
use crate::ringer::check;
use crate::trace::Trace;

fn ids(messages: &[Value]) -> BTreeSet<String> {
    messages.iter().map(|message| message["id"].as_str().expect("a text").to_owned()).collect()
}

/// Drains until nothing comes any more.
fn drain_all(environment: &TestEnvironment) -> Vec<Value> {
    let mut all = Vec::new();
    loop {
        let batch = environment.drain();
        if batch.is_empty() {
            return all;
        }
        all.extend(batch);
    }
}

#[test]
fn r1_a_writer_writes_in_the_middle_of_a_drain() {
    let environment = TestEnvironment::new();
    let drain = HalfPrinted::begin(&environment);
    environment.notify("during");
    assert!(texts(&lines(&drain.finish())) == [HalfPrinted::text()]);
    assert_eq!(environment.texts(), ["during"]);
}

#[test]
fn r1_many_writers_race_a_drain() {
    const WRITERS: usize = 8;
    const EACH: usize = 6;
    let environment = TestEnvironment::new();
    let writing = AtomicBool::new(true);
    let mut drained = thread::scope(|threads| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let environment = &environment;
                threads.spawn(move || {
                    for number in 0..EACH {
                        environment.notify(&format!("{writer}-{number}"));
                    }
                })
            })
            .collect();
        let drain = threads.spawn(|| {
            let mut drained = Vec::new();
            while writing.load(Ordering::Relaxed) {
                drained.extend(lines(&environment.run(&["listen", "--timeout", "0", "--max", "3"])));
            }
            drained
        });
        for writer in writers {
            writer.join().expect("every notify succeeds");
        }
        writing.store(false, Ordering::Relaxed);
        drain.join().expect("every drain succeeds")
    });
    drained.extend(drain_all(&environment));
    assert_eq!(drained.len(), WRITERS * EACH, "each exactly once");
    assert_eq!(ids(&drained).len(), WRITERS * EACH);
    let order = texts(&drained);
    for writer in 0..WRITERS {
        let own: Vec<&String> = order.iter().filter(|text| text.starts_with(&format!("{writer}-"))).collect();
        let sent: Vec<String> = (0..EACH).map(|number| format!("{writer}-{number}")).collect();
        assert_eq!(own, sent.iter().collect::<Vec<_>>(), "in the order in which they were sent");
    }
}

#[test]
fn r2_the_fifo_is_removed_under_the_writer() {
    let environment = TestEnvironment::new();
    let _listener = environment.listen(&[]);
    for bell in environment.bells("fifo") {
        fs::remove_file(bell).unwrap();
    }
    environment.notify("the bell is gone");
    assert!(environment.bells("fifo").is_empty(), "the writer made no file in its place");
    assert_eq!(environment.texts(), ["the bell is gone"]);
}

#[test]
fn r2_a_regular_file_in_place_of_the_fifo() {
    let environment = TestEnvironment::new();
    let mut listener = environment.listen(&[]);
    let bells = environment.bells("fifo");
    for bell in &bells {
        fs::remove_file(bell).unwrap();
        File::create(bell).unwrap();
    }
    environment.notify("one");
    assert_eq!(environment.texts(), ["one"], "a later listener does not mind");
    listener.kill();
    let next = environment.listen(&[]);
    assert!(bells.iter().all(|bell| !bell.exists()), "what the dead left is cleared away");
    environment.notify("two");
    assert_eq!(texts(&next.messages()), ["two"]);
}

#[test]
fn r3_r4_no_reader_on_the_fifo() {
    let environment = TestEnvironment::new();
    let mut listener = environment.listen(&[]);
    listener.kill();
    assert_eq!(environment.bells("fifo").len(), 1, "the killed one left its doorbell");
    let waits = "openat,nanosleep,clock_nanosleep,poll,ppoll,select,pselect6,epoll_wait,alarm";
    let trace = Trace::of(&environment, waits, &["notify", "hello"]);
    assert_eq!(trace.exit, Some(0));
    let bell = &trace.calls[trace.first(&[".fifo\""])];
    assert!(bell.contains("O_NONBLOCK") && bell.contains("ENXIO"), "{bell}");
    let waits: Vec<&String> =
        trace.calls[trace.first(&[".fifo\""])..].iter().filter(|call| !call.contains("openat")).collect();
    assert!(waits.is_empty(), "{waits:?}");
    assert_eq!(environment.texts(), ["hello"]);
}

/// What is left in a pipe whose writer has ended: nothing, and no process that could write.
#[track_caller]
fn check_closed(mut out: ChildStdout) {
    fcntl_setfl(&out, OFlags::NONBLOCK).expect("a pipe");
    let mut rest = Vec::new();
    match out.read_to_end(&mut rest) {
        Err(error) if error.kind() == ErrorKind::WouldBlock => panic!("a process still holds the output"),
        read => assert_eq!((read.expect("readable"), rest), (0, Vec::new())),
    }
}

#[test]
fn r5_nothing_holds_the_callers_stdout() {
    let environment = TestEnvironment::new();
    let mut waiting = environment.listen(&["--as", "other"]);
    for arguments in [
        &["notify", "hello", "--from", "a1"][..],
        &["listen", "--timeout", "0.05", "--as", "third", "--from-now"],
    ] {
        let mut child = environment.ringer(arguments).stdout(Stdio::piped()).spawn().unwrap();
        let out = child.stdout.take().unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(0));
        check_closed(out);
    }
    waiting.kill();
    assert!(waiting.line().is_some_and(|line| line.contains("hello")) && waiting.line().is_none());
}

#[test]
fn r6_r7_two_listeners() {
    let environment = TestEnvironment::new();
    let pair = [environment.listen(&[]), environment.listen(&[])];
    environment.notify("one");
    environment.wait_until("one of them has it", |status| status["listeners"].as_array().unwrap().len() == 1);
    environment.notify("two");
    let [first, second] = pair.map(|listener| texts(&listener.messages()));
    let mut both = [first, second].concat();
    both.sort();
    assert_eq!(both, ["one", "two"], "one each, and neither is stranded");
}

#[test]
fn r6_r7_of_two_listeners_one_is_killed() {
    let environment = TestEnvironment::new();
    let mut killed = environment.listen(&[]);
    let other = environment.listen(&[]);
    killed.kill();
    environment.notify("hello");
    assert_eq!(texts(&other.messages()), ["hello"]);
    assert_eq!(killed.line(), None);
}

#[test]
fn r6_r7_of_two_listeners_one_is_stopped() {
    let environment = TestEnvironment::new();
    let stopped = environment.listen(&[]);
    let other = environment.listen(&[]);
    stopped.stop();
    environment.notify("one");
    assert_eq!(texts(&other.messages()), ["one"]);
    stopped.signal(Signal::CONT);
    environment.notify("two");
    assert_eq!(texts(&stopped.messages()), ["two"], "it goes on where it was, and repeats nothing");
}

/// A process that would notice a signal: what one writes to it comes back as long as it lives.
struct OtherProcess {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl OtherProcess {
    fn start() -> Self {
        let mut command = std::process::Command::new("cat");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("cat starts");
        let input = child.stdin.take().expect("piped");
        let output = BufReader::new(child.stdout.take().expect("piped"));
        Self { child, input, output }
    }

    fn is_alive(&mut self) -> bool {
        let mut line = String::new();
        self.input.write_all(b"hello\n").is_ok()
            && self.output.read_line(&mut line).is_ok_and(|_| line == "hello\n")
    }

    /// A listener's lock file that names this process.
    fn lock_text(&self, environment: &TestEnvironment, started: u64) -> String {
        let scope = environment.status()["scope"].clone();
        let pid = self.child.id();
        serde_json::json!({"pid": pid, "started": started, "consumer": "lead", "scope": scope}).to_string()
    }
}

impl Drop for OtherProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn r8_a_lock_file_that_nobody_holds_is_no_listener() {
    let environment = TestEnvironment::new();
    environment.notify("hello");
    let mut other_process = OtherProcess::start();
    let lock = environment.home().join("bells/stale.lock");
    fs::write(&lock, other_process.lock_text(&environment, 1)).unwrap();
    assert_eq!(environment.status()["listeners"], serde_json::json!([]), "no false alive");
    environment.run(&["nuke", "--yes"]);
    assert!(other_process.is_alive(), "a process that has the number by now is left alone");
    environment.run(&["listen", "--timeout", "0"]);
    assert!(!lock.exists(), "what the dead left is cleared away");
}

#[test]
fn r8_a_held_lock_whose_number_is_somebody_elses_by_now() {
    let environment = TestEnvironment::new();
    environment.notify("hello");
    let mut other_process = OtherProcess::start();
    let lock = environment.home().join("bells/held.lock");
    fs::write(&lock, other_process.lock_text(&environment, 1)).unwrap();
    let held = OpenOptions::new().append(true).open(&lock).unwrap();
    held.lock().unwrap();
    environment.run(&["nuke", "--yes"]);
    assert!(other_process.is_alive(), "it started at another time than the listener did");
}

#[test]
fn r8_a_living_listener_is_never_taken_for_dead() {
    let environment = TestEnvironment::new();
    let listener = environment.listen(&[]);
    for lock in environment.bells("lock") {
        // A number that no process has.
        fs::write(lock, r#"{"pid":4194305,"started":1,"consumer":"lead","scope":"global"}"#).unwrap();
    }
    // Another listener clears away what the dead left.
    environment.run(&["listen", "--timeout", "0", "--as", "other"]);
    assert_eq!(environment.bells("fifo").len(), 1);
    environment.notify("hello");
    assert_eq!(texts(&listener.messages()), ["hello"]);
}

#[test]
fn r10_the_listener_is_killed_before_it_has_printed() {
    let environment = TestEnvironment::new();
    HalfPrinted::begin(&environment).kill();
    let first = environment.run(&["log", "--json"]);
    let again = environment.drain();
    assert!(texts(&again) == [HalfPrinted::text()]);
    assert_eq!(ids(&again), ids(&lines(&first)), "the same message, with the same id");
    assert!(environment.drain().is_empty());
}

#[test]
fn r11_a_second_listener_leaves_the_first_ones_batch_alone() {
    let environment = TestEnvironment::new();
    let first = HalfPrinted::begin(&environment);
    assert_eq!(environment.run(&["listen", "--timeout", "0.05"]), "", "it is the first one's");
    let second = waits_its_turn(&environment);
    assert!(texts(&lines(&first.finish())) == [HalfPrinted::text()]);
    environment.notify("next");
    assert_eq!(texts(&second.messages()), ["next"]);
}

#[test]
fn r11_a_second_listener_takes_over_from_a_killed_one() {
    let environment = TestEnvironment::new();
    let first = HalfPrinted::begin(&environment);
    let second = waits_its_turn(&environment);
    first.kill();
    assert!(texts(&second.messages()) == [HalfPrinted::text()]);
}

/// Another listener of the same name, which is there and has nothing to read yet.
fn waits_its_turn(environment: &TestEnvironment) -> Background {
    let second = Background::start(environment.ringer(&["listen"]));
    let pid = second.pid();
    environment.wait_until("the second listens", |status| crate::home::is_listening(status, pid));
    second
}

#[test]
fn r13_the_reader_of_a_waiting_listener_has_gone() {
    let environment = TestEnvironment::new();
    let (reader, writer) = std::io::pipe().unwrap();
    let stdout = writer.try_clone().unwrap();
    let mut child = environment.ringer(&["listen"]).stdout(stdout).stderr(Stdio::null()).spawn().unwrap();
    environment.wait_until_asleep(child.id());
    drop(reader);
    // Another test that is starting a process at this moment has a copy of the reader until that process runs.
    let mut fds = [PollFd::new(&writer, PollFlags::empty())];
    assert_eq!(poll(&mut fds, Some(&Timespec { tv_sec: 30, tv_nsec: 0 })), Ok(1), "no reader is left");
    drop(writer);
    environment.notify("hello");
    assert_eq!(child.wait().unwrap().code(), Some(74));
    assert_eq!(environment.texts(), ["hello"], "it comes again");
}

#[test]
fn r13_the_listener_was_started_without_a_stdout() {
    let environment = TestEnvironment::new();
    environment.notify("hello");
    let mut shell = environment.program("sh");
    let output = shell.args(["-c", r#""$RINGER" listen --timeout 0 >&-"#]).output().unwrap();
    assert_ne!(output.status.code(), Some(0), "it could print nothing");
    assert_eq!(environment.texts(), ["hello"], "it comes again");
}

#[test]
fn r13_the_device_of_stdout_is_full() {
    let environment = TestEnvironment::new();
    environment.notify("hello");
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut listen = environment.ringer(&["listen", "--timeout", "0"]);
    let (_, err) = check(listen.stdout(full), 74);
    assert!(err.contains("come again"), "{err}");
    assert_eq!(environment.texts(), ["hello"]);
}

#[test]
fn r14_r15_long_lines_of_many_writers_come_whole() {
    const WRITERS: u8 = 16;
    let environment = TestEnvironment::new();
    let bodies: Vec<String> =
        (0..WRITERS).map(|writer| char::from(b'a' + writer).to_string().repeat(60 * 1024)).collect();
    let mut writers: Vec<Child> =
        bodies.iter().map(|body| environment.ringer(&["notify", body]).spawn().expect("it starts")).collect();
    for writer in &mut writers {
        assert!(writer.wait().unwrap().success());
    }
    let drained = drain_all(&environment);
    let mut received = texts(&drained);
    received.sort();
    assert!(received == bodies, "every body whole, and once");
    assert_eq!(ids(&drained).len(), usize::from(WRITERS));
}

#[test]
fn r16_quotes_and_odd_characters_in_the_sender() {
    let environment = TestEnvironment::new();
    for from in [r#"a"b"#, r"a\b", "a'b $HOME `id`", "ägent-日本-🦀", "{\"a\":1}", "a\u{202e}b"] {
        environment.run(&["notify", "--from", from, "hello"]);
        assert_eq!(environment.drain()[0]["from"], from);
    }
}

#[test]
fn r16_control_characters_in_the_sender_are_refused() {
    let environment = TestEnvironment::new();
    for from in ["a\nb", "\u{1b}[31m", "a\tb", "\u{9b}x", "a\u{7f}"] {
        let (out, err) = check(&mut environment.ringer(&["notify", "--from", from, "hello"]), 65);
        assert!(out.is_empty() && err.contains("the sender contains"), "{err}");
        assert!(!err.contains(from), "the terminal is not given them either: {err:?}");
    }
    assert!(environment.drain().is_empty());
}

#[test]
fn r16_control_characters_in_the_text_come_back_as_sent() {
    let environment = TestEnvironment::new();
    let controls: String = (1..=0x9f_u8).map(char::from).filter(|c| c.is_control()).collect();
    for text in [format!("a{controls}b"), "\u{2028}x\u{2029}\u{feff}\u{ffff}\u{10ffff}".to_owned()] {
        environment.notify(&text);
        assert_eq!(environment.texts(), [text]);
    }
}

#[test]
fn r18_a_reader_that_truncates_gets_little_at_once_and_all_in_the_end() {
    let environment = TestEnvironment::new();
    let bodies: Vec<String> = (0..40).map(|number| format!("{number:02}{}", "é".repeat(1998))).collect();
    for body in &bodies {
        environment.notify(body);
    }
    let mut received = Vec::new();
    while received.len() < bodies.len() {
        let printed = environment.run(&["listen", "--timeout", "0"]);
        assert!(!printed.is_empty() && printed.trim_end().chars().count() <= 30_000);
        received.extend(texts(&lines(&printed)));
    }
    assert!(received == bodies);
}

#[test]
fn r18_max_leaves_the_rest() {
    let environment = TestEnvironment::new();
    for text in ["1", "2", "3", "4", "5"] {
        environment.notify(text);
    }
    for expected in [&["1", "2"][..], &["3", "4"], &["5"], &[]] {
        let printed = environment.run(&["listen", "--timeout", "0", "--max", "2"]);
        assert_eq!(texts(&lines(&printed)), expected);
    }
}

#[test]
fn r18_a_reader_that_closes_early_gets_it_again() {
    let environment = TestEnvironment::new();
    assert_eq!(HalfPrinted::begin(&environment).cut_off(), Some(74));
    assert!(environment.texts() == [HalfPrinted::text()]);
}
