//! Hook programs: what they change, what their failures do, and whose may run.

use std::fs;

use ringer_config::{Trusted, load_repository};
use ringer_core::message::MessageOrigin;
use ringer_core::{Draft, Scope};
use ringer_hub::trust_file;
use serde_json::{Value, json};

use crate::hub::{TestHub, draft};

fn hook(id: &str, script: &str, more: &str) -> String {
    format!("[[hook]]\nid = \"{id}\"\ncommand = {}\n{more}\n", json!(["sh", "-c", script]))
}

fn hub(hooks: &[String]) -> TestHub {
    TestHub::start(&format!("[notify]\npopup = \"off\"\nrate_limit = \"off\"\n{}", hooks.concat()))
}

fn is_toast(data: &Value, begin: &str) -> bool {
    data["text"].as_str().is_some_and(|text| text.starts_with(begin))
}

#[test]
fn each_sees_what_the_one_before_it_left_until_one_stops() {
    let hub = hub(&[
        hook("title", r#"echo '{"notification":{"title":"patched","surfaceId":"other"}}'"#, ""),
        hook("body", r#"cat > seen; echo '{"notification":{"body":"by hook"},"stop":true}'"#, ""),
        hook("never", "touch ran", ""),
    ]);
    let id = hub.send_from("tmux:s1", "as sent");
    let trail = hub.wait_for_step(&id, "channels: ");
    assert!(trail.contains(&"hook body stopped the hooks after it".to_owned()), "{trail:?}");
    let rows = hub.call("notification.list", &Value::Null);
    let row = &rows[0];
    assert_eq!((&row["title"], &row["body"]), (&"patched".into(), &"by hook".into()), "{row}");
    assert_eq!(row["surface"], "tmux:s1", "ids in a patch are ignored");
    let seen: Value = serde_json::from_slice(&fs::read(hub.path("seen")).expect("its input")).expect("JSON");
    assert_eq!(seen["notification"]["title"], "patched");
    assert_eq!((&seen["version"], &seen["context"]["hookId"]), (&1.into(), &"body".into()), "{seen}");
    assert_eq!(seen["effects"]["desktop"], true, "{seen}");
    assert!(!hub.path("ran").exists(), "the chain was over");
}

#[test]
fn switches_are_turned_off_one_by_one() {
    let hub = hub(&[hook("quiet", r#"echo '{"effects":{"markUnread":false}}'"#, "")]);
    let id = hub.send("hello");
    hub.wait_for_step(&id, "channels: ");
    assert!(hub.is_read(&id));
    hub.set(&format!(
        "[notify]\npopup = \"off\"\n{}",
        hook("drop", r#"echo '{"effects":{"record":false}}'"#, "")
    ));
    let id = hub.send("never there");
    hub.wait_for_step(&id, "channels: ");
    assert_eq!(hub.call("notification.list", &Value::Null).as_array().map(Vec::len), Some(1));
}

#[test]
fn a_failure_costs_its_own_patch_and_is_told_once() {
    let hub = hub(&[
        hook("good", r#"echo '{"notification":{"title":"kept"}}'"#, ""),
        hook("bad", r#"echo '{"notification":{"title":"lost"}}'; exit 3"#, ""),
        hook("nonsense", "echo no json", ""),
    ]);
    let toasts = hub.follow("toast");
    for number in 0..3 {
        let id = hub.send(&format!("number {number}"));
        let trail = hub.wait_for_step(&id, "channels: ");
        assert!(trail.iter().any(|step| step.starts_with("hook bad failed: ")), "{trail:?}");
        assert!(trail.iter().any(|step| step.starts_with("hook nonsense failed: ")), "{trail:?}");
    }
    let rows = hub.call("notification.list", &Value::Null);
    assert!(rows.as_array().expect("rows").iter().all(|row| row["title"] == "kept"), "{rows}");
    toasts.next("a toast of the failure", |data| is_toast(data, "notification hook bad: "));
    // What waits behind it is shown when it is taken away.
    hub.call("toast.remove", &json!({ "key": "hook-failed-bad" }));
    toasts.next("a toast of the other", |data| is_toast(data, "notification hook nonsense: "));
    hub.call("toast.remove", &json!({ "key": "hook-failed-nonsense" }));
    toasts.next("an empty footer", Value::is_null);
    assert_eq!(toasts.count(|data| is_toast(data, "notification hook")), 0, "each of them once");
}

#[test]
fn one_that_fails_closed_takes_the_notification_along() {
    let hub = hub(&[hook("strict", "exit 1", "on_failure = \"suppress\"")]);
    let id = hub.send("hello");
    let trail = hub.wait_for_step(&id, "channels: ");
    assert!(
        trail.contains(&"not shown: hook strict failed and has on_failure = \"suppress\"".to_owned()),
        "{trail:?}"
    );
    assert_eq!(hub.call("notification.list", &Value::Null), json!([]));
    assert_eq!(hub.journal().messages_after(0, 10).expect("messages").len(), 1, "the journal has it");
}

#[test]
fn one_that_takes_too_long_or_says_too_much_has_failed() {
    let hub =
        hub(&[hook("slow", "sleep 1000", "timeout_ms = 100"), hook("loud", "yes | head -c 3000000", "")]);
    let id = hub.send("hello");
    let trail = hub.wait_for_step(&id, "channels: ");
    for begin in ["hook slow failed: ", "hook loud failed: "] {
        assert!(trail.iter().any(|step| step.starts_with(begin)), "{trail:?}");
    }
}

#[test]
fn a_repositorys_hook_runs_once_it_is_trusted() {
    let hub = hub(&[]);
    let toasts = hub.follow("toast");
    let repository = hub.path("checkout");
    fs::create_dir_all(repository.join(".git/objects")).expect("a directory");
    fs::create_dir_all(repository.join(".git/refs")).expect("a directory");
    fs::write(repository.join(".git/HEAD"), "ref: refs/heads/main\n").expect("a file");
    let script = r#"echo '{"notification":{"title":"by the repository"}}'"#;
    fs::write(repository.join(".ringer.toml"), hook("theirs", script, "")).expect("a file");
    let scope = Scope::new("0a0a0a0a").expect("a scope");
    let origin = MessageOrigin { cwd: repository.to_str().map(str::to_owned), ..MessageOrigin::default() };
    let message = |body| Draft { scope: scope.clone(), origin: origin.clone(), ..draft(body) };

    let id = hub.append(&message("before"));
    let trail = hub.wait_for_step(&id, "channels: ");
    assert!(trail.contains(&"hook theirs did not run: not trusted".to_owned()), "{trail:?}");
    toasts.next("a toast says so", |data| is_toast(data, "notification hook theirs: not trusted"));

    let settings = load_repository(&repository, None).expect("settings");
    let mut trusted = Trusted::default();
    trusted.trust(&settings.hooks[0]);
    trusted.save(&trust_file(hub.home())).expect("it is written");
    hub.call("hub.reload", &Value::Null);
    let id = hub.append(&message("after"));
    hub.wait_for_step(&id, "hook theirs changed it");
    let elsewhere = hub.send("from no repository");
    let trail = hub.wait_for_step(&elsewhere, "channels: ");
    assert!(!trail.iter().any(|step| step.contains("theirs")), "{trail:?}");

    // Another content, the same name: it is asked again.
    fs::write(repository.join(".ringer.toml"), hook("theirs", "reboot", "")).expect("a file");
    hub.call("hub.reload", &Value::Null);
    let id = hub.append(&message("changed"));
    hub.wait_for_step(&id, "hook theirs did not run: not trusted");
}
