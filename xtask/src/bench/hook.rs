use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::at_once::{self, Crowd};
use super::baseline;
use super::measure::{Contender, Rounds, interleave, table};
use super::options::Options;
use super::quiet_hub::quiet_hub;
use crate::binary::{self, Profile};
use crate::codex::turn_ended;
use crate::environment::{TestEnvironment, failed};
use crate::failure::Failure;
use crate::step_times::StepTimes;

const ROUNDS: Rounds = Rounds { warm_ups: 20, measured: 400, pause: Duration::ZERO };

/// Turns that end at the same moment, and the number of rounds.
const AT_ONCE: u64 = 100;
const ROUNDS_AT_ONCE: u64 = 20;

/// Recorded inputs of Claude Code's hooks.
const INPUTS: &str = "crates/agents/tests/fixtures/hooks";

/// The cost of each tool call for an agent, and of each refresh for a status bar, against a program that does nothing.
///
/// The agent is already working and no message waits for it, as in nearly all calls, so nothing is written.
pub(crate) fn run(_: &Options, times: &mut StepTimes) -> Result<(), Failure> {
    let ringer = binary::ringer(Profile::Dist, times)?;
    let empty = baseline::build("empty", times)?;
    let environment = TestEnvironment::new("bench-hook", &ringer)?;
    let prompt = recorded(&environment, "UserPromptSubmit", "claude_UserPromptSubmit")?;
    let tool = recorded(&environment, "PostToolUse", "claude_PostToolUse_Bash")?;
    times.time("hook", || {
        begin_turn(&environment, &prompt)?;
        let contenders = vec![
            Contender::new("`ringer hook claude PostToolUse`", hook(&environment, "PostToolUse"))
                .reading(&tool),
            Contender::new("`ringer statusline tmux`", environment.ringer(["statusline", "tmux"])),
            Contender::new("empty Rust program", Command::new(&empty)).reading(&tool),
        ];
        let samples = interleave(contenders, ROUNDS)?;
        println!("{}", table(&format!("hook ({} runs each, interleaved)", ROUNDS.measured), &samples));
        println!("Bars: hook p50 at most 2.5 ×, its p99 below 10 ms; statusline below 10 ms.\n");
        Ok(())
    })?;
    let append = baseline::build("append", times)?;
    times.time("hooks at once", || {
        println!("Without a hub:\n");
        together(&environment, &environment.home(), &empty, &append)?;
        println!("With a hub, as where Ringer is used:\n");
        let home = environment.path("home-hub");
        let _hub = quiet_hub(&environment, &home)?;
        together(&environment, &home, &empty, &append)
    })
}

/// Many turns that end at the same moment: compares the agent's wait with a program, started in the same way, that only
/// appends and syncs as much.
fn together(environment: &TestEnvironment, home: &Path, empty: &Path, append: &Path) -> Result<(), Failure> {
    let file = environment.path("appended");
    let crowds = [
        Crowd {
            name: "`ringer hook codex notify`",
            command: Box::new(|number| {
                let event = turn_ended(number, 1, "done");
                environment.ringer_at(home, ["hook", "codex", "notify", &event])
            }),
        },
        Crowd {
            name: "append and fdatasync",
            command: Box::new(|number| {
                let mut command = Command::new(append);
                command.arg(&file).arg(turn_ended(number, 1, "done"));
                command
            }),
        },
        Crowd { name: "empty Rust program", command: Box::new(|_| Command::new(empty)) },
    ];
    let samples = at_once::run(&crowds, AT_ONCE, ROUNDS_AT_ONCE)?;
    println!("{}", table(&format!("{AT_ONCE} at once ({ROUNDS_AT_ONCE} times each, in turn)"), &samples));
    let [hook, append, _] = &samples[..] else { return Ok(()) };
    let beyond = hook.percentile(99).saturating_sub(append.percentile(99));
    println!("p99 beyond append and fdatasync: {} ms; the bar: at most 100 ms.\n", beyond.as_millis());
    Ok(())
}

fn hook(environment: &TestEnvironment, event: &str) -> Command {
    environment.ringer(["hook", "claude", event])
}

/// Writes a recorded input, with the repository of the environment in it, and returns its path.
fn recorded(environment: &TestEnvironment, event: &str, name: &str) -> Result<std::path::PathBuf, Failure> {
    let from = Path::new(INPUTS).join(format!("{name}.json"));
    let text = fs::read_to_string(&from).map_err(|error| failed(&from, &error))?;
    let here = environment.repository().display().to_string();
    let to = environment.path(event);
    fs::write(&to, text.replace(concat!("/home", "/user/project"), &here))
        .map_err(|error| failed(&to, &error))?;
    Ok(to)
}

/// Registers the agent and starts its turn.
fn begin_turn(environment: &TestEnvironment, prompt: &Path) -> Result<(), Failure> {
    let input = File::open(prompt).map_err(|error| failed(prompt, &error))?;
    let status = hook(environment, "UserPromptSubmit")
        .stdin(input)
        .stdout(Stdio::null())
        .status()
        .map_err(|error| Failure::io("ringer hook", &error))?;
    let log = environment.home().join("hooks.log");
    // A hook always exits with 0; failures are in its log.
    if status.success() && environment.home().join("ringer.db").exists() && !log.exists() {
        return Ok(());
    }
    let why = fs::read_to_string(&log).unwrap_or_default();
    Err(Failure::complaints(format!("the hook did not take its input: {status} {why}")))
}
