use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use super::Options;
use super::measure::{Samples, order, table};
use crate::binary::{self, Profile};
use crate::environment::TestEnvironment;
use crate::failure::Failure;
use crate::step_times::StepTimes;

const WARM_UPS: usize = 10;
const ROUNDS: usize = 300;
/// The timeout for a line. The first one waits for the connection.
const COMES_WITHIN: Duration = Duration::from_secs(30);

/// Measures from sending a message on one machine to showing it on another over a real ssh, against a line of a file that
/// `tail -f` follows over the same ssh. Both machines are this one, so network latency is not included.
pub(crate) fn run(_: &Options, times: &mut StepTimes) -> Result<(), Failure> {
    let ringer = binary::ringer(Profile::Release, times)?;
    let machines = Machines::new(TestEnvironment::in_memory("bench-relay", &ringer)?)?;
    times.time("relay", || measure(&machines))
}

fn measure(machines: &Machines) -> Result<(), Failure> {
    let file = machines.environment.path("lines");
    fs::write(&file, "").map_err(|error| Failure::io("a file", &error))?;
    let mut tail = Follower::start(machines.ssh().args(["tail", "-n", "+1", "-f"]).arg(&file))?;
    machines.start_hub()?;
    let mut shown = Follower::start(machines.near(["watch"]).stdout(Stdio::piped()))?;
    let mut local = Follower::start(machines.far(["watch"]).stdout(Stdio::piped()))?;
    let names = [
        "`ringer notify` there → `ringer watch` here",
        "`ringer notify` → `ringer watch`, one machine",
        "`echo >> FILE` there → `ssh … tail -f` here",
    ];
    let mut taken = [const { Vec::new() }; 3];
    for round in 0..WARM_UPS + ROUNDS {
        for place in order(round, names.len()) {
            let text = format!("message-{round}-{place}.");
            let (mut send, follower) = match place {
                0 => (machines.far(["notify", &text]), &mut shown),
                1 => (machines.far(["notify", &text]), &mut local),
                _ => {
                    let mut echo = Command::new("sh");
                    echo.args(["-c", "echo \"$0\" >> \"$1\"", &text]).arg(&file);
                    (echo, &mut tail)
                }
            };
            let start = Instant::now();
            let mut sender = send.spawn().map_err(|error| Failure::io("a sender", &error))?;
            follower.until(&text)?;
            let took = start.elapsed();
            sender.wait().map_err(|error| Failure::io("a sender", &error))?;
            if round >= WARM_UPS {
                taken[place].push(took);
            }
        }
    }
    let samples: Vec<Samples> =
        names.into_iter().zip(taken).map(|(name, taken)| Samples::new(name.to_owned(), taken)).collect();
    println!(
        "{}",
        table(&format!("relay: start of the sender → line printed ({ROUNDS} each, in turn)"), &samples)
    );
    Ok(())
}

/// Two homes, and an ssh between them.
struct Machines {
    environment: TestEnvironment,
}

impl Machines {
    fn new(environment: TestEnvironment) -> Result<Self, Failure> {
        let machines = Self { environment };
        machines.make_ssh().map_err(|error| Failure::io("the settings of ssh", &error))?;
        Ok(machines)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.environment.path(name)
    }

    fn make_ssh(&self) -> std::io::Result<()> {
        for name in ["key", "host"] {
            let mut keygen = Command::new("ssh-keygen");
            keygen.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(self.path(name)).status()?;
        }
        fs::copy(self.path("key.pub"), self.path("authorized_keys"))?;
        fs::write(self.path("known_hosts"), format!("box {}", fs::read_to_string(self.path("host.pub"))?))?;
        // sshd needs the folder when it runs as root. The system service would create it.
        let _ = fs::create_dir("/run/sshd");
        let root = self.environment.root().display();
        fs::write(
            self.path("sshd_config"),
            format!(
                "HostKey {root}/host\nAuthorizedKeysFile {root}/authorized_keys\nUsePAM no\nStrictModes no\n\
                 PidFile none\nPermitRootLogin prohibit-password\nSetEnv RINGER_HOME={root}/far RINGER_HUB=off\n"
            ),
        )?;
        fs::write(
            self.path("ssh_config"),
            format!(
                "Host box\n  HostKeyAlias box\n  IdentityFile {root}/key\n  IdentitiesOnly yes\n  \
                 UserKnownHostsFile {root}/known_hosts\n  ProxyCommand /usr/sbin/sshd -i -f {root}/sshd_config\n"
            ),
        )?;
        fs::create_dir(self.path("bin"))?;
        let mut script = fs::File::create(self.path("bin/ssh"))?;
        writeln!(script, "#!/bin/sh\nexec /usr/bin/ssh -F {root}/ssh_config \"$@\"")?;
        script.set_permissions(fs::Permissions::from_mode(0o755))?;
        let program = self.environment.ringer([]).get_program().to_string_lossy().into_owned();
        let quiet = "[answers]\nscripts = true\n[notify]\nrate_limit = \"off\"\npopup = \"off\"\n";
        fs::write(self.path("far.toml"), quiet)?;
        fs::write(self.path("near.toml"), format!("{quiet}[[relay]]\nssh = \"box\"\nprogram = {program:?}\n"))
    }

    fn ssh(&self) -> Command {
        let mut ssh = Command::new(self.path("bin/ssh"));
        ssh.arg("box").stdin(Stdio::null()).stdout(Stdio::piped());
        ssh
    }

    fn near<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Command {
        let mut command = self.environment.ringer_at(&self.environment.home(), arguments);
        let path = format!("{}:{}", self.path("bin").display(), std::env::var("PATH").unwrap_or_default());
        command.env_remove("RINGER_HUB").env("PATH", path).env("RINGER_CONFIG", self.path("near.toml"));
        command
    }

    fn far<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Command {
        let mut command = self.environment.ringer_at(&self.path("far"), arguments);
        command.env_remove("RINGER_HUB").env("RINGER_CONFIG", self.path("far.toml"));
        command
    }

    /// Starts both hubs, and waits until the machines are connected.
    fn start_hub(&self) -> Result<(), Failure> {
        let failed = |error: std::io::Error| Failure::io("ringer hub start", &error);
        self.far(["hub", "start"]).stdout(Stdio::null()).status().map_err(failed)?;
        self.near(["hub", "start"]).stdout(Stdio::null()).status().map_err(failed)?;
        let until = Instant::now() + COMES_WITHIN;
        loop {
            let status = self.near(["relay", "status"]).output().map_err(failed)?;
            let status = String::from_utf8_lossy(&status.stdout).into_owned();
            if status.contains("connected since") && !status.contains("not connected") {
                return Ok(());
            }
            if Instant::now() >= until {
                return Err(Failure::complaints(status));
            }
        }
    }
}

impl Drop for Machines {
    fn drop(&mut self) {
        for mut command in [self.near(["hub", "stop"]), self.far(["hub", "stop"])] {
            let _ = command.stdout(Stdio::null()).status();
        }
    }
}

/// A program that prints lines as they come.
struct Follower {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Follower {
    fn start(command: &mut Command) -> Result<Self, Failure> {
        let mut child = command.spawn().map_err(|error| Failure::io("a follower", &error))?;
        let lines = child.stdout.take().ok_or_else(|| Failure::complaints("no pipe".to_owned()))?;
        Ok(Self { child, lines: BufReader::new(lines) })
    }

    /// Reads until a line has this text.
    fn until(&mut self, text: &str) -> Result<(), Failure> {
        let mut line = String::new();
        while !line.contains(text) {
            line.clear();
            if self.lines.read_line(&mut line).map_err(|error| Failure::io("a follower", &error))? == 0 {
                return Err(Failure::complaints(format!("a follower ended before {text}")));
            }
        }
        Ok(())
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
