//! `ringer completions` and `ringer man`.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::{Command, Stdio};

use serde_json::json;
use test_support::{skip, started};

use crate::home::TestEnvironment;
use crate::pty::program_typed_in_terminal;
use crate::ringer::{check, check_with_input, json, ringer};

/// What a program says to a script on its standard input.
#[track_caller]
fn fed(program: &str, arguments: &[&str], input: &[u8]) -> (bool, String) {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = started(program, command.spawn());
    child.stdin.take().expect("piped").write_all(input).expect("it reads its input");
    let output = child.wait_with_output().expect("it ends");
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    (output.status.success(), text.into_owned())
}

#[test]
fn every_shell_reads_its_script() {
    for (shell, check_only) in
        [("bash", &["-n"][..]), ("zsh", &["-n", "/dev/stdin"]), ("fish", &["--no-execute"])]
    {
        let (script, err) = check(&mut ringer(&["completions", shell]), 0);
        assert!(err.is_empty() && script.contains("ringer complete -- "), "{script}{err}");
        let (good, said) = fed(shell, check_only, script.as_bytes());
        assert!(good, "{shell}: {said}");
    }
    // Debian has no package of Nushell.
    let (script, _) = check(&mut ringer(&["completions", "nushell"]), 0);
    for word in ["notify", "listen", "doctor", "config", "trust", "json"] {
        assert!(script.contains(word), "{word}");
    }
    let (_, err) = check(&mut ringer(&["completions", "tcsh"]), 64);
    assert!(err.contains("nushell"), "{err}");
}

/// An environment with an open question, an agent, and the scripts of the shells in `scripts/`.
struct Shells(TestEnvironment);

impl Shells {
    fn new() -> Self {
        let environment = TestEnvironment::new();
        for folder in ["bin", "scripts", "zsh"] {
            fs::create_dir(environment.path().join(folder)).expect("a directory");
        }
        let binary = env!("CARGO_BIN_EXE_ringer");
        symlink(binary, environment.path().join("bin/ringer")).expect("a link");
        for shell in ["bash", "zsh", "fish"] {
            let script = environment.run(&["completions", shell]);
            fs::write(environment.path().join("scripts").join(shell), script).expect("a file");
        }
        environment.run(&["ask", "Which: database?"]);
        let mut hook = environment.ringer(&["hook", "claude", "SessionStart"]);
        let start = json!({ "session_id": "0123456789", "cwd": environment.repository() });
        check_with_input(&mut hook, start.to_string().as_bytes());
        Self(environment)
    }

    fn script(&self, shell: &str) -> String {
        self.0.path().join("scripts").join(shell).display().to_string()
    }

    fn path(&self) -> String {
        let path = std::env::var("PATH").expect("a PATH");
        format!("{}:{path}", self.0.path().join("bin").display())
    }

    /// What a shell prints that runs this text.
    #[track_caller]
    fn run(&self, shell: &str, text: &str) -> String {
        let mut command = self.0.program(shell);
        command.env("PATH", self.path()).env("HOME", self.0.path()).args(["-c", text]);
        let (out, err) = check(&mut command, 0);
        assert_eq!(err, "", "{shell}: {text}");
        out
    }

    /// The candidates of bash after these words.
    #[track_caller]
    fn bash(&self, words: &str) -> Vec<String> {
        let text = format!(
            "source {}; COMP_WORDS=(ringer {words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _ringer; \
             printf '%s\\n' \"${{COMPREPLY[@]}}\"",
            self.script("bash")
        );
        self.run("bash", &text).lines().map(str::to_owned).collect()
    }

    #[track_caller]
    fn fish(&self, line: &str) -> String {
        self.run("fish", &format!("source {}; complete -C '{line}'", self.script("fish")))
    }

    /// The short id of the question.
    fn question(&self) -> String {
        let open = json(&self.0.run(&["questions", "--json"]));
        open[0]["short_id"].as_str().expect("an id").to_owned()
    }
}

#[test]
fn open_ids_and_agents_are_offered() {
    let shells = Shells::new();
    let id = shells.question();
    assert_eq!(shells.bash("answer ''"), ["repository"]);
    assert_eq!(shells.bash(&format!("answer {}", &id[..1])), [id.as_str()]);
    assert_eq!(shells.bash(&format!("read {}", &id[..2])), [id.as_str()]);
    assert_eq!(shells.bash("why --agent ''"), ["claude-01234567"]);
    assert_eq!(shells.bash("notify --to = l"), ["lead"]);
    assert_eq!(shells.bash("unin"), ["uninstall"]);
    assert_eq!(shells.fish("ringer answer "), "repository\trepository · asks: Which: database?\n");
    let recipients = shells.fish("ringer notify --to ");
    assert!(recipients.contains("lead\t") && recipients.contains("claude-01234567\t"), "{recipients}");
    assert_eq!(shells.fish("ringer man /etc/hostnam"), "/etc/hostname\n");
    shells.0.run(&["answer", &id, "Postgres"]);
    assert_eq!(shells.bash("answer ''"), [""], "it is not open any more");
}

/// Names that run something if a shell reads them.
const HOSTILE: [&str; 5] = ["a$(touch ran)", "a`touch ran`", "a;touch ran", "a b", "a|touch${IFS}ran"];

#[test]
fn nothing_in_the_name_of_an_agent_is_run() {
    let shells = Shells::new();
    let agents: Vec<_> = HOSTILE
        .iter()
        .enumerate()
        .flat_map(|(number, name)| {
            let agent = json!({ "id": format!("codex-{number}@box.t"), "name": format!("{name}@box.t"), "state": "done" });
            [agent, json!({ "id": format!("{name}@box.t"), "state": "done" })]
        })
        .collect();
    let told = json!({ "told_ms": 0, "is_current": true, "agents": agents });
    let team = json!({ "team": "t", "machines": { "box.t": told } });
    let home = shells.0.home();
    fs::write(home.join("relay-team-agents-t.json"), team.to_string()).expect("a file");
    // As a hub holds it that is connected to the team.
    let lock = fs::File::create(home.join("relay-team-agents-t.lock")).expect("a file");
    lock.lock().expect("a lock");
    let offered = ["0", "1", "2", "3", "4"].map(|number| format!("codex-{number}@box.t"));
    assert_eq!(shells.bash("notify --to codex"), offered);
    assert!(shells.bash("notify --to a").iter().all(|word| word == "all"), "no other name");
}

/// A program that is called `ringer` offers what it likes, as one of another version may.
#[test]
fn bash_quotes_every_candidate() {
    let shells = Shells::new();
    fs::remove_file(shells.0.path().join("bin/ringer")).expect("a link");
    fs::write(
        shells.0.path().join("bin/ringer"),
        format!("#!/bin/sh\ncat <<'END'\n{}\nEND\n", HOSTILE.join("\thelp\n")),
    )
    .expect("a file");
    let executable = fs::Permissions::from_mode(0o755);
    fs::set_permissions(shells.0.path().join("bin/ringer"), executable).expect("a mode");
    let candidates = shells.bash("notify --to ''");
    assert_eq!(candidates.len(), HOSTILE.len());
    for (candidate, name) in candidates.iter().zip(HOSTILE) {
        assert_eq!(shells.run("bash", &format!("printf %s {candidate}")), name);
    }
}

#[test]
fn zsh_inserts_the_only_open_question() {
    let shells = Shells::new();
    let question = json(&shells.0.run(&["questions", "--json"]))[0]["question_id"].clone();
    let settings = shells.0.path().join("zsh");
    // Without a terminal that answers: no mark for a line that has no end.
    let text = format!(
        "unsetopt prompt_sp; autoload -Uz compinit; compinit -u -D; source {}\n",
        shells.script("zsh")
    );
    fs::write(settings.join(".zshrc"), text).expect("a file");
    let (path, home) = (shells.path(), shells.0.home().display().to_string());
    let settings = settings.display().to_string();
    let variables = [
        ("PATH", path.as_str()),
        ("HOME", settings.as_str()),
        ("ZDOTDIR", settings.as_str()),
        ("RINGER_HOME", home.as_str()),
        ("RINGER_HUB", "off"),
        ("TERM", "dumb"),
    ];
    let (shown, _) = program_typed_in_terminal(
        "zsh",
        &["-i"],
        &variables,
        &shells.0.repository(),
        "ringer answer \tSQLite\nexit\n",
    );
    let answered = json(&shells.0.run(&["questions", "--all", "--json"]));
    assert_eq!(
        (&answered[0]["question_id"], &answered[0]["answer"]),
        (&question, &json!("SQLite")),
        "{shown}"
    );
}

#[test]
fn completing_is_silent_and_starts_no_hub() {
    let environment = TestEnvironment::new();
    let complete = |environment: &TestEnvironment, words: &[&str], exit| {
        let mut command = environment.ringer(&[&["complete", "--"], words].concat());
        let (out, err) = check(command.env_remove("RINGER_HUB"), exit);
        assert_eq!(err, "", "{words:?}");
        out
    };
    assert_eq!(complete(&environment, &["read", ""], 0), "");
    assert!(!environment.home().exists(), "nothing was made");
    environment.notify("one");
    assert!(complete(&environment, &["read", ""], 0).ends_with("\tone\n"));
    assert_eq!(complete(&environment, &["term", "scan", ""], 1), "", "the shell completes files");
    assert!(!environment.home().join("hub.json").exists());
    fs::remove_file(environment.home().join("ringer.db-wal")).expect("a file");
    fs::write(environment.database(), "no database").expect("a file");
    complete(&environment, &["read", ""], 0);
    complete(&environment, &[], 0);
}

#[test]
fn the_manual_page_can_be_read() {
    let (page, _) = check(&mut ringer(&["man"]), 0);
    assert!(page.contains(".TH ringer 1"), "{page}");
    assert!(page.contains("ringer\\-notify(1)"), "{page}");
    let (good, text) = fed("man", &["-P", "cat", "-l", "-"], page.as_bytes());
    if text.contains("minimized") {
        skip("it needs a `man` that shows pages; the one of this system only says that it is minimized");
        return;
    }
    assert!(good && text.contains("SUBCOMMANDS") && text.contains("coding agents"), "{text}");
}

#[test]
fn every_command_has_a_page() {
    let directory = tempfile::tempdir().expect("a directory");
    let pages = directory.path().join("share/man1");
    let (out, err) = check(ringer(&["man"]).arg(&pages), 0);
    assert!(out.is_empty() && err.contains("wrote the man pages to "), "{out}{err}");
    for (name, title) in [
        ("ringer.1", ".TH ringer 1"),
        ("ringer-notify.1", ".TH ringer-notify 1"),
        ("ringer-config-check.1", ".TH "),
    ] {
        let page = fs::read_to_string(pages.join(name)).expect("a page");
        assert!(page.contains(title), "{name}: {page}");
    }
    let page = fs::read_to_string(pages.join("ringer-notify.1")).expect("a page");
    assert!(page.contains("Examples:"), "{page}");
    fs::write(directory.path().join("file"), "").expect("a file");
    let (_, err) = check(ringer(&["man"]).arg(directory.path().join("file")), 73);
    assert!(err.contains("cannot write the man pages to"), "{err}");
}
