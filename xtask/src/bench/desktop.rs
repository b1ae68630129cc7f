//! `notify-send` with a notification daemon on a private bus and screen, so that the real desktop shows no popups.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::background::{BackgroundProcess, START_TIMEOUT, until};
use crate::bus::Bus;
use crate::environment::{TestEnvironment, failed};
use crate::failure::Failure;
use crate::parts::{self, Part};

const PURPOSE: &str = "a desktop to notify";

pub(super) const PARTS: [Part; 4] = [
    Part::new("notify-send", "libnotify-bin", PURPOSE),
    Part::new("dbus-daemon", "dbus", PURPOSE),
    Part::new("dunst", "dunst", PURPOSE),
    Part::new("Xvfb", "xvfb", PURPOSE),
];

/// dunst shows and keeps no notifications: drawing would slow down the next measurement.
const DUNST: &str = "[global]\n[everything]\nsummary = *\nskip_display = true\nhistory_ignore = true\n";

/// The daemon, screen and bus, in the order in which they must end.
pub(super) struct Desktop {
    pub(super) command: Command,
    _daemon: BackgroundProcess,
    _screen: BackgroundProcess,
    _bus: Bus,
}

pub(super) fn start(environment: &TestEnvironment, text: &str) -> Result<Desktop, Failure> {
    if let Some(part) = PARTS.iter().find(|part| !parts::is_here(part.program())) {
        return Err(Failure::unavailable(format!("{} is not here", part.program())));
    }
    let folder = environment.path("desktop");
    fs::create_dir(&folder).map_err(|error| failed(&folder, &error))?;
    let log = environment.path("desktop.log");
    let bus = Bus::start(&folder, &log)?;
    let (screen, display) = start_screen()?;
    let settings = write(folder.join("dunstrc"), DUNST)?;
    let mut daemon = Command::new("dunst");
    daemon.arg("-conf").arg(settings).env("DISPLAY", display).env("DBUS_SESSION_BUS_ADDRESS", bus.address());
    daemon.env("HOME", &folder).env_remove("WAYLAND_DISPLAY");
    let daemon = BackgroundProcess::start(&mut daemon, &log)?;
    let mut command = Command::new("notify-send");
    command
        .arg("--app-name=worker-1")
        .args(["worker-1", text])
        .env("DBUS_SESSION_BUS_ADDRESS", bus.address());
    let mut greet = || {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    if !until(START_TIMEOUT, &mut greet) {
        let log = String::from_utf8_lossy(&fs::read(&log).unwrap_or_default()).into_owned();
        return Err(Failure::unavailable(format!("no notification daemon came up: {}", log.trim())));
    }
    Ok(Desktop { command, _daemon: daemon, _screen: screen, _bus: bus })
}

/// Starts Xvfb, which chooses a free display number and prints it.
fn start_screen() -> Result<(BackgroundProcess, String), Failure> {
    let mut screen = Command::new("Xvfb");
    screen.args(["-displayfd", "1", "-screen", "0", "640x480x24", "-nolisten", "tcp"]);
    let mut screen =
        BackgroundProcess::spawn(screen.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()))?;
    let mut number = String::new();
    if let Some(stdout) = screen.child().stdout.take() {
        // If Xvfb cannot start, it exits and there is no line.
        let _ = BufReader::new(stdout).read_line(&mut number);
    }
    if number.trim().is_empty() {
        return Err(Failure::unavailable("the screen did not come up".into()));
    }
    Ok((screen, format!(":{}", number.trim())))
}

fn write(path: PathBuf, text: &str) -> Result<PathBuf, Failure> {
    fs::write(&path, text).map_err(|error| failed(&path, &error))?;
    Ok(path)
}
