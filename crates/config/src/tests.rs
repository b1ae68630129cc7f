//! The whole file: what is read, what is refused and where, what it means to the engine.

use std::path::{Path, PathBuf};
use std::time::Duration;

use ringer_core::agent::AgentTimeouts;
use ringer_core::message::ShownKind;
use ringer_core::policy::{DeliveryChannel, OnFailure, PopupMode, RateLimit};
use ringer_term::Channel;
use serde_json::{Value, json};

use super::*;
use crate::types::Words;

mod generated;

const PATH: &str = "/c/config.toml";

/// Stands in for the services that webhooks really have.
fn rules() -> Rules {
    let check = |kind: &str, url: &str, has_secret| match (kind, has_secret, url.ends_with("/topic")) {
        ("ntfy", false, false) => Err("it names no topic"),
        _ => Ok(()),
    };
    let webhooks = WebhookRule { names: vec!["ntfy", "slack", "json"], check };
    Rules { webhooks, ..Rules::default() }
}

fn read(text: &str) -> Result<Config, ConfigErrors> {
    parse(Path::new(PATH), Some(Path::new("/people/ada")), text, &rules())
}

/// Problems as `line:column: message`, and with `-- hint` where there is one.
fn told(errors: ConfigErrors) -> Vec<String> {
    let hint = |hint: Option<String>| hint.map(|hint| format!(" -- {hint}")).unwrap_or_default();
    let told = |e: ConfigError| format!("{}:{}: {}{}", e.line, e.column, e.message, hint(e.hint));
    errors.0.into_iter().map(told).collect()
}

#[track_caller]
fn check(text: &str, expected: &[&str]) {
    assert_eq!(told(read(text).unwrap_err()), expected, "{text}");
}

#[track_caller]
fn check_repository(text: &str, expected: &[&str]) {
    let errors = parse_repository(Path::new("/r/.ringer.toml"), None, text).unwrap_err();
    assert_eq!(told(errors), expected, "{text}");
}

#[test]
fn nothing_is_all_defaults() {
    let config = read("").unwrap();
    assert_eq!(config, Config { path: PATH.into(), ..Config::default() });
    assert_eq!(config.agent_timeouts(), AgentTimeouts::default());
    assert_eq!(config.stuck_threshold, Duration::from_mins(10));
    assert_eq!(config.notify.rate_limit, RateLimit::parse("30/min"));
}

#[test]
fn spans_of_time() {
    let spans = "expected a span up to a day, like \"90s\", \"20m\" or \"2h\"";
    check("[notify]\nmin_turn = \"10\"", &[&format!("2:12: notify.min_turn is \"10\"; {spans}")]);
    check("[notify]\nmin_turn = 10", &["2:12: notify.min_turn is a number; expected a string"]);
    check(
        "[notify]\nidle_reminder = \"of\"",
        &[&format!("2:17: notify.idle_reminder is \"of\"; {spans}, or \"off\"")],
    );
    assert_eq!(read("[notify]\nmin_turn = \"0s\"").unwrap().notify.min_turn, Duration::ZERO);
}

#[test]
fn disabled_notifications_make_no_popup_of_any_kind() {
    let popup = |text: &str| read(text).unwrap().preferences(1, &Trusted::default()).popup;
    assert_eq!(
        popup("preferred_channel = \"notifications_disabled\"\n[notify]\npopup = \"both\""),
        PopupMode::Off
    );
    assert_eq!(popup("preferred_channel = \"kitty\"\n[notify]\npopup = \"both\""), PopupMode::Both);
}

#[test]
fn what_is_not_toml() {
    check("a", &["1:2: key with no value, expected `=`"]);
    check("[notify]\nring = true\nring = false\n", &["3:1: duplicate key"]);
    check("[notify\nring = true", &["1:8: unclosed table, expected `]`"]);
    check("x = \"abc", &["1:9: invalid basic string, expected `\"`"]);
}

#[test]
fn unknown_keys_are_told_what_was_probably_meant() {
    check("[notify]\nrign = true\n", &["2:1: unknown key notify.rign -- did you mean \"ring\"?"]);
    check(
        "stuck_treshold_ms = 1",
        &["1:1: unknown key stuck_treshold_ms -- did you mean \"stuck_threshold_ms\"?"],
    );
    check("[[hooks]]\nid = \"a\"", &["1:3: unknown key hooks -- did you mean \"hook\"?"]);
    check("  ring = true", &["1:3: unknown key ring -- ring belongs under [notify]"]);
    check(
        "[[hook]]\nid = \"a\"\ncommand = [\"x\"]\nbanana = 1",
        &["4:1: unknown key hook.banana -- there are id, command, timeout_ms, on_failure, enabled"],
    );
    check(
        "notify = { mute = [{ agnet = \"x\" }] }",
        &["1:22: unknown key notify.mute.agnet -- did you mean \"agent\"?"],
    );
}

#[test]
fn values_of_another_type() {
    check(
        "stuck_threshold_ms = \"60s\"",
        &["1:22: stuck_threshold_ms is a string; expected a number of milliseconds"],
    );
    check("stuck_threshold_ms = 0", &["1:22: stuck_threshold_ms is 0; expected 1 to 86400000 milliseconds"]);
    check(
        "stuck_threshold_ms = -5",
        &["1:22: stuck_threshold_ms is -5; expected 1 to 86400000 milliseconds"],
    );
    check("notify = 3", &["1:10: notify is a number; expected a table"]);
    check("[notify]\nring = \"yes\"", &["2:8: notify.ring is a string; expected true or false"]);
    check("[notify]\nsound = 1", &["2:9: notify.sound is a number; expected true, false or a file to play"]);
    check(
        "[notify]\ncommand = \"x\"",
        &["2:11: notify.command is a string; expected a list of strings: the program and its arguments"],
    );
    check(
        "[notify]\nmute = [\"x\"]",
        &["2:9: notify.mute is a string; expected a table like { agent = \"noisy\" }"],
    );
    check("[hook]\nid = \"a\"", &["1:1: hook is a table; expected tables that begin with [[hook]]"]);
    check(
        "[notify.sounds]\nquestion = 1\nqestion = true",
        &[
            "2:12: notify.sounds.question is a number; expected true, false or a file to play",
            "3:1: unknown key notify.sounds.qestion -- did you mean \"question\"?",
        ],
    );
    check("[notify]\nsounds = true", &["2:10: notify.sounds is true or false; expected a table of kinds"]);
    check("[notify]\naway_after = 3", &["2:14: notify.away_after is a number; expected a string"]);
    let spans = "a span up to a day, like \"90s\", \"20m\" or \"2h\", or \"off\"";
    let nothing = format!("2:14: notify.away_after is no time at all; expected {spans}");
    check("[notify]\naway_after = \"0s\"", &[&nothing]);
    check("[theme]\nfg = 3", &["2:6: theme.fg is a number; expected a string"]);
    check("watch = 1979-05-27", &["1:9: watch is a date or time; expected tables that begin with [[watch]]"]);
}

#[test]
fn words() {
    check(
        "[notify]\npopup = \"dekstop\"",
        &[
            "2:9: notify.popup is \"dekstop\"; expected auto, desktop, terminal, both or off -- did you mean \"desktop\"?",
        ],
    );
    check(
        "preferred_channel = true",
        &[
            "1:21: preferred_channel is true or false; expected auto, compatible, iterm2, iterm2_with_bell, kitty, ghostty, \
         terminal_bell or notifications_disabled",
        ],
    );
    for (word, channel) in Channel::words() {
        assert_eq!(read(&format!("preferred_channel = {word:?}")).unwrap().preferred_channel, channel);
    }
    for (word, popup) in PopupMode::words() {
        assert_eq!(read(&format!("notify.popup = {word:?}")).unwrap().notify.popup, popup);
    }
}

#[test]
fn values_that_make_no_sense() {
    let quiet = "expected a span of the day like \"22:00-07:00\"";
    check(
        "[notify]\nquiet_hours = [\"22:00-07:00\", \"25:00-07:00\"]",
        &[&format!("2:31: notify.quiet_hours has \"25:00-07:00\"; {quiet}")],
    );
    let rate = "expected a rate like \"30/min\" (per s, min or h), or \"off\"";
    check("[notify]\nrate_limit = \"30/day\"", &[&format!("2:14: notify.rate_limit is \"30/day\"; {rate}")]);
    check(
        "[notify]\nmute = [{}]",
        &["2:9: notify.mute has an empty table, which matches nothing; expected agent, scope or kind"],
    );
    check(
        "[notify]\nmute = [{ scope = \"a/b\" }]",
        &["2:19: notify.mute.scope cannot be used: the scope contains '/', which is not allowed"],
    );
    check(
        "[notify]\ncommand = [\"\"]",
        &["2:12: notify.command begins with an empty string; expected a program"],
    );
    check("[notify]\ncommand = [\"a\", \"b\\u0000\"]", &["2:17: notify.command has a NUL character in it"]);
    check("[notify]\nsound = \"\"", &["2:9: notify.sound is empty; expected a path"]);
}

#[test]
fn hooks_that_make_no_sense() {
    check(
        "[[hook]]\nid = \"a\"\ncommand = []",
        &["3:11: hook.command is empty; expected a program and its arguments"],
    );
    check("[[hook]]\nenabled = true", &["1:1: hook has no id", "1:1: hook has no command"]);
    check("[[hook]]\nid = \"\"\ncommand = [\"x\"]", &["2:6: hook.id cannot be used: the id is empty"]);
    check(
        "[[hook]]\nid = \"a\"\ncommand = [\"x\"]\n[[hook]]\nid = \"a\"\ncommand = [\"y\"]",
        &["5:6: hook.id \"a\" is used twice; each id must be unique"],
    );
    check(
        "[[hook]]\nid = \"a\"\ncommand = [\"x\"]\non_failure = \"keeep\"",
        &["4:14: hook.on_failure is \"keeep\"; expected keep or suppress -- did you mean \"keep\"?"],
    );
}

#[test]
fn webhooks_that_make_no_sense() {
    let with = |rest: &str| format!("[[webhook]]\nkind = \"ntfy\"\nurl = {rest}");
    let address = "3:7: webhook.url is not a web address; expected one that begins with https:// or http://";
    check(&with("\"ftp://secret\""), &[address]);
    check(&with("\"ntfy.sh/x\""), &[address]);
    check(&with("\"https:///x\""), &["3:7: webhook.url names no host"]);
    check(&with("\"https://a b\""), &["3:7: webhook.url has a space or a control character in it"]);
    check(&with("\"https://a\""), &["3:7: webhook.url cannot be used: it names no topic"]);
    assert!(read(&with("\"https://a\"\nsecret_file = \"token\"")).is_ok());
    check(
        "[[webhook]]\nkind = \"nfty\"\nurl = \"https://a\"",
        &["2:8: webhook.kind is \"nfty\"; expected ntfy, slack or json -- did you mean \"ntfy\"?"],
    );
    check(
        &with("\"https://a/topic\"\nkinds = [\"error\", \"errors\"]"),
        &[
            "4:19: webhook.kinds is \"errors\"; expected complete, waiting, permission, idle, question, stuck, error or status \
         -- did you mean \"error\"?",
        ],
    );
}

#[test]
fn watches_that_make_no_sense() {
    check(
        "[[watch]]\npaths = []\ncommand = [\"x\"]",
        &["2:9: watch.paths is empty; expected at least one path"],
    );
    let text = "[[watch]]\npaths = [\"~/x\"]\ncommand = [\"x\"]";
    let errors = parse(Path::new(PATH), None, text, &rules()).unwrap_err();
    assert_eq!(
        told(errors),
        ["2:10: watch.paths is \"~/x\": ~ cannot be used: the home directory is not known"]
    );
}

#[test]
fn every_problem_is_told_in_the_order_of_lines() {
    let text =
        "stuck_threshold_ms = 0\nbanana = 1\n[[watch]]\n[notify]\nring = 1\nflash = 2\n[[hook]]\nid = 1\n";
    let lines: Vec<usize> = read(text).unwrap_err().0.iter().map(|error| error.line).collect();
    assert_eq!(lines, [1, 2, 3, 3, 5, 6, 7, 8]);
    let many: String = (0..1000).map(|number| format!("banana{number} = 1\n")).collect();
    assert_eq!(read(&many).unwrap_err().0.len(), MAX_PROBLEMS);
}

#[test]
fn problems_name_the_file() {
    assert_eq!(read("x = 1").unwrap_err().to_string(), "/c/config.toml:1:1: unknown key x");
}

#[test]
fn mcp_channels_are_off_unless_they_are_switched_on() {
    let server = "[[channel]]\nname = \"slack\"\ncommand = [\"~/bin/slack\", \"-v\"]\nto = \"lead\"\n";
    let off = read(server).unwrap();
    let slack = &off.channel_servers[0];
    assert!(!off.channels.enabled);
    assert_eq!(slack.command, ["/people/ada/bin/slack", "-v"]);
    assert_eq!(slack.source.directory(), Path::new("/c"));
    let on = read(&format!("[channels]\nenabled = true\n{server}allow = [\"U1\"]")).unwrap();
    let slack = &on.channel_servers[0];
    assert!(on.channels.enabled && slack.allow == ["U1"] && slack.to == "lead");
    check(
        "[[channel]]",
        &["1:1: channel has no name", "1:1: channel has no command", "1:1: channel has no to"],
    );
    check(&format!("{server}allwo = []"), &["5:1: unknown key channel.allwo -- did you mean \"allow\"?"]);
    check(
        &format!("{server}allow = \"U1\""),
        &["5:9: channel.allow is a string; expected a list of senders"],
    );
    check(
        &format!("{server}{server}"),
        &["6:8: channel.name \"slack\" is used twice; each name must be unique"],
    );
    check("[channels]\nenabled = 1", &["2:11: channels.enabled is a number; expected true or false"]);
    let many: String =
        (0..17).map(|number| server.replace("slack\"\nc", &format!("s{number}\"\nc"))).collect();
    check(&many, &["1:1: channel has 17 tables; 16 are possible"]);
}

#[test]
fn a_repository_may_set_little() {
    let user = "cannot be set by a repository; it belongs in your own config.toml";
    check_repository("[notify]\npopup = \"off\"\nmute = []", &[&format!("2:1: notify.popup {user}")]);
    check_repository("stuck_threshold_ms = 1", &[&format!("1:1: stuck_threshold_ms {user}")]);
    check_repository("[[webhook]]\nkind = \"ntfy\"", &[&format!("1:3: webhook {user}")]);
    check_repository("[channels]\nenabled = true", &[&format!("1:2: channels {user}")]);
    check_repository("[[channel]]\nname = \"x\"", &[&format!("1:3: channel {user}")]);
    check_repository("[notify]\nmuet = []", &["2:1: unknown key notify.muet -- did you mean \"mute\"?"]);
    check_repository("[[hook]]\nid = \"a\"", &["1:1: hook has no command"]);
}

#[test]
fn a_repository_mutes_only_itself() {
    let text = "[notify]\nmute = [{ kind = \"status\" }, { agent = \"x\", scope = \"other\" }]\n\
                [[hook]]\nid = \"a\"\ncommand = [\"./hooks/a\", \"./b\"]";
    let repository = parse_repository(Path::new("/r/.ringer.toml"), None, text).unwrap();
    assert_eq!(repository.hooks[0].command, ["/r/hooks/a", "./b"]);
    let config = Config::default().with_repository(&repository, "abcd1234");
    let expected = Matcher { scope: Some("abcd1234".into()), kind: Some(ShownKind::Status), agent: None };
    assert_eq!(config.notify.mute, [expected]);
    let mut trusted = Trusted::default();
    assert!(!config.preferences(1, &trusted).hooks[0].trusted);
    trusted.trust(&config.hooks[0]);
    let preferences = config.preferences(1, &trusted);
    assert!(preferences.hooks[0].trusted);
    assert!(preferences.trusted_hooks.contains(&preferences.hooks[0].identity.digest));
}

#[test]
fn paths_begin_at_the_home_or_beside_the_file() {
    let text = "[notify]\nsound = \"~/ring.ogg\"\ncommand = [\"~/bin/x\", \"~/y\", \"a/~/b\", \"~\", \"~bob/z\"]\n\
                [[watch]]\npaths = [\"a.nix\", \"./b\", \"/abs\", \"~/h\"]\ncommand = [\"bin/run\"]\n\
                directory = \"sub\"\n[[webhook]]\nkind = \"slack\"\nurl = \"https://h\"\nsecret_file = \"token\"";
    let config = read(text).unwrap();
    assert_eq!(config.notify.sound, SoundSetting::File("/people/ada/ring.ogg".into()));
    assert_eq!(
        config.notify.command,
        ["/people/ada/bin/x", "/people/ada/y", "a/~/b", "/people/ada", "~bob/z"]
    );
    let watch = &config.watches[0];
    assert_eq!(watch.paths, ["/c/a.nix", "/c/b", "/abs", "/people/ada/h"].map(PathBuf::from));
    assert_eq!((watch.command[0].as_str(), watch.working_directory()), ("/c/bin/run", Path::new("/c/sub")));
    assert_eq!(config.webhooks[0].secret_file.as_deref(), Some(Path::new("/c/token")));
    assert_eq!(config.webhooks[0].name(), "slack");
    assert!(!format!("{config:?}").contains("https://h"), "an address may be a password");
}

#[test]
fn what_the_engine_is_told() {
    let text = "[notify]\npopup = \"both\"\nring = false\nreorder = true\nsubagents = true\nrate_limit = \"off\"\n\
                quiet_hours = [\"22:00-07:00\"]\nmute = [{ agent = \"noisy\", kind = \"error\" }]\n\
                [[hook]]\nid = \"a\"\ncommand = [\"x\"]\non_failure = \"suppress\"\n\
                [[hook]]\nid = \"off\"\ncommand = [\"x\"]\nenabled = false\n\
                [[hook]]\nid = \"b\"\ncommand = [\"x\"]\n";
    let config = read(text).unwrap();
    let preferences = config.preferences(1, &Trusted::default());
    assert_eq!(preferences.popup, PopupMode::Both);
    assert!(preferences.no_rings && preferences.reorder && preferences.rules.subagents);
    assert_eq!(preferences.rules.rate_limit, None);
    assert_eq!(preferences.rules.quiet_hours.len(), 1);
    assert_eq!(preferences.rules.mute[0].agent.as_deref(), Some("noisy"));
    let hooks: Vec<_> =
        preferences.hooks.iter().map(|hook| (hook.identity.id.as_str(), hook.on_failure)).collect();
    assert_eq!(hooks, [("a", OnFailure::Suppress), ("b", OnFailure::Keep)]);
    assert!(preferences.hooks.iter().all(|hook| hook.trusted && hook.config_path.as_deref() == Some(PATH)));
    assert_eq!(config.enabled_hooks().map(|hook| hook.id.as_str()).collect::<Vec<_>>(), ["a", "b"]);
}

#[test]
fn ways_with_nothing_behind_them_are_closed() {
    let check = |text: &str, expected: &[DeliveryChannel]| {
        assert_eq!(
            read(text).unwrap().preferences(1, &Trusted::default()).disabled_channels,
            expected,
            "{text}"
        );
    };
    check("", &[DeliveryChannel::Sound, DeliveryChannel::Command, DeliveryChannel::Webhook]);
    check("notify.sound = true", &[DeliveryChannel::Command, DeliveryChannel::Webhook]);
    let one = "[notify.sounds]\nquestion = true";
    check(one, &[DeliveryChannel::Command, DeliveryChannel::Webhook]);
    let silent = read(one).unwrap().preferences(1, &Trusted::default()).silent_kinds;
    assert!(!silent.contains(&ShownKind::Question) && silent.len() == 7, "{silent:?}");
    let silent = read("notify.sound = true\nnotify.sounds.complete = false").unwrap();
    assert_eq!(silent.preferences(1, &Trusted::default()).silent_kinds, [ShownKind::Complete]);
    check("notify.command = [\"x\"]", &[DeliveryChannel::Sound, DeliveryChannel::Webhook]);
    check(
        "[[webhook]]\nkind = \"json\"\nurl = \"https://h\"",
        &[DeliveryChannel::Sound, DeliveryChannel::Command],
    );
}

/// The example with its examples uncommented.
fn uncommented() -> String {
    fn line(line: &str) -> &str {
        line.strip_prefix('#').filter(|rest| !rest.starts_with(' ')).unwrap_or(line)
    }
    example(&rules()).lines().map(|own| format!("{}\n", line(own))).collect()
}

#[test]
fn the_example_is_the_defaults() {
    assert_eq!(read(&example(&rules())).unwrap(), read("").unwrap());
    let config = read(&uncommented()).unwrap();
    assert_eq!((config.hooks.len(), config.webhooks.len(), config.watches.len()), (1, 1, 1));
    assert_eq!(config.hooks[0].command, ["/people/ada/bin/triage"]);
}

/// Every definition of the schema, and the schema itself.
fn definitions(schema: &Value) -> impl Iterator<Item = &Value> {
    [schema].into_iter().chain(schema["definitions"].as_object().unwrap().values())
}

#[test]
fn every_key_is_in_the_example_and_on_the_reference_page() {
    let schema: Value = serde_json::from_str(&schema_text(&rules())).unwrap();
    let (example, page) = (uncommented(), reference_text(&rules()));
    let matcher = &schema["definitions"]["Matcher"];
    for definition in definitions(&schema) {
        assert_eq!(definition["additionalProperties"], false);
        for (key, property) in definition["properties"].as_object().unwrap() {
            assert!(property["description"].as_str().is_some_and(|text| !text.is_empty()), "{key}");
            let tables = [format!("\n[{key}]\n"), format!("\n[notify.{key}]\n"), format!("\n[[{key}]]\n")];
            let forms = [&[format!("\n{key} = ")][..], &tables].concat();
            let is_in_example = forms.iter().any(|form| example.contains(form));
            assert!(is_in_example || definition == matcher, "{key} is not in the example");
            let forms = [format!("| `{key}` |"), format!("## `[{key}]`"), format!("## `[[{key}]]`")];
            assert!(forms.iter().any(|form| page.contains(form)), "{key} is not on the page");
        }
    }
}

#[test]
fn the_schema_knows_the_defaults_and_what_is_required() {
    let schema: Value = serde_json::from_str(&schema_text(&rules())).unwrap();
    assert_eq!(schema["properties"]["stuck_threshold_ms"]["default"], 600_000);
    assert_eq!(schema["properties"]["tmux"]["default"]["one_pane"], "none");
    let of = &schema["definitions"];
    let notify = &of["Notify"]["properties"];
    assert_eq!(notify["min_turn"]["default"], "10s");
    assert_eq!(notify["idle_reminder"]["default"], "60s");
    assert_eq!(notify["rate_limit"]["default"], "30/min");
    assert_eq!(of["Hook"]["properties"]["timeout_ms"]["default"], 20_000);
    assert_eq!(of["Hook"]["required"], json!(["id", "command"]));
    assert_eq!(of["Webhook"]["required"], json!(["kind", "url"]));
    assert_eq!(of["Webhook"]["properties"]["kind"]["enum"], json!(["ntfy", "slack", "json"]));
    assert_eq!(of["Watch"]["required"], json!(["paths", "command"]));
    assert_eq!(of["Matcher"]["minProperties"], 1);
}
