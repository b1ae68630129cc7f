//! `ringer completions` and `ringer man`.

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use test_support::{skip, started};

use crate::ringer::{check, ringer};

/// What a program says to a script on its standard input.
#[track_caller]
fn fed(program: &str, arguments: &[&str], input: &[u8]) -> (bool, String) {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = started(program, command.spawn());
    child.stdin.take().expect("piped").write_all(input).expect("it reads its input");
    let output = child.wait_with_output().expect("it ends");
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    (output.status.success(), text.into_owned())
}

#[test]
fn every_shell_learns_every_command() {
    for shell in ["bash", "zsh", "fish", "nushell"] {
        let (script, err) = check(&mut ringer(&["completions", shell]), 0);
        assert!(err.is_empty(), "{err}");
        for word in ["notify", "listen", "doctor", "config", "trust", "json"] {
            assert!(script.contains(word), "{shell} does not know {word}");
        }
        let check_only = match shell {
            "bash" => &["-n"][..],
            "zsh" => &["-n", "/dev/stdin"],
            "fish" => &["--no-execute"],
            // Debian has no package of it.
            _ => continue,
        };
        let (good, said) = fed(shell, check_only, script.as_bytes());
        assert!(good, "{shell}: {said}");
    }
    let (_, err) = check(&mut ringer(&["completions", "tcsh"]), 64);
    assert!(err.contains("nushell"), "{err}");
}

#[test]
fn the_manual_page_can_be_read() {
    let (page, _) = check(&mut ringer(&["man"]), 0);
    assert!(page.contains(".TH ringer 1"), "{page}");
    assert!(page.contains("ringer\\-notify(1)"), "{page}");
    let (good, text) = fed("man", &["-P", "cat", "-l", "-"], page.as_bytes());
    if text.contains("minimized") {
        skip("it needs a `man` that shows pages; the one of this system only says that it is minimized");
        return;
    }
    assert!(good && text.contains("SUBCOMMANDS") && text.contains("coding agents"), "{text}");
}

#[test]
fn every_command_has_a_page() {
    let directory = tempfile::tempdir().expect("a directory");
    let pages = directory.path().join("share/man1");
    let (out, err) = check(ringer(&["man"]).arg(&pages), 0);
    assert!(out.is_empty() && err.contains("wrote the man pages to "), "{out}{err}");
    for (name, title) in [
        ("ringer.1", ".TH ringer 1"),
        ("ringer-notify.1", ".TH ringer-notify 1"),
        ("ringer-config-check.1", ".TH "),
    ] {
        let page = fs::read_to_string(pages.join(name)).expect("a page");
        assert!(page.contains(title), "{name}: {page}");
    }
    let page = fs::read_to_string(pages.join("ringer-notify.1")).expect("a page");
    assert!(page.contains("Examples:"), "{page}");
    fs::write(directory.path().join("file"), "").expect("a file");
    let (_, err) = check(ringer(&["man"]).arg(directory.path().join("file")), 73);
    assert!(err.contains("cannot write the man pages to"), "{err}");
}
