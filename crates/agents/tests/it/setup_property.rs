//! Setup and removal as properties over generated settings files.

#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests, outside any test function")]

use std::path::{Path, PathBuf};

use proptest::prelude::*;
use ringer_agents::setup::{
    Client, CurrentFile, Entries, FileHistory, Format, McpForm, OriginalContent, RingerProgram, SetupAction,
    SetupError, SetupScope, Target, plan,
};
use serde_json::Value;

use crate::setup_configs::{Config, any_config, plain_json};

const PROGRAM: &str = "/opt/ringer 1/ringer";

fn target(client: Client, format: Format) -> Target {
    Target {
        client,
        scope: SetupScope::User,
        format,
        mcp: None,
        lock: None,
        path: PathBuf::from("/nowhere/settings.json"),
    }
}

fn planned(
    client: Client,
    action: &SetupAction,
    bytes: &[u8],
    history: FileHistory,
) -> Result<Option<Vec<u8>>, SetupError> {
    let file = CurrentFile { target: target(client, Format::Hooks), bytes: Some(bytes.to_vec()), history };
    Ok(plan(client, action, vec![file])?.changes.remove(0).after)
}

fn set_up(client: Client, text: &str) -> String {
    let action = SetupAction::Setup(RingerProgram::new(Path::new(PROGRAM)).unwrap(), Entries::Hooks);
    String::from_utf8(planned(client, &action, text.as_bytes(), FileHistory::default()).unwrap().unwrap())
        .unwrap()
}

fn removed(client: Client, text: &str, untouched: bool, original: OriginalContent) -> Option<String> {
    let history = FileHistory { untouched, original };
    planned(client, &SetupAction::Remove(Entries::All), text.as_bytes(), history)
        .unwrap()
        .map(|bytes| String::from_utf8(bytes).unwrap())
}

/// Every command of an event, by the second implementation.
fn commands(text: &str) -> Vec<(String, String)> {
    let value: Value =
        serde_json::from_str(&plain_json(text)).unwrap_or_else(|error| panic!("{error}:\n{text}"));
    let Some(events) = value.get("hooks").and_then(Value::as_object) else { return Vec::new() };
    let mut found = Vec::new();
    for (event, groups) in events {
        for group in groups.as_array().unwrap() {
            // In a flat file the group is the handler.
            let handlers = group["hooks"].as_array().cloned().unwrap_or_else(|| vec![group.clone()]);
            for handler in handlers {
                let line = handler.get("bash").unwrap_or(&handler["command"]);
                found.push((event.clone(), line.as_str().unwrap().to_owned()));
            }
        }
    }
    found.sort();
    found
}

fn is_ours(command: &str) -> bool {
    !command.starts_with("echo")
}

/// Returns true if `short` is `long` with some bytes removed.
fn is_left_of(short: &str, long: &str) -> bool {
    let mut long = long.bytes();
    short.bytes().all(|byte| long.any(|other| other == byte))
}

fn squeezed(text: &str) -> String {
    text.split_whitespace().collect()
}

fn check_setup(config: &Config, after: &str) {
    let client = config.client;
    let (mine, foreign): (Vec<_>, Vec<_>) =
        commands(after).into_iter().partition(|(_, command)| is_ours(command));
    let mut events: Vec<&str> = mine.iter().map(|(event, _)| event.as_str()).collect();
    let mut expect = client.hook_events().to_vec();
    events.sort_unstable();
    expect.sort_unstable();
    assert_eq!(events, expect, "one entry for each event:\n{after}");
    for (event, command) in &mine {
        assert_eq!(
            *command,
            format!("[ -x '{PROGRAM}' ] && exec '{PROGRAM}' hook {client} {event} || exit 0 # ringer-hook")
        );
    }
    if !plain_json(&config.text).trim().is_empty() {
        let before = commands(&config.text).into_iter().filter(|(_, command)| !is_ours(command));
        assert_eq!(foreign, before.collect::<Vec<_>>());
    }
    assert!(config.old_entries > 0 || is_left_of(&config.text, after), "bytes were lost:\n{after}");
}

fn check_foreign(config: &Config, text: &str) {
    for mark in &config.foreign {
        assert_eq!(
            text.matches(mark.as_str()).count(),
            config.text.matches(mark.as_str()).count(),
            "{mark}\n{text}"
        );
    }
    let crlf = |text: &str| text.contains("\r\n");
    assert!(!crlf(text) || crlf(&config.text), "CRLF appeared:\n{text:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn setup_and_removal(config in any_config()) {
        let client = config.client;
        let after = set_up(client, &config.text);
        check_setup(&config, &after);
        check_foreign(&config, &after);
        prop_assert_eq!(&set_up(client, &after), &after, "a second run changes nothing");

        // Not edited since: the original bytes come back, except Ringer's own.
        let back = removed(client, &after, true, OriginalContent::Bytes(config.text.clone().into_bytes())).unwrap();
        check_foreign(&config, &back);
        if config.old_entries == 0 {
            prop_assert_eq!(&back, &config.text);
        } else {
            prop_assert!(!commands(&back).iter().any(|(_, command)| is_ours(command)));
            prop_assert!(is_left_of(&back, &config.text));
        }
        prop_assert_eq!(removed(client, &after, true, OriginalContent::Absent), None);

        // Without a record, only Ringer's entries are removed; if no part was empty before, the bytes are the original ones.
        let blind = removed(client, &after, false, OriginalContent::Unknown).unwrap();
        check_foreign(&config, &blind);
        prop_assert!(is_left_of(&blind, &after));
        let plain = squeezed(&plain_json(&config.text));
        if config.old_entries == 0 && !plain.is_empty() && !plain.contains("[]") && !plain.contains("{}") {
            prop_assert_eq!(&blind, &config.text);
        }
        prop_assert_eq!(removed(client, &blind, false, OriginalContent::Unknown), Some(blind));

        // Edited since: only Ringer's entries are removed.
        let edit = |text: &str| text.replacen('{', "{\"edited\": [1], ", 1);
        if !plain.is_empty() {
            let edited = edit(&after);
            let back = removed(client, &edited, false, OriginalContent::Bytes(config.text.clone().into_bytes())).unwrap();
            check_foreign(&config, &back);
            prop_assert!(!commands(&back).iter().any(|(_, command)| is_ours(command)));
            if config.old_entries == 0 {
                let expect = edit(&config.text);
                // In a file that was empty, only white space or a redundant comma is left around the entry.
                let same = squeezed(&back) == squeezed(&expect)
                    || plain_json(&squeezed(&plain_json(&back))) == plain_json(&squeezed(&plain_json(&expect)));
                prop_assert!(same, "{back}\n{expect}");
            }
        }
    }

    #[test]
    fn the_mcp_server_comes_and_goes(config in any_config()) {
        let planned = |action: &SetupAction, text: &str, history: FileHistory| {
            let mcp = Some(McpForm::Command { servers: "mcpServers", has_type: true });
            let target = Target { mcp, ..target(config.client, Format::Hooks) };
            let file = CurrentFile { target, bytes: Some(text.as_bytes().to_vec()), history };
            let after = plan(config.client, action, vec![file]).unwrap().changes.remove(0).after;
            String::from_utf8(after.unwrap()).unwrap()
        };
        let add = SetupAction::Setup(RingerProgram::new(Path::new(PROGRAM)).unwrap(), Entries::McpServer);
        let after = planned(&add, &config.text, FileHistory::default());
        let value: Value = serde_json::from_str(&plain_json(&after)).unwrap();
        prop_assert_eq!(&value["mcpServers"]["ringer"]["command"], PROGRAM);
        prop_assert!(is_left_of(&config.text, &after), "bytes were lost:\n{}", after);
        prop_assert_eq!(&planned(&add, &after, FileHistory::default()), &after, "a second run changes nothing");

        // Ringer's hooks stay.
        let remove = SetupAction::Remove(Entries::McpServer);
        let blind = planned(&remove, &after, FileHistory::default());
        check_foreign(&config, &blind);
        let plain = squeezed(&plain_json(&config.text));
        if config.old_entries > 0 || (!plain.is_empty() && plain != "{}") {
            prop_assert_eq!(&blind, &config.text);
        }
        let original = OriginalContent::Bytes(config.text.clone().into_bytes());
        let back = planned(&remove, &after, FileHistory { untouched: true, original });
        prop_assert_eq!(&back, &config.text);
    }

    #[test]
    fn a_torn_file_is_refused_or_whole(
        config in any_config(),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let mut bytes = config.text.clone().into_bytes();
        let mut at = at.index(bytes.len() + 1);
        while !config.text.is_char_boundary(at) {
            at -= 1;
        }
        let action = SetupAction::Setup(RingerProgram::new(Path::new(PROGRAM)).unwrap(), Entries::Hooks);
        let torn = planned(config.client, &action, &bytes[..at], FileHistory::default());
        if let Ok(Some(after)) = torn {
            let after = String::from_utf8_lossy(&after).into_owned();
            prop_assert!(config.old_entries > 0 || is_left_of(&config.text[..at], &after));
        }
        bytes.insert(at, byte);
        drop(planned(config.client, &action, &bytes, FileHistory::default()));
        drop(planned(config.client, &SetupAction::Remove(Entries::All), &bytes, FileHistory::default()));
    }

    #[test]
    fn no_bytes_make_it_panic(
        bytes in proptest::collection::vec(any::<u8>(), 0..200),
        text in "[\\[\\]{}\",:/*\\\\ \n\r\t0-9a-e\u{feff}-]{0,60}",
    ) {
        let action = SetupAction::Setup(RingerProgram::new(Path::new(PROGRAM)).unwrap(), Entries::All);
        for bytes in [bytes.as_slice(), text.as_bytes()] {
            for (client, format) in [
                (Client::Codex, Format::Hooks),
                (Client::Copilot, Format::Hooks),
                (Client::Codex, Format::CodexConfig),
                (Client::Opencode, Format::OpencodePlugin),
            ] {
                for action in [&action, &SetupAction::Remove(Entries::All)] {
                    let mcp = Some(if client == Client::Codex { McpForm::Table } else { McpForm::CommandList { servers: "a" } });
                    let target = Target { mcp, ..target(client, format) };
                    let file = CurrentFile { target, bytes: Some(bytes.to_vec()), history: FileHistory::default() };
                    drop(plan(client, action, vec![file]));
                }
            }
        }
    }
}
