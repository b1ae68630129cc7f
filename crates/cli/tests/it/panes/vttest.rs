//! The screens of vttest (version 2.7, recorded in a terminal of 24 lines and 80 columns, a zero byte between two screens),
//! shown in a pane and in a real tmux. Where tmux shows what vttest says is right, the pane shows the same; where tmux does
//! not, the pane shows what is right.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use test_support::until;

use super::conformance::{COLUMNS, FIRST, LINES};
use super::session::Session;
use super::window::Window;

/// Screens on which tmux shows something else than vttest says is right, and a line of what is right. vttest is told a width of
/// 132 columns in some of them, which neither of the two has.
const WRONG_IN_TMUX: [(&str, usize, &str); 7] = [
    ("cursor", 2, "*+                                                                            +*"),
    ("cursor", 3, "J                                                                              j"),
    ("cursor", 4, "J                                                                              j"),
    ("screen", 11, "Origin mode test. This line should be at the bottom of the screen."),
    // tmux lists these as the letters that they were sent as.
    ("screen", 15, "line:      ──────────  ──────────  ──────────  ──────────  ──────────"),
    ("charset", 1, "◆▒␉␌␍␊°±␤␋┘┐┌└┼⎺⎻─⎼⎽├┤┴┬│≤≥π≠£·"),
    ("edit", 12, "CCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCC   "),
];

/// A screen on which no terminal of 80 columns can show what is right: 130 characters are put into its first line.
const NEEDS_132_COLUMNS: (&str, usize) = ("edit", 11);

/// A tmux server, which ends with this.
struct Tmux {
    socket: PathBuf,
}

impl Tmux {
    fn start(session: &Session, script: &str) -> Self {
        let tmux = Self { socket: session.file("tmux.sock") };
        let (lines, columns) = (LINES.to_string(), COLUMNS.to_string());
        let directory = session.directory();
        let directory = directory.to_str().expect("a path");
        let arguments = ["new-session", "-d", "-x", &columns, "-y", &lines, "-c", directory, script];
        tmux.run(&[&arguments[..], &[";", "set", "-g", "status", "off"]].concat());
        tmux
    }

    fn run(&self, arguments: &[&str]) -> String {
        let mut command = Command::new("tmux");
        command.args(["-u", "-f", "/dev/null", "-S"]).arg(&self.socket).args(arguments).env_remove("TMUX");
        let output = command.env("LC_ALL", "C.UTF-8").output().expect("tmux");
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    }

    fn screen(&self) -> Vec<String> {
        self.run(&["capture-pane", "-p"]).lines().map(|line| line.trim_end().to_owned()).collect()
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        // It has ended by itself after the last screen.
        let _ = Command::new("tmux").arg("-S").arg(&self.socket).arg("kill-server").output();
    }
}

/// The lines of the one pane in a window.
fn pane(window: &Window) -> Vec<String> {
    let lines = window.lines().into_iter().skip(FIRST.0.into()).take(LINES.into());
    let own = |line: String| line.chars().skip(FIRST.1.into()).take(COLUMNS.into()).collect::<String>();
    lines.map(|line| own(line).trim_end().to_owned()).collect()
}

/// Shows the screens one after the other, and the next one at each Enter.
fn script(name: &str, screens: usize) -> String {
    let numbers: Vec<String> = (1..=screens).map(|number| number.to_string()).collect();
    format!(
        "stty raw -echo; printf '\\033c'; for i in {}; do cat screen-$i; echo > {name}-$i; read -r line; done; stty sane; printf '\\033c'",
        numbers.join(" ")
    )
}

#[track_caller]
fn check(menu: &str, bytes: &[u8]) {
    let screens: Vec<&[u8]> = bytes.split(|byte| *byte == 0).collect();
    let session = Session::new();
    for (number, screen) in (1..).zip(&screens) {
        fs::write(session.file(&format!("screen-{number}")), screen).expect("a file");
    }
    let mut window = session.window(&["attach"], LINES + 4, COLUMNS + 18);
    window.until("$ ");
    fs::write(session.file("show"), script("pane", screens.len())).expect("a file");
    window.command(". ./show");
    let tmux = Tmux::start(&session, &script("tmux", screens.len()));
    for number in 1..=screens.len() {
        session.line_count(&format!("pane-{number}"), 1);
        session.line_count(&format!("tmux-{number}"), 1);
        let wrong = WRONG_IN_TMUX.iter().find(|(of, screen, _)| (*of, *screen) == (menu, number));
        until(&format!("screen {number} of {menu} is right"), || match wrong {
            Some((_, _, right)) => pane(&window).iter().any(|line| line.ends_with(right.trim_end())),
            None if (menu, number) == NEEDS_132_COLUMNS => true,
            None => is_same(&pane(&window), &tmux.screen()),
        });
        window.keys("\n");
        tmux.run(&["send-keys", "-l", "\n"]);
    }
    window.until("$ ");
}

/// Whether both show the same. What differs is printed, for the case that it stays so.
fn is_same(pane: &[String], tmux: &[String]) -> bool {
    let line = |lines: &[String], at: usize| lines.get(at).cloned().unwrap_or_default();
    let different = (0..usize::from(LINES)).find(|at| line(pane, *at) != line(tmux, *at));
    if let Some(at) = different {
        println!("line {at}: pane {:?}, tmux {:?}", line(pane, at), line(tmux, at));
    }
    different.is_none()
}

#[test]
fn movements_of_the_cursor() {
    check("cursor", include_bytes!("vttest/cursor.bin"));
}

#[test]
fn margins_modes_and_styles() {
    check("screen", include_bytes!("vttest/screen.bin"));
}

#[test]
fn character_sets() {
    check("charset", include_bytes!("vttest/charset.bin"));
}

#[test]
fn inserting_and_deleting() {
    check("edit", include_bytes!("vttest/edit.bin"));
}
