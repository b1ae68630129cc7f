//! Opening, splitting, leaving and coming back.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use test_support::until;

use super::session::Session;

#[test]
fn what_runs_in_a_pane_goes_on_when_the_window_is_left() {
    let session = Session::new();
    let mut window = session.attach();
    window.command("echo pid=$$ in $RINGER_SURFACE");
    let shell = window.number_after("pid=");
    window.until(" in pane:");
    window.press("d");
    let (written, status) = window.end();
    assert!(status.success(), "{written}");
    // The terminal is given back.
    assert!(written.ends_with("\x1b[?1049l"), "{written:?}");

    let mut window = session.attach();
    window.until(&format!("pid={shell}"));
    window.command("echo again=$$");
    assert_eq!(window.number_after("again="), shell);
    // All windows, from another terminal.
    session.run(&["detach"]);
    assert!(window.end().1.success());
}

#[test]
fn panes_are_split_and_closed_and_the_last_one_ends_the_window() {
    let session = Session::new();
    let mut window = session.attach();
    window.command("echo first=$$");
    let first = window.number_after("first=");
    window.press("|");
    until("two panes", || window.text().matches('┌').count() == 2);
    window.command("echo second=$$");
    let second = window.number_after("second=");
    assert_ne!(first, second);
    window.press("-");
    until("three panes", || window.text().matches('┌').count() == 3);
    window.command("echo third=$$; tty");
    window.number_after("third=");

    // To the left, where the first one is.
    window.press("h");
    window.command("echo back=$$");
    assert_eq!(window.number_after("back="), first);
    // One alone, and back.
    window.press("z");
    until("zoomed", || window.text().matches('┌').count() == 1);
    window.until("zoomed");
    window.press("z");
    until("not zoomed", || window.text().matches('┌').count() == 3);

    // The border goes to the left, and the program hears of it.
    window.command("stty size");
    let size = window.text();
    window.press("H");
    window.command("clear; stty size");
    until("another size", || window.text() != size);

    // By its end, and by the key.
    window.command("exit");
    until("two panes", || window.text().matches('┌').count() == 2);
    window.press("x");
    window.until("y yes");
    window.keys("y");
    until("one pane", || window.text().matches('┌').count() == 1);
    window.command("exit");
    assert!(window.end().1.success());
}

#[test]
fn a_program_finds_its_place_and_the_hub_in_its_environment() {
    let session = Session::new();
    let mut window = session.attach();
    window.command("env > variables; echo >> variables; echo written-$((40+2))");
    window.until("written-42");
    let variables = fs::read_to_string(session.file("variables")).expect("a file");
    let value = |name: &str| variables.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    assert!(value("RINGER_SURFACE").is_some_and(|surface| surface.starts_with("pane:")), "{variables}");
    assert!(
        value("RINGER_WORKSPACE").is_some_and(|workspace| workspace.starts_with("panes:")),
        "{variables}"
    );
    // Also if it was there before the hub.
    let socket = value("RINGER_SOCKET").map(PathBuf::from);
    until("a hub runs", || session.hub.presence().is_some());
    assert_eq!(socket.as_deref().and_then(Path::parent), Some(&*session.sockets()), "{variables}");
    assert_eq!(value("TMUX"), None);
}

#[test]
fn a_new_pane_begins_where_the_last_one_is() {
    let session = Session::new();
    let mut window = session.attach();
    window.command("mkdir deeper; cd deeper; printf '\\033]7;file://%s\\007' \"$PWD\"; echo moved");
    until("it moved", || window.text().matches("moved").count() == 2);
    window.press("|");
    until("two panes", || window.text().matches('┌').count() == 2);
    window.command("basename \"$(pwd)\" | tr a-z A-Z");
    window.until("DEEPER");
}

#[test]
fn a_pane_whose_directory_was_removed_is_split_and_started_again_above_it() {
    let session = Session::new();
    let mut window = session.attach();
    window.command("mkdir -p deeper/gone; cd deeper/gone; rmdir \"$PWD\"; echo removed-$((40+2))");
    window.until("removed-42");
    window.press("|");
    until("two panes", || window.text().matches('┌').count() == 2);
    window.command("clear; basename \"$(pwd)\" | tr a-z A-Z");
    window.until("DEEPER");
    window.command("kill -9 $$");
    window.until("ended by SIGKILL");
    fs::remove_dir(session.file("deeper")).expect("it is empty");
    window.press("r");
    window.until_not("ended by SIGKILL");
    window.command("clear; basename \"$(pwd)\" | tr a-z A-Z");
    window.until("REPOSITORY");
}

/// A shell ends with the status of its last command.
#[test]
fn a_shell_closes_its_pane_after_a_command_that_failed() {
    let session = Session::new();
    let mut window = session.attach();
    window.press("|");
    until("two panes", || window.text().matches('┌').count() == 2);
    // Sooner, it could not have begun.
    window.command("sleep 1; false; echo later-$((40+2))");
    window.until("later-42");
    window.command("false");
    window.keys("\x04");
    until("one pane", || window.text().matches('┌').count() == 1);
    assert_eq!(session.hub.bodies(&[]), [""; 0]);
}

#[test]
fn a_program_that_ended_is_shown_and_can_be_started_again() {
    let session = Session::new();
    let mut window = session.attach();
    session.open("job", "echo run >> runs; wc -l < runs; exit 3");
    window.until("exit status 3");
    window.press("r");
    session.line_count("runs", 2);
    window.until("exit status 3");
    // It is closed without a question.
    window.press("x");
    window.until_not("exit status 3");
}

#[test]
fn a_command_that_cannot_be_started_is_told_in_its_pane() {
    let session = Session::new();
    let window = session.window(&["attach"], 24, 240);
    window.until("$ ");
    // It is there, but the program that runs it is not.
    let program = session.file("no-such-program");
    fs::write(&program, "#!/no-such-program\n").expect("a file");
    let executable = fs::Permissions::from_mode(0o755);
    fs::set_permissions(&program, executable).expect("a file of ours");
    let mut command = session.hub.ringer(&["open", "--detached", "--", "./no-such-program"]);
    let output = command.envs(session.variables()).current_dir(session.directory()).output();
    assert!(output.is_ok_and(|output| output.status.success()));
    window.until("no-such-program");
    window.until("try again");
    // Nor is it forgotten when the session was saved and the keeper has answered what came with that.
    let saved = session.hub.base.home().join("panes.json");
    let saved = || fs::read_to_string(&saved).unwrap_or_default();
    until("the session is saved", || saved().contains("no-such-program"));
    session.open("job", "echo there-$((40+2)); exec sleep 1000");
    window.until("there-42");
    let listed = session.run(&["panes", "--json"]);
    assert!(!listed.contains("there is no pane"), "{listed}");
}

#[test]
fn the_inbox_is_one_key_away_and_back() {
    let session = Session::new();
    let mut window = session.attach();
    window.command("echo here-before");
    window.until("here-before");
    window.press("i");
    window.until_not("here-before");
    window.keys("q");
    window.until("here-before");
    window.command("echo here-$((1+1))");
    window.until("here-2");
}

#[test]
fn two_windows_of_different_sizes_show_the_same() {
    let session = Session::new();
    let mut small = session.attach();
    let mut large = session.window(&["attach"], 40, 120);
    large.until("$ ");
    large.command("echo both-$((40+2)); stty size");
    small.until("both-42");
    large.until("both-42");
    // The program's terminal is as large as where the person types.
    large.until("36 102");
    small.command("stty size");
    small.until("20 62");
    // One is left, the other stays.
    small.press("d");
    assert!(small.end().1.success());
    large.command("echo still-$((40+3))");
    large.until("still-43");
}

#[test]
fn a_window_may_be_tiny() {
    let session = Session::new();
    let mut window = session.window(&["attach"], 8, 40);
    window.until("$ ");
    window.command("echo tiny-$((40+2))");
    window.until("tiny-42");
    // What is typed at once is for the new pane.
    window.press("|");
    window.press("-");
    for (lines, columns) in [(1, 1), (2, 3), (3, 200), (60, 2), (24, 80)] {
        window.resize(lines, columns);
    }
    window.command("clear; echo large-$((40+2))");
    window.until("large-42");
}

#[test]
fn twenty_panes_in_four_workspaces() {
    let session = Session::new();
    let mut window = session.window(&["attach"], 60, 200);
    window.until("$ ");
    let script = "echo $RINGER_SURFACE >> names; read line; echo got; echo $line; read line";
    for number in 0..20 {
        let (name, workspace) = (format!("p{number}"), format!("w{}", number % 4));
        session.run(&["open", "-d", "--name", &name, "--workspace", &workspace, "--", "sh", "-c", script]);
    }
    session.line_count("names", 20);
    for number in 0..20 {
        session.run(&["pane", "send", &format!("p{number}"), &format!("w-{number}")]);
    }
    // Workspace 1 is the first shell's.
    for (key, number) in [("2", 0), ("3", 1), ("4", 2), ("5", 3)] {
        window.press(key);
        until("all have answered", || window.text().matches("got").count() == 5);
        window.until(&format!("w-{}", number + 16));
    }
}
