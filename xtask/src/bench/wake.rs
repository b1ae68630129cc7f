use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::measure::{Samples, order, table};
use super::shell::{Shell, make_fifo};
use crate::background::BackgroundProcess;
use crate::environment::TestEnvironment;
use crate::failure::Failure;

const WARM_UPS: usize = 5;

/// A process that waits and prints a line when woken, and one that wakes it.
struct Pair {
    name: &'static str,
    wait: Command,
    wake: Command,
    /// The folder with the FIFO that the waiting process reads.
    folder: PathBuf,
}

impl Pair {
    fn new(name: &'static str, mut wait: Command, mut wake: Command, folder: PathBuf) -> Self {
        wait.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        wake.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        wake.env_remove("LD_LIBRARY_PATH");
        Self { name, wait, wake, folder }
    }

    /// Measures from before the start of the waker to the waiter's line on its pipe.
    fn run(&mut self) -> Result<Duration, Failure> {
        let mut waiter = BackgroundProcess::spawn(&mut self.wait)?;
        let stdout = waiter.child().stdout.take();
        let mut stdout = BufReader::new(stdout.ok_or_else(|| Failure::complaints("no pipe".into()))?);
        waiter.wait_until_asleep(&self.folder)?;
        let mut line = String::new();
        let start = Instant::now();
        let waker = BackgroundProcess::spawn(&mut self.wake)?;
        let read = stdout.read_line(&mut line);
        let took = start.elapsed();
        waker.finish();
        waiter.finish();
        match read {
            Ok(length) if length > 0 => Ok(took),
            Ok(_) => Err(Failure::complaints(format!("{}: woke up and printed nothing", self.name))),
            Err(error) => Err(Failure::io(self.name, &error)),
        }
    }
}

/// Measures from sending a message to its output by a listener, against a byte through a FIFO between two processes.
pub(super) fn run(
    environment: &TestEnvironment,
    fifo: &Path,
    text: &str,
    rounds: usize,
) -> Result<(), Failure> {
    let shell = Shell::new(environment, "shell-wake")?;
    let bell = environment.path("baseline.fifo");
    make_fifo(&bell)?;
    let of_fifo = |verb: &str| {
        let mut command = Command::new(fifo);
        command.arg(verb).arg(&bell);
        command
    };
    let home = environment.path("home-wake");
    let listen = environment.ringer_at(&home, ["listen", "--timeout", "20"]);
    let notify = environment.ringer_at(&home, ["notify", "--from", "worker-1", text]);
    let mut pairs = [
        Pair::new("`ringer notify` → `ringer listen`", listen, notify, home),
        Pair::new("bash `notify.sh` → `listen.sh`", shell.listen(), shell.notify(text), shell.folder()),
        Pair::new("FIFO write → read", of_fifo("wait"), of_fifo("ring"), environment.root().to_owned()),
    ];
    let mut durations: Vec<Vec<Duration>> = pairs.iter().map(|_| Vec::with_capacity(rounds)).collect();
    for round in 0..WARM_UPS + rounds {
        for place in order(round, pairs.len()) {
            let took = pairs[place].run()?;
            if round >= WARM_UPS {
                durations[place].push(took);
            }
        }
    }
    let samples: Vec<Samples> = pairs
        .iter()
        .zip(durations)
        .map(|(pair, durations)| Samples::new(pair.name.to_owned(), durations))
        .collect();
    println!("{}", table(&format!("wake-up: start of the sender → line printed ({rounds} times)"), &samples));
    if let [ringer, .., baseline] = &samples[..] {
        let over = |percent| {
            (ringer.percentile(percent).as_secs_f64() - baseline.percentile(percent).as_secs_f64()) * 1e3
        };
        println!("Ringer over the FIFO: {:.3} ms p50, {:.3} ms p99.\n", over(50), over(99));
    }
    Ok(())
}
