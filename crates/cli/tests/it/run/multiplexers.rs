//! In GNU screen.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::pane::RINGER;
use crate::pty::Pane;

#[test]
fn it_works_in_screen() {
    let folder = tempfile::tempdir().expect("a directory");
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).expect("only ours");
    let sockets = folder.path().to_str().expect("a path").to_owned();
    let script = "stty size; echo in $((1+1)); read line; echo \"got <$line>\"; read line";
    let argv = ["screen", "-c", "/dev/null", "-S", "run", RINGER, "run", "--", "sh", "-c", script];
    let variables = [("RINGER_HUB", "off"), ("HOME", "/nowhere"), ("TERM", "xterm"), ("SCREENDIR", &sockets)];
    let mut pane = Pane::start(&argv, &variables, None);
    pane.wait_for("in 2");
    pane.type_bytes(b"typed\r");
    pane.wait_for("got <typed>");
    assert!(!pane.text().contains("[?1004h"), "screen knows no focus reports");
    pane.type_bytes(b"\r");
    assert!(pane.end().1.success());
}
