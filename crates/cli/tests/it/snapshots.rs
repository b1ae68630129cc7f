//! Snapshots of what people read: help, errors and reports. No hub runs here; `hub/snapshots.rs` has those of one that does.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use crate::home::TestEnvironment;
use crate::pty::Pane;
use crate::ringer::json;
use crate::setup::UserHome;
use crate::snapshot::Transcript;

/// Runs `ringer` with these words, separated by spaces.
fn run(transcript: &mut Transcript, environment: &TestEnvironment, line: &str) {
    let words: Vec<&str> = line.split_whitespace().collect();
    let mut command = environment.ringer(&words);
    if line == "config check" {
        command.env_remove("RINGER_CONFIG");
    }
    transcript.run(&format!("ringer {line}"), bare(environment, &mut command));
}

/// The commands of a manual, as words: `hub status`.
fn commands(environment: &TestEnvironment) -> Vec<String> {
    let pages = environment.path().join("man");
    environment.run(&["man", pages.to_str().expect("UTF-8")]);
    let pages = fs::read_dir(pages).expect("pages").map(|page| page.expect("an entry").file_name());
    let names = pages.map(|page| page.into_string().expect("UTF-8"));
    let mut commands: Vec<String> = names
        .filter_map(|name| Some(command_of(name.strip_prefix("ringer-")?.strip_suffix(".1")?)))
        .collect();
    commands.sort();
    commands
}

/// A command by the name of its page, where its words are joined by hyphens.
fn command_of(page: &str) -> String {
    page.replace('-', " ")
}

#[test]
fn help() {
    let environment = TestEnvironment::new();
    let mut transcript = Transcript::new(environment.path());
    run(&mut transcript, &environment, "--help");
    run(&mut transcript, &environment, "help --all");
    transcript.check("help");
    let commands = commands(&environment);
    assert!(commands.len() > 20, "{commands:?}");
    let files = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/snapshots");
    for file in fs::read_dir(files).expect("the snapshots") {
        let name = file.expect("an entry").file_name().into_string().expect("UTF-8");
        let command = name.strip_prefix("help-").and_then(|name| name.strip_suffix(".snap"));
        let is_known = command.is_none_or(|command| commands.contains(&command_of(command)));
        assert!(is_known, "{name} is of a command that there is no more: delete it");
    }
    for command in commands {
        let mut transcript = Transcript::new(environment.path());
        run(&mut transcript, &environment, &format!("{command} --help"));
        transcript.check(&format!("help-{}", command.replace(' ', "-")));
    }
}

#[test]
fn wrong_command_lines() {
    let environment = TestEnvironment::new();
    let mut transcript = Transcript::new(environment.path());
    for line in [
        "bogus",
        "lst",
        "--jsno",
        "notify",
        "notify --kind bogus hello",
        "notify --ttl soon hello",
        "ask --wait",
        "read",
        "clear",
        "jump --bogus",
        "why",
        "term",
        "lead maybe",
        "log --since foo",
        "listen --timeout soon",
        "setup foo",
        "progress 101",
        "open --detached --name=",
    ] {
        run(&mut transcript, &environment, line);
    }
    transcript.check("errors-usage");
}

#[test]
fn errors_of_commands() {
    let environment = TestEnvironment::new();
    let config = environment.path().join("config.toml");
    fs::write(&config, "[notify]\nrign = true\nquiet_hours = \"22:00-07:00\"\n").expect("a file");
    let mut transcript = Transcript::new(environment.path());
    for line in [
        "read 0000",
        "why 01997a3e-0a1b-7c2d-8e3f-0123456789ab",
        "why --agent claude-1",
        "acknowledge 0000 yes",
        "jump",
        "list --here",
        "toast hello",
        "trust",
        "nuke",
        "setup copilot",
        "term notify hello",
        "hub status",
    ] {
        run(&mut transcript, &environment, line);
    }
    for line in ["config check", "config show", "trust"] {
        let words: Vec<&str> = line.split_whitespace().collect();
        let mut command = environment.ringer(&words);
        bare(&environment, &mut command).env("RINGER_CONFIG", &config);
        transcript.run(&format!("ringer {line}   # the config file has errors"), &mut command);
    }
    let mut command = environment.ringer(&["notify", "hello"]);
    transcript.run("RINGER_HOME=/proc/x ringer notify hello", command.env("RINGER_HOME", "/proc/x"));
    transcript.check("errors");
}

/// A machine on which no program is installed but the one that starts the binary.
fn bare<'a>(environment: &TestEnvironment, command: &'a mut Command) -> &'a mut Command {
    let programs = environment.path().join("bin");
    fs::create_dir_all(&programs).expect("a directory");
    let path = std::env::var_os("PATH").expect("a search path");
    let setsid = std::env::split_paths(&path).map(|folder| folder.join("setsid")).find(|file| file.exists());
    let own = programs.join("setsid");
    if !own.exists() {
        symlink(setsid.expect("setsid is installed"), &own).expect("a link");
    }
    command.env("PATH", &programs).env("HOME", environment.path().join("person"))
}

#[test]
fn reports() {
    let environment = TestEnvironment::new();
    let mut transcript = Transcript::new(environment.path());
    for line in ["status", "list", "list --unread", "questions", "log", "lead", "config check", "term detect"]
    {
        run(&mut transcript, &environment, line);
    }
    transcript.check("reports-empty");

    let id = json(&environment.run(&[
        "notify",
        "--json",
        "--from",
        "worker-1",
        "--title",
        "Build",
        "it is green",
    ]));
    let id = id["id"].as_str().expect("an id").to_owned();
    environment.run(&["ask", "--from", "worker-2", "Deploy now?"]);
    let mut transcript = Transcript::new(environment.path());
    for line in ["status", "list", "list --unread", "list --all", "questions", "log"] {
        run(&mut transcript, &environment, line);
    }
    transcript.run("ringer why <id>", &mut environment.ringer(&["why", &id]));
    transcript.run("ringer why <id> --json", &mut environment.ringer(&["why", &id, "--json"]));
    transcript.check("reports");
}

#[test]
fn settings() {
    let environment = TestEnvironment::new();
    let mut transcript = Transcript::new(environment.path());
    run(&mut transcript, &environment, "config show --default");
    transcript.check("config-default");

    let hook = "[[hook]]\nid = \"format\"\ncommand = [\"./format\", \"--quiet\"]\n";
    fs::write(environment.repository().join(".ringer.toml"), hook).expect("a file");
    let mut transcript = Transcript::new(environment.path());
    for line in ["trust", "trust --yes", "trust", "trust --list", "trust --remove", "trust --list"] {
        run(&mut transcript, &environment, line);
    }
    transcript.check("trust");

    let mut transcript = Transcript::new(environment.path());
    for line in ["setup", "setup claude --dry-run", "setup copilot --dry-run", "setup --remove"] {
        run(&mut transcript, &environment, line);
    }
    for line in ["setup claude codex --yes", "setup claude --yes", "setup --remove --yes", "uninstall --yes"]
    {
        run(&mut transcript, &environment, line);
    }
    transcript.check("setup");
}

#[test]
fn doctor() {
    let environment = TestEnvironment::new();
    let config = environment.path().join("config.toml");
    let mut transcript = Transcript::new(environment.path());
    for settings in [
        "",
        "[notify]\nrign = true\n",
        "[notify]\ncommand = [\"no-such-program\"]\n\n[[watch]]\nid = \"w\"\n",
    ] {
        fs::write(&config, settings).expect("a file");
        let mut command = environment.ringer(&["doctor"]);
        bare(&environment, command.env("RINGER_CONFIG", &config));
        transcript.run("ringer doctor", &mut command);
    }
    transcript.check("doctor");
}

/// What a person sees who sets everything up, does not see the test, and takes everything back.
#[test]
fn setup_in_a_terminal() {
    let user = UserHome::with_clients(&["claude", "codex"]);
    user.write(".claude/settings.json", "{}\n");
    let mut transcript = Transcript::new(user.environment.path());
    for (arguments, typed) in [
        (&["setup"][..], "y\n\nn\n"),
        (&["setup"], ""),
        (&["setup", "--remove"], "\n"),
        (&["uninstall"], "y\n"),
        (&["uninstall"], ""),
    ] {
        let mut variables = user.variables();
        // With its version, so that the terminal is not asked for it.
        let kitty = [("TERM", "xterm-kitty"), ("TERM_PROGRAM", "kitty"), ("TERM_PROGRAM_VERSION", "0.48.2")];
        variables.extend(kitty.map(|(name, value)| (name, value.to_owned())));
        variables.push(("TZ", "UTC".to_owned()));
        // The terminal of this test is none that a person sits at.
        let scripts = user.environment.path().join("scripts.toml");
        variables
            .extend((arguments == ["uninstall"]).then(|| ("RINGER_CONFIG", scripts.display().to_string())));
        let variables: Vec<(&str, &str)> =
            variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let argv = [&[env!("CARGO_BIN_EXE_ringer")], arguments].concat();
        let mut pane = Pane::start(&argv, &variables, Some(user.environment.path()));
        // The terminal repeats what is typed. Only behind its question it is known where.
        for (index, line) in typed.lines().enumerate() {
            pane.wait_for_times("] ", index + 1);
            pane.type_bytes(format!("{line}\n").as_bytes());
        }
        let shown = String::from_utf8_lossy(&pane.end().0).into_owned();
        let shown =
            typed.lines().fold(shown, |shown, line| shown.replacen(&format!("] {line}\r\n"), "] ", 1));
        transcript.add(&format!("ringer {}", arguments.join(" ")), &shown);
    }
    transcript.check("setup-terminal");
}
