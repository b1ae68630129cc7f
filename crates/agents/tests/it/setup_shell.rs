//! The output of setup, run by shells and by JavaScript.

#![expect(clippy::unwrap_used, reason = "helpers of tests, outside any test function")]

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use ringer_agents::setup::{Client, CurrentFile, FileHistory, Format, SetupScope, Target, plan};
use test_support::{make_program, started};

use crate::setup_apply::setup;

/// The text that setup for `program` writes to a new file.
fn written(client: Client, format: Format, program: &str) -> String {
    let target = Target {
        client,
        scope: SetupScope::User,
        format,
        mcp: None,
        lock: None,
        path: PathBuf::from("/nowhere"),
    };
    let file = CurrentFile { target, bytes: None, history: FileHistory::default() };
    let mut plan = plan(client, &setup(program), vec![file]).unwrap();
    String::from_utf8(plan.changes.remove(0).after.unwrap()).unwrap()
}

/// The shell line for Claude Code's Stop.
fn line(program: &str) -> String {
    let value: serde_json::Value =
        serde_json::from_str(&written(Client::Claude, Format::Hooks, program)).unwrap();
    value["hooks"]["Stop"][0]["hooks"][0]["command"].as_str().unwrap().to_owned()
}

fn fake(directory: &Path, body: &str) -> String {
    fs::create_dir_all(directory).unwrap();
    let path = directory.join("ringer");
    make_program(&path, body);
    path.to_str().unwrap().to_owned()
}

#[track_caller]
fn run(shell: &str, line: &str, search: &str) -> Output {
    let mut command = Command::new(shell);
    command
        .args(["-c", line])
        .env("PATH", search)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = started(shell, command.spawn());
    // A missing hook does not read; the pipe may already be closed.
    drop(child.stdin.take().unwrap().write_all(b"{}"));
    child.wait_with_output().unwrap()
}

#[test]
fn every_shell_runs_the_line() {
    let directory = tempfile::tempdir().unwrap();
    let odd = directory.path().join("it's \"a\" $HOME dir");
    let program = fake(&odd, "read input; printf '%s|' \"$@\" \"$input\"; exit 3");
    let search = odd.to_str().unwrap();
    for shell in ["/bin/sh", "/bin/bash", "/usr/bin/dash", "/usr/bin/zsh", "/usr/bin/fish"] {
        for (line, search) in [(line(&program), "/bin"), (line("ringer"), search)] {
            let output = run(shell, &line, search);
            assert_eq!(String::from_utf8_lossy(&output.stdout), "hook|claude|Stop|{}|", "{shell}: {line}");
            assert_eq!(output.status.code(), Some(3), "the exit code is the hook's own");
            assert!(output.stderr.is_empty());
        }
        for line in [line("/nowhere at all/ringer"), line("ringer")] {
            let output = run(shell, &line, "/nowhere");
            assert!(
                output.status.success() && output.stdout.is_empty() && output.stderr.is_empty(),
                "{shell}: {line}"
            );
        }
    }
}

/// Runs the plugin through a session. Prints the tool output and the prompts.
const DRIVER: &str = r#"
import { Ringer } from "./plugin.mjs"
const prompts = []
const session = { promptAsync: async (message) => { prompts.push(message.body.parts[0].text) } }
const hooks = await Ringer({ directory: "/project", client: { session } })
const say = (type, properties) => hooks.event({ event: { type, properties } })
await say("session.created", { info: { id: "s1", parentID: "s0" } })
await say("message.updated", { info: { id: "m1", role: "assistant", sessionID: "s1" } })
await say("message.part.updated", { part: { type: "text", messageID: "m1", sessionID: "s1", text: "done" } })
await say("unknown.event", {})
const output = { output: "result" }
await hooks["tool.execute.after"]({ tool: "bash", sessionID: "s1", callID: "c1" }, output)
const parts = { content: [{ type: "text", text: "part" }] }
await hooks["tool.execute.after"]({ tool: "mcp", sessionID: "s1", callID: "c2" }, parts)
say("session.status", { sessionID: "s1" })
await say("session.idle", { sessionID: "s1" })
await hooks.event({})
await hooks["tool.execute.after"](undefined, undefined)
const content = parts.content.map((part) => part.text)
const system = []
for (const sessionID of ["s1", "s2", "s2", undefined]) {
  const request = { system: ["yours"] }
  await hooks["experimental.chat.system.transform"]({ sessionID }, request)
  system.push(request.system.join("+"))
}
console.log(JSON.stringify({ output: output.output, content, prompts: [...prompts], system }))
say("session.deleted", { info: { id: "s1" } })
await hooks.dispose()
process.exit()
"#;

#[track_caller]
fn plugin(program: &str, words: &[&str]) -> serde_json::Value {
    let directory = tempfile::tempdir().unwrap();
    fs::write(
        directory.path().join("plugin.mjs"),
        written(Client::Opencode, Format::OpencodePlugin, program),
    )
    .unwrap();
    fs::write(directory.path().join("driver.mjs"), DRIVER).unwrap();
    let mut node = Command::new("node");
    node.arg("driver.mjs").args(words).current_dir(directory.path());
    let output = started("node", node.output());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The output of the plugin with a hook that answers, and the events and inputs that the hook got.
#[track_caller]
fn told(words: &[&str]) -> (serde_json::Value, Vec<(String, serde_json::Value)>) {
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("log");
    // One call is slow, so that the next one could overtake it.
    let body = format!(
        "[ $3 = session.status ] && while [ ${{#i}} -lt 5000 ]; do i=x$i; done\n\
         {{ echo \"$3\"; cat; echo; }} >>'{}'\ncase $3 in tool.execute.after) echo '{{\"append\": \" and more\"}}';; \
         session.idle) echo '{{\"prompt\": \"next\"}}';; session.context) echo '{{\"system\": \"ours\"}}';; esac",
        log.display()
    );
    let seen = plugin(&fake(directory.path(), &body), words);
    let log = fs::read_to_string(log).unwrap();
    let mut lines = log.lines();
    let mut told = Vec::new();
    while let Some(event) = lines.next() {
        told.push((event.to_owned(), serde_json::from_str(lines.next().unwrap()).unwrap()));
    }
    (seen, told)
}

#[test]
fn the_plugin_speaks_with_the_hook() {
    let (seen, told) = told(&[]);
    let expect = serde_json::json!({"output": "result and more", "content": ["and more", "part"], "prompts": ["next"],
        "system": ["yours", "yours+ours", "yours+ours", "yours"]});
    assert_eq!(seen, expect);
    let events: Vec<&str> = told.iter().map(|(event, _)| event.as_str()).collect();
    let (created, after) = ("session.created", "tool.execute.after");
    let (context, deleted) = ("session.context", "session.deleted");
    // Once per session, and not for a subagent's.
    assert_eq!(events, [created, after, after, "session.status", "session.idle", context, deleted]);
    let expect = serde_json::json!({"type": "session.idle", "session_id": "s1", "cwd": "/project", "parentID": "s0",
        "properties": {"sessionID": "s1"}, "last_assistant_message": "done"});
    assert_eq!(told[4].1, expect);
}

#[test]
fn the_plugin_says_that_its_process_ends_with_the_turn() {
    for (words, ends) in [(&["--print-logs", "run", "do it"][..], true), (&["serve"], false)] {
        let (_, told) = told(words);
        assert_eq!(told[4].1["ends_with_turn"] == true, ends, "{words:?}");
    }
}

#[test]
fn the_plugin_survives_a_missing_a_failing_and_a_hanging_hook() {
    let directory = tempfile::tempdir().unwrap();
    let unchanged = serde_json::json!({"output": "result", "content": ["part"], "prompts": [],
        "system": ["yours", "yours", "yours", "yours"]});
    for program in [
        "/nowhere/ringer".to_owned(),
        fake(&directory.path().join("a"), "echo '{\"append\": \"x\"}'; exit 1"),
        fake(&directory.path().join("b"), "echo 'not json'"),
        // The limit of two seconds ends it; otherwise the test would never end.
        fake(
            &directory.path().join("c"),
            "[ \"$3\" = session.idle ] && exec cat /dev/zero >/dev/null; exit 0",
        ),
    ] {
        let seen = plugin(&program, &[]);
        assert_eq!(seen, unchanged, "{program}");
    }
}
