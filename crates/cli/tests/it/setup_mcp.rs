//! `ringer setup --mcp`: the MCP server in the settings of agents, and how it is taken back.

use std::fs;
use std::process::{Command, Stdio};

use serde_json::{Value, json as value};

use crate::copilot::{doctor, row};
use crate::home::SCRIPTS;
use crate::pty::typed_in_terminal;
use crate::ringer::{check, json};
use crate::setup::UserHome;

const RINGER: &str = env!("CARGO_BIN_EXE_ringer");

/// The programs, and the files that have their MCP servers.
const FILES: [(&str, &str); 4] = [
    ("claude", ".claude.json"),
    ("codex", ".codex/config.toml"),
    ("gemini", ".gemini/settings.json"),
    ("opencode", ".config/opencode/opencode.json"),
];

fn all_installed() -> UserHome {
    UserHome::with_clients(&FILES.map(|(program, _)| program))
}

fn uninstall(user: &UserHome) -> String {
    user.write(".config/ringer/config.toml", SCRIPTS);
    let mut command = Command::new(RINGER);
    command.args(["uninstall", "--yes"]).env_clear().envs(user.variables()).stdin(Stdio::null());
    check(command.current_dir(user.environment.path()), 0).0
}

/// The row of doctor about the server, if there is one.
fn mcp_row(user: &UserHome, client: &str) -> Option<Value> {
    let part = format!("{client} mcp");
    doctor(user).into_iter().find(|row| row["part"] == part.as_str())
}

#[test]
fn it_is_registered_kept_and_removed() {
    let user = all_installed();
    user.write(".claude.json", "{\"numStartups\": 5, \"theme\": \"dark\"}");
    user.write(".codex/config.toml", "model = \"x\"");
    let (out, err) = check(&mut user.setup(&["--mcp", "--yes"]), 0);
    assert!(out.starts_with("  claude    the MCP server in ~/.claude.json\n"), "{out}");
    assert!(
        out.contains("Undo: ringer setup --mcp --remove\nAgents see the server when they start"),
        "{out}"
    );
    assert!(!out.contains("test notification"), "{out}{err}");
    for (program, file) in FILES {
        let text = user.read(file);
        assert!(
            text.contains(RINGER) && text.contains("\"mcp\"") && !text.contains("hook"),
            "{program}: {text}"
        );
    }
    for file in [".claude/settings.json", ".codex/hooks.json"] {
        assert!(!user.file(file).exists(), "{file}: hooks were not asked for");
    }
    assert_eq!(check(&mut user.setup(&["--mcp"]), 0).0, "Already registered; nothing to change.\n");

    let (out, _) = check(&mut user.setup(&["--mcp", "--remove", "--yes"]), 0);
    assert!(out.contains("  claude    ~/.claude.json\n") && out.ends_with("Done.\n"), "{out}");
    assert_eq!(user.read(".claude.json"), "{\"numStartups\": 5, \"theme\": \"dark\"}");
    assert_eq!(user.read(".codex/config.toml"), "model = \"x\"");
    for (_, file) in FILES.into_iter().skip(2) {
        assert!(!user.file(file).exists(), "{file}");
    }
    let (out, _) = check(&mut user.setup(&["--mcp", "--remove", "--yes"]), 0);
    assert_eq!(out, "The MCP server is not registered with any agent; nothing to remove.\n");
}

#[test]
fn hooks_and_the_server_do_not_disturb_each_other() {
    let user = UserHome::with_clients(&["claude", "gemini"]);
    let settings = "{\n  \"theme\": \"x\"\n}\n";
    user.write(".gemini/settings.json", settings);
    let (out, _) = check(&mut user.setup(&["--yes"]), 0);
    assert!(!out.contains("MCP"), "{out}");
    let hooks = user.read(".gemini/settings.json");
    assert!(!hooks.contains("mcp") && !user.file(".claude.json").exists(), "{hooks}");
    check(&mut user.setup(&["--mcp", "--yes"]), 0);
    check(&mut user.setup(&["--mcp", "--remove", "--yes"]), 0);
    assert_eq!(user.read(".gemini/settings.json"), hooks);

    // A setup of hooks brings a server that is registered up to date, and adds none.
    check(&mut user.setup(&["gemini", "--mcp", "--yes"]), 0);
    let old = user.read(".gemini/settings.json").replace(RINGER, "/old/ringer");
    user.write(".gemini/settings.json", &old);
    assert_eq!(mcp_row(&user, "gemini").expect("a row")["fix"], "ringer setup gemini --mcp");
    let (out, _) = check(&mut user.setup(&["--yes"]), 0);
    assert!(out.contains("  gemini  8 hooks and the MCP server in ~/.gemini/settings.json\n"), "{out}");
    assert!(!user.read(".gemini/settings.json").contains("/old/") && !user.file(".claude.json").exists());

    check(&mut user.setup(&["--remove", "--yes"]), 0);
    let left: Value = json(&user.read(".gemini/settings.json"));
    assert_eq!(left, json(settings), "both are gone");
}

#[test]
fn doctor_tells_of_it_where_it_was_registered() {
    let user = UserHome::with_clients(&["claude", "gemini"]);
    assert!(["claude", "gemini"].iter().all(|client| mcp_row(&user, client).is_none()));
    check(&mut user.setup(&["--mcp", "--yes"]), 0);
    let row = mcp_row(&user, "claude").expect("a row");
    assert_eq!((&row["verdict"], &row["what"]), (&value!("ok"), &value!("the MCP server in ~/.claude.json")));
    assert_eq!(row_of_hooks(&user, "claude"), "warn", "its hooks are another matter");

    user.write(".claude.json", "{ \"mcpServers\": ");
    let row = mcp_row(&user, "claude").expect("a row");
    assert!(
        row["verdict"] == "broken" && row["what"].as_str().is_some_and(|what| what.contains(".claude.json")),
        "{row}"
    );
    // What Claude Code does with it does not keep its hooks from being set up.
    check(&mut user.setup(&["claude", "--yes"]), 0);
    let (_, err) = check(&mut user.setup(&["claude", "--mcp", "--yes"]), 78);
    assert!(err.contains(".claude.json") && err.contains("was not changed"), "{err}");
}

fn row_of_hooks(user: &UserHome, client: &str) -> String {
    row(&doctor(user), client)["verdict"].as_str().expect("a verdict").to_owned()
}

#[test]
fn uninstall_removes_it() {
    let user = all_installed();
    user.write(".claude.json", "{\"numStartups\": 5}");
    check(&mut user.setup(&["--yes"]), 0);
    check(&mut user.setup(&["--mcp", "--yes"]), 0);
    let out = uninstall(&user);
    assert!(out.contains("\n  MCP in    ~/.claude.json\n"), "{out}");
    assert_eq!(user.read(".claude.json"), "{\"numStartups\": 5}");
    for (_, file) in FILES.into_iter().skip(1) {
        assert!(!user.file(file).exists(), "{file}");
    }
    let home = fs::read_dir(user.file("")).expect("a home").map(|entry| entry.expect("an entry").file_name());
    assert!(home.into_iter().all(|name| !name.to_string_lossy().contains("ringer-backup")));
}

#[test]
fn a_server_of_the_persons_of_that_name_stays() {
    let user = UserHome::with_clients(&["claude", "gemini"]);
    let mine = "{\"mcpServers\": {\"ringer\": {\"command\": \"ring\", \"env\": {\"TOKEN\": \"secret\"}}}}";
    user.write(".gemini/settings.json", mine);
    let (out, err) = check(&mut user.setup(&["--mcp", "--yes"]), 0);
    assert!(out.contains("  gemini  not registered: the name is taken\n"), "{out}");
    assert!(err.contains("that is not Ringer's, which stays") && !err.contains("secret"), "{err}");
    let (out, err) = check(&mut user.setup(&["gemini", "--mcp", "--yes"]), 0);
    assert!(out == "Nothing to change.\n" && err.contains("which stays"), "{out}{err}");
    assert!(mcp_row(&user, "gemini").is_none());
    check(&mut user.setup(&["--mcp", "--remove", "--yes"]), 0);
    assert_eq!(user.read(".gemini/settings.json"), mine);
}

#[test]
fn the_person_is_asked() {
    let user = UserHome::with_clients(&["claude", "opencode"]);
    let variables = user.variables();
    let variables: Vec<(&str, &str)> =
        variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let typed = |typed: &str| {
        typed_in_terminal(&["setup", "--mcp"], &variables, &user.environment.repository(), typed)
    };
    let (shown, exit) = typed("d\nn\n");
    assert!(
        exit == 0 && shown.contains("Register the MCP server with both? [Y/n/d = show the changes]"),
        "{shown}"
    );
    assert!(shown.contains("+  \"mcpServers\": {") && shown.contains("Nothing was changed."), "{shown}");
    assert!(!user.file(".claude.json").exists());
    let (shown, exit) = typed("\n");
    assert!(exit == 0 && shown.contains("Done. Undo: ringer setup --mcp --remove"), "{shown}");
    assert!(user.read(".claude.json").contains(RINGER));

    let (_, err) = check(&mut user.setup(&["--mcp", "--remove"]), 64);
    assert!(err.contains("ringer setup --mcp --remove --yes"), "{err}");
}

#[test]
fn as_json_and_without_writing() {
    let user = UserHome::with_clients(&["claude"]);
    let report = |arguments: &[&str]| json(&check(&mut user.setup(arguments), 0).0);
    let dry = report(&["--mcp", "--dry-run", "--json"]);
    assert_eq!(dry["files"][0]["path"], user.file(".claude.json").display().to_string());
    assert_eq!((&dry["files"][0]["changes"], &dry["files"][0]["written"]), (&value!(true), &value!(false)));
    assert!(!user.file(".claude.json").exists());
    let (out, _) = check(&mut user.setup(&["--mcp", "--dry-run"]), 0);
    assert!(out.contains("@@") && out.contains("\"ringer\": {"), "{out}");
    assert_eq!(report(&["--mcp", "--yes", "--json"])["files"][0]["written"], true);
    assert_eq!(report(&["--mcp", "--yes", "--json"])["files"][0]["changes"], false);
}

#[test]
fn what_does_not_go_together_is_refused() {
    let user = UserHome::with_clients(&[]);
    for (arguments, words) in [
        (&["copilot", "--mcp", "--yes"][..], "does not know how Copilot CLI takes MCP servers"),
        (&["tmux", "--mcp", "--yes"], "setup tmux takes"),
        (&["--mcp", "--project", "--yes"], "--project"),
        (&["--mcp", "--no-client-popups"], "--no-client-popups"),
    ] {
        let (_, err) = check(&mut user.setup(arguments), 64);
        assert!(err.contains(words), "{arguments:?}: {err}");
    }
    check(&mut user.setup(&["--mcp", "--yes"]), 69);
}
