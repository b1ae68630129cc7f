//! `cargo xtask picture`: creates the README's picture from a real run with real hooks, a real hub and the inbox in tmux.

mod svg;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::binary::{Profile, ringer};
use crate::environment::TestEnvironment;
use crate::failure::Failure;
use crate::step_times::StepTimes;

const PICTURE: &str = "docs/images/inbox.svg";
const SIZE: (usize, usize) = (100, 22);
const DEADLINE: Duration = Duration::from_secs(20);

/// The agents of the picture: session, repository, branch and events.
const AGENTS: [(&str, &str, &str, &[Event]); 5] = [
    ("3333cccc", "web", "login", &[Event::Prompt]),
    ("4444dddd", "infra", "main", &[Event::Prompt]),
    ("5555eeee", "docs", "main", &[Event::Prompt, Event::Stop]),
    ("6666ffff", "scratch", "main", &[]),
    ("1111aaaa", "api", "auth", &[Event::Prompt, Event::Permission]),
];

#[derive(Clone, Copy)]
enum Event {
    Prompt,
    Stop,
    Permission,
}

pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    if let Some(argument) = arguments.first() {
        return Err(Failure::usage(format!("picture takes no argument: {argument}")));
    }
    let mut times = StepTimes::default();
    let ringer = ringer(Profile::Dev, &mut times)?;
    let environment = TestEnvironment::new("picture", &ringer)?;
    let mut stage = Stage { environment, ringer, processes: Vec::new() };
    stage.play()?;
    let screen = stage.screen()?;
    let picture = svg::of_screen(&screen, SIZE.0);
    let folder = Path::new(PICTURE).parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)
        .and_then(|()| fs::write(PICTURE, picture))
        .map_err(|error| Failure::io(PICTURE, &error))?;
    println!("{PICTURE}");
    Ok(())
}

/// The environment of the run. Its processes end on drop.
struct Stage {
    environment: TestEnvironment,
    ringer: PathBuf,
    processes: Vec<Child>,
}

impl Stage {
    fn play(&mut self) -> Result<(), Failure> {
        for (session, repository, branch, events) in AGENTS {
            let folder = self.environment.root().join(repository);
            let git = folder.join(".git");
            fs::create_dir_all(git.join("objects"))
                .and_then(|()| fs::create_dir_all(git.join("refs")))
                .and_then(|()| fs::write(git.join("HEAD"), format!("ref: refs/heads/{branch}\n")))
                .map_err(|error| Failure::io("a repository", &error))?;
            self.hook(session, &folder, "SessionStart", ",\"source\":\"startup\"")?;
            for event in events {
                let (name, more) = match event {
                    Event::Prompt => ("UserPromptSubmit", ",\"prompt\":\"go on\""),
                    Event::Stop => ("Stop", ",\"last_assistant_message\":\"All 214 tests pass.\""),
                    Event::Permission => (
                        "PermissionRequest",
                        ",\"tool_name\":\"Bash\",\"tool_input\":{\"command\":\"rm -rf build && make deploy\"}",
                    ),
                };
                self.hook(session, &folder, name, more)?;
            }
        }
        let ask = ["ask", "--from", "proj", "--option", "Postgres", "--option", "SQLite", "Which database?"];
        self.call(&ask)?;
        self.call(&["notify", "--from", "ci", "--kind", "error", "main is red: 3 tests fail"])
    }

    /// Returns a `ringer` command that may use a hub.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.environment.ringer(arguments.iter().copied());
        command.env_remove("RINGER_HUB");
        command
    }

    fn call(&self, arguments: &[&str]) -> Result<(), Failure> {
        let status = self.command(arguments).stdout(Stdio::null()).status();
        status.map(drop).map_err(|error| Failure::io("ringer", &error))
    }

    /// Runs a hook of an agent. A hook that waits for the answer to a dialog stays in the background.
    fn hook(&mut self, session: &str, folder: &Path, event: &str, more: &str) -> Result<(), Failure> {
        let input = self.environment.root().join("input.json");
        let text = format!(
            "{{\"session_id\":\"{session}-0000-4000-8000-000000000000\",\"cwd\":{:?},\"hook_event_name\":\"{event}\"{more}}}",
            folder.display().to_string()
        );
        let failed = |error: std::io::Error| Failure::io("a hook", &error);
        fs::write(&input, text).map_err(failed)?;
        let mut command = self.command(&["hook", "claude", event]);
        command.current_dir(folder).stdin(fs::File::open(&input).map_err(failed)?).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(failed)?;
        if event == "PermissionRequest" {
            self.processes.push(child);
        } else {
            child.wait().map_err(failed)?;
        }
        Ok(())
    }

    fn tmux(&self, arguments: &[&str]) -> Result<String, Failure> {
        let mut tmux = Command::new("tmux");
        tmux.args(["-u", "-L", "picture", "-f", "/dev/null"]).args(arguments);
        let variables = self.command(&[]);
        tmux.envs(variables.get_envs().filter_map(|(name, value)| Some((name, value?))));
        tmux.env("TMUX_TMPDIR", self.environment.root())
            .env("COLORTERM", "")
            .env_remove("TMUX")
            .env_remove("NO_COLOR");
        let output = tmux.output().map_err(|error| Failure::io("tmux", &error))?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Waits until the screen is complete and returns it.
    fn screen(&self) -> Result<String, Failure> {
        let (columns, lines) = (SIZE.0.to_string(), SIZE.1.to_string());
        let program = self.ringer.display().to_string();
        self.tmux(&["new-session", "-d", "-x", &columns, "-y", &lines, &program])?;
        let deadline = Instant::now() + DEADLINE;
        loop {
            let screen = self.tmux(&["capture-pane", "-e", "-p"])?;
            if ["3 need you", "make deploy", "Which database?", "All 214"]
                .iter()
                .all(|words| screen.contains(words))
            {
                return Ok(screen);
            }
            if Instant::now() >= deadline {
                return Err(Failure::unavailable(format!("the screen is not what it should be:\n{screen}")));
            }
            thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // Some processes may have ended already.
        let _ = self.tmux(&["kill-server"]);
        for process in &mut self.processes {
            let _ = process.kill();
            let _ = process.wait();
        }
        let _ = self.call(&["hub", "stop"]);
    }
}
