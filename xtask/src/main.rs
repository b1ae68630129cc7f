//! The development tool, run as `cargo xtask <command>`.
//!
//! ```text
//! cargo xtask test     # all tests, with the real programs that they use
//! cargo xtask ci       # the checks that a change must pass before it lands
//! ```
//!
//! Each command has its own file; this one dispatches. It has few dependencies, because every developer compiles it first.
//! It never commits or formats, and rewrites no file of the repository except the README's picture. On the machine it only
//! installs missing system packages, and prints which.
//!
//! Exit codes: 0; 1 if a check has complaints; 64 for an invalid command line; 69 if the machine lacks something; otherwise
//! the code of the failed step.

mod asleep;
mod background;
mod bench;
mod binary;
mod bus;
mod ci;
mod clients;
mod codex;
mod damage;
mod deny;
mod dist;
mod environment;
mod failure;
mod flags;
mod fresh;
mod hubs;
mod hubstress;
mod killpoints;
mod machine;
mod macos;
mod parts;
mod picture;
mod process_result;
mod random;
mod simulate;
mod skips;
mod step;
mod step_times;
mod stress;
mod test;
mod tidy;

use std::env;
use std::fmt::Write as _;
use std::process::ExitCode;

use failure::Failure;

struct Task {
    name: &'static str,
    arguments: &'static str,
    summary: &'static str,
    run: fn(&[String]) -> Result<(), Failure>,
}

const TASKS: &[Task] = &[
    Task {
        name: "test",
        arguments: "[--quick | --clients] [--no-install] …",
        summary: "install what the tests talk to, then run all of them",
        run: test::run,
    },
    Task {
        name: "fresh",
        arguments: "[--keep] [--no-install]",
        summary: "the README's two commands on a bare machine",
        run: fresh::run,
    },
    Task {
        name: "ci",
        arguments: "[--host]",
        summary: "format, lints, tidy, tests on a bare machine and with real clients, documentation",
        run: ci::run,
    },
    Task {
        name: "bench",
        arguments: "[NAME...] [--no-install] [--installed] …",
        summary: "measure, as ratios",
        run: bench::run,
    },
    Task {
        name: "stress",
        arguments: "[--kill] [--writers N] …",
        summary: "many writers and listeners at once, killed at random",
        run: stress::run,
    },
    Task {
        name: "hubstress",
        arguments: "[--kills N] [--races N] …",
        summary: "a hub killed at random under load, hubs that race, hubs that end",
        run: hubstress::run,
    },
    Task {
        name: "killpoints",
        arguments: "[--profile NAME]",
        summary: "kill notify, listen and hooks before every system call",
        run: killpoints::run,
    },
    Task {
        name: "damage",
        arguments: "[--rounds N] [--seed N] …",
        summary: "damage any file of a home, under a hub and without one",
        run: damage::run,
    },
    Task {
        name: "simulate",
        arguments: "[--hub] [--seeds N | --seed N]",
        summary: "play the engine or the hub with random events and check what must hold",
        run: simulate::run,
    },
    Task { name: "dist", arguments: "", summary: "build the program as it is shipped", run: dist::run },
    Task {
        name: "check-macos",
        arguments: "",
        summary: "type-check what is only built for macOS",
        run: macos::run,
    },
    Task {
        name: "picture",
        arguments: "",
        summary: "the README's picture, from a real run",
        run: picture::run,
    },
    Task { name: "tidy", arguments: "", summary: "the rules no compiler checks", run: tidy::run },
];

const EXAMPLES: &str = "\
Examples:
  cargo xtask test                      everything
  cargo xtask test --quick              rules, parsers and one of each kind end to end: while you work
  cargo xtask test -p ringer-term       one crate
  cargo xtask test --no-install         name what is missing, install nothing
  cargo xtask test --clients            real clients, installed from npm and PyPI into target/
  cargo xtask fresh                     the README's two commands on a bare Debian; needs root
  cargo xtask ci                        what has to pass before a change lands
  cargo xtask bench start               one benchmark
  cargo xtask stress --kill             64 writers, 5 listeners, killed at random
  cargo xtask hubstress --kills 1000    the hub, killed at random moments under load
  cargo xtask killpoints                notify, listen and hooks, killed before every system call
  cargo xtask damage --rounds 10000     files of a home damaged, under a hub and without one
  cargo xtask tidy
";

fn main() -> ExitCode {
    // `env::args` would panic on an argument that is not UTF-8.
    let arguments: Vec<String> =
        env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned()).collect();
    match dispatch(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("xtask: {failure}");
            failure.exit_code()
        }
    }
}

fn dispatch(arguments: &[String]) -> Result<(), Failure> {
    let Some((name, rest)) = arguments.split_first() else {
        return Err(Failure::usage(format!("which command?\n\n{}", help())));
    };
    if is_help(name) || rest.first().is_some_and(|first| is_help(first)) {
        print!("{}", help());
        return Ok(());
    }
    let Some(task) = TASKS.iter().find(|task| task.name == name) else {
        return Err(Failure::usage(format!("no command `{name}`\n\n{}", commands())));
    };
    enter_repository()?;
    (task.run)(rest)
}

fn is_help(argument: &str) -> bool {
    matches!(argument, "help" | "--help" | "-h")
}

/// Changes to the root of the repository, to which all paths in this crate are relative.
fn enter_repository() -> Result<(), Failure> {
    let here = env::current_dir().map_err(|error| Failure::io("the current folder", &error))?;
    let root = here
        .ancestors()
        .find(|folder| folder.join("xtask/Cargo.toml").is_file())
        .ok_or_else(|| Failure::unavailable("not inside the repository: no xtask/Cargo.toml above".into()))?;
    env::set_current_dir(root).map_err(|error| Failure::io(&root.display().to_string(), &error))
}

fn help() -> String {
    format!("{EXAMPLES}\n{}", commands())
}

fn commands() -> String {
    let mut text = String::from("Commands:\n");
    for task in TASKS {
        let call = format!("{} {}", task.name, task.arguments);
        // Writing into a String cannot fail.
        let _ = writeln!(text, "  {call:<42}{}", task.summary);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{dispatch, help};

    fn check(arguments: &[&str], code: u8, says: &str) {
        let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
        let failure = dispatch(&arguments).expect_err("these are all wrong");
        assert_eq!(failure.code(), code, "{arguments:?}");
        assert!(failure.to_string().contains(says), "{arguments:?} said: {failure}");
    }

    #[test]
    fn a_command_nobody_knows_gets_the_list() {
        check(&["tset"], 64, "no command `tset`");
        check(&["tset"], 64, "  tidy ");
        check(&[], 64, "  bench [NAME...] ");
    }

    #[test]
    fn a_wrong_argument_is_a_usage_error() {
        check(&["ci", "--fast"], 64, "`--fast`");
        check(&["tidy", "crates"], 64, "`crates`");
        check(&["bench", "strat"], 64, "start");
    }

    #[test]
    fn help_starts_with_examples() {
        assert!(help().starts_with("Examples:"), "{}", help());
    }
}
