//! A checkout brings programs along. None of them runs unless the person has trusted exactly that one.

use std::fs;
use std::path::Path;

use serde_json::json;
use test_support::until;

use super::environment::HubEnvironment;
use crate::listen::repository::{committed, git};
use crate::ringer::{check, json};

fn set_hook(root: &Path, content: &str, ran: &Path) {
    let script = format!("cat > /dev/null; echo {content} >> '{}'", ran.display());
    let hook = format!("[[hook]]\nid = \"format\"\ncommand = {}\n", json!(["sh", "-c", script]));
    fs::write(root.join(".ringer.toml"), hook).expect("a file");
}

/// Sends a message from a directory. Gives its id.
fn notify(environment: &HubEnvironment, directory: &Path, surface: &str) -> String {
    let mut command = environment.ringer(&["notify", "--json", "hello"]);
    command.current_dir(directory).env("RINGER_SURFACE", surface);
    json(&check(&mut command, 0).0)["id"].as_str().expect("an id").to_owned()
}

fn trail(environment: &HubEnvironment, id: &str) -> Vec<String> {
    let why = environment.json(&["why", "--json", id]);
    let steps = why["trail"].as_array().into_iter().flatten();
    steps.filter_map(|step| step["text"].as_str().map(str::to_owned)).collect()
}

#[test]
fn an_untrusted_program_of_another_worktree_never_takes_the_place_of_a_trusted_one() {
    // The first hook, the person's own, holds every message until the test lets it go.
    let script = "cat > /dev/null; echo >> started; while ! [ -e go ]; do sleep 0.02; done";
    let slow =
        format!("[[hook]]\nid = \"slow\"\ntimeout_ms = 60000\ncommand = {}\n", json!(["sh", "-c", script]));
    let environment =
        HubEnvironment::with_settings(&format!("[notify]\nrate_limit = \"off\"\npopup = \"off\"\n{slow}"));
    let place = environment.base.path();
    let (one, two, ran) = (committed(&environment.base), place.join("two"), place.join("ran"));
    let (from, to) = (one.to_str().expect("text"), two.to_str().expect("text"));
    git(&environment.base, &["-C", from, "worktree", "add", "--quiet", "-b", "pr", to]);
    set_hook(&one, "trusted", &ran);
    set_hook(&two, "UNTRUSTED", &ran);
    check(environment.ringer(&["trust", "--yes"]).current_dir(&one), 0);

    let started = || fs::read_to_string(place.join("started")).unwrap_or_default().lines().count();
    let first = notify(&environment, &one, "s1");
    // So is what tells of the trust, which no person at a terminal gave.
    until("the first is with the slow hook", || started() == 2);
    let second = notify(&environment, &two, "s2");
    until("the second is with the slow hook", || started() == 3);
    fs::write(place.join("go"), "").expect("a file");
    let decided = |id: &str| trail(&environment, id).iter().any(|step| step.starts_with("channels: "));
    until("both are decided", || decided(&first) && decided(&second));

    assert_eq!(fs::read_to_string(&ran).expect("one ran"), "trusted\n");
    let about = |id: &str| {
        let steps = trail(&environment, id).into_iter().filter(|step| step.starts_with("hook format "));
        steps.collect::<Vec<_>>()
    };
    assert!(about(&first)[0].starts_with("hook format changed nothing"), "{:?}", about(&first));
    assert_eq!(about(&second), ["hook format did not run: not trusted"]);
}
