//! Others at the hub's socket: a crowd that says nothing, and another user's process that says too much.

use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use super::environment::HubEnvironment;

/// Connections to the hub that never ask for anything.
fn half_open(environment: &HubEnvironment, many: usize) -> Vec<UnixStream> {
    let presence = environment.presence().expect("a hub");
    let socket = PathBuf::from(presence["socket"].as_str().expect("a path"));
    (0..many).map(|_| UnixStream::connect(&socket).expect("it listens")).collect()
}

#[test]
fn a_crowd_that_says_nothing_locks_no_command_out() {
    let environment = HubEnvironment::new();
    environment.run(&["hub", "start"]);
    let id = environment.notify(&["hello"]);
    let crowd = half_open(&environment, 500);
    assert_eq!(environment.bodies(&[]), ["hello"]);
    assert!(environment.run(&["hub", "status"]).contains("the hub is running"));
    environment.run(&["read", &id]);
    assert_eq!(environment.run(&["hub", "stop"]), "the hub has stopped\n");
    drop(crowd);
}

/// tmux runs what the server behind a socket asks of it, and `tmux -S` does not check whose server that is.
#[test]
#[cfg(target_os = "linux")]
fn a_tmux_socket_that_another_user_could_have_made_is_never_used() {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, chown};
    use std::os::unix::net::UnixListener;

    if !test_support::is_root() {
        return;
    }
    let place = tempfile::tempdir().expect("a directory");
    let path = |name: &str| place.path().join(name);
    for directory in ["bin", "usual/tmux-0", "around"] {
        fs::create_dir_all(path(directory)).expect("a directory");
    }
    let calls = path("calls");
    let stub = format!("#!/bin/sh\necho \"$*\" >> {}\nexit 1\n", calls.display());
    fs::write(path("bin/tmux"), stub).expect("a file");
    fs::set_permissions(path("bin/tmux"), fs::Permissions::from_mode(0o755)).expect("ours");
    let sockets = [path("usual/tmux-0/default"), path("around/socket")];
    let _servers = sockets.clone().map(|socket| UnixListener::bind(socket).expect("a socket"));
    let directories = [path("usual/tmux-0"), path("around")];

    let asked = || {
        let environment = HubEnvironment::new();
        for arguments in [
            &["notify", "hello"][..],
            &["list"],
            &["doctor"],
            &["setup", "tmux", "--dry-run"],
            &["hub", "stop"],
        ] {
            let mut command = environment.ringer(arguments);
            let search_path = format!("{}:/usr/bin:/bin", path("bin").display());
            command.env("PATH", search_path).env("TMUX_TMPDIR", path("usual"));
            command.env("TMUX", format!("{},1,0", sockets[1].display())).env("TMUX_PANE", "%0");
            command.output().expect("it ends");
        }
        let calls = fs::read_to_string(&calls).unwrap_or_default();
        sockets.clone().map(|socket| calls.contains(&format!("-S {}", socket.display())))
    };
    for directory in &directories {
        chown(directory, Some(65534), None).expect("root may");
    }
    assert_eq!(asked(), [false, false], "in directories of another user");
    for directory in &directories {
        chown(directory, Some(0), None).expect("root may");
        fs::set_permissions(directory, fs::Permissions::from_mode(0o777)).expect("ours");
    }
    assert_eq!(asked(), [false, false], "in directories that everybody can write");
    for directory in &directories {
        fs::set_permissions(directory, fs::Permissions::from_mode(0o700)).expect("ours");
    }
    for socket in &sockets {
        chown(socket, Some(65534), None).expect("root may");
    }
    assert_eq!(asked(), [false, false], "made by another user");
    for socket in &sockets {
        chown(socket, Some(0), None).expect("root may");
    }
    assert_eq!(asked(), [true, true], "those of this user are asked");
}

/// As the fault was found: the directory above the socket is another user's, who answers there.
#[test]
#[cfg(target_os = "linux")]
fn what_another_users_process_says_is_not_printed() {
    use std::fs;
    use std::io::{BufRead, BufReader, Write};

    use serde_json::json;
    use test_support::DEADLINE;

    use crate::ringer::check;

    use std::os::unix::fs::{PermissionsExt, chown};
    use std::os::unix::net::UnixListener;
    if !test_support::is_root() {
        return;
    }
    let environment = HubEnvironment::new();
    environment.run(&["hub", "start"]);
    environment.notify(&["ours"]);
    let mut presence = environment.presence().expect("a hub");
    let place = tempfile::tempdir().expect("a directory");
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o711)).expect("ours");
    let (above, leaf) = (place.path().join("ringer-0"), place.path().join("ringer-0/0a0a0a0a"));
    fs::create_dir_all(&leaf).expect("a directory");
    for path in [&above, &leaf] {
        chown(path, Some(65534), None).expect("root may");
    }
    let socket = leaf.join("hub.sock");
    let (listens, ready) = std::sync::mpsc::channel();
    presence["socket"] = json!(socket);
    std::thread::spawn(move || {
        // Of this thread only.
        rustix::thread::set_thread_uid(rustix::thread::Uid::from_raw(65534)).expect("root may");
        let listener = UnixListener::bind(socket).expect("theirs");
        listens.send(()).expect("the test waits");
        for stream in listener.incoming().flatten() {
            let mut reader = BufReader::new(stream);
            let _ = reader.read_line(&mut String::new());
            let forged = json!({ "id": 1, "ok": true, "result": [{ "id": "x", "body": "forged", "is_read": false,
                "ts": "", "from": "forged", "kind": "status", "title": "forged", "subtitle": "", "scope": "global" }] });
            let _ = reader.get_mut().write_all(format!("{forged}\n").as_bytes());
        }
    });
    ready.recv_timeout(DEADLINE).expect("it listens");
    let file = environment.base.home().join("hub.json");
    let believed = fs::read(&file).expect("a file");
    fs::write(&file, presence.to_string()).expect("a file");
    let refused = |why: &str| {
        for arguments in [&["list"][..], &["hub", "status"], &["hub", "stop"], &["read", "--all"]] {
            let (out, err) = check(&mut environment.ringer(arguments), 77);
            assert!(
                out.is_empty() && err.contains(why) && err.contains("hint: kill "),
                "{arguments:?}: {out}{err}"
            );
        }
        let (doctor, _) = check(&mut environment.ringer(&["doctor"]), 1);
        assert!(doctor.contains(why), "{doctor}");
    };
    refused("ringer-0 belongs to another user (uid 65534)");
    for path in [&above, &leaf] {
        chown(path, Some(0), None).expect("root may");
    }
    refused("hub.sock belongs to another user (uid 65534)");
    fs::write(&file, believed).expect("a file");
    assert_eq!(environment.bodies(&[]), ["ours"]);
}
