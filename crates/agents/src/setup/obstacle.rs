//! Why a client does not run the hooks that stand in its files.
//!
//! Each of these was seen with the real client: Claude Code 2.1.325, Codex 0.166.0, Gemini CLI 0.61.0. Of the clients that
//! are made from documents, nothing is known, so nothing is said.

use std::fs;
use std::path::Path;

use super::error::{Obstacle, ObstacleKind, SetupNote};
use super::files::read;
use super::find::SetupScope;
use super::jsonc::JsoncError;
use crate::client::{Client, ClientPaths, InstalledHooks};

/// Why a client does not run the hooks of this scope; nothing if all seems well. `repository` is the one that the client
/// would run in, whose own settings count too. A file that cannot be read is no obstacle here: setup and doctor report
/// it.
pub fn obstacles(
    client: Client,
    scope: SetupScope,
    places: &ClientPaths,
    repository: Option<&Path>,
) -> Vec<Obstacle> {
    find(client, scope, places, repository).into_iter().collect()
}

fn find(
    client: Client,
    scope: SetupScope,
    places: &ClientPaths,
    repository: Option<&Path>,
) -> Option<Obstacle> {
    let check = client.adapter().settings.hooks.as_ref()?.check.as_ref()?;
    let target = places.targets(client, scope).ok()?.into_iter().next()?;
    let text = read_text(&target.path)?;
    if let Some(error) = check.dialect.refuses(&text) {
        return Some(unread(client, &target.path, &error));
    }
    let resolved = fs::canonicalize(&target.path).unwrap_or_else(|_| target.path.clone());
    (check.find)(&InstalledHooks {
        path: &target.path,
        resolved: &resolved,
        text: &text,
        paths: places,
        repository: if scope == SetupScope::Project { places.project.as_deref() } else { repository },
        read: &read_text,
        is_ours: &|line| client.owns(line),
    })
}

fn read_text(path: &Path) -> Option<String> {
    String::from_utf8(read(path).ok()??).ok()
}

fn unread(client: Client, path: &Path, error: &JsoncError) -> Obstacle {
    let name = client.adapter().display_name;
    let what = format!("{name} does not read {}: {error}", path.display());
    let hint = format!("take it out of {}; {name} wants plain JSON", path.display());
    Obstacle { kind: ObstacleKind::Unread, note: SetupNote { what, hint } }
}
