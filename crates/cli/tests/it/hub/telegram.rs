//! A webhook to Telegram, against a server on this machine that answers as the Bot API does.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::Value;
use test_support::{BOT_TOKEN, DEADLINE, WebResponse, serve, until};

use super::environment::HubEnvironment;
use crate::ringer::{check, json};

fn settings(address: &str, query: &str) -> String {
    format!(
        "[notify]\npopup = \"off\"\n[[webhook]]\nkind = \"telegram\"\nurl = \"{address}/?{query}\"\nsecret_file = \"token\"\n"
    )
}

fn set_token(environment: &HubEnvironment, token: &str) {
    let path = environment.base.path().join("token");
    fs::write(&path, token).expect("a secret");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("its mode");
}

/// What `ringer doctor` says of the webhook.
#[track_caller]
fn doctor(environment: &HubEnvironment, arguments: &[&str], exit: i32) -> Value {
    let arguments = [&["doctor", "--json"], arguments].concat();
    let report = json(&check(&mut environment.ringer(&arguments), exit).0);
    let rows = report["rows"].as_array().expect("rows");
    rows.iter().find(|row| row["part"] == "webhook telegram").expect("a row").clone()
}

#[test]
fn telegram_gets_a_question_and_a_test() {
    let (address, sent) = serve(vec![WebResponse::BotApi, WebResponse::BotApi]);
    let environment = HubEnvironment::with_settings(&settings(&address, "chat_id=42"));
    set_token(&environment, BOT_TOKEN);
    let row = doctor(&environment, &["--send"], 0);
    assert_eq!((&row["verdict"], &row["what"]), (&"ok".into(), &"127.0.0.1 accepted it".into()), "{row}");
    let body: Value = json(&sent.recv_timeout(DEADLINE).expect("a request").body);
    assert_eq!(body["text"], "Ringer\nringer doctor: this channel works");
    assert_eq!(body["disable_notification"], true);

    let id = environment.notify(&["--kind", "question", "--title", "<b>Deploy</b>", "May *I*?"]);
    let body: Value = json(&sent.recv_timeout(DEADLINE).expect("a request").body);
    assert_eq!((&body["text"], &body["chat_id"]), (&"<b>Deploy</b>\nMay *I*?".into(), &42.into()));
    assert_eq!(body["disable_notification"], false);
    until("why names it", || environment.run(&["why", &id]).contains("webhook: sent to telegram"));
}

#[test]
fn telegram_is_a_dead_letter_without_its_token() {
    let (address, _sent) = serve(vec![WebResponse::BotApi, WebResponse::BotApi]);
    let environment = HubEnvironment::with_settings(&settings(&address, "chat_id=42"));
    let wrong = "123456:wrong-token";
    set_token(&environment, wrong);
    let row = doctor(&environment, &["--send"], 1);
    let refused =
        "127.0.0.1 rejected it: 401 Unauthorized: Unauthorized (is it the token that @BotFather gave you?)";
    assert_eq!((&row["verdict"], &row["what"]), (&"broken".into(), &refused.into()), "{row}");

    let id = environment.notify(&["hello"]);
    let mut why = String::new();
    until("why names it", || {
        why = environment.run(&["why", &id]);
        why.contains(&format!("webhook failed: telegram: {refused}"))
    });
    let mut report = String::new();
    until("a dead letter", || {
        report = environment.run(&["doctor"]);
        report.contains("dead letter") && report.contains("to webhook: telegram: ")
    });
    for text in [row.to_string(), why, report, environment.log(), environment.run(&["config", "show"])] {
        assert!(!text.contains("wrong-token"), "{text}");
    }
    set_token(&environment, "hunter2");
    let row = doctor(&environment, &["--send"], 1).to_string();
    assert!(row.contains("it is not the token of a bot") && !row.contains("hunter2"), "{row}");
}

#[test]
fn telegram_without_a_chat_or_a_token_is_an_error_of_the_settings() {
    let environment = HubEnvironment::with_settings(&settings("https://api.telegram.org", ""));
    let err = environment.fails(&["config", "check"], 78);
    let place = format!("{}:5:7: webhook.url cannot be used: ", environment.config().display());
    assert!(err.contains(&format!("{place}it names no chat; write ")), "{err}");
    let settings = "[[webhook]]\nkind = \"telegram\"\nurl = \"https://api.telegram.org/?chat_id=42\"\n";
    environment.set(settings);
    let err = environment.fails(&["config", "check"], 78);
    assert!(err.contains("3:7: webhook.url cannot be used: it has no token of a bot; write "), "{err}");
    environment.set(&settings.replace("org/?", "org/bot123456:secret/sendMessag?"));
    let err = environment.fails(&["config", "check"], 78);
    assert!(!err.contains("123456"), "{err}");
}
