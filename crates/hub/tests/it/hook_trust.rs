//! Settings and trust that change while a notification is with the hooks: only what was ordered and is still trusted runs.

use std::fs;
use std::path::{Path, PathBuf};

use ringer_config::Trusted;
use ringer_core::MessageId;
use ringer_hub::trust_file;
use serde_json::{Value, json};
use test_support::until;

use crate::hub::TestHub;
use crate::repositories::{from, set_hook, trust, worktree};

/// A hub whose first hook, the person's own, begins and then waits until the test lets it end. Beside the settings stand the
/// files `started`, a line for each time it began, and `go`.
struct SlowHub {
    hub: TestHub,
    ran: PathBuf,
}

/// The person's settings, with these hooks behind the slow one.
fn own_settings(more: &str) -> String {
    let script = "cat > seen; echo >> started; while ! [ -e go ]; do sleep 0.02; done";
    let slow =
        format!("[[hook]]\nid = \"slow\"\ntimeout_ms = 60000\ncommand = {}\n", json!(["sh", "-c", script]));
    format!("[notify]\npopup = \"off\"\nrate_limit = \"off\"\n{slow}{more}")
}

impl SlowHub {
    fn start(more: &str) -> Self {
        let hub = TestHub::start(&own_settings(more));
        let ran = hub.path("ran");
        Self { hub, ran }
    }

    /// A worktree whose hook `format` writes down that it ran, and for which content.
    fn worktree(&self, name: &str, content: &str) -> PathBuf {
        let root = worktree(&self.hub, name);
        self.edit(&root, content);
        root
    }

    fn edit(&self, root: &Path, content: &str) {
        set_hook(root, "format", &self.script(content));
    }

    fn script(&self, content: &str) -> String {
        format!("cat > /dev/null; echo {content} >> '{}'", self.ran.display())
    }

    /// Sends a message, and waits until it is with the slow hook.
    fn send(&self, root: &Path, surface: &str) -> MessageId {
        let begun = self.started();
        let mut draft = from(root, surface);
        draft.origin.surface = Some(surface.to_owned());
        let id = self.hub.append(&draft);
        until("the slow hook begins", || self.started() > begun);
        id
    }

    fn started(&self) -> usize {
        fs::read_to_string(self.hub.path("started")).unwrap_or_default().lines().count()
    }

    /// Lets the slow hook end. Gives the steps of a notification about the hook `format`, and what ran.
    fn go_on(&self, id: &MessageId) -> (Vec<String>, Vec<String>) {
        fs::write(self.hub.path("go"), "").expect("a file");
        let trail = self.hub.wait_for_step(id, "channels: ");
        let about = trail.into_iter().filter(|step| step.starts_with("hook format "));
        let ran = fs::read_to_string(&self.ran).unwrap_or_default();
        (about.collect(), ran.lines().map(str::to_owned).collect())
    }

    /// Lets the hub look at all files. It may have looked by itself before.
    fn reload(&self) {
        self.hub.call("hub.reload", &Value::Null);
    }
}

#[test]
fn another_program_of_the_same_position_and_id_does_not_run() {
    let slow = SlowHub::start("");
    let (one, two) = (slow.worktree("one", "trusted"), slow.worktree("two", "untrusted"));
    trust(&slow.hub, &one);
    slow.reload();
    let first = slow.send(&one, "s1");
    // Of the same repository: its hook takes the position of the other one.
    let second = slow.send(&two, "s2");
    let (trail, ran) = slow.go_on(&first);
    assert!(trail[0].starts_with("hook format changed nothing"), "{trail:?}");
    assert_eq!(ran, ["trusted"]);
    let (trail, ran) = slow.go_on(&second);
    assert_eq!(trail, ["hook format did not run: not trusted"]);
    assert_eq!(ran, ["trusted"]);
}

#[test]
fn what_waits_for_its_surface_has_the_hooks_of_its_own_worktree() {
    let slow = SlowHub::start("");
    let (one, two) = (slow.worktree("one", "trusted"), slow.worktree("two", "untrusted"));
    trust(&slow.hub, &one);
    slow.reload();
    let before = slow.send(&one, "s1");
    let mut waiting = from(&one, "waits");
    waiting.origin.surface = Some("s1".to_owned());
    let waiting = slow.hub.append(&waiting);
    slow.send(&two, "s2");
    slow.go_on(&before);
    let (trail, ran) = slow.go_on(&waiting);
    assert!(trail[0].starts_with("hook format changed nothing"), "{trail:?}");
    assert_eq!(ran, ["trusted", "trusted"]);
}

#[test]
fn trust_that_is_withdrawn_while_it_waits_counts() {
    let slow = SlowHub::start("");
    let one = slow.worktree("one", "trusted");
    trust(&slow.hub, &one);
    slow.reload();
    let id = slow.send(&one, "s1");
    // The hub is not told of it.
    Trusted::default().save(&trust_file(slow.hub.home())).expect("it is written");
    let (trail, ran) = slow.go_on(&id);
    assert_eq!(trail, ["hook format did not run: it is no longer trusted"]);
    assert!(ran.is_empty(), "{ran:?}");
}

#[test]
fn trust_that_is_withdrawn_before_a_message_comes_counts_for_it() {
    let slow = SlowHub::start("");
    let one = slow.worktree("one", "trusted");
    trust(&slow.hub, &one);
    slow.reload();
    fs::write(slow.hub.path("go"), "").expect("a file");
    let id = slow.send(&one, "s1");
    assert_eq!(slow.go_on(&id).1, ["trusted"]);
    // The hub is not told of it, and has just looked.
    Trusted::default().save(&trust_file(slow.hub.home())).expect("it is written");
    let id = slow.send(&one, "s2");
    let (trail, ran) = slow.go_on(&id);
    assert_eq!(trail, ["hook format did not run: not trusted"]);
    assert_eq!(ran, ["trusted"]);
}

#[test]
fn a_file_that_changes_while_its_hook_waits_counts() {
    let slow = SlowHub::start("");
    let one = slow.worktree("one", "trusted");
    trust(&slow.hub, &one);
    slow.reload();
    let id = slow.send(&one, "s1");
    slow.edit(&one, "changed");
    slow.reload();
    let (trail, ran) = slow.go_on(&id);
    let file = one.join(".ringer.toml");
    assert_eq!(trail, [format!("hook format did not run: {} no longer names it", file.display())]);
    assert!(ran.is_empty(), "{ran:?}");
}

#[test]
fn the_persons_own_hook_that_is_taken_out_or_changed_while_it_waits_does_not_run() {
    for after in ["", "changed"] {
        let slow = SlowHub::start("");
        let format = |content: &str| {
            format!("[[hook]]\nid = \"format\"\ncommand = {}\n", json!(["sh", "-c", slow.script(content)]))
        };
        slow.hub.set(&own_settings(&format("own")));
        let id = slow.send(&slow.hub.path("nowhere"), "s1");
        let now = if after.is_empty() { String::new() } else { format(after) };
        fs::write(slow.hub.path("config.toml"), own_settings(&now)).expect("a file");
        let (trail, ran) = slow.go_on(&id);
        let file = slow.hub.path("config.toml");
        assert_eq!(trail, [format!("hook format did not run: {} no longer names it", file.display())]);
        assert!(ran.is_empty(), "{ran:?}");
    }
}
