//! Real terminals: listening, stopped, deaf, gone; and things that are none.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use portable_pty::{PtyPair, PtySize, native_pty_system};
use ringer_deliver::{Error, terminal};
use ringer_platform::{try_lock_terminal, unlock_terminal};
use rustix::termios::{Action, OptionalActions, tcflow, tcgetattr, tcsetattr};
use test_support::{DEADLINE, in_time};

const SHORT: Duration = Duration::from_millis(300);

fn pty() -> (PtyPair, PathBuf) {
    let pair = native_pty_system().openpty(PtySize::default()).expect("a terminal");
    let path = pair.master.tty_name().expect("its name");
    let tty = fs::File::open(&path).expect("the terminal");
    let mut settings = tcgetattr(&tty).expect("its settings");
    settings.make_raw();
    tcsetattr(&tty, OptionalActions::Now, &settings).expect("raw");
    (pair, path)
}

async fn write(path: &Path, bytes: &[u8], deadline: Duration) -> Result<(), Error> {
    in_time("the end of a write", terminal::write(path, bytes, deadline)).await
}

#[tokio::test]
async fn every_byte_arrives() {
    let (pair, path) = pty();
    let mut reader = pair.master.try_clone_reader().expect("a reader");
    // More than the terminal holds at once, so it has to be waited for.
    let bytes: Vec<u8> = b"\x1b]99;;hello\x1b\\".iter().copied().cycle().take(200_000).collect();
    let expected = bytes.clone();
    let reading = std::thread::spawn(move || {
        let mut seen = vec![0; expected.len()];
        reader.read_exact(&mut seen).expect("all of it");
        seen == expected
    });
    write(&path, &bytes, DEADLINE).await.expect("written");
    assert!(reading.join().expect("the reader"));
}

#[tokio::test]
async fn a_stopped_terminal_gives_up_empty_and_blocks_no_other() {
    let (_pair, path) = pty();
    let tty = fs::File::open(&path).expect("the terminal");
    tcflow(&tty, Action::OOff).expect("stopped");
    let writing = terminal::write(&path, b"\x07", Duration::from_secs(1));
    tokio::pin!(writing);
    // The runtime has one thread. It serves others while the terminal is waited for.
    tokio::select! {
        biased;
        ended = &mut writing => panic!("{ended:?}"),
        () = tokio::task::yield_now() => {}
    }
    let error = in_time("the deadline", writing).await.expect_err("it is stopped");
    assert!(matches!(error, Error::TerminalStopped { written: 0, of: 1, .. }), "{error}");
    tcflow(&tty, Action::OOn).expect("started");
    write(&path, b"\x07", DEADLINE).await.expect("it goes on");
}

#[tokio::test]
async fn a_terminal_that_is_not_read_gives_up_in_the_middle() {
    let (_pair, path) = pty();
    let bytes = vec![b'x'; 1024 * 1024];
    let error = write(&path, &bytes, SHORT).await.expect_err("the terminal is not read");
    let Error::TerminalStopped { written, of, .. } = error else { panic!("{error}") };
    assert!(written > 0 && written < of, "{written} of {of}");
}

/// The bell would end the escape sequence that is being written.
#[tokio::test]
async fn what_another_program_writes_in_pieces_is_not_broken() {
    let (_pair, path) = pty();
    let window = fs::File::options().write(true).open(&path).expect("the terminal");
    assert!(try_lock_terminal(&window));
    let error = write(&path, b"\x07", SHORT).await.expect_err("it is being written");
    assert!(matches!(error, Error::TerminalStopped { written: 0, of: 1, .. }), "{error}");
    let writing = write(&path, b"\x07", DEADLINE);
    tokio::pin!(writing);
    tokio::select! {
        biased;
        ended = &mut writing => panic!("{ended:?}"),
        () = tokio::task::yield_now() => unlock_terminal(&window),
    }
    writing.await.expect("written");
    assert!(try_lock_terminal(&window), "it is given back");
}

#[tokio::test]
async fn a_terminal_that_is_gone_is_an_error() {
    let (pair, path) = pty();
    // While it is open, no other terminal gets its number.
    let _tty = fs::File::open(&path).expect("the terminal");
    drop(pair);
    let error = write(&path, b"\x07", SHORT).await.expect_err("it is gone");
    assert!(matches!(error, Error::Terminal { .. }), "{error}");
}

#[tokio::test]
async fn the_terminal_of_another_user_is_left_alone() {
    if !test_support::is_root() {
        return;
    }
    let (_pair, path) = pty();
    rustix::fs::chown(&path, Some(rustix::fs::Uid::from_raw(1)), None).expect("given away");
    let error = write(&path, b"\x07", SHORT).await.expect_err("another user's");
    assert!(matches!(error, Error::NotOurs { owner: 1, own: 0, .. }), "{error}");
}

#[tokio::test]
async fn what_is_no_terminal_of_ours_is_left_alone() {
    let home = tempfile::tempdir().expect("a directory");
    let file = home.path().join("file");
    fs::write(&file, "precious").expect("a file");
    let link = home.path().join("link");
    std::os::unix::fs::symlink(&file, &link).expect("a link");
    let made = std::process::Command::new("mkfifo").arg(home.path().join("pipe")).status().expect("mkfifo");
    assert!(made.success());
    for path in [&file, &link, &home.path().join("pipe"), &home.path().to_owned()] {
        let error = write(path, b"\x07", SHORT).await.expect_err("no terminal");
        assert!(matches!(error, Error::NotATerminal { .. }), "{error}");
    }
    assert_eq!(fs::read_to_string(&file).expect("the file"), "precious");
    // A character device, but no terminal; and root's, for everybody else.
    let error = write(Path::new("/dev/null"), b"\x07", SHORT).await.expect_err("no terminal");
    assert!(matches!(error, Error::NotATerminal { .. } | Error::NotOurs { .. }), "{error}");
}
