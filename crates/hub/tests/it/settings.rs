//! Settings that change, and settings that are broken.

use serde_json::Value;

use crate::hub::{EventStream, Sink, TestHub};

#[track_caller]
fn told(toasts: &EventStream, says: &str) {
    toasts.next(says, |data| data["text"].as_str().is_some_and(|text| text.contains(says)));
}

#[test]
fn a_broken_file_leaves_the_last_good_settings_and_is_told() {
    let directory = tempfile::tempdir().expect("a directory");
    let sink = Sink::new(directory.path());
    let hub = TestHub::start(&format!("[notify]\npopup = \"off\"\n{}", sink.command()));
    let toasts = hub.follow("toast");
    hub.send("before");
    sink.wait_for(&["before"]);
    hub.set("[notify]\npopup = 7\n");
    told(&toasts, "config.toml:2:9");
    hub.send("while it is broken");
    sink.wait_for(&["while it is broken"]);
}

#[test]
fn a_hub_that_begins_with_a_broken_file_says_so() {
    let hub = TestHub::start("[notify]\nrign = true\n");
    let toasts = hub.follow("toast");
    told(&toasts, "unknown key notify.rign");
    let toast = hub.call("hub.status", &Value::Null)["toast"].clone();
    assert!(toast.as_str().is_some_and(|text| text.contains("rign")), "{toast}");
}

#[test]
fn what_breaks_a_second_time_is_told_a_second_time() {
    let hub = TestHub::start("[notify]\nrign = true\n");
    let toasts = hub.follow("toast");
    told(&toasts, "notify.rign");
    hub.set("[notify]\nring = true\n");
    toasts.next("it is taken away when it is mended", Value::is_null);
    hub.set("[notify]\npopup = 7\n");
    told(&toasts, "config.toml:2:9");
}

#[test]
fn new_settings_hold_without_a_restart() {
    let directory = tempfile::tempdir().expect("a directory");
    let sink = Sink::new(directory.path());
    let hub = TestHub::start("[notify]\npopup = \"off\"\n");
    let before = hub.send("before");
    hub.wait_for_step(&before, "channels: ");
    hub.set(&format!("[notify]\npopup = \"off\"\nmute = [{{ agent = \"noisy\" }}]\n{}", sink.command()));
    hub.send("after");
    sink.wait_for(&["after"]);
    assert_eq!(sink.lines(), ["after"]);
}
