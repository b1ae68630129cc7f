//! Why a client does not run the hooks that stand in its files.
//!
//! Each of these was seen with the real client: Claude Code 2.1.325, Codex 0.166.0, Gemini CLI 0.61.0. Of the clients that
//! are made from documents, nothing is known, so nothing is said.

use std::path::{Path, PathBuf};

use super::disk::read;
use super::find::SetupScope;
use super::jsonc::{self, Document, JsonKind, JsoncError, Node};
use super::note::{Obstacle, ObstacleKind, SetupNote};
use super::trust;
use crate::client::{Client, ClientPaths, GEMINI_NAME};

/// Why a client does not run the hooks of this scope; nothing if all seems well. `repository` is the one that the client
/// would run in, whose own settings count too. A file that cannot be read is no obstacle here: setup and doctor report
/// it.
pub fn obstacles(
    client: Client,
    scope: SetupScope,
    places: &ClientPaths,
    repository: Option<&Path>,
) -> Vec<Obstacle> {
    let Ok(targets) = places.targets(client, scope) else { return Vec::new() };
    let [first, others @ ..] = targets.as_slice() else { return Vec::new() };
    let Some(text) = read_text(&first.path) else { return Vec::new() };
    let dialect = match client {
        Client::Claude => Dialect { comments: false, byte_order_mark: true },
        Client::Codex => Dialect { comments: false, byte_order_mark: false },
        Client::Gemini => Dialect { comments: true, byte_order_mark: false },
        _ => return Vec::new(),
    };
    if let Some(error) = dialect.refuses(&text) {
        return vec![unread(client, &first.path, &error)];
    }
    match client {
        Client::Claude => {
            let repository =
                if scope == SetupScope::Project { places.project.as_deref() } else { repository };
            claude(places, repository).into_iter().collect()
        }
        Client::Codex => {
            let config = match scope {
                SetupScope::User => others.first().map(|target| target.path.clone()),
                SetupScope::Project => {
                    places.directory(client, SetupScope::User).ok().map(|path| path.join("config.toml"))
                }
            };
            let config = config.map(|path| (read_text(&path).unwrap_or_default(), path));
            config
                .and_then(|(config, path)| trust::of_codex(&text, &first.path, &config, &path))
                .into_iter()
                .collect()
        }
        _ => gemini(&text, &first.path).into_iter().collect(),
    }
}

fn read_text(path: &Path) -> Option<String> {
    String::from_utf8(read(path).ok()??).ok()
}

/// What a client takes besides strict JSON. None of them takes a comma after the last member.
#[derive(Debug, Clone, Copy)]
struct Dialect {
    comments: bool,
    byte_order_mark: bool,
}

impl Dialect {
    /// The first thing in a text that the client does not take.
    fn refuses(self, text: &str) -> Option<JsoncError> {
        if !self.byte_order_mark && text.starts_with('\u{feff}') {
            return Some(JsoncError::at(text, 0, "a byte order mark"));
        }
        let document = jsonc::parse(text).ok()?;
        let comment = document.first_comment().filter(|_| !self.comments);
        let comma = document.root.as_ref().and_then(trailing_comma);
        let comment = comment.map(|offset| (offset, "a comment"));
        let comma = comma.map(|offset| (offset, "a comma after the last member"));
        let (offset, what) = comment.into_iter().chain(comma).min()?;
        Some(JsoncError::at(text, offset, what))
    }
}

/// Where the first comma without anything behind it stands.
fn trailing_comma(node: &Node) -> Option<usize> {
    let slots = &node.body()?.slots;
    let inner = slots.iter().filter_map(|slot| trailing_comma(&slot.value));
    inner.chain(slots.last().and_then(|slot| slot.comma)).min()
}

fn unread(client: Client, path: &Path, error: &JsoncError) -> Obstacle {
    let name = client.adapter().display_name;
    let what = format!("{name} does not read {}: {error}", path.display());
    let hint = format!("take it out of {}; {name} wants plain JSON", path.display());
    Obstacle { kind: ObstacleKind::Unread, note: SetupNote { what, hint } }
}

fn switched_off(client: Client, path: &Path, what: &str, hint: &str) -> Obstacle {
    let what =
        format!("{what} in {}, so {} does not run them", path.display(), client.adapter().display_name);
    Obstacle { kind: ObstacleKind::SwitchedOff, note: SetupNote { what, hint: hint.to_owned() } }
}

/// `disableAllHooks`: of the files that set it, the first in Claude Code's own order counts.
fn claude(places: &ClientPaths, repository: Option<&Path>) -> Option<Obstacle> {
    let managed = &places.claude_managed;
    if is_true(managed, "allowManagedHooksOnly") == Some(true) {
        let what = "only an administrator's hooks are allowed";
        return Some(switched_off(Client::Claude, managed, what, "ask the administrator of this machine"));
    }
    let local = repository.map(|root| root.join(".claude"));
    let of_repository = local
        .iter()
        .flat_map(|directory| [directory.join("settings.local.json"), directory.join("settings.json")]);
    let user = places
        .directory(Client::Claude, SetupScope::User)
        .ok()
        .map(|directory| directory.join("settings.json"));
    let files: Vec<PathBuf> = [managed.clone()].into_iter().chain(of_repository).chain(user).collect();
    let (disabled, path) = files.iter().find_map(|path| Some((is_true(path, "disableAllHooks")?, path)))?;
    disabled.then(|| {
        switched_off(Client::Claude, path, "disableAllHooks is true", "set it to false, or take it out")
    })
}

/// A boolean of a file, if Claude Code takes the file.
fn is_true(path: &Path, key: &str) -> Option<bool> {
    let text = read_text(path)?;
    if (Dialect { comments: false, byte_order_mark: true }).refuses(&text).is_some() {
        return None;
    }
    let document = jsonc::parse(&text).ok()?;
    boolean(&text, document.root.as_ref()?, key)
}

fn boolean(text: &str, object: &Node, key: &str) -> Option<bool> {
    let (_, value) = object.member(key)?;
    match (&value.kind, text.get(value.span.clone())?) {
        (JsonKind::Plain, "true") => Some(true),
        (JsonKind::Plain, "false") => Some(false),
        _ => None,
    }
}

fn gemini(text: &str, path: &Path) -> Option<Obstacle> {
    let document: Document = jsonc::parse(text).ok()?;
    let (_, config) = document.root.as_ref()?.member("hooksConfig")?;
    if boolean(text, config, "enabled") == Some(false) {
        let what = "hooksConfig.enabled is false";
        return Some(switched_off(Client::Gemini, path, what, "set it to true, or take it out"));
    }
    let (_, disabled) = config.member("disabled")?;
    let names = disabled.array()?.slots.iter().filter_map(|slot| slot.value.text());
    names.into_iter().any(|name| name == GEMINI_NAME).then(|| {
        let what = "hooksConfig.disabled names \"ringer\"";
        switched_off(Client::Gemini, path, what, "type /hooks enable ringer in gemini")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_plain_json() {
        let strict = Dialect { comments: false, byte_order_mark: true };
        let check = |dialect: Dialect, text: &str, expected: Option<&str>| {
            assert_eq!(dialect.refuses(text).map(|error| error.to_string()).as_deref(), expected, "{text}");
        };
        check(strict, "{\"a\": [1, {\"b\": \"// no, /* no */ ,}\"}]}", None);
        check(strict, "\u{feff}{}", None);
        check(strict, "{\n  // mine\n}", Some("line 2, column 3: a comment"));
        check(strict, "{} // mine", Some("line 1, column 4: a comment"));
        check(
            strict,
            "{\"a\": [1, 2, ], /* c */ }",
            Some("line 1, column 12: a comma after the last member"),
        );
        let gemini = Dialect { comments: true, byte_order_mark: false };
        check(gemini, "{ /* c */ \"a\": 1 }", None);
        check(
            gemini,
            "{ /* c */ \"a\": {\"b\": 1,} }",
            Some("line 1, column 23: a comma after the last member"),
        );
        check(gemini, "\u{feff}{}", Some("line 1, column 1: a byte order mark"));
    }
}
