//! `ringer doctor`.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use ringer_journal::{DeadLetter, Home, HubChanges, HubStore, IdSource};
use serde_json::{Value, json};
use test_support::{
    BlockingNotificationServer, DEADLINE, ServerBehaviour, SessionBus, copy_program, make_program,
};

use crate::background::Background;
use crate::home::TestEnvironment;
use crate::pty::in_terminal;
use crate::ringer::{check, json};

/// What a doctor says with these settings.
#[track_caller]
fn doctor(environment: &TestEnvironment, settings: &str, arguments: &[&str], exit: i32) -> Vec<Value> {
    let mut command = with_settings(environment, settings);
    let (out, err) = check(command.arg("--json").args(arguments), exit);
    assert_eq!(err, "");
    let report = json(&out);
    let rows = report["rows"].as_array().expect("rows").clone();
    let broken = rows.iter().filter(|row| row["verdict"] == "broken").count();
    assert_eq!(report["broken"], broken);
    rows
}

fn with_settings(environment: &TestEnvironment, settings: &str) -> Command {
    let path = environment.path().join("config.toml");
    fs::write(&path, settings).expect("a file");
    let mut command = environment.ringer(&["doctor"]);
    command.env("RINGER_CONFIG", path);
    command
}

#[track_caller]
fn row<'a>(rows: &'a [Value], part: &str) -> &'a Value {
    let found = rows.iter().find(|row| row["part"] == part);
    found.unwrap_or_else(|| panic!("nothing is said of {part}: {rows:#?}"))
}

#[track_caller]
fn says(rows: &[Value], part: &str, verdict: &str, what: &str, fix: &str) {
    let row = row(rows, part);
    assert_eq!(row["verdict"], verdict, "{row}");
    assert!(row["what"].as_str().expect("a text").contains(what), "{row}");
    assert!(row["fix"].as_str().unwrap_or_default().contains(fix), "{row}");
}

#[test]
fn with_nothing_set_up_nothing_is_broken() {
    let environment = TestEnvironment::new();
    let rows = doctor(&environment, "", &[], 0);
    says(&rows, "terminal", "warn", "no terminal", "in a terminal");
    says(&rows, "multiplexer", "ok", "none", "");
    says(&rows, "hub", "warn", "RINGER_HUB=off", "unset RINGER_HUB");
    says(&rows, "journal", "ok", "none yet", "");
    says(&rows, "config", "ok", "config.toml: ok", "");
    says(&rows, "desktop", "warn", "no session bus", "notify.popup");
    says(&rows, "sound", "ok", "off", "");
    says(&rows, "webhook", "ok", "not configured", "");
    assert!(!environment.home().exists(), "it only looked");
    let (out, err) = check(&mut environment.ringer(&["doctor"]), 0);
    assert!(err.is_empty() && out.lines().count() >= 8, "{out}{err}");
    assert!(out.contains("  ! hub           not running, and"), "{out}");
    assert!(out.contains("\n                  fix: unset RINGER_HUB\n"), "{out}");
    assert!(out.contains("  ✓ not used      multiplexer, panes, sound, command, webhook\n"), "{out}");
}

#[test]
fn where_the_locale_has_no_utf8_the_signs_are_ascii() {
    let environment = TestEnvironment::new();
    let (out, _) = check(environment.ringer(&["doctor"]).env("LC_ALL", "C"), 0);
    assert!(out.is_ascii() && out.contains("  + journal "), "{out}");
    let (out, _) = check(environment.ringer(&["doctor"]).env("LC_ALL", "C.UTF-8").env("LANG", "C"), 0);
    assert!(out.contains("  ✓ journal "), "{out}");
}

#[test]
fn a_program_that_may_be_gone_soon_is_told() {
    let environment = TestEnvironment::new();
    let rows = doctor(&environment, "", &[], 0);
    says(&rows, "program", "warn", "is in a build directory", "cargo install");
    let copy = environment.path().join("ringer");
    copy_program(env!("CARGO_BIN_EXE_ringer").as_ref(), &copy);
    let mut command = Command::new(&copy);
    command
        .args(["doctor", "--json"])
        .env_clear()
        .env("RINGER_HOME", environment.home())
        .env("RINGER_HUB", "off");
    let report = json(&check(command.stdin(Stdio::null()), 0).0);
    says(report["rows"].as_array().expect("rows"), "program", "warn", "in a temporary directory", "install");
}

#[test]
fn a_journal_is_looked_into() {
    let environment = TestEnvironment::new();
    environment.notify("one");
    let listener = environment.listen(&["--as", "reader", "--from-now"]);
    let rows = doctor(&environment, "", &[], 0);
    says(&rows, "journal", "ok", "ringer.db: 1 message, ", "");
    says(&rows, "journal", "ok", "listeners: reader", "");
    says(&rows, "dead letters", "ok", "none", "");
    drop(listener);
    // What is in the log would be read over it.
    let _ = fs::remove_file(environment.home().join("ringer.db-wal"));
    fs::write(environment.database(), "this is no database, and long enough to be looked at".repeat(99))
        .expect("a file");
    says(&doctor(&environment, "", &[], 1), "journal", "broken", "is damaged", "ringer doctor --repair");
    environment.run(&["doctor", "--repair"]);
    let rows = doctor(&environment, "", &[], 0);
    says(&rows, "damage", "warn", "ringer.db was damaged", "ringer.db.damaged-1*");
}

#[test]
fn a_hub_that_does_not_answer_is_broken() {
    let environment = TestEnvironment::new();
    environment.notify("one");
    let socket = environment.home().join("s");
    // Bound, but no process is behind it any more.
    drop(UnixListener::bind(&socket).expect("a socket"));
    let presence = json!({ "socket": socket, "pid": 1, "version": "0.0.1" });
    fs::write(environment.home().join("hub.json"), presence.to_string()).expect("a file");
    says(&doctor(&environment, "", &[], 0), "hub", "warn", "not running", "");
    fs::remove_file(&socket).expect("it is there");
    let listener = UnixListener::bind(&socket).expect("a socket");
    // Several checks may ask at the same moment; only one of them for the status.
    let (ask, asked) = mpsc::channel();
    thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut line = [0; 1024];
            let read = stream.read(&mut line).unwrap_or(0);
            if line[..read].windows(10).any(|word| word == b"hub.status") {
                let answer = b"{\"id\":1,\"ok\":true,\"result\":{\"version\":\"0.0.1\"}}\n";
                stream.write_all(answer).expect("it waits for it");
                let _ = ask.send(());
            }
        }
    });
    says(&doctor(&environment, "", &[], 0), "hub", "warn", "version 0.0.1", "ringer hub stop");
    asked.recv_timeout(DEADLINE).expect("it was asked");
}

#[test]
fn a_hub_that_runs_is_asked() {
    let environment = TestEnvironment::new();
    let mut serve = environment.ringer(&["hub", "start", "--foreground"]);
    serve.stderr(Stdio::null());
    let hub = Background::start(serve);
    let start = Instant::now();
    // Each look is a process of its own, so this needs no pause.
    while !environment.run(&["hub", "status"]).contains("the hub is running") {
        assert!(start.elapsed() < DEADLINE, "it does not come up");
    }
    says(&doctor(&environment, "", &[], 0), "hub", "ok", "running, version", "");
    environment.run(&["hub", "stop"]);
    drop(hub);
}

#[test]
fn dead_letters_are_shown_newest_first() {
    let environment = TestEnvironment::new();
    environment.notify("one");
    let mut hub_store = HubStore::open(&Home::new(environment.home())).expect("a hub store");
    for number in 0..7 {
        let stamp = IdSource::now();
        let letter = DeadLetter {
            id: stamp.message_id(),
            target: "webhook".to_owned(),
            why: format!("phone: given up {number}\u{1b}"),
            unix_ms: stamp.unix_ms,
        };
        let settlement = HubChanges { dead_letters: vec![letter], ..HubChanges::default() };
        hub_store.commit(&settlement).expect("it is written");
    }
    let rows = doctor(&environment, "", &[], 0);
    says(&rows, "dead letter", "warn", "to webhook: phone: given up 6", "ringer why ");
    let letters: Vec<&Value> = rows.iter().filter(|row| row["part"] == "dead letter").collect();
    assert_eq!(letters.len(), 6, "{letters:?}");
    assert!(letters[5]["what"].as_str().expect("a text").contains("2 older"), "{letters:?}");
    assert!(!environment.run(&["doctor"]).contains('\x1b'));
}

#[test]
fn a_multiplexer_and_what_it_lets_through() {
    let environment = TestEnvironment::new();
    let bin = environment.path().join("bin");
    fs::create_dir(&bin).expect("a directory");
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").expect("a PATH"));
    let socket = environment.path().join("tmux.sock");
    let _server = UnixListener::bind(&socket).expect("a socket");
    for (answer, verdict, what, fix) in [
        (
            "echo 'kitty(0.48.2)|xterm-kitty|off|1'",
            "warn",
            "allow-passthrough is off",
            "tmux set -g allow-passthrough on",
        ),
        ("echo 'kitty(0.48.2)|xterm-kitty|on|1'", "ok", "allow-passthrough on", ""),
        ("echo 'kitty(0.48.2)|xterm-kitty|all|0'", "ok", "allow-passthrough all", ""),
        ("exit 1", "warn", "does not answer", "tmux display-message"),
    ] {
        make_program(&bin.join("tmux"), answer);
        let mut command = with_settings(&environment, "");
        command.env("PATH", &path).env("TMUX", format!("{},1,0", socket.display())).env("TMUX_PANE", "%0");
        let report = json(&check(command.arg("--json"), 0).0);
        says(report["rows"].as_array().expect("rows"), "multiplexer", verdict, what, fix);
    }
}

#[test]
fn broken_settings_are_told_with_their_place() {
    let environment = TestEnvironment::new();
    let rows = doctor(&environment, "[notify]\nrign = 1\n", &[], 1);
    says(&rows, "config", "broken", "config.toml:2:1: unknown key notify.rign", "did you mean \"ring\"?");
    fs::write(environment.repository().join(".ringer.toml"), "\n[[webhook]]\n").expect("a file");
    let rows = doctor(&environment, "", &[], 1);
    let broken = rows.iter().find(|row| row["verdict"] == "broken").expect("a row");
    assert!(broken["what"].as_str().expect("a text").contains(".ringer.toml:2:"), "{broken}");
}

#[test]
fn a_name_that_no_repository_has_is_told() {
    let environment = TestEnvironment::new();
    let named = |path: &std::path::Path| format!("[[repository]]\npath = {path:?}\nname = \"api\"\n");
    let repository = environment.repository();
    let rows = doctor(&environment, &named(&repository), &[], 0);
    assert!(!rows.iter().any(|row| row["part"] == "repository api"), "{rows:?}");
    let rows = doctor(&environment, &named(&repository.join("deep")), &[], 0);
    says(&rows, "repository api", "warn", "is not the root of a repository", "git -C ");
}

#[test]
fn programs_that_are_not_there_or_not_trusted() {
    let environment = TestEnvironment::new();
    let text = "[[hook]]\nid = \"theirs\"\ncommand = [\"./run\"]\n[[watch]]\npaths = [\"f\"]\ncommand = [\"true\"]\n";
    fs::write(environment.repository().join(".ringer.toml"), text).expect("a file");
    let proof = environment.path().join("proof");
    make_program(&environment.repository().join("run"), &format!("touch '{}'", proof.display()));
    let settings = "[notify]\ncommand = [\"/nowhere/lamp\"]\nsound = \"/nowhere/ping.wav\"\n\
                    [[hook]]\nid = \"mine\"\ncommand = [\"no-such-program\"]\n\
                    [[hook]]\nid = \"off\"\ncommand = [\"x\"]\nenabled = false\n";
    let rows = doctor(&environment, settings, &["--send"], 1);
    says(&rows, "command", "broken", "\"/nowhere/lamp\" does not exist", "notify.command");
    says(&rows, "sound", "broken", "/nowhere/ping.wav", "notify.sound");
    says(&rows, "hook mine", "broken", "not on PATH", "install");
    says(&rows, "hook off", "ok", "disabled", "");
    says(&rows, "hook theirs", "warn", "not trusted", "ringer trust ");
    says(&rows, "watch", "warn", "not trusted", "ringer trust ");
    assert!(!proof.exists(), "what is not trusted is not run");
    environment.run(&["trust", "--yes"]);
    let rows = doctor(&environment, "", &["--send"], 0);
    says(&rows, "hook theirs", "ok", "changed nothing", "");
    says(&rows, "watch", "ok", "runs ", "");
    assert!(proof.exists());
}

#[test]
fn hooks_and_the_command_are_really_run() {
    let environment = TestEnvironment::new();
    let path = |name: &str| environment.path().join(name);
    make_program(
        &path("mute"),
        "cat >/dev/null\n\
         echo '{\"notification\":{\"title\":\"new\\u001b\"},\"effects\":{\"desktop\":false},\"stop\":true}'\n",
    );
    make_program(&path("fails"), "echo oh no >&2\nexit 3");
    make_program(&path("lamp"), "printf %s \"$RINGER_NOTIFICATION_BODY\" > lit");
    let settings = "[notify]\ncommand = [\"./lamp\"]\n[[hook]]\nid = \"mute\"\ncommand = [\"./mute\"]\n";
    let rows = doctor(&environment, settings, &["--send"], 0);
    says(&rows, "hook mute", "ok", "set title = \"new\\u001b\", desktop = false, and skipped the hooks", "");
    says(&rows, "command", "ok", "lamp ran", "");
    assert!(fs::read_to_string(path("lit")).expect("it ran").contains("ringer doctor"));
    let rows = doctor(&environment, "[[hook]]\nid = \"x\"\ncommand = [\"./fails\"]\n", &["--send"], 1);
    says(&rows, "hook x", "broken", "oh no", "enabled = false");
    // Without --send nothing runs.
    fs::remove_file(path("lit")).expect("it is there");
    says(&doctor(&environment, settings, &[], 0), "command", "ok", "runs ", "");
    assert!(!path("lit").exists());
}

#[test]
fn webhooks() {
    let environment = TestEnvironment::new();
    // Bound and closed again: no other process gets this port for a while.
    let closed = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address").port();
    let settings =
        format!("[[webhook]]\nid = \"phone\"\nkind = \"json\"\nurl = \"http://127.0.0.1:{closed}/s3cret\"\n");
    let rows = doctor(&environment, &settings, &[], 0);
    says(&rows, "webhook phone", "ok", "json at 127.0.0.1 is configured", "");
    let rows = doctor(&environment, &settings, &["--send"], 1);
    says(&rows, "webhook phone", "broken", "127.0.0.1", "check that 127.0.0.1 is up");
    assert!(!format!("{rows:?}").contains("s3cret"), "an address is a password");

    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a call");
        let mut heard = Vec::new();
        let mut piece = [0; 4096];
        while !String::from_utf8_lossy(&heard).contains("this channel works") {
            let read = stream.read(&mut piece).expect("a request");
            assert!(read > 0, "{}", String::from_utf8_lossy(&heard));
            heard.extend_from_slice(&piece[..read]);
        }
        stream
            .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
            .expect("it waits");
    });
    let token = environment.path().join("token");
    fs::write(&token, "hunter2").expect("a file");
    let settings = format!(
        "[[webhook]]\nkind = \"json\"\nurl = \"http://127.0.0.1:{port}/\"\nsecret_file = \"token\"\n"
    );
    fs::set_permissions(&token, fs::Permissions::from_mode(0o644)).expect("a mode");
    let rows = doctor(&environment, &settings, &["--send"], 1);
    says(&rows, "webhook json", "broken", "read or written by others", "chmod 600 ");
    fs::set_permissions(&token, fs::Permissions::from_mode(0o600)).expect("a mode");
    says(&doctor(&environment, &settings, &["--send"], 0), "webhook json", "ok", "127.0.0.1 accepted it", "");
    server.join().expect("it was called");
}

#[test]
fn the_desktop_counts_as_much_as_it_is_wanted() {
    let environment = TestEnvironment::new();
    let asked = |popup: &str, arguments: &[&str], exit| {
        let settings = format!("[notify]\npopup = \"{popup}\"\n");
        let mut command = with_settings(&environment, &settings);
        command.env("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nowhere/bus");
        json(&check(command.arg("--json").args(arguments), exit).0)["rows"].as_array().expect("rows").clone()
    };
    says(&asked("terminal", &["--send"], 0), "desktop", "ok", "not used", "");
    says(&asked("auto", &["--send"], 0), "desktop", "warn", "using the terminal instead", "notify.popup");
    says(&asked("desktop", &["--send"], 1), "desktop", "broken", "bus", "notify.popup");
    says(&asked("both", &[], 1), "desktop", "broken", "/nowhere/bus", "notify.popup");
}

#[test]
fn what_never_answers_is_given_up() {
    let environment = TestEnvironment::new();
    environment.notify("one");
    let (hub, bus) = (environment.home().join("hub.sock"), environment.path().join("bus"));
    // The kernel takes the connections; no process ever accepts them.
    let _held = [&hub, &bus].map(|path| UnixListener::bind(path).expect("a socket"));
    let presence = json!({ "socket": hub, "pid": 1, "version": env!("CARGO_PKG_VERSION") });
    fs::write(environment.home().join("hub.json"), presence.to_string()).expect("a file");
    let mut command = with_settings(&environment, "");
    command.env("DBUS_SESSION_BUS_ADDRESS", format!("unix:path={}", bus.display()));
    let report = json(&check(command.args(["--json", "--send"]), 1).0);
    let rows = report["rows"].as_array().expect("rows");
    says(rows, "hub", "broken", "took longer than 5 s to answer", "ringer hub");
    says(rows, "desktop", "warn", "took longer than 5 s to answer, so its popups cannot be checked", "");
    // Without a hub the bus is asked, which does not answer either.
    fs::remove_file(environment.home().join("hub.json")).expect("it was there");
    let mut command = with_settings(&environment, "");
    command.env("DBUS_SESSION_BUS_ADDRESS", format!("unix:path={}", bus.display()));
    let report = json(&check(command.args(["--json", "--send"]), 0).0);
    says(report["rows"].as_array().expect("rows"), "desktop", "warn", "no answer within", "");
}

/// A real bus, on which no server shows notifications.
#[test]
fn a_desktop_without_a_server_is_found_out() {
    let environment = TestEnvironment::new();
    let socket = environment.path().join("bus");
    let address = format!("unix:path={}", socket.display());
    let config = environment.path().join("bus.conf");
    // No directories of services, so that none is started.
    let text = format!(
        "<busconfig><type>session</type><listen>{address}</listen><auth>EXTERNAL</auth>\
         <policy context='default'><allow send_destination='*' eavesdrop='true'/>\
         <allow eavesdrop='true'/><allow own='*'/></policy></busconfig>"
    );
    fs::write(&config, text).expect("a file");
    let mut bus = Command::new("dbus-daemon");
    bus.args(["--nofork", "--print-address=1"]).arg(format!("--config-file={}", config.display()));
    bus.stderr(Stdio::null());
    let bus = Background::start(bus);
    bus.line().expect("its address");
    let asked = |arguments: &[&str], exit| {
        let mut command = with_settings(&environment, "[notify]\npopup = \"desktop\"\n");
        command.env("DBUS_SESSION_BUS_ADDRESS", &address);
        json(&check(command.arg("--json").args(arguments), exit).0)["rows"].as_array().expect("rows").clone()
    };
    says(
        &asked(&[], 1),
        "desktop",
        "broken",
        "there is none on the session bus",
        "start a notification server",
    );
    says(
        &asked(&["--send"], 1),
        "desktop",
        "broken",
        "org.freedesktop.Notifications",
        "start a notification server",
    );
}

#[test]
fn do_not_disturb_is_told() {
    let environment = TestEnvironment::new();
    for (behaviour, verdict, what, fix) in [
        (ServerBehaviour::Normal, "ok", "Recorder 1 shows popups; test with", ""),
        (
            ServerBehaviour::DoNotDisturb,
            "warn",
            "Recorder 1 shows popups, but do not disturb is on",
            "turn it off",
        ),
    ] {
        let bus = SessionBus::start();
        let _server = BlockingNotificationServer::start(&bus.address(), behaviour);
        let mut command = with_settings(&environment, "");
        command.env("DBUS_SESSION_BUS_ADDRESS", bus.address());
        let report = json(&check(command.arg("--json"), 0).0);
        says(report["rows"].as_array().expect("rows"), "desktop", verdict, what, fix);
    }
}

#[test]
fn a_terminal_is_really_told() {
    let environment = TestEnvironment::new();
    let home = environment.home();
    let variables = [
        ("RINGER_HOME", home.to_str().expect("UTF-8")),
        ("RINGER_HUB", "off"),
        ("RINGER_CONFIG", "/nowhere"),
        ("TERM", "xterm-kitty"),
        ("TERM_PROGRAM", "kitty"),
        ("TERM_PROGRAM_VERSION", "0.48.2"),
    ];
    let binary = env!("CARGO_BIN_EXE_ringer");
    let (written, exit) = in_terminal(binary, &["doctor", "--send"], &variables);
    let text = String::from_utf8_lossy(&written);
    assert!(exit == 0 && text.contains("\x1b]99;") && text.contains("bytes through kitty"), "{text}");
    let (written, _) = in_terminal(binary, &["doctor"], &variables);
    let text = String::from_utf8_lossy(&written);
    assert!(
        !text.contains('\x1b') && text.contains("  ✓ terminal      kitty 0.48.2; notified through kitty"),
        "{text}"
    );
}
