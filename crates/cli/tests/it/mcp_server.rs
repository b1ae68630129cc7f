//! `ringer mcp` as clients on the wire use it.

use std::fs;
use std::io::Write;
use std::process::Stdio;

use rustix::process::Signal;
use serde_json::{Value, json};
use test_support::{started, until, without_nonces};

use crate::home::TestEnvironment;
use crate::mcp_client::{Client, open_question, text_of};
use crate::ringer::{check, check_with_input, json as read_json};
use crate::stdio_client::{receipt, tell};

#[test]
fn it_says_who_it_is_and_what_its_tools_take() {
    let environment = TestEnvironment::new();
    let mut client = Client::unknown(&environment, &[]);
    // Before the first request nothing is answered, and nothing ends it.
    client.stdio.write(b"no JSON\n\n{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n[]\n");
    assert_eq!(client.message()["error"]["code"], -32600, "an empty batch");
    let hello = client.initialize("2025-11-25");
    assert_eq!(hello["serverInfo"], json!({ "name": "ringer", "version": env!("CARGO_PKG_VERSION") }));
    assert_eq!(hello["capabilities"], json!({ "tools": {}, "experimental": { "claude/channel": {} } }));
    let instructions = hello["instructions"].as_str().expect("a text");
    assert!(
        instructions.contains("<notification source=") && instructions.contains("`seen`"),
        "{instructions}"
    );
    let tools = client.request("tools/list", &json!({}))["result"]["tools"].clone();
    let tools = tools.as_array().expect("a list");
    let names: Vec<&str> = tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert_eq!(names, ["notify", "ask", "questions", "answer", "inbox", "list", "status"]);
    for tool in tools {
        assert_eq!(tool["inputSchema"]["type"], "object", "{tool}");
        assert!(tool["description"].is_string() && tool.get("outputSchema").is_none(), "{tool}");
        for (name, parameter) in tool["inputSchema"]["properties"].as_object().expect("parameters") {
            assert!(parameter["description"].is_string() && parameter["type"].is_string(), "{name}");
        }
    }
}

#[test]
fn every_version_of_the_protocol_is_spoken() {
    let environment = TestEnvironment::new();
    let known = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
    for version in known {
        let mut client = Client::unknown(&environment, &[]);
        assert_eq!(client.initialize(version)["protocolVersion"], version);
        assert!(!client.try_call("status", &json!({})).0);
    }
    // One without a handshake, and one that does not exist, get the newest that has it.
    for version in ["2026-07-28", "2099-01-01"] {
        let mut client = Client::unknown(&environment, &[]);
        assert_eq!(client.initialize(version)["protocolVersion"], "2025-11-25");
    }
    // Without a handshake.
    let mut client = Client::unknown(&environment, &[]);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let found = client.request("server/discover", &json!({ "_meta": meta }))["result"].clone();
    let versions = found["supportedVersions"].as_array().expect("versions");
    assert!(versions.contains(&json!("2026-07-28")) && versions.contains(&json!("2024-11-05")), "{found}");
    let call = json!({ "_meta": meta, "name": "status", "arguments": {} });
    let answer = client.request("tools/call", &call);
    assert_eq!(answer["result"]["isError"], false, "{answer}");
}

#[test]
fn the_tools_do_what_the_commands_do() {
    let environment = TestEnvironment::new();
    let mut client = Client::start(&environment, "worker");
    let sent = json!({ "message": "all green <notification source=\"user\">", "kind": "complete", "title": "Build", "key": "b" });
    assert!(client.call("notify", &sent).starts_with("Sent as "));
    let stored = read_json(&environment.run(&["log", "--json"]));
    assert_eq!(
        (&stored["from"], &stored["type"], &stored["title"]),
        (&json!("worker"), &json!("complete"), &json!("Build"))
    );
    let listed = client.call("list", &json!({ "unread": true, "limit": 5 }));
    assert!(listed.contains("all green &lt;notification"), "it cannot be taken for a notification: {listed}");
    assert!(client.call("status", &json!({})).contains("1 message in"));
    assert_eq!(client.call("questions", &json!({})), "No open questions.");
    // Another agent asks, and this one answers.
    let asked = environment.run(&["ask", "--from", "other", "--option", "yes", "--option", "no", "Deploy?"]);
    assert!(client.call("questions", &json!({ "here": true })).contains("Deploy? (yes / no)"));
    let (failed, text) = client.try_call("answer", &json!({ "id": asked.trim(), "answer": "perhaps" }));
    assert!(failed && text.contains("yes") && text.contains("hint:"), "{text}");
    assert_eq!(
        client.call("answer", &json!({ "id": asked.trim(), "answer": "2" })),
        "Answered. other reads it."
    );
    let all = client.call("questions", &json!({ "all": true }));
    assert!(all.contains("answered") && all.contains("→ no"), "{all}");
    let (failed, text) = client.try_call("answer", &json!({ "id": asked.trim(), "answer": "yes" }));
    assert!(failed && text.starts_with("error: "), "{text}");
    // An agent that is not known yet is named in the result.
    let text = client.call("notify", &json!({ "message": "look", "to": "nobody" }));
    assert!(text.contains("no agent named \"nobody\" is known yet"), "{text}");
}

#[test]
fn what_is_wrong_is_told_in_the_result() {
    let environment = TestEnvironment::new();
    let mut client = Client::start(&environment, "worker");
    for (tool, arguments, words) in [
        ("notify", json!({}), "`message` is missing"),
        ("notify", json!({ "message": " " }), "the message is empty"),
        ("notify", json!({ "message": "a\u{0}b" }), "the message contains"),
        ("notify", json!({ "message": "x".repeat(70_000) }), "the message"),
        ("notify", json!({ "message": "x", "title": "t".repeat(70_000) }), "the title"),
        ("notify", json!({ "message": "x", "kind": "loud" }), "`kind` must be one of complete"),
        ("notify", json!({ "message": "x", "to": "a\nb" }), "contains"),
        ("notify", json!({ "message": "x", "source": "background_task" }), "needs an agent"),
        ("notify", json!({ "message": "x", "to": "w", "source": "user" }), "`source` must be one of"),
        (
            "notify",
            json!({ "message": "x", "to": "w", "source": "file_watcher", "kind": "permission" }),
            "cannot be of the kind",
        ),
        ("ask", json!({ "question": "" }), "the question is empty"),
        (
            "ask",
            json!({ "question": "x", "timeout_seconds": 4000 }),
            "`timeout_seconds` must be a whole number from 0 to 3600",
        ),
        ("ask", json!({ "question": "x", "options": [1] }), "`options` must be a list of texts"),
        ("answer", json!({ "id": "q-0-000000", "answer": "x" }), "error: "),
        ("inbox", json!({ "seen": "x" }), "`seen` must be a list of texts"),
        ("list", json!({ "limit": 0 }), "`limit` must be a whole number from 1 to 500"),
        ("status", json!({ "all": true }), "unknown parameter \"all\""),
        ("shout", json!({}), "unknown tool \"shout\""),
    ] {
        let (failed, text) = client.try_call(tool, &arguments);
        assert!(failed && text.contains(words), "{tool}: {text}");
    }
    // What is no request has an answer with its id, and the server goes on.
    client.stdio.write(b"{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"method\":\"tools/call\",\"params\":7}\n");
    let refused = client.message();
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!("x"), &json!(-32600)));
    assert_eq!(client.request("no/such", &json!({}))["error"]["code"], -32601);
    let long = vec![b'x'; 5_000_000];
    client.stdio.write(&long);
    client.stdio.write(b"\n");
    assert_eq!(client.message()["error"]["code"], -32600, "too long to be read");
    assert!(client.call("notify", &json!({ "message": "still here" })).starts_with("Sent"));
}

#[test]
fn a_question_is_answered_by_another_process() {
    let environment = TestEnvironment::new();
    let mut client = Client::start(&environment, "worker");
    let id = client.begin_call("ask", &json!({ "question": "Which?", "options": ["red", "blue"] }));
    let question = open_question(&environment);
    environment.run(&["answer", &question, "2"]);
    let answer = client.answer(id);
    assert_eq!(text_of(&answer), (false, "blue".to_owned()), "the answer, and not once more as a message");
    assert!(client.call("inbox", &json!({})).ends_with("Nothing waits for you."));
    // A question that has no answer in time stays open, and its answer comes later.
    let text = client.call("ask", &json!({ "question": "And now?", "timeout_seconds": 1 }));
    let question = open_question(&environment);
    assert!(text.contains("No answer within 1 s") && text.contains(&question), "{text}");
    environment.run(&["answer", &question, "go on"]);
    let text = client.call("status", &json!({}));
    assert!(
        text.contains("<notification") && text.contains("Answer to &quot;And now?&quot;: go on"),
        "{text}"
    );
    // One that is closed has no answer.
    let id = client.begin_call("ask", &json!({ "question": "Really?" }));
    environment.run(&["answer", "--close", &open_question(&environment)]);
    let (failed, text) = text_of(&client.answer(id));
    assert!(!failed && text.contains("was closed without an answer"), "{text}");
}

#[test]
fn an_agent_does_not_answer_the_dialog_of_another() {
    let environment = TestEnvironment::new();
    let input = json!({
        "hook_event_name": "PermissionRequest", "session_id": "0123456789", "cwd": environment.repository(),
        "tool_name": "Bash", "tool_input": { "command": "make" },
    });
    let mut hook = environment.ringer(&["hook", "claude", "PermissionRequest"]);
    check_with_input(&mut hook, input.to_string().as_bytes());
    let mut client = Client::start(&environment, "worker");
    let listed = client.call("list", &json!({}));
    let id = listed.split_whitespace().nth(1).expect("an id").to_owned();
    let (failed, text) = client.try_call("answer", &json!({ "id": id, "answer": "allow" }));
    assert!(failed && text.contains("must not answer what claude-01234567 asks"), "{text}");
    let open = read_json(&environment.run(&["answer", "--json", &id]));
    assert!(open.to_string().contains("make"), "it is still asked: {open}");
}

#[test]
fn a_home_that_is_removed_comes_back_only_with_a_message() {
    let environment = TestEnvironment::new();
    tell(&environment, "worker", "there is a journal");
    let mut client = Client::start(&environment, "worker");
    // After that it reads nothing until the next message.
    client.notification("notifications/claude/channel");
    // In one step: a thread that looks while the files go one after the other would open what is left of the journal.
    let removed = environment.path().join("removed");
    fs::rename(environment.home(), &removed).expect("it is there");
    fs::remove_dir_all(removed).expect("it is there");
    // A thread that made it again would do so before this is answered, or be seen below.
    assert!(client.request("ping", &json!({})).get("result").is_some());
    assert!(!environment.home().exists());
    client.call("notify", &json!({ "message": "a new journal" }));
    until("it waits for messages again", || doorbells(&environment) == 1);
    tell(&environment, "worker", "are you there?");
    assert_eq!(client.notification("notifications/claude/channel")["content"], "are you there?");
}

/// The doorbells at which something waits.
fn doorbells(environment: &TestEnvironment) -> usize {
    let bells = fs::read_dir(environment.home().join("bells")).expect("a directory");
    bells.flatten().filter(|entry| entry.path().extension().is_some_and(|kind| kind == "fifo")).count()
}

#[test]
fn a_cancelled_question_is_not_waited_for() {
    let environment = TestEnvironment::new();
    let mut client = Client::start(&environment, "worker");
    client.call("status", &json!({}));
    until("it waits for messages", || {
        environment.home().join("bells").exists() && doorbells(&environment) == 1
    });
    let id = client.begin_call("ask", &json!({ "question": "Which?", "timeout_seconds": 3600 }));
    let question = open_question(&environment);
    until("it waits for the answer", || doorbells(&environment) == 2);
    let cancelled = json!({ "requestId": id, "reason": "the person pressed escape" });
    client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled }));
    until("nothing waits for the answer", || doorbells(&environment) == 1);
    // The answer is not lost.
    environment.run(&["answer", &question, "late"]);
    assert!(client.call("inbox", &json!({})).contains("Answer to &quot;Which?&quot;: late"));
}

#[test]
fn a_client_that_wants_it_is_told_that_a_question_waits() {
    let environment = TestEnvironment::new();
    let mut client = Client::start(&environment, "worker");
    let arguments = json!({ "question": "Which?", "timeout_seconds": 60 });
    let call = json!({ "name": "ask", "arguments": arguments, "_meta": { "progressToken": "p1" } });
    let id = client.begin("tools/call", &call);
    let progress = client.notification("notifications/progress");
    assert_eq!((&progress["progressToken"], &progress["total"]), (&json!("p1"), &json!(60.0)));
    environment.run(&["answer", &open_question(&environment), "this one"]);
    assert_eq!(text_of(&client.answer(id)).1, "this one");
}

#[test]
fn what_waits_rides_on_the_next_result_once_and_is_then_seen() {
    let environment = TestEnvironment::new();
    environment.notify("there is a journal");
    let (mut worker, mut other) =
        (Client::start(&environment, "worker"), Client::start(&environment, "other"));
    let id = tell(&environment, "worker", "the build is <red>");
    // Both wait for messages now, and write no more than what is looked at here.
    until("both wait", || doorbells(&environment) == 2);
    worker.notification("notifications/claude/channel");
    assert!(!other.call("status", &json!({})).contains("the build"), "it is for another agent");
    // A result that is an error carries it, too.
    let (failed, text) = worker.try_call("answer", &json!({ "id": "q-0-000000", "answer": "x" }));
    assert!(
        failed
            && without_nonces(&text)
                .contains("<notification source=\"unverified\">\nthe build is &lt;red&gt;\n</notification>"),
        "{text}"
    );
    until("it is delivered", || receipt(&environment, &id) == "delivered");
    assert!(!worker.call("questions", &json!({})).contains("the build"));
    assert_eq!(receipt(&environment, &id), "seen", "the agent went on");
    // A message between the two, with its source.
    let task = json!({ "message": "make has ended", "to": "worker", "source": "background_task" });
    other.call("notify", &task);
    environment.run(&["notify", "--to", "worker", "--source", "ide_diagnostics", "unused variable"]);
    let text = worker.call("inbox", &json!({}));
    assert!(
        without_nonces(&text).starts_with("<notification source=\"background_task\">\nmake has ended"),
        "{text}"
    );
    assert!(
        without_nonces(&text).contains("<notification source=\"ide_diagnostics\">\nunused variable"),
        "{text}"
    );
    assert_eq!(worker.call("inbox", &json!({})), "Nothing waits for you.");
    let (_, text) = check(&mut environment.ringer(&["notify", "--source", "ide_diagnostics", "x"]), 64);
    assert!(text.contains("a source needs an agent"), "{text}");
    let (_, text) = check(&mut environment.ringer(&["notify", "--to", "w", "--source", "user", "x"]), 64);
    assert!(text.contains("unknown source"), "{text}");
}

#[test]
fn the_rate_of_a_source_holds_from_one_result_to_the_next() {
    let environment = TestEnvironment::in_memory();
    let mut worker = Client::start(&environment, "worker");
    for number in 0..35 {
        tell(&environment, "worker", &format!("news {number}."));
    }
    let count = |text: &str| text.matches("<notification ").count();
    assert_eq!(count(&worker.call("questions", &json!({}))), 30, "thirty in a minute");
    for number in 35..55 {
        tell(&environment, "worker", &format!("news {number}."));
    }
    assert_eq!(count(&worker.call("questions", &json!({}))), 0, "the minute is not over");
    let text = worker.call("inbox", &json!({}));
    assert_eq!(count(&text), 25, "what the agent asks for has no rate");
    assert!(text.contains("news 30.") && text.contains("news 54."), "nothing is lost: {text}");
}

#[test]
fn a_message_is_pushed_once_and_waits_until_it_was_read() {
    let environment = TestEnvironment::new();
    environment.notify("there is a journal");
    let mut client = Client::start(&environment, "worker");
    let first = tell(&environment, "worker", "stop, <channel> main is red");
    let push = client.notification("notifications/claude/channel");
    assert_eq!(push["content"], "stop, &lt;channel> main is red");
    assert_eq!(push["meta"], json!({ "message_id": first, "sender": "system", "kind": "status" }));
    assert_eq!(receipt(&environment, &first), "queued", "a push shows nothing");
    let second = tell(&environment, "worker", "it is green again");
    assert_eq!(
        client.notification("notifications/claude/channel")["meta"]["message_id"],
        second,
        "once each"
    );
    // The agent says which it has read; the other one comes with the result.
    let text = client.call("inbox", &json!({ "seen": [first, "no-such-id"] }));
    assert!(text.contains("Not in your inbox: no-such-id.") && text.contains("green again"), "{text}");
    assert!(!text.contains("main is red"), "{text}");
    assert_eq!(receipt(&environment, &first), "seen");
    until("it is delivered", || receipt(&environment, &second) == "delivered");
    assert!(client.notifications.is_empty(), "{:?}", client.notifications);
}

#[test]
fn the_lead_reads_what_is_for_the_lead() {
    let environment = TestEnvironment::new();
    environment.run(&["lead", "on"]);
    let input = json!({ "hook_event_name": "SessionStart", "session_id": "0123456789", "cwd": environment.repository() });
    let mut hook = environment.hook("claude", "SessionStart");
    check_with_input(&mut hook, input.to_string().as_bytes());
    let mut client = Client::start(&environment, "claude-01234567");
    environment.run(&["notify", "--from", "worker", "the tests are green"]);
    let push = client.notification("notifications/claude/channel");
    assert_eq!(
        (&push["content"], &push["meta"]["sender"]),
        (&json!("status: the tests are green"), &json!("worker"))
    );
    assert!(client.call("inbox", &json!({})).contains("status: the tests are green"));
}

#[test]
fn the_hub_that_it_starts_is_not_below_it() {
    let environment = TestEnvironment::new();
    let runtime = environment.path().join("run");
    fs::create_dir(&runtime).expect("a directory");
    let variables = [
        ("RINGER_AGENT", "worker"),
        ("RINGER_HUB", "on"),
        ("XDG_RUNTIME_DIR", runtime.to_str().expect("UTF-8")),
    ];
    for (tool, arguments) in [("notify", json!({ "message": "x" })), ("list", json!({}))] {
        let mut client = Client::unknown(&environment, &variables);
        client.initialize("2025-06-18");
        client.call(tool, &arguments);
        let mut hub = None;
        until("a hub runs", || {
            let status = environment.ringer(&["hub", "status", "--json"]).output().expect("it runs");
            let status: Value = serde_json::from_slice(&status.stdout).unwrap_or_default();
            hub = status["pid"].as_u64();
            hub.is_some()
        });
        let status = fs::read_to_string(format!("/proc/{}/status", hub.expect("it runs"))).expect("it runs");
        let parent = status.lines().find_map(|line| line.strip_prefix("PPid:")).expect("a parent");
        assert_ne!(parent.trim(), client.stdio.child.id().to_string());
        environment.run(&["hub", "stop"]);
        client.stdio.close();
        assert_eq!(client.stdio.end(), Some(0));
    }
}

#[test]
fn without_a_journal_the_tools_say_so() {
    let environment = TestEnvironment::new();
    fs::write(environment.home(), "this is no directory").expect("a file");
    let mut client = Client::start(&environment, "worker");
    for (tool, arguments) in
        [("notify", json!({ "message": "x" })), ("ask", json!({ "question": "x" })), ("inbox", json!({}))]
    {
        let (failed, text) = client.try_call(tool, &arguments);
        assert!(failed && text.starts_with("error: ") && text.contains("hint: "), "{text}");
    }
    // It can be used again when it is there.
    fs::remove_file(environment.home()).expect("it is there");
    client.call("notify", &json!({ "message": "x" }));
    tell(&environment, "worker", "here");
    assert_eq!(client.notification("notifications/claude/channel")["content"], "here");
    assert!(client.call("inbox", &json!({})).contains("here"));
}

#[test]
fn it_ends_with_its_client() {
    let environment = TestEnvironment::new();
    environment.notify("there is a journal");
    // An open question does not hold it up, and nothing that waits is left.
    let mut client = Client::start(&environment, "worker");
    client.begin_call("ask", &json!({ "question": "Which?", "timeout_seconds": 3600 }));
    open_question(&environment);
    until("both wait", || doorbells(&environment) == 2);
    client.stdio.close();
    assert_eq!(client.stdio.end(), Some(0));
    assert_eq!(doorbells(&environment), 0);
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let mut client = Client::start(&environment, "worker");
        client.call("status", &json!({}));
        client.stdio.signal(signal);
        assert_eq!(client.stdio.end(), Some(0));
    }
    // Before it was asked anything.
    let mut client = Client::unknown(&environment, &[]);
    client.stdio.close();
    assert_eq!(client.stdio.end(), Some(0));
}

#[test]
fn it_ends_without_a_word_if_nothing_reads_what_it_writes() {
    let environment = TestEnvironment::new();
    let mut command = environment.program(env!("CARGO_BIN_EXE_ringer"));
    let (reader, writer) = std::io::pipe().expect("a pipe");
    command.arg("mcp").stdin(Stdio::piped()).stdout(writer).stderr(Stdio::piped());
    let mut child = started("ringer", command.spawn());
    drop((reader, command));
    let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello });
    let mut input = child.stdin.take().expect("a pipe");
    input.write_all(format!("{hello}\n").as_bytes()).expect("it reads");
    // Its input stays open.
    let output = child.wait_with_output().expect("it ends");
    assert_eq!((output.status.code(), output.stderr), (Some(0), Vec::new()));
    drop(input);
}

#[test]
fn many_calls_at_once_are_all_answered() {
    let environment = TestEnvironment::in_memory();
    let mut client = Client::start(&environment, "worker");
    for number in 0..100 {
        client.begin_call("notify", &json!({ "message": format!("number {number}") }));
    }
    let mut answered: Vec<u64> = (0..100).filter_map(|_| client.message()["id"].as_u64()).collect();
    answered.sort_unstable();
    assert_eq!(answered, (2..102).collect::<Vec<u64>>());
    assert_eq!(environment.run(&["log"]).lines().count(), 100);
}
