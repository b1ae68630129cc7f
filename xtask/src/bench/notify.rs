use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::audience::Audience;
use super::measure::{Contender, Rounds, interleave, table};
use super::options::Options;
use super::shell::Shell;
use super::{baseline, desktop, idle, redis, wake};
use crate::binary::{self, Profile};
use crate::failure::Failure;
use crate::parts;
use crate::scene::{Scene, failed};
use crate::service::{PATIENCE, Service, until};
use crate::timetable::Timetable;

/// What everybody sends.
const TEXT: &str =
    "Agent worker-1 completed its goal: the build is green, all 412 tests pass, and the branch is pushed.";

/// A second each for the shell, which waits that long for a reader.
const STALLS: Rounds = Rounds { warm_ups: 0, measured: 5, pause: Duration::from_millis(5) };

/// Sending a message and being woken by one, whole processes, as shipped, against what else one could use.
pub(crate) fn run(options: &Options, times: &mut Timetable) -> Result<(), Failure> {
    let rivals = redis::PARTS.into_iter().chain(desktop::PARTS);
    if let Err(failure) = parts::ensure_these(&rivals.collect::<Vec<_>>(), options.missing, times) {
        eprintln!("{failure}\ngoing on without them");
    }
    let ringer = binary::ringer(Profile::Dist, times)?;
    let empty = baseline::build("empty", times)?;
    let append = baseline::build("append", times)?;
    let fifo = baseline::build("fifo", times)?;
    let scene = Scene::new("bench", &ringer)?;
    println!("All on one file system ({}), in turn.\n", file_system(scene.root()));
    times.time("notify", || send(&scene, &empty, &append, options.rounds()))?;
    times.time("stalls", || send_to_the_dead(&scene, &append))?;
    times.time("wake-up", || wake::run(&scene, &fifo, TEXT, options.measured))?;
    times.time("idle", || idle::run(&scene, options.idle))
}

fn send(scene: &Scene, empty: &Path, append: &Path, rounds: Rounds) -> Result<(), Failure> {
    let mut contenders = vec![];
    let hub_home = scene.path("home-hub");
    let _hub = hub(scene, &hub_home)?;
    contenders.push(Contender::new("`ringer notify`, a hub runs¹", notify(scene, &hub_home)));
    contenders.push(Contender::new("`ringer notify`, alone", notify(scene, &scene.path("home-alone"))));
    let heard = scene.path("home-heard");
    let mut audience = Audience::new(scene.ringer_at(&heard, ["listen", "--timeout", "20"]), heard.clone());
    contenders.push(
        Contender::new("`ringer notify`, a listener waits", notify(scene, &heard))
            .after(move || audience.assemble()),
    );
    contenders.extend(shell_contenders(scene)?);
    let _desktop = match desktop::start(scene, TEXT) {
        Ok(mut desktop) => {
            let command = std::mem::replace(&mut desktop.command, Command::new("true"));
            contenders.push(Contender::new("`notify-send`, to dunst that shows nothing²", command));
            Some(desktop)
        }
        Err(failure) => left_out("notify-send", &failure),
    };
    let _server = match redis::start(scene, TEXT) {
        Ok((server, command)) => {
            contenders.push(Contender::new("`redis-cli XADD`, appendfsync always", command));
            Some(server)
        }
        Err(failure) => left_out("redis-cli XADD", &failure),
    };
    contenders.push(Contender::new("empty Rust program²", Command::new(empty)));
    contenders.push(Contender::new("append and fdatasync", append_to(append, &scene.path("appended"))));
    let samples = interleave(contenders, rounds)?;
    println!("{}", table(&format!("send ({} runs each, interleaved)", rounds.measured), &samples));
    println!("¹ It remembers them and shows nothing. ² Not durable.\n");
    Ok(())
}

fn shell_contenders(scene: &Scene) -> Result<Vec<Contender>, Failure> {
    let (heard, unheard) = (Shell::new(scene, "shell-heard")?, Shell::new(scene, "shell-unheard")?);
    let mut audience = Audience::new(heard.listen(), heard.folder());
    Ok(vec![
        Contender::new("bash `notify.sh`, a listener waits²", heard.notify(TEXT))
            .after(move || audience.assemble()),
        Contender::new("bash `notify.sh`, nobody ever listened²", unheard.notify(TEXT)),
    ])
}

/// After a listener was killed: its doorbell hangs there, and nobody answers.
fn send_to_the_dead(scene: &Scene, append: &Path) -> Result<(), Failure> {
    let home = scene.path("home-dead");
    let mut listen = scene.ringer_at(&home, ["listen"]);
    let listener = Service::spawn(listen.stdout(Stdio::null()).stderr(Stdio::null()))?;
    listener.settle(&home)?;
    // Dropping it kills it.
    drop(listener);
    let shell = Shell::new(scene, "shell-dead")?;
    shell.abandon()?;
    let contenders = vec![
        Contender::new("`ringer notify`", notify(scene, &home)),
        Contender::new("bash `notify.sh`", shell.notify(TEXT)),
        Contender::new("append and fdatasync", append_to(append, &scene.path("appended"))),
    ];
    let samples = interleave(contenders, STALLS)?;
    println!(
        "{}",
        table(&format!("send, the listener was killed ({} runs each)", STALLS.measured), &samples)
    );
    Ok(())
}

/// A real hub, with nothing to show on.
fn hub(scene: &Scene, home: &Path) -> Result<Service, Failure> {
    let settings = scene.path("config.toml");
    fs::write(&settings, "[notify]\npopup = \"off\"\n").map_err(|error| failed(&settings, &error))?;
    let mut command = scene.ringer_at(home, ["hub", "start", "--foreground"]);
    command.env("RINGER_CONFIG", &settings).env("XDG_RUNTIME_DIR", scene.root());
    let hub = Service::start(&mut command, &scene.path("hub.log"))?;
    // It says where it is once it takes messages.
    if until(PATIENCE, || home.join("hub.json").exists()) {
        return Ok(hub);
    }
    Err(Failure::complaints("the hub did not come up".to_owned()))
}

fn notify(scene: &Scene, home: &Path) -> Command {
    scene.ringer_at(home, ["notify", "--from", "worker-1", TEXT])
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

/// As the kernel names it.
fn file_system(path: &Path) -> String {
    let output = Command::new("stat").args(["-f", "-c", "%T"]).arg(path).output();
    output.map_or_else(
        |_| "unknown".to_owned(),
        |output| String::from_utf8_lossy(&output.stdout).trim().to_owned(),
    )
}
