//! Many notifications of one terminal in a short time: a few are delivered, and none is lost.

use std::fs;
use std::process::Child;

use serde_json::Value;
use test_support::until;

use super::environment::HubEnvironment;
use crate::ringer::check;

#[test]
fn sixty_of_a_terminal_at_once_are_a_handful_of_deliveries_and_one_unread_row() {
    let environment = HubEnvironment::new();
    let noted = environment.base.path().join("noted");
    environment.set(&format!(
        "[notify]\nrate_limit = \"off\"\npopup = \"off\"\n\
         command = [\"sh\", \"-c\", 'echo \"$RINGER_NOTIFICATION_BODY\" >> \"$0\"', {noted:?}]\n"
    ));
    environment.run(&["hub", "start"]);
    let send = |number: usize| -> Child {
        let body = format!("waiting {number}");
        let mut command = environment.ringer(&["notify", "--kind", "waiting", &body]);
        command.env("RINGER_SURFACE", "s").env("RINGER_WORKSPACE", "w").spawn().expect("it starts")
    };
    let running: Vec<Child> = (0..60).map(send).collect();
    for mut child in running {
        assert!(child.wait().expect("it ends").success());
    }
    let delivered = || fs::read_to_string(&noted).unwrap_or_default();
    // A newer one takes the place of those that are not sent yet.
    until("the last is sent", || delivered().contains(" like this)"));
    let rows = delivered().lines().count();
    assert!(rows <= 20, "{}", delivered());
    until("one is unread", || environment.list(&["--unread"]).len() == 1);
    assert!(environment.bodies(&["--unread"])[0].ends_with(" like this)"));
    let mut listed = environment.bodies(&["--all", "--limit", "100"]);
    assert_eq!(listed.len(), 60, "the journal has all");
    listed.reverse();
    let own = |text: &str| text.split(" (+").next().map(str::to_owned);
    let place = |line: &str| listed.iter().position(|body| own(line) == own(body));
    let places: Vec<Option<usize>> = delivered().lines().map(place).collect();
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "in order: {places:?}");
}

#[test]
fn what_is_marked_unread_counts_once_everywhere() {
    let environment = HubEnvironment::new();
    check(environment.ringer(&["notify", "one"]).env("RINGER_SURFACE", "s").env("RINGER_WORKSPACE", "w"), 0);
    environment.run(&["read", "--all"]);
    let unread = || {
        let mut hub = environment.connect();
        let workspaces = hub.call("workspace.list", &Value::Null)["result"].clone();
        let listed = workspaces.as_array().expect("rows").iter().filter_map(|row| row["unread"].as_u64());
        (listed.sum::<u64>(), hub.call("hub.status", &Value::Null)["result"]["unread"].as_u64())
    };
    assert_eq!(environment.run(&["unread", "--workspace", "w"]), "1 unread again\n");
    assert_eq!(environment.run(&["unread", "--workspace", "w"]), "0 unread again\n", "it was");
    assert_eq!(unread(), (1, Some(1)));
    assert_eq!(environment.run(&["read", "--workspace", "w"]), "1 read\n");
    assert_eq!(unread(), (0, Some(0)));
}
