//! `ringer config` and `ringer trust`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::home::TestEnvironment;
use crate::pty::typed_in_terminal;
use crate::ringer::{check, json};

const PROGRAMS: &str = "[[hook]]\nid = \"triage\"\ncommand = [\"true\", \"a b\"]\n\
                        [[watch]]\npaths = [\"flake.nix\"]\ncommand = [\"direnv\", \"reload\"]\n";

/// The person's file, with this in it.
fn own(environment: &TestEnvironment, text: &str) -> PathBuf {
    let path = environment.path().join("config.toml");
    fs::write(&path, text).expect("a file");
    path
}

fn repository_file(environment: &TestEnvironment, text: &str) -> PathBuf {
    // Under its real name, as the current directory has it.
    let path = environment.repository().canonicalize().expect("a directory").join(".ringer.toml");
    fs::write(&path, text).expect("a file");
    path
}

fn with_config(environment: &TestEnvironment, arguments: &[&str], path: &Path) -> Command {
    let mut command = environment.ringer(arguments);
    command.env("RINGER_CONFIG", path);
    command
}

#[test]
fn every_problem_is_told_where_it_is() {
    let environment = TestEnvironment::new();
    for (text, expected) in [
        ("[notify]\nrign = false\n", &["2:1: unknown key notify.rign\nhint: did you mean \"ring\"?"][..]),
        ("[notify]\n\nreorder = 7\n", &["3:11: notify.reorder is a number; expected true or false"]),
        ("a = 1\nstuck_threshold_ms = 0\n", &["1:1: unknown key a", "2:22: stuck_threshold_ms is 0"]),
        ("[notify\n", &["1:8: "]),
        (
            "[keys]\nanswre = \"a\"\nquit = \"hyper-q\"\nwhy = \"w f5\"\n",
            &[
                "2:1: unknown key keys.answre\nhint: did you mean \"answer\"?",
                "3:8: keys.quit is \"hyper-q\"; expected a key or several with spaces between, like a, A, enter",
            ],
        ),
        (
            "[theme]\nname = \"drak\"\nmouse = \"of\"\ncolour = \"red\"\n",
            &[
                "2:8: theme.name is \"drak\"; expected one of terminal, dark, light, none",
                "3:9: theme.mouse is \"of\"; expected one of on, off",
                "4:1: unknown key theme.colour",
            ],
        ),
        ("[[hook]]\nid = \"\\u001b]0;x\"\ncommand = [\"x\"]\n", &["2:6: "]),
    ] {
        let path = own(&environment, text);
        for arguments in [&["config", "check"][..], &["config", "check", "../config.toml"]] {
            let (out, err) = check(&mut with_config(&environment, arguments, &path), 78);
            assert!(out.is_empty(), "{out}");
            for expected in expected {
                assert!(err.contains(&format!("config.toml:{expected}")), "{text}: {err}");
            }
            assert!(err.contains("in the configuration\nhint: ringer config show --default"), "{err}");
            assert!(!err.contains('\x1b'), "{err:?}");
        }
    }
}

/// What is wrong in `[keys]` and `[theme]` is left out, and the rest of the file counts.
#[test]
fn the_doctor_warns_of_a_key_of_the_inbox_that_is_left_out() {
    let environment = TestEnvironment::new();
    let path = own(&environment, "[keys]\nanswre = \"a\"\n[theme]\nname = \"pink\"\n");
    let report = json(&check(&mut with_config(&environment, &["doctor", "--json"], &path), 0).0);
    let rows = report["rows"].as_array().expect("rows");
    let told: Vec<&Value> = rows.iter().filter(|row| row["part"] == "config").collect();
    assert_eq!(told.len(), 2, "{told:#?}");
    assert!(told[0]["fix"].as_str().is_some_and(|fix| fix.contains("answer")), "{told:#?}");
    for row in told {
        let what = row["what"].as_str().expect("a text");
        assert!(what.ends_with("it is left out, and the rest of the file counts"), "{what}");
        assert_eq!(row["verdict"], "warn");
    }
}

#[test]
fn fine_files_are_said_to_be() {
    let environment = TestEnvironment::new();
    let path = own(&environment, "[notify]\nring = false\n");
    let (out, err) = check(&mut with_config(&environment, &["config", "check"], &path), 0);
    assert_eq!((out, err.as_str()), (format!("{}: ok\n", path.display()), ""));
    let gone = environment.path().join("gone.toml");
    let (out, _) = check(&mut with_config(&environment, &["config", "check"], &gone), 0);
    assert!(out.contains("gone.toml: no config file; using defaults"), "{out}");
    let file = repository_file(&environment, PROGRAMS);
    let (out, _) = check(&mut with_config(&environment, &["config", "check"], &path), 0);
    assert!(out.contains(&format!("{}: ok\n", file.display())), "{out}");
    // A file that is named must be there.
    let (_, err) = check(&mut environment.ringer(&["config", "check", "gone.toml"]), 66);
    assert!(err.contains("cannot open gone.toml"), "{err}");
}

#[test]
fn a_repository_s_file_has_rules_of_its_own() {
    let environment = TestEnvironment::new();
    let file = repository_file(&environment, "[[webhook]]\nkind = \"ntfy\"\nurl = \"https://x/y\"\n");
    let place = format!("{}:1:", file.display());
    let (_, err) = check(&mut environment.ringer(&["config", "check"]), 78);
    assert!(err.contains(&place), "{err}");
    let (_, err) = check(&mut environment.ringer(&["config", "check", ".ringer.toml"]), 78);
    assert!(err.starts_with(".ringer.toml:1:"), "{err}");
    let (out, _) = check(environment.ringer(&["config", "check", "--json"]).env_remove("RINGER_CONFIG"), 78);
    let report = json(&out);
    assert_eq!((&report["ok"], &report["files"][0]["path"]), (&json!(false), &json!(file)));
    assert_eq!(report["files"][0]["problems"][0]["line"], 1);
}

#[test]
fn what_is_shown_says_the_same_as_what_was_read() {
    let environment = TestEnvironment::new();
    let text = "stuck_threshold_ms = 5\n[notify]\npopup = \"off\"\nsound = true\n";
    let path = own(&environment, text);
    let shown = check(&mut with_config(&environment, &["config", "show"], &path), 0).0;
    assert!(shown.contains("stuck_threshold_ms = 5") && shown.contains("popup = \"off\""), "{shown}");
    let path = own(&environment, &shown);
    assert_eq!(check(&mut with_config(&environment, &["config", "show"], &path), 0).0, shown);
    let report = json(&check(&mut with_config(&environment, &["config", "show", "--json"], &path), 0).0);
    assert_eq!((&report["notify"]["popup"], &report["notify"]["sound"]), (&json!("off"), &json!(true)));

    let path = own(&environment, "x = 1");
    let (out, err) = check(&mut with_config(&environment, &["config", "show"], &path), 78);
    assert!(out.is_empty() && err.contains("config.toml:1:1: unknown key x"), "{err}");
}

#[test]
fn the_defaults_are_a_good_file_and_the_schema_is_the_committed_one() {
    let environment = TestEnvironment::new();
    let default = environment.run(&["config", "show", "--default"]);
    let path = own(&environment, &default);
    check(&mut with_config(&environment, &["config", "check"], &path), 0);
    let shown = |path: &Path| check(&mut with_config(&environment, &["config", "show"], path), 0).0;
    assert_eq!(shown(&path), shown(&environment.path().join("none")));
    let json_default = json(&environment.run(&["config", "show", "--default", "--json"]));
    assert_eq!(json_default["preferred_channel"], "auto");

    let committed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/config.schema.json");
    assert_eq!(environment.run(&["config", "schema"]), fs::read_to_string(committed).expect("the schema"));
}

fn trusted(environment: &TestEnvironment) -> Vec<Value> {
    json(&environment.run(&["trust", "--list", "--json"])).as_array().expect("a list").clone()
}

#[test]
fn nothing_runs_before_it_is_trusted_and_changes_ask_again() {
    let environment = TestEnvironment::new();
    let file = repository_file(&environment, PROGRAMS);
    let shown = || check(&mut environment.ringer(&["config", "show"]), 0);
    assert!(shown().1.contains("left out 2 programs in") && !shown().0.contains("triage"));
    // There is no terminal to ask in, so nothing is trusted.
    let (_, err) = check(&mut environment.ringer(&["trust"]), 64);
    assert!(err.contains("not trusted  hook \"triage\": [\"true\", \"a b\"]"), "{err}");
    assert!(
        err.contains("[\"direnv\", \"reload\"] in ") && err.contains("hint: ringer trust --yes"),
        "{err}"
    );
    assert!(trusted(&environment).is_empty());

    let report = json(&environment.run(&["trust", "--yes", "--json"]));
    assert_eq!((&report["newly_trusted"], &report["path"]), (&json!(2), &json!(file)));
    assert!(report["programs"].as_array().expect("a list").iter().all(|program| program["trusted"] == true));
    assert_eq!(trusted(&environment).len(), 2);
    assert!(shown().0.contains("triage") && shown().1.is_empty());
    // Nothing is new, so it does not ask.
    let (_, err) = check(&mut environment.ringer(&["trust"]), 0);
    assert!(err.contains("  trusted      hook \"triage\""), "{err}");

    repository_file(&environment, &PROGRAMS.replace("a b", "c"));
    let (_, err) = check(&mut environment.ringer(&["trust"]), 64);
    assert!(err.contains("not trusted  hook") && err.contains("  trusted      watch"), "{err}");

    let (_, err) = check(&mut environment.ringer(&["trust", "--remove"]), 0);
    assert!(err.contains("removed trust from 2 programs") && trusted(&environment).is_empty(), "{err}");
    let (_, err) = check(&mut environment.ringer(&["trust", "--list"]), 0);
    assert!(err.contains("No trusted programs."), "{err}");
}

#[test]
fn the_person_is_asked_and_the_answer_counts() {
    let environment = TestEnvironment::new();
    repository_file(&environment, PROGRAMS);
    let home = environment.home();
    let scripts = environment.path().join("scripts.toml");
    let variables = [
        ("RINGER_HOME", home.to_str().expect("UTF-8")),
        ("RINGER_HUB", "off"),
        ("RINGER_CONFIG", scripts.to_str().expect("UTF-8")),
    ];
    let answer = |typed| typed_in_terminal(&["trust"], &variables, &environment.repository(), typed);
    let (shown, exit) = answer("n\n");
    assert!(shown.contains("run? [y/N]") && shown.contains("Nothing was trusted.") && exit == 0, "{shown}");
    assert!(trusted(&environment).is_empty());
    let (shown, exit) = answer("y\n");
    assert!(shown.contains("trusted 2 programs") && exit == 0, "{shown}");
    assert_eq!(trusted(&environment).len(), 2);
}

#[test]
fn what_cannot_be_trusted() {
    let environment = TestEnvironment::new();
    let (_, err) = check(&mut environment.ringer(&["trust"]), 0);
    assert!(err.contains("nothing to trust: ") && err.contains("does not exist"), "{err}");
    repository_file(&environment, "[[mute]]\n");
    let (_, err) = check(&mut environment.ringer(&["trust", "--yes"]), 78);
    assert!(err.contains(".ringer.toml:1:") && !environment.home().exists(), "{err}");
    repository_file(&environment, "");
    let (_, err) = check(&mut environment.ringer(&["trust", "--yes"]), 0);
    assert!(err.contains("names no programs"), "{err}");
    let outside = environment.path().join("outside");
    fs::create_dir(&outside).expect("a directory");
    let (_, err) = check(environment.ringer(&["trust"]).arg(&outside), 64);
    assert!(err.contains("not a git repository"), "{err}");
    check(&mut environment.ringer(&["trust", "nowhere"]), 66);
    check(&mut environment.ringer(&["trust", "nowhere", "--remove"]), 0);
}

#[test]
fn a_stranger_s_file_cannot_disguise_itself() {
    let environment = TestEnvironment::new();
    repository_file(&environment, "[[hook]]\nid = \"x\"\ncommand = [\"a\\u001b[2K\\u202eb\\n\"]\n");
    let (_, err) = check(&mut environment.ringer(&["trust", "--yes"]), 0);
    assert!(err.contains(r#"["a\u{1b}[2K\u{202e}b\n"]"#) && !err.contains('\x1b'), "{err:?}");
    assert!(!environment.run(&["trust", "--list"]).contains('\x1b'));
}

#[test]
fn a_broken_list_is_not_overwritten() {
    let environment = TestEnvironment::new();
    repository_file(&environment, PROGRAMS);
    environment.run(&["trust", "--yes"]);
    let list = environment.home().join("trusted.json");
    fs::write(&list, "{").expect("a file");
    for arguments in [&["trust", "--yes"][..], &["trust", "--list"], &["trust", "--remove"]] {
        let (_, err) = check(&mut environment.ringer(arguments), 65);
        assert!(err.contains("hint: rm "), "{err}");
    }
    assert_eq!(fs::read_to_string(&list).expect("a file"), "{");
}
