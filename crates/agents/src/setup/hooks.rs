//! Hook files: those of Claude Code, Codex and Gemini, `{"hooks": {EVENT: [{"hooks": [{"command": …}]}]}}`, and the flat ones of
//! Copilot CLI, `{"version": 1, "hooks": {EVENT: [{"type": "command", "bash": …}]}}`.
//!
//! A hook file may also have the setting that turns off the client's own popups, so that the person sees each notification once.
//!
//! Installing and removing find the *next* thing to fix, fix it, and start again until there is none. What is right is never
//! rewritten, so a second run has nothing to do.

use std::collections::BTreeSet;

use super::entries::RingerProgram;
use super::files::OriginalContent;
use super::jsonc::{self, Body, Document, JsoncError, Node, Slot};
use super::splice::{self, Formatting, NewValue};
use crate::client::{Client, PopupSetting};

/// Far more steps than any file needs; reaching it means that a step had no effect.
const MAX_STEPS: usize = 10_000;

/// The version of a flat hook file. There is only this one.
const VERSION: u32 = 1;

/// The position of a handler: indices of the event, the group and the handler. In a flat file the group is the handler.
#[derive(Debug, Clone, Copy)]
struct HandlerPosition {
    event: usize,
    group: usize,
    handler: Option<usize>,
}

/// Parts of a hook file that existed before setup. They stay, even if they are empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ExistingParts {
    hooks: bool,
    events: BTreeSet<String>,
}

impl ExistingParts {
    /// The parts of a text without Ringer's entries; none if it cannot be read.
    pub(crate) fn of(client: Client, text: &str) -> Self {
        let stripped = strip(client, text, &Self::default()).ok();
        let root = stripped.as_deref().and_then(|text| jsonc::parse(text).ok()?.root);
        let hooks = root.as_ref().and_then(|root| root.member("hooks")).and_then(|(_, hooks)| hooks.object());
        let names = hooks.iter().flat_map(|body| &body.slots).filter_map(|slot| slot.key.clone());
        Self { hooks: hooks.is_some(), events: names.collect() }
    }
}

/// Installs exactly one Ringer entry for each event.
pub(crate) fn install(client: Client, program: &RingerProgram, text: &str) -> Result<String, JsoncError> {
    apply_until_stable(text, |text| install_step(client, program, text))
}

/// Removes all Ringer entries, and the parts that become empty, except those in `existing`.
pub(crate) fn strip(client: Client, text: &str, existing: &ExistingParts) -> Result<String, JsoncError> {
    apply_until_stable(text, |text| {
        let document = jsonc::parse(text)?;
        let Some((_, hooks)) = document.root.as_ref().and_then(|root| root.member("hooks")) else {
            return Ok(None);
        };
        let Some(position) = ringer_handlers(client, hooks).first().copied() else { return Ok(None) };
        Ok(remove_handler(text, &document, position, existing))
    })
}

/// Returns true if a text is an empty object, possibly with a version, so that the file has no effect.
pub(crate) fn has_no_hooks(client: Client, text: &str) -> bool {
    let solid: String = text.trim_start_matches('\u{feff}').split_whitespace().collect();
    solid == "{}" || (client.is_flat() && solid == format!("{{\"version\":{VERSION}}}"))
}

fn apply_until_stable(
    text: &str,
    step: impl Fn(&str) -> Result<Option<String>, JsoncError>,
) -> Result<String, JsoncError> {
    let mut text = text.to_owned();
    for _ in 0..MAX_STEPS {
        match step(&text)? {
            Some(next) => text = next,
            None => return Ok(text),
        }
    }
    Err(JsoncError::at(&text, 0, "the hooks of this file cannot be brought into order"))
}

/// Fixes the first entry that is missing, wrong or redundant.
fn install_step(client: Client, program: &RingerProgram, text: &str) -> Result<Option<String>, JsoncError> {
    let document = jsonc::parse(text)?;
    let formatting = Formatting::of(text, document.root.as_ref());
    let all = || {
        let events = client.hook_events().iter();
        NewValue::Object(
            events.map(|event| (*event, NewValue::Array(vec![client.entry(program, event)]))).collect(),
        )
    };
    let Some(root) = &document.root else {
        let version = client.is_flat().then_some(("version", NewValue::Number(VERSION)));
        let members = version.into_iter().chain([("hooks", all())]).collect();
        return Ok(Some(splice::document_after(text, &NewValue::Object(members), &formatting)));
    };
    if root.object().is_none() {
        return Err(JsoncError::at(text, root.span.start, "the document is not an object"));
    }
    // A missing version counts as 1; other versions are unknown.
    let version = root.member("version").filter(|_| client.is_flat()).map(|(_, version)| version);
    if let Some(version) = version.filter(|version| text[version.span.clone()] != VERSION.to_string()) {
        return Err(JsoncError::at(text, version.span.start, "the version of this file is not known"));
    }
    let Some((_, hooks)) = root.member("hooks") else {
        return Ok(splice::append(text, root, &formatting, Some("hooks"), &all()));
    };
    if hooks.object().is_none() {
        return Err(JsoncError::at(text, hooks.span.start, "\"hooks\" is not an object"));
    }

    let mut seen = BTreeSet::new();
    for position in ringer_handlers(client, hooks) {
        let (name, command) = entry(client, hooks, position).unwrap_or_default();
        // If an event is named twice, the client reads only the last one, so Ringer's entry must be there.
        let unread = hooks.member(name).is_none_or(|(last, _)| last != position.event);
        if unread || !client.hook_events().contains(&name) || !seen.insert(name) {
            return Ok(remove_handler(text, &document, position, &ExistingParts::default()));
        }
        let line = program.shell_line(client, name);
        if let Some(command) = command.filter(|command| command.text() != Some(&line)) {
            return Ok(Some(splice::replace_text(text, command, &line)));
        }
    }
    let missing = client.hook_events().iter().find(|event| !seen.contains(**event));
    let Some(event) = missing else { return Ok(None) };
    let fresh = client.entry(program, event);
    let Some((_, array)) = hooks.member(event) else {
        return Ok(splice::append(text, hooks, &formatting, Some(event), &NewValue::Array(vec![fresh])));
    };
    if array.array().is_none() {
        return Err(JsoncError::at(text, array.span.start, "the hooks of this event are not an array"));
    }
    Ok(splice::append(text, array, &formatting, None, &fresh))
}

/// All of Ringer's handlers, in file order.
fn ringer_handlers(client: Client, hooks: &Node) -> Vec<HandlerPosition> {
    let is_ours = |handler: &Node| {
        let line = handler.member(client.line_key()).and_then(|(_, line)| line.text());
        line.is_some_and(|line| client.owns(line))
    };
    let mut positions = Vec::new();
    for (event, slot) in slots(hooks.object()).iter().enumerate() {
        for (group, slot) in slots(slot.value.array()).iter().enumerate() {
            if client.is_flat() {
                positions.extend(is_ours(&slot.value).then_some(HandlerPosition {
                    event,
                    group,
                    handler: None,
                }));
                continue;
            }
            let handlers = slot.value.member("hooks").and_then(|(_, handlers)| handlers.array());
            for (handler, slot) in slots(handlers).iter().enumerate() {
                let position = HandlerPosition { event, group, handler: Some(handler) };
                positions.extend(is_ours(&slot.value).then_some(position));
            }
        }
    }
    positions
}

fn slots(body: Option<&Body>) -> &[Slot] {
    body.map(|body| body.slots.as_slice()).unwrap_or_default()
}

/// The event's name and the shell line of a handler.
fn entry(client: Client, hooks: &Node, position: HandlerPosition) -> Option<(&str, Option<&Node>)> {
    let event = hooks.object()?.slots.get(position.event)?;
    let line = handler(hooks, position)?.member(client.line_key()).map(|(_, line)| line);
    Some((event.key.as_deref()?, line))
}

fn handler(hooks: &Node, position: HandlerPosition) -> Option<&Node> {
    let event = hooks.object()?.slots.get(position.event)?;
    let group = &event.value.array()?.slots.get(position.group)?.value;
    match position.handler {
        Some(handler) => Some(&group.member("hooks")?.1.array()?.slots.get(handler)?.value),
        None => Some(group),
    }
}

/// Removes a handler, and every level that contains nothing else, not even a comment.
fn remove_handler(
    text: &str,
    document: &Document,
    position: HandlerPosition,
    existing: &ExistingParts,
) -> Option<String> {
    let root = document.root.as_ref()?;
    let (index, hooks) = root.member("hooks")?;
    let root_body = root.object()?;
    let hooks = hooks.object()?;
    let event = hooks.slots.get(position.event)?;
    let groups = event.value.array()?;
    let group = groups.slots.get(position.group)?;
    let handlers = group.value.member("hooks").and_then(|(_, handlers)| handlers.array());
    let handler = match position.handler {
        Some(handler) => handlers?.slots.get(handler)?.span(),
        None => group.span(),
    };

    let held_more = |slot: &Slot| document.has_comment_around(&slot.span(), &handler);
    if let (Some(index), Some(handlers)) = (position.handler, handlers)
        && (handlers.slots.len() > 1 || held_more(group))
    {
        return splice::remove(text, handlers, index);
    }
    let kept_event = event.key.as_ref().is_some_and(|name| existing.events.contains(name));
    if groups.slots.len() > 1 || kept_event || held_more(event) {
        return splice::remove(text, groups, position.group);
    }
    if hooks.slots.len() > 1 || existing.hooks || held_more(root_body.slots.get(index)?) {
        return splice::remove(text, hooks, position.event);
    }
    splice::remove(text, root_body, index)
}

/// Returns true if the popup setting is set.
pub(crate) fn has_popup_setting(setting: &PopupSetting, text: &str) -> bool {
    let document = jsonc::parse(text).ok();
    document.and_then(|document| document.root).is_some_and(|root| root.member(setting.key).is_some())
}

/// Turns popups off, unless the person has set the setting.
pub(crate) fn turn_off_popups(setting: &PopupSetting, text: &str) -> Result<String, JsoncError> {
    let document = jsonc::parse(text)?;
    let Some(root) = document.root.as_ref().filter(|root| root.member(setting.key).is_none()) else {
        return Ok(text.to_owned());
    };
    let formatting = Formatting::of(text, Some(root));
    let new =
        splice::append(text, root, &formatting, Some(setting.key), &NewValue::Text(setting.off.to_owned()));
    Ok(new.unwrap_or_else(|| text.to_owned()))
}

/// Undoes [`turn_off_popups`]. The setting stays if it may be the person's: set before setup, changed since, or of unknown
/// origin.
pub(crate) fn strip_popup_setting(
    setting: &PopupSetting,
    text: &str,
    original: &OriginalContent,
) -> Result<String, JsoncError> {
    let was_set = match original {
        OriginalContent::Unknown => true,
        OriginalContent::Absent => false,
        OriginalContent::Bytes(bytes) => has_popup_setting(setting, &String::from_utf8_lossy(bytes)),
    };
    let document = jsonc::parse(text)?;
    let ours = document.root.as_ref().filter(|_| !was_set).and_then(|root| {
        let (index, value) = root.member(setting.key)?;
        (value.text() == Some(setting.off)).then_some((root.object()?, index))
    });
    let left = ours.and_then(|(body, index)| splice::remove(text, body, index));
    Ok(left.unwrap_or_else(|| text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::{Client, PopupSetting};
    use std::path::Path;

    fn program() -> RingerProgram {
        RingerProgram::new(Path::new("/bin/ringer")).unwrap()
    }

    #[test]
    fn what_is_there_stays_and_what_is_ours_goes_again() {
        let text = "{\n  // mine\n  \"hooks\": {\n    \"Stop\": [\n      {\"hooks\": [{\"command\": \"x\"}]}\n    ]\n  }\n}";
        let out = install(Client::Claude, &program(), text).unwrap();
        assert_eq!(out.matches(crate::setup::entries::MARKER).count(), Client::Claude.hook_events().len());
        assert_eq!(install(Client::Claude, &program(), &out).unwrap(), out);
        assert_eq!(strip(Client::Claude, &out, &ExistingParts::default()).unwrap(), text);
    }

    #[test]
    fn an_old_entry_is_renewed_in_its_place() {
        let text = r#"{"hooks": {"Stop": [{"matcher": "", "hooks": [
            {"command": "/old/ringer hook codex Stop", "timeout": 9 /* mine */}, {"command": "foreign"}]}],
            "Gone": [{"hooks": [{"command": "ringer hook codex Gone"}]}]}}"#;
        let out = install(Client::Codex, &program(), text).unwrap();
        assert!(out.contains("hook codex Stop || exit 0 # ringer-hook\", \"timeout\": 9 /* mine */}, {\"command\": \"foreign\"}"));
        assert!(!out.contains("Gone") && !out.contains("/old/"));
    }

    #[test]
    fn a_hook_that_waits_gets_the_time_for_it() {
        let fresh = install(Client::Claude, &program(), "").unwrap();
        let timeout = |text: &str, event: &str| {
            let value: serde_json::Value = serde_json::from_str(text).unwrap();
            value["hooks"][event][0]["hooks"][0]["timeout"].as_u64()
        };
        assert_eq!(timeout(&fresh, "PermissionRequest"), Some(86_400));
        assert_eq!(timeout(&fresh, "Stop"), Some(5));
        let chosen = fresh.replace("86400", "600");
        assert_eq!(install(Client::Claude, &program(), &chosen).unwrap(), chosen, "a person's own");
        assert_eq!(timeout(&install(Client::Codex, &program(), "").unwrap(), "PermissionRequest"), Some(5));
    }

    #[test]
    fn a_flat_file() {
        let client = Client::Copilot;
        // With a hook that is not Ringer's.
        let text = "{\n  \"version\": 1,\n  \"hooks\": {\n    \"agentStop\": [{ \"bash\": \"./audit.sh\", \"cwd\": \".\" }]\n  }\n}\n";
        let out = install(client, &program(), text).unwrap();
        let value: serde_json::Value = serde_json::from_str(&out).unwrap();
        for event in client.hook_events() {
            let own = value["hooks"][event].as_array().unwrap().last().unwrap();
            let line = program().shell_line(client, event);
            assert_eq!(*own, serde_json::json!({"type": "command", "bash": line, "timeoutSec": 5}));
        }
        assert_eq!(install(client, &program(), &out).unwrap(), out);
        assert_eq!(strip(client, &out, &ExistingParts::default()).unwrap(), text);
        let new = install(client, &program(), "").unwrap();
        assert!(new.starts_with("{\n  \"version\": 1,\n  \"hooks\": {"), "{new}");
        assert!(has_no_hooks(client, &strip(client, &new, &ExistingParts::default()).unwrap()));
        assert!(install(client, &program(), "{\"version\": 2}").is_err());
    }

    #[test]
    fn a_shape_that_is_not_hooks_is_refused() {
        for text in ["[]", "{\"hooks\": []}", "{\"hooks\": {\"Stop\": 1}}", "{\"hooks\": {", "1"] {
            assert!(install(Client::Gemini, &program(), text).is_err() || text.contains("Stop"), "{text}");
            assert!(install(Client::Claude, &program(), text).is_err(), "{text}");
        }
    }

    #[test]
    fn an_empty_part_that_was_there_before_stays() {
        let original = "{\n  \"hooks\": {\n    \"Stop\": []\n  }\n}";
        let existing = ExistingParts::of(Client::Claude, original);
        let out = install(Client::Claude, &program(), original).unwrap();
        let out = strip(Client::Claude, &out, &existing).unwrap();
        assert_eq!(out.split_whitespace().collect::<String>(), r#"{"hooks":{"Stop":[]}}"#);
    }

    fn setting() -> &'static PopupSetting {
        Client::Claude.adapter().settings.own_popups.as_ref().unwrap()
    }

    #[test]
    fn popups_are_turned_off_and_back_on() {
        for text in ["{\n  \"model\": \"opus\"\n}\n", "{ // mine\n\t\"a\": 1,\r\n}", "{\"hooks\": {}}"] {
            let off = turn_off_popups(setting(), text).unwrap();
            assert!(off.contains("\"preferredNotifChannel\": \"notifications_disabled\""), "{off}");
            assert_eq!(turn_off_popups(setting(), &off).unwrap(), off);
            let before = OriginalContent::Bytes(text.as_bytes().to_vec());
            assert_eq!(strip_popup_setting(setting(), &off, &before).unwrap(), text);
            assert_eq!(
                strip_popup_setting(setting(), &off, &OriginalContent::Unknown).unwrap(),
                off,
                "it may be the person's"
            );
        }
    }

    #[test]
    fn a_popup_setting_of_the_person_stays() {
        for text in [
            "{\"preferredNotifChannel\": \"kitty\"}",
            "{\"preferredNotifChannel\": \"notifications_disabled\"}",
        ] {
            assert_eq!(turn_off_popups(setting(), text).unwrap(), text);
            assert_eq!(
                strip_popup_setting(setting(), text, &OriginalContent::Bytes(text.as_bytes().to_vec()))
                    .unwrap(),
                text
            );
        }
        let changed = "{\"preferredNotifChannel\": \"kitty\"}";
        assert_eq!(
            strip_popup_setting(setting(), changed, &OriginalContent::Bytes(b"{}".to_vec())).unwrap(),
            changed
        );
    }
}
