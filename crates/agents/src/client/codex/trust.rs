//! Which of Ringer's hooks Codex runs: those that the person trusted and that have not changed since.
//!
//! For each handler, by its position, Codex writes a hash of what was trusted into `config.toml`:
//! `[hooks.state."/…/.codex/hooks.json:stop:0:0"] trusted_hash = "sha256:…"`. It silently skips the others.

use std::collections::BTreeMap;
use std::path::Path;

use ringer_platform::hex;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use toml_edit::{Document, Item, TableLike};

use crate::client::settings::InstalledHooks;
use crate::setup::{Obstacle, ObstacleKind, SetupNote, split_bom};

/// Codex's default timeout of a handler, in seconds.
const DEFAULT_TIMEOUT: u64 = 600;
/// How long Codex lets a handler of the end of a session run, in seconds, whatever its timeout.
const LONGEST_END: u64 = 3;

/// How Codex treats one of Ringer's handlers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TrustState {
    Trusted,
    /// Never trusted.
    New,
    /// Changed since it was trusted.
    Changed,
    SwitchedOff,
}

/// Returns why Codex does not run Ringer's hooks. Files that are not JSON or TOML are ignored: Codex does not start with such a
/// `config.toml`, and setup rejects the other.
pub(super) fn find_obstacle(hooks: &InstalledHooks, config: &str, config_path: &Path) -> Option<Obstacle> {
    let config = Document::parse(split_bom(config).1.to_owned()).ok()?;
    let root = config.as_table();
    let features = root.get("features").and_then(|features| features.as_table_like());
    // Older versions called it `codex_hooks`; 0.166 still accepts that.
    let is_off = |key: &str| features.and_then(|features| features.get(key)?.as_bool()) == Some(false);
    if is_off("hooks") || is_off("codex_hooks") {
        let what =
            format!("hooks are off in [features] of {}, so Codex does not run them", config_path.display());
        let note = SetupNote { what, hint: "set hooks = true there, or take the line out".to_owned() };
        return Some(Obstacle { kind: ObstacleKind::SwitchedOff, note });
    }
    let states = root.get("hooks").and_then(|hooks| hooks.as_table_like()?.get("state")?.as_table_like());
    let parsed: Value = serde_json::from_str(hooks.text).ok()?;
    // Codex resolves links in `CODEX_HOME`, but not in `~/.codex`.
    let paths = [hooks.path, hooks.resolved];
    let found: Vec<TrustState> =
        handlers(&parsed, hooks.is_ours).map(|handler| handler.state(paths, states)).collect();
    let count = |state: TrustState| found.iter().filter(|found| **found == state).count();
    let (new, changed, off) =
        (count(TrustState::New), count(TrustState::Changed), count(TrustState::SwitchedOff));
    if new + changed + off == 0 {
        return None;
    }
    let parts =
        [(new, "not trusted yet"), (changed, "changed since they were trusted"), (off, "switched off")];
    let parts: Vec<String> =
        parts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
    let what = format!("Codex does not run all of its {} hooks: {}", found.len(), parts.join(", "));
    let kind = if new + changed == 0 { ObstacleKind::SwitchedOff } else { ObstacleKind::Untrusted };
    Some(Obstacle { kind, note: SetupNote { what, hint: "open codex and type /hooks".to_owned() } })
}

/// One of Ringer's handlers and its position.
struct Handler<'a> {
    event: &'a str,
    group: usize,
    index: usize,
    matcher: Option<&'a str>,
    object: &'a Map<String, Value>,
}

/// All of Ringer's handlers in a hook file.
fn handlers<'a>(hooks: &'a Value, is_ours: &'a dyn Fn(&str) -> bool) -> impl Iterator<Item = Handler<'a>> {
    let events = hooks["hooks"].as_object().into_iter().flatten();
    events.flat_map(move |(event, groups)| {
        let groups = groups.as_array().into_iter().flatten().enumerate();
        groups.flat_map(move |(group, value)| {
            let matcher = value["matcher"].as_str();
            let handlers = value["hooks"].as_array().into_iter().flatten().enumerate();
            handlers.filter_map(move |(index, handler)| {
                let object = handler.as_object()?;
                let is_ours = object.get("command")?.as_str().is_some_and(is_ours);
                is_ours.then_some(Handler { event, group, index, matcher, object })
            })
        })
    })
}

impl Handler<'_> {
    fn state(&self, paths: [&Path; 2], states: Option<&dyn TableLike>) -> TrustState {
        let key =
            |path: &Path| format!("{}:{}:{}:{}", path.display(), self.event_name(), self.group, self.index);
        let state = paths.into_iter().find_map(|path| states?.get(&key(path))?.as_table_like());
        let Some(state) = state else { return TrustState::New };
        if state.get("enabled").and_then(Item::as_bool) == Some(false) {
            return TrustState::SwitchedOff;
        }
        match (state.get("trusted_hash").and_then(Item::as_str), self.hash()) {
            (None, _) => TrustState::New,
            (Some(trusted), Some(hash)) if trusted != hash => TrustState::Changed,
            _ => TrustState::Trusted,
        }
    }

    /// `PreToolUse` is `pre_tool_use` in keys and hashes.
    fn event_name(&self) -> String {
        let mut name = String::new();
        for letter in self.event.chars() {
            if letter.is_ascii_uppercase() && !name.is_empty() {
                name.push('_');
            }
            name.push(letter.to_ascii_lowercase());
        }
        name
    }

    /// The hash of this handler: SHA-256 of compact JSON with sorted keys. `None` if it has members that Ringer does not know.
    fn hash(&self) -> Option<String> {
        let known = ["type", "command", "timeout", "async", "statusMessage"];
        if !self.object.keys().all(|key| known.contains(&key.as_str())) {
            return None;
        }
        let timeout = match self.object.get("timeout") {
            Some(seconds) => seconds.as_u64()?.max(1),
            None => DEFAULT_TIMEOUT,
        };
        let timeout = if self.event == "SessionEnd" { timeout.min(LONGEST_END) } else { timeout };
        let is_async = self.object.get("async").is_some_and(|value| value.as_bool() == Some(true));
        // Codex sorts the keys before it hashes.
        let mut handler = BTreeMap::from([
            ("async", Value::from(is_async)),
            ("command", self.object.get("command")?.clone()),
            ("timeout", timeout.into()),
            ("type", "command".into()),
        ]);
        if let Some(message) = self.object.get("statusMessage").filter(|message| !message.is_null()) {
            handler.insert("statusMessage", message.clone());
        }
        let mut identity =
            BTreeMap::from([("event_name", json!(self.event_name())), ("hooks", json!([handler]))]);
        // These two events have no tool to match.
        if let Some(matcher) = self.matcher.filter(|_| !matches!(self.event, "Stop" | "UserPromptSubmit")) {
            identity.insert("matcher", matcher.into());
        }
        let digest = Sha256::digest(serde_json::to_vec(&identity).ok()?);
        Some(format!("sha256:{}", hex(&digest)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::{Client, ClientPaths};

    const PATH: &str = "/h/.codex/hooks.json";
    const LINE: &str = "ringer hook codex ";

    fn file(handler: &Value, matcher: &str) -> String {
        let group =
            json!({ "matcher": matcher, "hooks": [{ "type": "command", "command": "other" }, handler] });
        json!({ "hooks": { "PreToolUse": [{ "hooks": [] }, group] } }).to_string()
    }

    fn kind(hooks: &str, config: &str) -> Option<(ObstacleKind, String)> {
        let path = Path::new(PATH);
        let hooks = InstalledHooks {
            path,
            resolved: path,
            text: hooks,
            paths: &ClientPaths::new("/h"),
            repository: None,
            read: &|_| None,
            is_ours: &|line| Client::Codex.owns(line),
        };
        let found = find_obstacle(&hooks, config, Path::new("/h/.codex/config.toml"));
        found.map(|obstacle| (obstacle.kind, obstacle.note.what))
    }

    /// What Codex 0.166.0 said of these handlers (`hooks/list` of its app server).
    #[test]
    fn hashes_are_those_of_codex() {
        let check = |event: &str, matcher: Option<&str>, handler: Value, expected: &str| {
            let object = handler.as_object().unwrap();
            let handler = Handler { event, group: 0, index: 0, matcher, object };
            assert_eq!(handler.hash(), Some(format!("sha256:{expected}")), "{event}");
        };
        check(
            "PreToolUse",
            Some("Bash"),
            json!({ "type": "command", "command": "ringer hook codex PreToolUse", "timeout": 5 }),
            "1296aa5dbcf33cf65398855346ac6cf0797e45f7b2d76d2f31842efd99d90d31",
        );
        check(
            "PermissionRequest",
            None,
            json!({ "type": "command", "command": "ringer hook codex PermissionRequest # a\\b\tc", "timeout": 9 }),
            "e96fc28048921698f500d98ecb7093b6c7bc49171436683ea6c11107b6e3f3df",
        );
        check(
            "PostToolUse",
            Some(""),
            json!({ "type": "command", "command": "ringer hook codex PostToolUse" }),
            "65fdc80c2caa970d006351a691765d98283d45ec26740d79b007bab8c35fe4ad",
        );
        check(
            "SessionStart",
            None,
            json!({ "type": "command", "command": "/a \"b\"/ü/ringer hook codex SessionStart", "timeout": 5,
                "statusMessage": "hi", "async": false }),
            "f3969bc7ba2c8a264a913609e79546928b10ebeb3f3b7cec4140a87c00f6e73c",
        );
        check(
            "UserPromptSubmit",
            Some("x"),
            json!({ "type": "command", "command": "ringer hook codex UserPromptSubmit", "timeout": 0 }),
            "f99f01d5ad2b155462ac6945953d1d68181e2d690cf2577d1cda21a70b0a277b",
        );
        check(
            "Stop",
            Some("x"),
            json!({ "type": "command", "command": "ringer hook codex Stop", "timeout": 5 }),
            "170e2115f425ca9d29119e2718736e5844089885729a375c015d656be4dea496",
        );
    }

    #[test]
    fn trusted_changed_off_and_new() {
        let handler = json!({ "type": "command", "command": format!("{LINE}PreToolUse"), "timeout": 5 });
        let hooks = file(&handler, "Bash");
        let parsed: Value = serde_json::from_str(&hooks).unwrap();
        let hash = handlers(&parsed, &|line| Client::Codex.owns(line)).next().unwrap().hash().unwrap();
        let state =
            |place: &str, more: &str| format!("[hooks.state.\"{PATH}:pre_tool_use:{place}\"]\n{more}\n");
        let trusted = format!("trusted_hash = \"{hash}\"");
        assert_eq!(kind(&hooks, &state("1:1", &trusted)), None);
        let untrusted = |what: &str| {
            Some((ObstacleKind::Untrusted, format!("Codex does not run all of its 1 hooks: 1 {what}")))
        };
        assert_eq!(kind(&hooks, ""), untrusted("not trusted yet"));
        assert_eq!(kind(&hooks, &state("0:1", &trusted)), untrusted("not trusted yet"), "of another place");
        assert_eq!(
            kind(&hooks, &state("1:1", "trusted_hash = \"sha256:00\"")),
            untrusted("changed since they were trusted")
        );
        let off = kind(&hooks, &state("1:1", &format!("{trusted}\nenabled = false"))).unwrap();
        assert_eq!(off.0, ObstacleKind::SwitchedOff);
        for feature in ["hooks", "codex_hooks"] {
            let config = format!("[features]\n{feature} = false\n{}", state("1:1", &trusted));
            assert_eq!(kind(&hooks, &config).unwrap().0, ObstacleKind::SwitchedOff, "{feature}");
        }
        // A hash that cannot be computed is taken as unchanged since the user's decision.
        let more = json!({ "type": "command", "command": format!("{LINE}PreToolUse"), "new": true });
        assert_eq!(kind(&file(&more, ""), &state("1:1", &trusted)), None);
        assert_eq!(kind("{", ""), None);
        assert_eq!(kind(&hooks, "["), None);
    }
}
