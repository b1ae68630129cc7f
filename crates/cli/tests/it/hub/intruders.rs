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
    refused("the process at the hub's socket belongs to another user (uid 65534)");
    fs::write(&file, believed).expect("a file");
    assert_eq!(environment.bodies(&[]), ["ours"]);
}
