//! The example of a harness, against a stand-in for a model's server: what enters the conversation, as the model gets it.

use std::thread;

use ringer_journal::Home;
use serde_json::{Value, json};
use test_support::{Answer, Messages, Model, without_nonces};

use crate::home::TestEnvironment;
use crate::ringer::json as parsed;
use crate::stdio_client::receipt;

#[path = "../../examples/harness.rs"]
#[expect(dead_code, reason = "its main is for the command line")]
mod example;

/// Begins a turn of the agent `worker`.
fn begin(environment: &TestEnvironment, model: &Model) -> thread::JoinHandle<Result<String, String>> {
    let (home, url) = (Home::new(environment.home()), model.url());
    thread::spawn(move || {
        let harness = example::Harness::new(&home, "worker", &url);
        harness.and_then(|mut harness| harness.run("do it")).map_err(|error| error.to_string())
    })
}

/// Sends a message to the agent. Gives its id.
#[track_caller]
fn notify(environment: &TestEnvironment, text: &str) -> String {
    let sent = environment.run(&["notify", "--from", "lead", "--to", "worker", "--json", text]);
    parsed(&sent)["id"].as_str().expect("an id").to_owned()
}

/// The conversation of a request.
#[track_caller]
fn conversation(model: &Model) -> (Value, Vec<Value>) {
    let body = model.request().body().clone();
    let messages = body["messages"].as_array().expect("messages").clone();
    (body, messages)
}

/// Checks a call that no model made, and its result.
#[track_caller]
fn check_pair(call: &Value, answer: &Value, text: &str) {
    let id = call["id"].as_str().expect("an id");
    assert!(id.starts_with("notif_"), "{call}");
    assert_eq!(*call, json!({ "type": "tool_use", "id": id, "name": "_system_notification", "input": {} }));
    let block = format!("<notification source=\"agent:lead\">\n{text}\n</notification>");
    let content = answer["content"][0]["content"].as_str().expect("a text");
    assert_eq!(without_nonces(content), block);
    assert_ne!(content, block, "it has a nonce");
    let result = json!({ "type": "tool_result", "tool_use_id": id, "content": content });
    assert_eq!(*answer, json!({ "role": "user", "content": [result] }));
}

#[test]
fn a_message_is_an_event_of_its_own() {
    let environment = TestEnvironment::new();
    let model = Model::new(&Messages);
    let turn = begin(&environment, &model);
    let (body, messages) = conversation(&model);
    assert_eq!(messages, [json!({ "role": "user", "content": "do it" })]);
    let tool =
        body["tools"].as_array().expect("tools").iter().find(|tool| tool["name"] == "_system_notification");
    assert_eq!(tool.expect("the tool is defined")["input_schema"]["type"], "object");
    assert!(body["system"].as_str().is_some_and(|text| text.contains("_system_notification")), "{body}");

    // While the model works: after the tool's own result, which stays as it is.
    let first = notify(&environment, "main is red <&> \"now\"");
    model.answer(Answer::tool("Bash", json!({ "command": "echo built" })));
    let (_, messages) = conversation(&model);
    assert_eq!(messages.len(), 5, "{messages:?}");
    assert_eq!(messages[2]["content"][0]["content"], "built\n");
    check_pair(&messages[3]["content"][0], &messages[4], "main is red &lt;&amp;&gt; &quot;now&quot;");
    assert_eq!(receipt(&environment, &first), "leased", "the model has not answered");

    // When it has no more to do, it is asked once more.
    let second = notify(&environment, "and now green");
    model.answer(Answer::Text("done"));
    let (_, messages) = conversation(&model);
    assert_eq!(messages.len(), 7, "{messages:?}");
    assert_eq!(messages[5]["role"], "assistant");
    assert_eq!(messages[5]["content"][0], json!({ "type": "text", "text": "done" }));
    check_pair(&messages[5]["content"][1], &messages[6], "and now green");
    assert_eq!(receipt(&environment, &first), "seen");

    model.answer(Answer::Text("I saw it"));
    assert_eq!(turn.join().expect("it ends"), Ok("I saw it".to_owned()));
    assert_eq!(receipt(&environment, &second), "seen");
    assert!(!model.has_request());
}

#[test]
fn what_the_server_did_not_take_waits_on() {
    let environment = TestEnvironment::new();
    let id = notify(&environment, "main is red");
    let model = Model::new(&Messages);
    model.answer(Answer::Error { status: 529, kind: "overloaded_error" });
    let failed = begin(&environment, &model).join().expect("it ends");
    assert!(
        failed.as_ref().is_err_and(|error| error.contains("529") && error.contains("overloaded")),
        "{failed:?}"
    );
    let (_, messages) = conversation(&model);
    check_pair(&messages[1]["content"][0], &messages[2], "main is red");
    assert_eq!(receipt(&environment, &id), "queued");
}
