use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::audience::Audience;
use super::measure::{Contender, Rounds, interleave, table};
use super::options::Options;
use super::quiet_hub::quiet_hub;
use super::shell::Shell;
use super::{baseline, desktop, idle, redis, wake};
use crate::background::BackgroundProcess;
use crate::binary;
use crate::environment::TestEnvironment;
use crate::failure::Failure;
use crate::parts;
use crate::step_times::StepTimes;

/// The message that all contenders send.
const TEXT: &str =
    "Agent worker-1 completed its goal: the build is green, all 412 tests pass, and the branch is pushed.";

/// Few rounds, because the shell waits a second for a reader each time.
const STALLS: Rounds = Rounds { warm_ups: 0, measured: 5, pause: Duration::from_millis(5) };

/// Measures sending a message and being woken by one in whole processes, as shipped or as `cargo install` builds them,
/// against alternatives.
pub(crate) fn run(options: &Options, times: &mut StepTimes) -> Result<(), Failure> {
    let rivals = redis::PARTS.into_iter().chain(desktop::PARTS);
    if let Err(failure) = parts::ensure_these(&rivals.collect::<Vec<_>>(), options.missing, times) {
        eprintln!("{failure}\ngoing on without them");
    }
    let ringer = binary::ringer(options.profile, times)?;
    let empty = baseline::build("empty", times)?;
    let append = baseline::build("append", times)?;
    let fifo = baseline::build("fifo", times)?;
    let environment = TestEnvironment::new("bench", &ringer)?;
    println!("All on one file system ({}), in turn.\n", file_system(environment.root()));
    times.time("notify", || send(&environment, &empty, &append, options.rounds()))?;
    times.time("stalls", || send_to_the_dead(&environment, &append))?;
    times.time("wake-up", || wake::run(&environment, &fifo, TEXT, options.measured))?;
    times.time("idle", || idle::run(&environment, options.idle))
}

fn send(environment: &TestEnvironment, empty: &Path, append: &Path, rounds: Rounds) -> Result<(), Failure> {
    let mut contenders = vec![];
    let hub_home = environment.path("home-hub");
    let _hub = quiet_hub(environment, &hub_home)?;
    contenders.push(Contender::new("`ringer notify`, a hub runs¹", notify(environment, &hub_home)));
    contenders
        .push(Contender::new("`ringer notify`, alone", notify(environment, &environment.path("home-alone"))));
    let heard = environment.path("home-heard");
    let mut audience =
        Audience::new(environment.ringer_at(&heard, ["listen", "--timeout", "20"]), heard.clone());
    contenders.push(
        Contender::new("`ringer notify`, a listener waits", notify(environment, &heard))
            .after(move || audience.assemble()),
    );
    contenders.extend(shell_contenders(environment)?);
    let _desktop = match desktop::start(environment, TEXT) {
        Ok(mut desktop) => {
            let command = std::mem::replace(&mut desktop.command, Command::new("true"));
            contenders.push(Contender::new("`notify-send`, to dunst that shows nothing²", command));
            Some(desktop)
        }
        Err(failure) => left_out("notify-send", &failure),
    };
    let _server = match redis::start(environment, TEXT) {
        Ok((server, command)) => {
            contenders.push(Contender::new("`redis-cli XADD`, appendfsync always", command));
            Some(server)
        }
        Err(failure) => left_out("redis-cli XADD", &failure),
    };
    contenders.push(Contender::new("empty Rust program²", Command::new(empty)));
    contenders.push(Contender::new("append and fdatasync", append_to(append, &environment.path("appended"))));
    let samples = interleave(contenders, rounds)?;
    println!("{}", table(&format!("send ({} runs each, interleaved)", rounds.measured), &samples));
    println!("¹ It remembers them and shows nothing. ² Not durable.\n");
    Ok(())
}

fn shell_contenders(environment: &TestEnvironment) -> Result<Vec<Contender>, Failure> {
    let (heard, unheard) =
        (Shell::new(environment, "shell-heard")?, Shell::new(environment, "shell-unheard")?);
    let mut audience = Audience::new(heard.listen(), heard.folder());
    Ok(vec![
        Contender::new("bash `notify.sh`, a listener waits²", heard.notify(TEXT))
            .after(move || audience.assemble()),
        Contender::new("bash `notify.sh`, no listener ever²", unheard.notify(TEXT)),
    ])
}

/// Measures sending after a listener was killed: its doorbell file remains and has no reader.
fn send_to_the_dead(environment: &TestEnvironment, append: &Path) -> Result<(), Failure> {
    let home = environment.path("home-dead");
    let mut listen = environment.ringer_at(&home, ["listen"]);
    let listener = BackgroundProcess::spawn(listen.stdout(Stdio::null()).stderr(Stdio::null()))?;
    listener.wait_until_asleep(&home)?;
    // `drop` kills it.
    drop(listener);
    let shell = Shell::new(environment, "shell-dead")?;
    shell.abandon()?;
    let contenders = vec![
        Contender::new("`ringer notify`", notify(environment, &home)),
        Contender::new("bash `notify.sh`", shell.notify(TEXT)),
        Contender::new("append and fdatasync", append_to(append, &environment.path("appended"))),
    ];
    let samples = interleave(contenders, STALLS)?;
    println!(
        "{}",
        table(&format!("send, the listener was killed ({} runs each)", STALLS.measured), &samples)
    );
    Ok(())
}

fn notify(environment: &TestEnvironment, home: &Path) -> Command {
    environment.ringer_at(home, ["notify", "--from", "worker-1", TEXT])
}

fn append_to(append: &Path, file: &Path) -> Command {
    let mut command = Command::new(append);
    command.arg(file).arg(TEXT);
    command
}

fn left_out<T>(name: &str, failure: &Failure) -> Option<T> {
    println!("Left out: {name}, because {failure}.\n");
    None
}

/// Returns the kernel's name of the file system.
fn file_system(path: &Path) -> String {
    let output = Command::new("stat").args(["-f", "-c", "%T"]).arg(path).output();
    output.map_or_else(
        |_| "unknown".to_owned(),
        |output| String::from_utf8_lossy(&output.stdout).trim().to_owned(),
    )
}
