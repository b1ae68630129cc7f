//! Hooks that a client has in its files and does not run. Each behaviour was observed with the real client.

#![expect(clippy::unwrap_used, reason = "helpers of tests, outside any test function")]

use std::fs;
use std::path::{Path, PathBuf};

use ringer_agents::setup::{
    Client, Entries, ObstacleKind, RingerProgram, SetupAction, SetupScope, obstacles,
};

use crate::setup_apply::Home;

fn set_up(home: &Home, client: Client) {
    let action =
        SetupAction::Setup(RingerProgram::new(Path::new("/usr/bin/ringer")).unwrap(), Entries::Hooks);
    home.run(client, &action, "20261115-060000").unwrap();
}

/// A home in which a client is set up, in a file that begins with this text.
fn with_text(client: Client, text: &str) -> (Home, PathBuf) {
    let mut home = Home::new();
    home.places.claude_managed = home.places.home.join("managed-settings.json");
    let path = home.places.targets(client, SetupScope::User).unwrap()[0].path.clone();
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, text).unwrap();
    set_up(&home, client);
    (home, path)
}

#[track_caller]
fn check(home: &Home, client: Client, repository: Option<&Path>, expected: Option<(ObstacleKind, &str)>) {
    let found = obstacles(client, SetupScope::User, &home.places, repository);
    let is_expected = match (found.as_slice(), expected) {
        ([found], Some((kind, what))) => found.kind == kind && found.note.what.contains(what),
        (found, expected) => found.is_empty() && expected.is_none(),
    };
    assert!(is_expected, "{expected:?}: {found:?}");
}

#[test]
fn a_file_that_the_client_does_not_read() {
    use Client::{Claude, Codex, Copilot, Gemini};
    use ObstacleKind::Unread;
    let comment = "{\n  // mine\n  \"a\": 1\n}\n";
    let comma = "{\n  \"a\": [1,]\n}\n";
    let mark = "\u{feff}{}\n";
    for (client, text, expected) in [
        (Claude, "{}", None),
        (Claude, mark, None),
        (Claude, comment, Some("line 2, column 3: a comment")),
        (Claude, comma, Some("line 2, column 10: a comma after the last member")),
        (Codex, comment, Some("Codex does not read ")),
        (Codex, comma, Some("a comma after the last member")),
        (Codex, mark, Some("a byte order mark")),
        (Gemini, comment, None),
        (Gemini, comma, Some("Gemini CLI does not read ")),
        (Gemini, mark, Some("a byte order mark")),
        (Copilot, comment, None),
    ] {
        let (home, _) = with_text(client, text);
        check(&home, client, None, expected.map(|what| (Unread, what)));
    }
}

#[test]
fn hooks_that_are_switched_off() {
    use Client::{Claude, Gemini};
    use ObstacleKind::SwitchedOff;
    let (home, path) = with_text(Claude, "{\"disableAllHooks\": true}");
    check(&home, Claude, None, Some((SwitchedOff, path.to_str().unwrap())));
    // The repository's settings take precedence, and among them the local ones.
    let repository = home.state().join("repository");
    fs::create_dir_all(repository.join(".claude")).unwrap();
    let write = |name: &str, text: &str| fs::write(repository.join(".claude").join(name), text).unwrap();
    write("settings.json", "{\"disableAllHooks\": false}");
    check(&home, Claude, Some(&repository), None);
    check(&home, Claude, None, Some((SwitchedOff, "disableAllHooks is true")));
    write("settings.local.json", "{\"disableAllHooks\": true}");
    check(&home, Claude, Some(&repository), Some((SwitchedOff, "settings.local.json")));
    write("settings.local.json", "{\"disableAllHooks\": true,}");
    check(&home, Claude, Some(&repository), None);
    // An administrator's settings take precedence over all.
    let managed = |text: &str| fs::write(&home.places.claude_managed, text).unwrap();
    managed("{\"disableAllHooks\": true}");
    check(&home, Claude, Some(&repository), Some((SwitchedOff, "managed-settings.json")));
    managed("{\"allowManagedHooksOnly\": true}");
    check(&home, Claude, Some(&repository), Some((SwitchedOff, "only an administrator's hooks are allowed")));

    for (text, expected) in [
        ("{\"hooksConfig\": {\"enabled\": true, \"disabled\": [\"other\"]}}", None),
        ("{\"hooksConfig\": {\"enabled\": false}}", Some("hooksConfig.enabled is false")),
        (
            "{\"hooksConfig\": {\"disabled\": [\"other\", \"ringer\"]}}",
            Some("hooksConfig.disabled names \"ringer\""),
        ),
    ] {
        let (home, _) = with_text(Gemini, text);
        check(&home, Gemini, None, expected.map(|what| (SwitchedOff, what)));
    }
}

#[test]
fn codex_has_to_trust_each_of_them() {
    use Client::Codex;
    use ObstacleKind::{SwitchedOff, Untrusted};
    let (home, hooks) = with_text(Codex, "");
    check(&home, Codex, None, Some((Untrusted, "does not run all of its 7 hooks: 7 not trusted yet")));
    let config = hooks.with_file_name("config.toml");
    let written = fs::read_to_string(&config).unwrap();
    // As Codex 0.169.0 writes it when hooks are trusted with /hooks.
    let hashes = [
        ("session_start", "bdbd72065d025340432d5f06a3e98f47827411af1ad97830e767cf90b15496ba"),
        ("user_prompt_submit", "95b3b9ef328254db0d6f0e13f7524975137f14a575b9736f1bd4bdebb149ee4c"),
        ("pre_tool_use", "89f7ebb3698da008f3b0805d0619d6c33aa12560447d8268f30a8f2366f77b9f"),
        ("post_tool_use", "a7d3f35917650db8287d5aa558e35ebf2eebc4a79165ebe90c398318be42279b"),
        ("permission_request", "dd05739e58cb624aa5d86f60cd723b18c527ed15c8d8977533c1a87b67f2f668"),
        ("session_end", "fc292fb287aaddaf3a415abe91e270966b3b54a667658d64071b5a5a26c52561"),
        ("stop", "7d65b3a47f1e48e914ca440bebbb2ca70c443f2346a07c92e2a5a82ced7febe2"),
    ];
    let trust = |path: &Path| -> String {
        let entry = |(event, hash): &(&str, &str)| {
            format!("[hooks.state.\"{}:{event}:0:0\"]\ntrusted_hash = \"sha256:{hash}\"\n", path.display())
        };
        hashes.iter().map(entry).collect()
    };
    let trusted = format!("{written}\n{}", trust(&hooks));
    fs::write(&config, &trusted).unwrap();
    check(&home, Codex, None, None);
    fs::write(
        &config,
        trusted
            .replace("sha256:7d65b3a47f1e48e914ca440bebbb2ca70c443f2346a07c92e2a5a82ced7febe2", "sha256:00"),
    )
    .unwrap();
    check(&home, Codex, None, Some((Untrusted, "7 hooks: 1 changed since they were trusted")));
    fs::write(&config, format!("{trusted}enabled = false\n")).unwrap();
    check(&home, Codex, None, Some((SwitchedOff, "1 switched off")));
    fs::write(&config, format!("{trusted}\n[features]\nhooks = false\n")).unwrap();
    check(&home, Codex, None, Some((SwitchedOff, "hooks are off in [features]")));
    // Another program changes them.
    fs::write(&config, &trusted).unwrap();
    let action = SetupAction::Setup(RingerProgram::new(Path::new("/opt/ringer")).unwrap(), Entries::Hooks);
    home.run(Codex, &action, "20261115-060001").unwrap();
    check(&home, Codex, None, Some((Untrusted, "7 changed since they were trusted")));
}
