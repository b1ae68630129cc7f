//! Everything that Ringer finds by a path: what another user owns, or could have put there, is not used, and named.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, lchown, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use test_support::is_root;

use crate::home::TestEnvironment;

/// The uid of the user `nobody`.
const NOBODY: u32 = 65_534;

/// One way in which Ringer finds something by its path.
struct Finder {
    name: &'static str,
    /// What it is, below the directory of the test.
    path: &'static str,
    kind: Kind,
    /// A command that uses it.
    ask: fn(&TestEnvironment, &Path) -> Command,
}

#[derive(Clone, Copy)]
enum Kind {
    Directory,
    File(&'static str),
    Socket,
    Program,
}

const FINDERS: &[Finder] = &[
    Finder {
        name: "state directory",
        path: "place/state",
        kind: Kind::Directory,
        ask: |environment, path| {
            let mut command = environment.ringer(&["notify", "hello"]);
            command.env("RINGER_HOME", path);
            command
        },
    },
    Finder {
        name: "settings",
        path: "place/config.toml",
        kind: Kind::File("[notify]\npopup = \"off\"\n"),
        ask: |environment, path| {
            let mut command = environment.ringer(&["config", "check"]);
            command.env("RINGER_CONFIG", path);
            command
        },
    },
    Finder {
        name: "trusted programs",
        path: "place/state/trusted.json",
        kind: Kind::File("{\"version\":1,\"trusted\":{}}"),
        ask: |environment, path| {
            let mut command = environment.ringer(&["trust", "--list"]);
            command.env("RINGER_HOME", path.parent().expect("a directory"));
            command
        },
    },
    Finder {
        name: "secret of a webhook",
        path: "place/token",
        kind: Kind::File("hunter2"),
        ask: |environment, path| {
            let settings = format!(
                "[[webhook]]\nkind = \"json\"\nurl = \"http://127.0.0.1:1/\"\nsecret_file = {:?}\n",
                path.display().to_string()
            );
            doctor(environment, &settings)
        },
    },
    Finder {
        name: "session bus",
        path: "place/bus",
        kind: Kind::Socket,
        ask: |environment, path| {
            let mut command = doctor(environment, "[notify]\npopup = \"desktop\"\n");
            command.env("DBUS_SESSION_BUS_ADDRESS", format!("unix:path={}", path.display()));
            command
        },
    },
    Finder {
        name: "server of tmux",
        path: "place/tmux",
        kind: Kind::Socket,
        ask: |environment, path| {
            let mut command = doctor(environment, "");
            command.env("TMUX", format!("{},1,0", path.display())).env("TMUX_PANE", "%0");
            command
        },
    },
    Finder {
        name: "tmux",
        path: "place/tmux",
        kind: Kind::Program,
        ask: |environment, path| {
            let socket = environment.path().join("tmux.sock");
            let _ = fs::remove_file(&socket);
            drop(UnixListener::bind(&socket).expect("a socket"));
            let mut command = environment.ringer(&["setup", "tmux", "--yes"]);
            let directory = path.parent().expect("a directory").display();
            command.env("PATH", format!("{directory}:/usr/bin:/bin"));
            command.env("HOME", environment.path()).env("TMUX", format!("{},1,0", socket.display()));
            command
        },
    },
    Finder {
        name: "server of panes",
        path: "place/state/ui.sock",
        kind: Kind::Socket,
        ask: |environment, path| {
            let mut command = environment.ringer(&["pane", "send", "1", "text"]);
            command.env("RINGER_HOME", path.parent().expect("a directory"));
            command
        },
    },
];

fn doctor(environment: &TestEnvironment, settings: &str) -> Command {
    let path = environment.path().join("config.toml");
    fs::write(&path, settings).expect("a file");
    let mut command = environment.ringer(&["doctor"]);
    command.env("RINGER_CONFIG", path);
    command
}

/// Makes the thing and the directories above it, all of this user and closed to others.
fn make(path: &Path, kind: Kind) -> Option<UnixListener> {
    fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
    let (listener, mode) = match kind {
        Kind::Directory => {
            fs::create_dir(path).expect("a directory");
            (None, 0o700)
        }
        Kind::File(text) => {
            fs::write(path, text).expect("a file");
            (None, 0o600)
        }
        Kind::Program => {
            fs::write(path, "#!/bin/sh\necho the program ran\n").expect("a file");
            (None, 0o755)
        }
        Kind::Socket => (Some(UnixListener::bind(path).expect("a socket")), 0o600),
    };
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("ours");
    listener
}

fn text_of(mut command: Command) -> String {
    let output = command.output().expect("it ends");
    [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat()
}

#[test]
fn what_another_user_controls_is_refused_by_every_finder() {
    if !is_root() {
        return;
    }
    for finder in FINDERS {
        let environment = TestEnvironment::new();
        let path = environment.path().join(finder.path);
        let _listener = make(&path, finder.kind);
        let ask = |path: &Path| text_of((finder.ask)(&environment, path));
        let refused = |changed: &Path, at: &Path| {
            let (text, name) = (ask(at), finder.name);
            let expected = format!("{} belongs to another user (uid {NOBODY})", changed.display());
            assert!(text.contains(&expected), "{name}: {expected}\n{text}");
        };
        assert!(!ask(&path).contains("belongs to another user"), "{}: it is ours", finder.name);

        chown(&path, Some(NOBODY), None).expect("root may");
        refused(&path, &path);
        chown(&path, Some(0), None).expect("root may");

        let place = environment.path().join("place");
        chown(&place, Some(NOBODY), None).expect("root may");
        refused(&place, &path);
        chown(&place, Some(0), None).expect("root may");

        // A link of theirs leads to what is ours, and could lead elsewhere in a moment.
        let link: PathBuf = environment.path().join("link");
        symlink(&place, &link).expect("a link");
        lchown(&link, Some(NOBODY), None).expect("root may");
        let through = link.join(path.strip_prefix(&place).expect("it is below"));
        refused(&link, &through);
    }
}
