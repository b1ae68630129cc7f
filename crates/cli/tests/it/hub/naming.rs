//! Naming one notification: short ids, `last` and pieces of ids, with a hub and without.

use serde_json::Value;

use super::environment::HubEnvironment;
use crate::ringer::{check, json};

fn short_id(row: &Value) -> String {
    row["short_id"].as_str().expect("a short id").to_owned()
}

#[test]
fn every_command_takes_a_short_id_last_and_a_piece() {
    let environment = HubEnvironment::new();
    let ids: Vec<String> = ["a", "b", "c"].iter().map(|body| environment.notify(&[body])).collect();
    let rows = environment.list(&[]);
    let short: Vec<String> = rows.iter().rev().map(short_id).collect();
    assert!(short.iter().all(|short| (4..=6).contains(&short.len())), "{short:?}");
    let words = environment.run(&["list"]);
    assert!(short.iter().all(|short| words.contains(short)), "{words}");

    assert_eq!(environment.run(&["read", &short[0], "last"]), "2 read\n");
    assert_eq!(environment.bodies(&["--unread"]), ["b"]);
    assert_eq!(
        environment.json(&["unread", &ids[0][19..], "--json"])["unread_again"],
        1,
        "a piece of the id"
    );
    assert_eq!(environment.run(&["clear", &short[0].to_uppercase()]), "1 removed\n");

    let why = environment.run(&["why", &short[1]]);
    assert!(why.starts_with(&format!("{}  b\n", short[1])), "{why}");
    assert!(environment.run(&["why"]).starts_with(&format!("{}  c\n", short[2])), "the newest");
    assert_eq!(environment.json(&["why", "last", "--json"])["id"], ids[2].as_str());
    let complaint = environment.fails(&["jump", &short[1]], 69);
    assert!(complaint.contains("cannot jump"), "{complaint}");
}

#[test]
fn without_a_hub_the_same_names_mean_the_same() {
    let environment = HubEnvironment::new();
    environment.notify(&["a"]);
    environment.notify(&["b"]);
    let with_hub: Vec<String> = environment.list(&[]).iter().map(short_id).collect();
    environment.run(&["hub", "stop"]);
    let off = |arguments: &[&str]| {
        let mut command = environment.ringer(arguments);
        command.env("RINGER_HUB", "off");
        check(&mut command, 0).0
    };
    let rows = json(&off(&["list", "--json"]));
    let without: Vec<String> = rows.as_array().expect("a list").iter().map(short_id).collect();
    assert_eq!(without, with_hub);
    off(&["read", &without[1]]);
    assert_eq!(json(&off(&["list", "--unread", "--json"])).as_array().map(Vec::len), Some(1));
    assert!(off(&["why", &without[1]]).starts_with(&format!("{}  a\n", without[1])));
    assert!(off(&["why"]).starts_with(&format!("{}  b\n", without[0])));
}

#[test]
fn what_fits_several_lists_them_and_what_fits_none_says_so() {
    let environment = HubEnvironment::new();
    let ids: Vec<String> = ["first", "second"].iter().map(|body| environment.notify(&[body])).collect();
    // Ids of one day begin alike.
    let shared = &ids[0][..5];
    assert_eq!(shared, &ids[1][..5]);
    for command in ["read", "jump", "why", "clear"] {
        let complaint = environment.fails(&[command, shared], 64);
        assert!(complaint.contains("fits 2 notifications"), "{complaint}");
        assert!(complaint.contains("first") && complaint.contains("second"), "{complaint}");
        assert!(complaint.contains("hint: name one of them"), "{complaint}");
    }
    for word in ["allow", "deny", "always", "12345", "bcdf"] {
        environment.fails(&["read", word], 65);
        environment.fails(&["why", word], 65);
    }
    assert_eq!(environment.bodies(&["--unread"]), ["second", "first"], "nothing was read");
    environment.run(&["clear", "--all"]);
    let complaint = environment.fails(&["read", "last"], 65);
    assert!(complaint.contains("there are no notifications"), "{complaint}");
    environment.fails(&["why"], 65);
}

#[test]
fn a_message_between_agents_is_named_by_what_the_whole_list_shows() {
    let environment = HubEnvironment::new();
    environment.run(&["hub", "start"]);
    let id = environment.notify(&["--to", "worker-1", "pull first"]);
    let why = environment.run(&["why", &id[19..]]);
    assert!(why.starts_with("pull first\n") && why.contains("queued for worker-1"), "{why}");
}

#[test]
fn a_question_is_answered_by_its_short_id() {
    let environment = HubEnvironment::new();
    environment.notify(&["something else"]);
    let question = environment.run(&["ask", "Which database?", "--option", "Postgres", "--option", "SQLite"]);
    let open = environment.json(&["questions", "--json"]);
    let short = short_id(&open[0]);
    assert_eq!(open[0]["question_id"], question.trim());
    assert!(environment.run(&["questions"]).starts_with(&format!(" {short}  ")));
    assert_eq!(short, short_id(&environment.list(&["--limit", "1"])[0]), "as in the list");
    environment.run(&["answer", &short, "SQLite"]);
    assert_eq!(environment.json(&["questions", "--all", "--json"])[0]["answer"], "SQLite");
    let complaint = environment.fails(&["answer", &short, "Postgres"], 65);
    assert!(complaint.contains("ringer list --open"), "{complaint}");
}

#[test]
fn what_the_list_shows_names_who_asks() {
    let environment = HubEnvironment::new();
    let ask = |from: &str, question: &str| {
        let question = [question, "--option", "Postgres", "--option", "SQLite"];
        environment.run(&[&["ask", "--from", from][..], &question].concat());
    };
    let answers = || {
        let all = environment.json(&["list", "--open", "--all", "--json"]);
        let rows = all.as_array().expect("a list").clone();
        rows.iter().map(|row| row["answer"].as_str().unwrap_or("open").to_owned()).collect::<Vec<_>>()
    };
    // One is open, so an option is enough; what is nearly one is not sent.
    ask("infra", "Which database?");
    let complaint = environment.fails(&["answer", "SQLit"], 64);
    assert!(complaint.contains("did you mean \"SQLite\"?"), "{complaint}");
    assert_eq!(answers(), ["open"]);
    assert_eq!(environment.run(&["answer", "sqlite"]), "infra: answered \"SQLite\"\n");
    // Of two it is named by who asks.
    ask("infra", "Which other?");
    ask("web", "And here?");
    let complaint = environment.fails(&["answer", "SQLite"], 65);
    assert!(complaint.contains("nothing is called SQLite"), "{complaint}");
    let complaint = environment.fails(&["answer", "infrq", "SQLite"], 65);
    assert!(complaint.contains("did you mean infra?"), "{complaint}");
    let shown = environment.fails(&["answer", "web"], 64);
    assert!(shown.contains("no answer given"), "{shown}");
    assert_eq!(environment.run(&["answer", "web", "2"]), "web: answered \"SQLite\"\n");
    let complaint = environment.fails(&["answer", "web", "Postgres"], 65);
    assert!(complaint.contains("web was already answered \"SQLite\""), "{complaint}");
    assert_eq!(environment.run(&["answer", "infra", "Postgres"]), "infra: answered \"Postgres\"\n");
    assert_eq!(answers(), ["SQLite", "Postgres", "SQLite"]);
    // Everything of one sender.
    environment.notify(&["--from", "web", "one"]);
    environment.notify(&["--from", "web", "two"]);
    environment.notify(&["--from", "infra", "three"]);
    assert_eq!(environment.bodies(&["--search", "WEB tw"]), ["two"]);
    assert!(environment.run(&["why", "web"]).contains("two"));
    assert!(environment.run(&["snooze", "infra", "20m"]).contains("three"));
    assert_eq!(environment.run(&["read", "web"]), "2 read\n");
}

#[test]
fn a_message_to_an_unknown_agent_waits_with_a_warning() {
    let environment = HubEnvironment::new();
    environment.notify(&["--from", "worker-1", "here I am"]);
    let (_, warning) = check(&mut environment.ringer(&["notify", "--to", "wroker-1", "pull first"]), 0);
    assert!(warning.contains("no agent named \"wroker-1\" is known yet"), "{warning}");
    assert!(warning.contains("the message waits"), "{warning}");
    let (_, silent) = check(&mut environment.ringer(&["notify", "--to", "lead", "x"]), 0);
    assert_eq!(silent, "");
}

#[test]
fn what_waits_is_named_by_its_reason_and_jump_takes_the_most_urgent() {
    let environment = HubEnvironment::new();
    for (kind, body) in
        [("status", "s"), ("idle", "i"), ("complete", "c"), ("permission", "p"), ("error", "e")]
    {
        environment.notify(&["--kind", kind, body]);
    }
    environment.notify(&["--type", "waiting", "w"]);
    let kinds: Vec<Value> = environment.list(&[]).iter().map(|row| row["kind"].clone()).collect();
    assert_eq!(kinds, ["waiting", "error", "permission", "complete", "idle", "status"]);
    // The journal keeps the six kinds that agents know.
    let logged = environment.run(&["log", "--kind", "permission", "--json"]);
    assert_eq!(logged.lines().count(), 1);
    let line = json(&logged);
    assert_eq!((&line["type"], &line["category"]), (&"waiting".into(), &"permission_prompt".into()));
    assert_eq!(environment.run(&["log", "--kind", "waiting", "--json"]).lines().count(), 3);
    for expected in ["p", "e", "w", "c", "s", "i"] {
        let (out, _) = check(&mut environment.ringer(&["jump", "--json"]), 69);
        let opened = json(&out);
        assert_eq!(opened["notification"]["body"], expected);
        environment.run(&["read", &short_id(&opened["notification"])]);
    }
    let complaint = environment.fails(&["notify", "--kind", "done", "x"], 64);
    assert!(complaint.contains("permission, idle"), "{complaint}");
}

#[test]
fn a_muted_kind_is_the_kind_that_is_shown() {
    let settings = "[notify]\nrate_limit = \"off\"\npopup = \"off\"\nmute = [{ kind = \"idle\" }]\n";
    let environment = HubEnvironment::with_settings(settings);
    environment.notify(&["--kind", "idle", "i"]);
    environment.notify(&["--kind", "permission", "p"]);
    environment.notify(&["--kind", "waiting", "w"]);
    assert_eq!(environment.bodies(&["--unread"]), ["w", "p"]);
}
