//! Programs that flood, and bytes that no program should write.

use std::fs;

use rustix::process::{Pid, Signal, kill_process};

use super::session::Session;

/// How much memory a process has, in KiB.
fn memory(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a line");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

#[test]
fn a_flood_does_not_keep_the_keys_of_another_pane() {
    let session = Session::new();
    let mut window = session.attach();
    session.open("flood", "while :; do echo floooooooooooooooooood; done");
    session.open("more", "yes");
    window.press("o");
    for number in 0..20 {
        window.command(&format!("clear; echo key-$((1000+{number}))"));
        window.until(&format!("key-{}", 1000 + number));
    }
}

#[test]
fn a_window_that_reads_nothing_does_not_hold_the_others() {
    let session = Session::new();
    let stopped = session.attach();
    let mut window = session.attach();
    let process = Pid::from_raw(stopped.pid().cast_signed()).expect("a pid");
    kill_process(process, Signal::STOP).expect("it runs");
    session.open("flood", "while :; do echo floooooooooooooooooood; done");
    window.press("o");
    for number in 0..5 {
        window.command(&format!("clear; echo key-$((1000+{number}))"));
        window.until(&format!("key-{}", 1000 + number));
    }
    kill_process(process, Signal::CONT).expect("it runs");
    stopped.until("key-1004");
}

#[test]
fn strings_without_an_end_take_no_memory() {
    let session = Session::new();
    let mut window = session.attach();
    window.command("echo begun-$((40+2))");
    window.until("begun-42");
    let before = memory(session.server());
    let strings = ["]0;", "P+q", "_G", "^", "]52;c;", "]8;;", "]1337;File=:", "]99;;", "]7501;", "["];
    for (number, beginning) in strings.iter().enumerate() {
        let flood = "head -c 4000000 /dev/zero | tr '\\0' a";
        window.command(&format!(
            "printf '\\033%s' '{beginning}'; {flood}; printf '\\033\\\\\\030'; clear; echo after-$((100+{number}))"
        ));
        window.until(&format!("after-{}", 100 + number));
    }
    let grown = memory(session.server()).saturating_sub(before);
    assert!(grown < 64 * 1024, "{grown} KiB more");
}

#[test]
fn every_byte_is_harmless() {
    let session = Session::new();
    let file = session.file("bytes");
    let mut random = test_support::Random::new(7);
    let bytes: Vec<u8> = std::iter::repeat_with(|| random.byte()).take(300_000).collect();
    fs::write(&file, bytes).expect("a file");
    let mut window = session.attach();
    let server = session.server();
    window.command("cat bytes; printf '\\033\\\\\\033c'; clear; echo after-$((40+2))");
    window.until("after-42");
    assert_eq!(session.server(), server);
}

#[test]
fn a_storm_of_sizes_ends_well() {
    let session = Session::new();
    let mut window = session.attach();
    window.press("|");
    window.press("-");
    session.open("flood", "seq 1 100000; while :; do stty size; done");
    for step in 0..200_u16 {
        window.resize(5 + step % 60, 10 + (step * 7) % 190);
    }
    window.resize(40, 120);
    window.press("o");
    window.command("clear; echo calm-$((40+2))");
    window.until("calm-42");
    assert_eq!(window.lines().len(), 40);
}
