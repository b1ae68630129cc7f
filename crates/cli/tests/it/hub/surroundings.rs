//! What the hub sees is what counts, and not what the command sees that asks.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::environment::HubEnvironment;
use crate::background::Background;
use crate::ringer::{check, json};

/// A session bus on which no program shows popups, nor is started to do so.
fn bus(environment: &HubEnvironment) -> (Background, String) {
    let address = format!("unix:path={}", environment.base.path().join("bus").display());
    let config = environment.base.path().join("bus.conf");
    let text = format!(
        "<busconfig><type>session</type><listen>{address}</listen><policy context='default'>\
         <allow send_destination='*'/><allow receive_sender='*'/><allow own='*'/></policy></busconfig>"
    );
    fs::write(&config, text).expect("a file");
    let mut daemon = Command::new("dbus-daemon");
    daemon.args(["--nofork", "--print-address=1"]).arg(format!("--config-file={}", config.display()));
    let daemon = Background::start({
        daemon.stderr(Stdio::null());
        daemon
    });
    daemon.line().expect("its address");
    (daemon, address)
}

/// What the doctor says of a part.
#[track_caller]
fn part(command: &mut Command, name: &str) -> (String, String) {
    let report = json(&check(command.args(["doctor", "--json"]), 1).0);
    let rows = report["rows"].as_array().expect("rows").iter();
    let row = rows.clone().find(|row| row["part"] == name).unwrap_or_else(|| panic!("{report}"));
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    (text(&row["verdict"]), text(&row["what"]))
}

#[test]
fn the_doctor_asks_the_hub_for_its_desktop() {
    let environment = HubEnvironment::with_settings("[notify]\npopup = \"desktop\"\n");
    environment.run(&["hub", "start"]);
    let (_daemon, address) = bus(&environment);
    let mut command = environment.ringer::<&str>(&[]);
    command.env("DBUS_SESSION_BUS_ADDRESS", &address);
    let (verdict, what) = part(&mut command, "desktop");
    assert_eq!(verdict, "broken");
    assert!(what.contains("no session bus") && what.ends_with("(reported by the hub)"), "{what}");
    environment.run(&["hub", "stop"]);
    let mut command = environment.ringer::<&str>(&[]);
    command.env("DBUS_SESSION_BUS_ADDRESS", &address).env("RINGER_HUB", "off");
    let (_, what) = part(&mut command, "desktop");
    assert!(what.contains("there is none on the session bus"), "the next one would have this: {what}");
}

#[test]
fn the_doctor_looks_for_programs_where_the_hub_does() {
    let environment = HubEnvironment::with_settings("[notify]\npopup = \"off\"\ncommand = [\"only-here\"]\n");
    let directory = environment.base.path().join("programs");
    fs::create_dir(&directory).expect("a directory");
    fs::write(directory.join("only-here"), "#!/bin/sh\n").expect("a file");
    fs::set_permissions(directory.join("only-here"), fs::Permissions::from_mode(0o755)).expect("a mode");
    environment.run(&["hub", "start"]);
    let path = std::env::var("PATH").expect("a path");
    let mut command = environment.ringer::<&str>(&[]);
    command.env("PATH", format!("{}:{path}", directory.display()));
    let (verdict, what) = part(&mut command, "command");
    assert_eq!((verdict.as_str(), what.as_str()), ("broken", "\"only-here\" is not on PATH"));
}
