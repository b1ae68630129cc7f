//! Stores what a terminal replied about itself when a command in it asked. The hub writes to that terminal too, but must not
//! query it: the reply would be typed into the program that runs there.
//!
//! Each terminal has one small file, `terminals/<surface>.json`, replaced as a whole. A reply holds for every window of the same
//! terminal program, so it is also stored for the program; see [`emulator`].

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use ringer_journal::{Home, IdSource};
use ringer_platform::{Durability, replace_file};
use ringer_term::probe::Probe;
use ringer_term::{Detection, TerminalIdentity, sanitise_line};
use serde::{Deserialize, Serialize};

/// The most files that are kept. The oldest are removed first. Far more than the terminals that are open at once.
const MAX_KEPT: usize = 256;
/// The most bytes that are read of a file. A name has at most 1024 characters.
const MAX_FILE: u64 = 16 * 1024;
/// How long a terminal that did not answer is left alone, in milliseconds: ten minutes. It may only have been slow, but each
/// unanswered query costs the person a second.
const SILENT_MS: u64 = 10 * 60 * 1000;
/// The version of the format. Terminals whose files have another version are queried again.
const VERSION: u32 = 1;

/// A terminal's reply to the probe.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbedTerminal {
    version: u32,
    /// The surface: a device, and the start of the session on it.
    surface: String,
    /// The boot id, because the kernel counts session starts from the boot.
    boot: String,
    /// `TERM` when the terminal was probed. Another value may mean another terminal, as behind `dtach`.
    term: String,
    /// The terminal's name (XTVERSION), as `kitty(0.26.5)`. `None` if it did not send one.
    pub name: Option<String>,
    /// True if it answered the OSC 99 query.
    pub osc99: bool,
    /// True if it answered at all.
    answered: bool,
    /// Time of the probe, in milliseconds since 1970.
    unix_ms: i64,
}

impl ProbedTerminal {
    /// Records the result of a probe, also if there was no answer.
    pub fn new(surface: &str, term: &str, probe: &Probe) -> Self {
        Self {
            version: VERSION,
            surface: surface.to_owned(),
            boot: boot_of(surface),
            term: term.to_owned(),
            name: probe.name.as_deref().map(sanitise_line),
            osc99: probe.osc99,
            answered: probe.complete,
            unix_ms: IdSource::now().unix_ms,
        }
    }

    /// Finds the stored reply for a surface: its own, or the reply of another window of the same terminal program.
    /// `leader_parent` is the parent of the session leader, usually that program. Returns `None` if neither was probed. A file
    /// that cannot be read counts as missing, and the next reply replaces it.
    pub fn find(home: &Home, surface: &str, term: &str, leader_parent: Option<u32>) -> Option<Self> {
        let same_program = || Self::read(home, &emulator(leader_parent?)?, term);
        Self::read(home, surface, term).or_else(same_program)
    }

    fn read(home: &Home, surface: &str, term: &str) -> Option<Self> {
        let mut text = String::new();
        File::open(file(home, surface)).ok()?.take(MAX_FILE).read_to_string(&mut text).ok()?;
        let known: Self = serde_json::from_str(&text).ok()?;
        let same = known.version == VERSION && known.surface == surface && known.term == term;
        let age = IdSource::now().unix_ms.abs_diff(known.unix_ms);
        (same && known.boot == boot_of(surface) && (known.answered || age < SILENT_MS)).then_some(known)
    }

    /// Stores the reply for this terminal and for its terminal program, and removes the files of terminals that are gone.
    pub fn keep(&self, home: &Home, leader_parent: Option<u32>) -> io::Result<()> {
        self.write(home)?;
        let program = TerminalIdentity::from_xtversion(self.name.as_deref().unwrap_or_default()).program;
        let drawn_by = |emulator: &String| {
            let name = emulator.rsplit_once('@').and_then(|(path, _)| path.rsplit('/').next());
            name.is_some_and(|name| name.starts_with(&program.as_str().to_lowercase()))
        };
        match leader_parent.and_then(emulator).filter(drawn_by) {
            Some(emulator) => {
                Self { boot: boot_of(&emulator), surface: emulator, ..self.clone() }.write(home)
            }
            None => Ok(()),
        }
    }

    fn write(&self, home: &Home) -> io::Result<()> {
        let directory = directory(home);
        DirBuilder::new().recursive(true).mode(0o700).create(&directory)?;
        forget_the_gone(&directory, &self.surface);
        replace_file(&file(home, &self.surface), &serde_json::to_vec(self)?, Durability::Unsynced)
    }

    /// Corrects a detection with the reply.
    pub fn correct(&self, detection: Detection) -> Detection {
        let identity = self.name.as_deref().map(TerminalIdentity::from_xtversion).unwrap_or_default();
        detection.with_probe_reply(identity, self.osc99)
    }
}

fn directory(home: &Home) -> PathBuf {
    home.path().join("terminals")
}

fn file(home: &Home, surface: &str) -> PathBuf {
    let safe = |character: char| character.is_ascii_alphanumeric() || "@.-".contains(character);
    let name: String = surface.chars().map(|own| if safe(own) { own } else { '_' }).take(200).collect();
    directory(home).join(format!("{name}.json"))
}

/// Terminal programs that run as a process with their own name. Behind SSH the program runs on another machine.
const EMULATORS: [&str; 5] = ["kitty", "foot", "footserver", "ghostty", "konsole"];

/// The key of a terminal program, used like a surface: `exe:/usr/bin/kitty@` plus values that change with an upgrade.
fn emulator(pid: u32) -> Option<String> {
    let path = fs::read_link(format!("/proc/{pid}/exe")).ok()?;
    let name = path.file_name()?.to_str()?;
    let file = EMULATORS.contains(&name).then(|| fs::metadata(&path).ok()).flatten()?;
    Some(format!("exe:{}@{}.{}.{}", path.display(), file.ino(), file.mtime(), file.mtime_nsec()))
}

/// The boot id for a `tty:` surface. Empty for others, and where the system has no boot id.
fn boot_of(surface: &str) -> String {
    if !surface.starts_with("tty:") {
        return String::new();
    }
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

/// Removes the files of devices that are gone or belong to another session, and the oldest beyond [`MAX_KEPT`]. Failures are
/// ignored, since nothing depends on the removal.
fn forget_the_gone(directory: &Path, surface: &str) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    let mut kept: Vec<(SystemTime, PathBuf)> = Vec::new();
    for entry in entries.flatten() {
        let path = entry.path();
        let known =
            fs::read(&path).ok().and_then(|bytes| serde_json::from_slice::<ProbedTerminal>(&bytes).ok());
        let is_there = known.is_some_and(|known| {
            let device = |surface: &str| Some(surface.split_once(':')?.1.rsplit_once('@')?.0.to_owned());
            let same_device = device(&known.surface) == device(surface) && known.surface != surface;
            !same_device && device(&known.surface).is_some_and(|tty| Path::new(&tty).exists())
        });
        match entry.metadata().and_then(|metadata| metadata.modified()) {
            Ok(modified) if is_there => kept.push((modified, path)),
            _ => drop(fs::remove_file(path)),
        }
    }
    kept.sort();
    let too_many = kept.len().saturating_sub(MAX_KEPT - 1);
    for (_, path) in kept.into_iter().take(too_many) {
        drop(fs::remove_file(path));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringer_term::{AppleBell, Channel, Env, Method, NotificationId, choose_method, detect};

    fn answer(surface: &str, term: &str, name: Option<&str>, osc99: bool) -> ProbedTerminal {
        let mut probe = Probe::new(NotificationId::new("q1").unwrap());
        let name = name.map(|name| format!("\x1bP>|{name}\x1b\\")).unwrap_or_default();
        let support = if osc99 { "\x1b]99;i=q1:p=?;a=focus\x1b\\" } else { "" };
        assert!(probe.feed(format!("{name}{support}\x1b[?62;c").as_bytes()));
        ProbedTerminal::new(surface, term, &probe)
    }

    /// Stands for a terminal, because this device always exists.
    const HERE: &str = "tty:/dev/null@7";

    #[test]
    fn what_was_answered_is_known_for_that_terminal_only() {
        let directory = tempfile::tempdir().unwrap();
        let home = Home::new(directory.path().join("home"));
        assert_eq!(ProbedTerminal::read(&home, HERE, "xterm-kitty"), None);
        let known = answer(HERE, "xterm-kitty", Some("kitty(0.26.5)"), false);
        known.write(&home).unwrap();
        assert_eq!(ProbedTerminal::read(&home, HERE, "xterm-kitty"), Some(known.clone()));
        assert_eq!(
            ProbedTerminal::read(&home, HERE, "foot"),
            None,
            "another terminal behind the same device"
        );
        assert_eq!(ProbedTerminal::read(&home, "tty:/dev/null@8", "xterm-kitty"), None, "another session");
        fs::write(file(&home, HERE), "{").unwrap();
        assert_eq!(ProbedTerminal::read(&home, HERE, "xterm-kitty"), None);
        known.write(&home).unwrap();
        assert_eq!(ProbedTerminal::read(&home, HERE, "xterm-kitty"), Some(known), "it was written again");
        let rebooted = ProbedTerminal { boot: "another".to_owned(), ..answer(HERE, "t", None, false) };
        rebooted.write(&home).unwrap();
        assert_eq!(ProbedTerminal::read(&home, HERE, "t"), None);
        let silent = ProbedTerminal { answered: false, ..answer(HERE, "t", None, false) };
        silent.write(&home).unwrap();
        assert!(ProbedTerminal::read(&home, HERE, "t").is_some(), "it is left alone for a while");
        ProbedTerminal { unix_ms: silent.unix_ms - 1_000_000, ..silent }.write(&home).unwrap();
        assert_eq!(ProbedTerminal::read(&home, HERE, "t"), None);
    }

    #[test]
    fn terminals_that_are_gone_are_forgotten() {
        let directory = tempfile::tempdir().unwrap();
        let home = Home::new(directory.path().join("home"));
        let files = || fs::read_dir(super::directory(&home)).unwrap().count();
        for surface in ["tty:/nowhere@1", "tty:/dev/null@1", "tty:/dev/null@2", "tty:/dev/zero@1"] {
            answer(surface, "t", None, false).write(&home).unwrap();
        }
        assert_eq!(files(), 2, "the session that is on each device now");
        for number in 0..MAX_KEPT + 40 {
            let device = directory.path().join(number.to_string());
            fs::write(&device, "").unwrap();
            answer(&format!("tty:{}@1", device.display()), "t", None, false).write(&home).unwrap();
        }
        assert_eq!(files(), MAX_KEPT);
    }

    #[test]
    fn a_new_window_of_a_program_is_known_by_the_answer_of_another() {
        let directory = tempfile::tempdir().unwrap();
        let home = Home::new(directory.path().join("home"));
        // Any program with that name will do.
        let kitty = directory.path().join("kitty");
        test_support::copy_program(Path::new("/bin/sleep"), &kitty);
        let mut running = std::process::Command::new(&kitty).arg("1000").spawn().unwrap();
        let pid = Some(running.id());
        answer(HERE, "xterm-kitty", Some("kitty(0.48.2)"), true).keep(&home, pid).unwrap();
        let find = |term, pid| ProbedTerminal::find(&home, "tty:/dev/zero@9", term, pid);
        assert_eq!(find("xterm-kitty", pid).and_then(|known| known.name).as_deref(), Some("kitty(0.48.2)"));
        assert_eq!(find("xterm-256color", pid), None);
        assert_eq!(find("xterm-kitty", Some(std::process::id())), None, "another program");
        assert_eq!(find("xterm-kitty", None), None);
        // The reply of another terminal inside this program, such as a foot behind SSH, is not stored for the program.
        answer(HERE, "foot", Some("foot(1.13.1)"), false).keep(&home, pid).unwrap();
        assert_eq!(find("foot", pid), None);
        fs::rename(&kitty, directory.path().join("old")).unwrap();
        assert_eq!(find("xterm-kitty", pid), None, "an upgrade took its place");
        running.kill().unwrap();
        running.wait().unwrap();
    }

    #[test]
    fn the_answer_decides_the_way() {
        let method = |term: &str, name, osc99| {
            let detection = detect(&Env::new([("TERM", term)]));
            let known = answer(HERE, term, name, osc99);
            choose_method(Channel::Auto, &known.correct(detection), AppleBell::default()).method
        };
        assert_eq!(method("xterm-kitty", Some("kitty(0.26.5)"), false), Method::Ghostty);
        assert_eq!(method("xterm-kitty", Some("kitty(0.48.2)"), true), Method::Kitty);
        assert_eq!(method("foot", Some("foot(1.13.1)"), false), Method::Ghostty);
        assert_eq!(method("xterm-256color", Some("foot(1.28.0)"), true), Method::Kitty, "as over SSH");
        assert_eq!(method("xterm-256color", None, false), Method::TerminalBell);
        assert_eq!(method("xterm-256color", Some("newterm 1"), true), Method::Kitty, "it said so itself");
    }
}
