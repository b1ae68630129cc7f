//! The hook file of Claude Code, Codex and Gemini: `{"hooks": {EVENT: [{"hooks": [{"command": …}]}]}}`.
//!
//! Both directions look for the *next* thing that is not as it should be, change that, and look again until there is
//! none: what is right already is never written, so a second run finds nothing to do.

use std::collections::BTreeSet;

use super::entries::Program;
use super::jsonc::{self, Body, Document, JsoncError, Node, Slot};
use super::splice::{self, Fresh, Manner};
use crate::client::Client;

/// Far more steps than any file needs; reaching it means that a step did not do what it should.
const MAX_STEPS: usize = 10_000;

/// Where one handler of ours stands: indices into the event members, its groups and their handlers.
#[derive(Debug, Clone, Copy)]
struct Place {
    event: usize,
    group: usize,
    handler: usize,
}

/// The parts of a hook file that were there before us and therefore stay, even when they are empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Kept {
    hooks: bool,
    events: BTreeSet<String>,
}

impl Kept {
    /// What a text had besides our entries; nothing if it cannot be read.
    pub(crate) fn of(client: Client, text: &str) -> Self {
        let stripped = strip(client, text, &Self::default()).ok();
        let root = stripped.as_deref().and_then(|text| jsonc::parse(text).ok()?.root);
        let hooks = root.as_ref().and_then(|root| root.member("hooks")).and_then(|(_, hooks)| hooks.object());
        let names = hooks.iter().flat_map(|body| &body.slots).filter_map(|slot| slot.key.clone());
        Self { hooks: hooks.is_some(), events: names.collect() }
    }
}

/// The text with exactly one entry of ours for each event.
pub(crate) fn install(client: Client, program: &Program, text: &str) -> Result<String, JsoncError> {
    repeat(text, |text| install_step(client, program, text))
}

/// The text without any entry of ours; what becomes empty by that goes as well, unless it is `kept`.
pub(crate) fn strip(client: Client, text: &str, kept: &Kept) -> Result<String, JsoncError> {
    repeat(text, |text| {
        let document = jsonc::parse(text)?;
        let Some((_, hooks)) = document.root.as_ref().and_then(|root| root.member("hooks")) else {
            return Ok(None);
        };
        let Some(place) = ours(client, hooks).first().copied() else { return Ok(None) };
        Ok(without(text, &document, place, kept))
    })
}

/// Whether a text has nothing in it but an empty object, so that the file is of no use to anybody.
pub(crate) fn is_bare(text: &str) -> bool {
    text.trim_start_matches('\u{feff}').split_whitespace().collect::<String>() == "{}"
}

fn repeat(
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

/// The first thing that is missing, wrong or too much, put right.
fn install_step(client: Client, program: &Program, text: &str) -> Result<Option<String>, JsoncError> {
    let document = jsonc::parse(text)?;
    let manner = Manner::of(text, document.root.as_ref());
    let all = || {
        let events = client.hook_events().iter();
        Fresh::Object(
            events.map(|event| (*event, Fresh::Array(vec![client.group(program, event)]))).collect(),
        )
    };
    let Some(root) = &document.root else {
        let gap =
            if text.is_empty() || text.ends_with(['\n', '\u{feff}']) { "" } else { splice::newline_of(text) };
        return Ok(Some(format!(
            "{text}{gap}{}",
            splice::document(&Fresh::Object(vec![("hooks", all())]), &manner)
        )));
    };
    if root.object().is_none() {
        return Err(JsoncError::at(text, root.span.start, "the document is not an object"));
    }
    let Some((_, hooks)) = root.member("hooks") else {
        return Ok(splice::append(text, root, &manner, Some("hooks"), &all()));
    };
    if hooks.object().is_none() {
        return Err(JsoncError::at(text, hooks.span.start, "\"hooks\" is not an object"));
    }

    let mut seen = BTreeSet::new();
    for place in ours(client, hooks) {
        let (name, command) = entry(hooks, place).unwrap_or_default();
        // Of an event named twice the client reads the last one only, so ours must be there.
        let unread = hooks.member(name).is_none_or(|(last, _)| last != place.event);
        if unread || !client.hook_events().contains(&name) || !seen.insert(name) {
            return Ok(without(text, &document, place, &Kept::default()));
        }
        let line = program.shell_line(client, name);
        if let Some(command) = command.filter(|command| command.text() != Some(&line)) {
            return Ok(Some(splice::replace_text(text, command, &line)));
        }
    }
    let missing = client.hook_events().iter().find(|event| !seen.contains(**event));
    let Some(event) = missing else { return Ok(None) };
    let group = client.group(program, event);
    let Some((_, array)) = hooks.member(event) else {
        return Ok(splice::append(text, hooks, &manner, Some(event), &Fresh::Array(vec![group])));
    };
    if array.array().is_none() {
        return Err(JsoncError::at(text, array.span.start, "the hooks of this event are not an array"));
    }
    Ok(splice::append(text, array, &manner, None, &group))
}

/// Every handler of ours, in the order of the file.
fn ours(client: Client, hooks: &Node) -> Vec<Place> {
    let mut places = Vec::new();
    for (event, slot) in slots(hooks.object()).iter().enumerate() {
        for (group, slot) in slots(slot.value.array()).iter().enumerate() {
            let handlers = slot.value.member("hooks").and_then(|(_, handlers)| handlers.array());
            for (handler, slot) in slots(handlers).iter().enumerate() {
                let line = slot.value.member("command").and_then(|(_, command)| command.text());
                if line.is_some_and(|line| client.owns(line)) {
                    places.push(Place { event, group, handler });
                }
            }
        }
    }
    places
}

fn slots(body: Option<&Body>) -> &[Slot] {
    body.map(|body| body.slots.as_slice()).unwrap_or_default()
}

/// The event's name and the command of a handler.
fn entry(hooks: &Node, place: Place) -> Option<(&str, Option<&Node>)> {
    let event = hooks.object()?.slots.get(place.event)?;
    let group = &event.value.array()?.slots.get(place.group)?.value;
    let handler = &group.member("hooks")?.1.array()?.slots.get(place.handler)?.value;
    Some((event.key.as_deref()?, handler.member("command").map(|(_, command)| command)))
}

/// Takes one handler out, and with it every level that held nothing else; a comment is something else.
fn without(text: &str, document: &Document, place: Place, kept: &Kept) -> Option<String> {
    let root = document.root.as_ref()?;
    let (index, hooks) = root.member("hooks")?;
    let root_body = root.object()?;
    let hooks = hooks.object()?;
    let event = hooks.slots.get(place.event)?;
    let groups = event.value.array()?;
    let group = groups.slots.get(place.group)?;
    let handlers = group.value.member("hooks")?.1.array()?;
    let handler = handlers.slots.get(place.handler)?.span();

    let held_more = |slot: &Slot| document.has_comment_around(&slot.span(), &handler);
    if handlers.slots.len() > 1 || held_more(group) {
        return splice::remove(text, handlers, place.handler);
    }
    let kept_event = event.key.as_ref().is_some_and(|name| kept.events.contains(name));
    if groups.slots.len() > 1 || kept_event || held_more(event) {
        return splice::remove(text, groups, place.group);
    }
    if hooks.slots.len() > 1 || kept.hooks || held_more(root_body.slots.get(index)?) {
        return splice::remove(text, hooks, place.event);
    }
    splice::remove(text, root_body, index)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn program() -> Program {
        Program::new(Path::new("/bin/ringer")).unwrap()
    }

    #[test]
    fn what_is_there_stays_and_what_is_ours_goes_again() {
        let text = "{\n  // mine\n  \"hooks\": {\n    \"Stop\": [\n      {\"hooks\": [{\"command\": \"x\"}]}\n    ]\n  }\n}";
        let out = install(Client::Claude, &program(), text).unwrap();
        assert_eq!(out.matches(super::super::entries::MARKER).count(), Client::Claude.hook_events().len());
        assert_eq!(install(Client::Claude, &program(), &out).unwrap(), out);
        assert_eq!(strip(Client::Claude, &out, &Kept::default()).unwrap(), text);
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
    fn a_shape_that_is_not_hooks_is_refused() {
        for text in ["[]", "{\"hooks\": []}", "{\"hooks\": {\"Stop\": 1}}", "{\"hooks\": {", "1"] {
            assert!(install(Client::Gemini, &program(), text).is_err() || text.contains("Stop"), "{text}");
            assert!(install(Client::Claude, &program(), text).is_err(), "{text}");
        }
    }

    #[test]
    fn an_empty_part_that_was_there_before_stays() {
        let original = "{\n  \"hooks\": {\n    \"Stop\": []\n  }\n}";
        let kept = Kept::of(Client::Claude, original);
        let out = install(Client::Claude, &program(), original).unwrap();
        let out = strip(Client::Claude, &out, &kept).unwrap();
        assert_eq!(out.split_whitespace().collect::<String>(), r#"{"hooks":{"Stop":[]}}"#);
    }
}
