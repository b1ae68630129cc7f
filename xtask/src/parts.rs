use std::collections::BTreeSet;
use std::env;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::failure::Failure;
use crate::step::Step;
use crate::step_times::StepTimes;

/// A system program that tests or benchmarks run.
pub(crate) struct Part {
    program: &'static str,
    /// The Debian package that contains it.
    package: &'static str,
    purpose: &'static str,
}

impl Part {
    pub(crate) const fn new(program: &'static str, package: &'static str, purpose: &'static str) -> Self {
        Self { program, package, purpose }
    }

    pub(crate) const fn program(&self) -> &'static str {
        self.program
    }

    fn is_here(&self, path: &OsStr) -> bool {
        is_on_path(self.program, path)
    }
}

const IN_A_MULTIPLEXER: &str = "so the wrapped sequences are tried in the real multiplexer";
const IN_A_SHELL: &str = "so hook lines and completions are read by the real shell";

pub(crate) const BUS: Part = Part::new("dbus-daemon", "dbus", "a bus for popups that no real desktop shows");

/// Every program that a test starts and that a bare Debian with git and a C compiler lacks. `cargo xtask fresh` runs the
/// tests on such a machine, where a program that is missing from this list makes a test fail.
const PARTS: &[Part] = &[
    Part::new("tmux", "tmux", IN_A_MULTIPLEXER),
    Part::new("screen", "screen", IN_A_MULTIPLEXER),
    Part::new("strace", "strace", "so notify and listen are killed before every system call they make"),
    BUS,
    Part::new("dunst", "dunst", "so popups are shown by a real notification server"),
    Part::new("dunstctl", "dunst", "so the notification server is asked what it shows"),
    Part::new("Xvfb", "xvfb", "so the notification server and terminals have a screen"),
    Part::new("evilwm", "evilwm", "so windows are brought to the front by a real window manager"),
    Part::new("xterm", "xterm", "so the window of a real terminal is looked at"),
    Part::new("kitty", "kitty", "so tabs of a real kitty are looked at"),
    Part::new("zsh", "zsh", IN_A_SHELL),
    Part::new("fish", "fish", IN_A_SHELL),
    Part::new("man", "man-db", "so the manual pages are read as people read them"),
    Part::new("node", "nodejs", "so the plugin for opencode is run"),
    // Debian's Python: the PATH may find another one first.
    Part::new("/usr/bin/python3", "python3", "so example hosts and servers in Python are run"),
    Part::new("bwrap", "bubblewrap", "so commands run in a real sandbox"),
    Part::new("ssh", "openssh-client", "so machines are linked over a real ssh"),
    Part::new("ssh-keygen", "openssh-client", "so a real ssh has keys"),
    // Only root has its directory on the PATH.
    Part::new("/usr/sbin/sshd", "openssh-server", "so machines are linked over a real ssh"),
    // Only root has its directory on the PATH.
    Part::new("/usr/sbin/nats-server", "nats-server", "so teams are tried over a real server"),
    Part::new("kill", "procps", "so hubs are killed under load"),
];

/// How to handle a missing part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Missing {
    Install,
    Report,
}

/// Checks or installs every part of the tests. A missing one is an error and never a skipped test: a suite that passes
/// because it ran nothing is worse than none.
pub(crate) fn ensure(policy: Missing, times: &mut StepTimes) -> Result<(), Failure> {
    ensure_these(PARTS, policy, times)
}

/// Checks or installs the given parts, such as those that a benchmark compares with.
pub(crate) fn ensure_these(parts: &[Part], policy: Missing, times: &mut StepTimes) -> Result<(), Failure> {
    let lacking = lacking(parts);
    if lacking.is_empty() {
        return Ok(());
    }
    let installer = match policy {
        Missing::Install => Installer::find(),
        Missing::Report => None,
    };
    let Some(installer) = installer else {
        return Err(Failure::unavailable(instructions(&lacking)));
    };
    for part in &lacking {
        eprintln!("installing {} ({})", part.package, part.purpose);
    }
    // An old package list names versions that the mirror has replaced. If the update fails (one broken third-party source is
    // enough), the existing lists may still do: the install step decides.
    if let Err(failure) = installer.apt_get("apt update", &["update"]).run(times) {
        eprintln!("{failure}; trying to install all the same");
    }
    installer
        .apt_get("apt install", &["install", "-y", "--no-install-recommends"])
        .args(packages(&lacking))
        .run(times)
        .map_err(|failure| Failure::unavailable(format!("{failure}\n{}", instructions(&lacking))))?;
    let still = self::lacking(parts);
    if still.is_empty() { Ok(()) } else { Err(Failure::unavailable(instructions(&still))) }
}

fn lacking(parts: &[Part]) -> Vec<&Part> {
    let path = env::var_os("PATH").unwrap_or_default();
    parts.iter().filter(|part| !part.is_here(&path)).collect()
}

/// Returns true if the program is on the PATH.
pub(crate) fn is_here(program: &str) -> bool {
    is_on_path(program, &env::var_os("PATH").unwrap_or_default())
}

fn is_on_path(program: &str, path: &OsStr) -> bool {
    env::split_paths(path).any(|folder| is_executable(&folder.join(program)))
}

fn is_executable(file: &Path) -> bool {
    file.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// Returns each package once; several programs may be in the same one.
fn packages(parts: &[&Part]) -> BTreeSet<&'static str> {
    parts.iter().map(|part| part.package).collect()
}

fn instructions(parts: &[&Part]) -> String {
    let mut text = String::from("programs that are needed are not here:\n");
    for part in parts {
        // Writing into a String cannot fail.
        let _ = writeln!(text, "  {}: {}", part.program, part.purpose);
    }
    let packages = packages(parts).into_iter().collect::<Vec<_>>().join(" ");
    text + "install them with: sudo apt-get install " + &packages
}

/// How apt-get can run on this machine.
#[derive(Clone, Copy)]
enum Installer {
    Root,
    Sudo,
}

impl Installer {
    fn find() -> Option<Self> {
        let path = env::var_os("PATH").unwrap_or_default();
        if !is_on_path("apt-get", &path) {
            None
        } else if is_root() {
            Some(Self::Root)
        } else if succeeds("sudo", &["-n", "true"]) {
            Some(Self::Sudo)
        } else {
            None
        }
    }

    fn apt_get(self, name: &'static str, arguments: &[&str]) -> Step {
        match self {
            Self::Root => Step::new(name, "apt-get").env("DEBIAN_FRONTEND", "noninteractive").args(arguments),
            // sudo clears the environment, so the variable is set on its command line.
            Self::Sudo => Step::new(name, "sudo")
                .args(["-n", "env", "DEBIAN_FRONTEND=noninteractive", "apt-get"])
                .args(arguments),
        }
    }
}

pub(crate) fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

/// Returns true if a program exits with 0. Its output is discarded.
pub(crate) fn succeeds(program: impl AsRef<OsStr>, arguments: &[&str]) -> bool {
    Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::{Part, instructions, is_on_path};
    use std::ffi::OsStr;

    const DBUS: Part = Part::new("dbus-daemon", "dbus", "a private bus");
    const DBUS_SEND: Part = Part::new("dbus-send", "dbus", "to look at it");
    const SCREEN: Part = Part::new("screen", "screen", "the real one");

    #[test]
    fn says_exactly_what_to_install() {
        fn check(parts: &[&Part], expect: &str) {
            let text = instructions(parts);
            assert_eq!(text.lines().last(), Some(expect), "{text}");
        }
        check(&[&SCREEN], "install them with: sudo apt-get install screen");
        check(&[&SCREEN, &DBUS, &DBUS_SEND], "install them with: sudo apt-get install dbus screen");
    }

    #[test]
    fn says_what_each_part_is_for() {
        let text = instructions(&[&SCREEN, &DBUS]);
        assert!(text.contains("  screen: the real one\n  dbus-daemon: a private bus\n"), "{text}");
    }

    #[test]
    fn a_part_is_here_when_its_program_is() {
        fn check(part: &Part, expect: bool) {
            assert_eq!(part.is_here(OsStr::new("/nowhere:/bin")), expect, "{}", part.program);
        }
        check(&Part::new("sh", "dash", ""), true);
        check(&Part::new("ringer-no-such-program", "none", ""), false);
        // An absolute path does not depend on the PATH.
        check(&Part::new("/bin/sh", "dash", ""), true);
    }

    #[test]
    fn only_an_executable_file_is_a_program() {
        fn check(program: &str, path: &str, expect: bool) {
            assert_eq!(is_on_path(program, OsStr::new(path)), expect, "{program} in {path}");
        }
        let here = env!("CARGO_MANIFEST_DIR");
        check("sh", "/nowhere:/bin", true);
        check("sh", "/nowhere", false);
        check("sh", "", false);
        check("src", here, false);
        check("Cargo.toml", here, false);
    }
}
