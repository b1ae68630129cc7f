//! Things that are not there, not what they should be, or held by a process that does not let go.

use std::ffi::OsStr;
use std::fs::{self, OpenOptions};
use std::os::unix::ffi::OsStrExt;

use crate::home::{TestEnvironment, lines, texts};
use crate::ringer::check;

#[test]
fn without_any_home_it_is_73_and_says_what_to_set() {
    let environment = TestEnvironment::new();
    for arguments in [&["notify", "hello"][..], &["listen", "--timeout", "0"], &["status"]] {
        let (out, err) = check(environment.ringer(arguments).env_remove("RINGER_HOME"), 73);
        assert!(out.is_empty() && err.contains("HOME is not set"), "{err}");
        assert!(err.contains("hint: RINGER_HOME=/some/directory"), "{err}");
    }
}

#[test]
fn where_the_home_is() {
    let environment = TestEnvironment::new();
    let (state, user) = (environment.path().join("state"), environment.path().join("user"));
    for (variables, expected) in [
        (&[("XDG_STATE_HOME", state.as_path())][..], state.join("ringer")),
        (&[("HOME", &user)], user.join(".local/state/ringer")),
        (&[("HOME", &user), ("XDG_STATE_HOME", "relative".as_ref())], user.join(".local/state/ringer")),
        (&[("HOME", &user), ("RINGER_HOME", "".as_ref())], user.join(".local/state/ringer")),
    ] {
        let mut command = environment.ringer(&["notify", "hello"]);
        check(command.env_remove("RINGER_HOME").envs(variables.iter().copied()), 0);
        assert!(expected.join("ringer.db").exists(), "{}", expected.display());
        fs::remove_dir_all(expected).unwrap();
    }
}

/// A hub runs in `/` and a hook in the directory of its agent: each would have its own home.
#[test]
fn a_relative_path_of_the_home_or_the_settings_is_refused() {
    let environment = TestEnvironment::new();
    let repository = environment.repository().canonicalize().unwrap();
    for (name, value) in [("RINGER_HOME", "my home"), ("RINGER_CONFIG", "./c.toml"), ("HOME", "user")] {
        let set = |arguments: &[&str]| {
            let mut command = environment.ringer(arguments);
            if name == "HOME" {
                command.env_remove("RINGER_HOME");
            }
            command.env(name, value).current_dir(&repository);
            command
        };
        for arguments in [&["notify", "hello"][..], &["hub", "start"], &["run", "--", "true"], &["list"]] {
            let (out, err) = check(&mut set(arguments), 64);
            assert!(
                out.is_empty() && err.contains(&format!("{name} is not an absolute path: {value}")),
                "{err}"
            );
            assert!(err.contains(&format!("hint: {name}=")), "{err}");
            assert!(err.contains(&repository.display().to_string()), "{err}");
        }
        let (out, err) = check(&mut set(&["hook", "claude", "Stop", r#"{"session_id":"s"}"#]), 0);
        assert_eq!((out.as_str(), err.as_str()), ("", ""));
        let made: Vec<_> =
            fs::read_dir(&repository).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(made, [".git"], "{name}");
    }
    let mut check_settings = environment.ringer(&["config", "check"]);
    check(check_settings.env("RINGER_CONFIG", "c.toml"), 64);
}

#[test]
fn a_home_that_is_a_file_is_refused_by_its_name() {
    let environment = TestEnvironment::new();
    fs::write(environment.home(), "precious").unwrap();
    for arguments in [&["notify", "hello"][..], &["listen", "--timeout", "0"]] {
        let (out, err) = check(&mut environment.ringer(arguments), 73);
        let home = environment.home().display().to_string();
        assert!(out.is_empty() && err.contains(&home) && err.contains("hint: "), "{err}");
    }
    assert_eq!(fs::read(environment.home()).unwrap(), b"precious");
}

/// The folders were deleted. In the shell design that Ringer replaces, that was a permanent outage.
#[test]
fn a_home_that_has_lost_its_folders_gets_them_back() {
    let environment = TestEnvironment::new();
    environment.notify("one");
    for folder in ["bells", "locks"] {
        fs::remove_dir_all(environment.home().join(folder)).unwrap();
        assert_eq!(environment.texts().len(), 1, "without {folder}");
        environment.notify("two");
    }
}

#[test]
fn a_home_that_was_removed_under_a_listener_begins_anew() {
    let environment = TestEnvironment::new();
    let mut listener = environment.listen(&[]);
    fs::remove_dir_all(environment.home()).unwrap();
    environment.notify("hello");
    assert_eq!(environment.texts(), ["hello"]);
    listener.kill();
}

/// Doorbells are found by their path, whatever bytes are in it.
#[test]
fn a_home_with_any_bytes_in_its_name() {
    let mut environment = TestEnvironment::new();
    for name in [&b"a b'c\"d"[..], b"new\nline", b"\xff\xfe"] {
        environment.move_home(OsStr::from_bytes(name));
        let listener = environment.listen(&["--timeout", "10"]);
        environment.notify("hello");
        assert_eq!(texts(&listener.messages()), ["hello"], "{}", environment.home().display());
    }
}

#[test]
fn a_journal_that_is_held_for_too_long_is_75_and_nothing_is_stored() {
    let environment = TestEnvironment::new();
    environment.notify("before");
    let held = OpenOptions::new().append(true).open(environment.home().join("write.lock")).unwrap();
    held.lock().unwrap();
    let (out, err) = check(&mut environment.ringer(&["notify", "during"]), 75);
    assert!(out.is_empty() && err.contains("busy") && err.contains("it was not stored"), "{err}");
    assert_eq!(texts(&lines(&environment.run(&["log", "--json"]))), ["before"], "reading needs no turn");
    drop(held);
    environment.notify("after");
    assert_eq!(environment.texts(), ["before", "after"]);
}
