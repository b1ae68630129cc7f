//! Why a client does not run the hooks in its files.
//!
//! Each of these was observed with the real client: Claude Code 2.1.325, Codex 0.166.0, Gemini CLI 0.61.0. Clients that are
//! supported only from documentation have no checks.

use std::fs;
use std::path::Path;

use super::error::{Obstacle, ObstacleKind, SetupNote};
use super::files::read;
use super::find::SetupScope;
use super::jsonc::JsoncError;
use crate::client::{Client, ClientPaths, InstalledHooks};

/// Returns why a client does not run the hooks of this scope; empty if all seems well. `repository` is the one that the client
/// would run in, whose settings also count. An unreadable file is no obstacle here: setup and doctor report it.
pub fn obstacles(
    client: Client,
    scope: SetupScope,
    paths: &ClientPaths,
    repository: Option<&Path>,
) -> Vec<Obstacle> {
    find_obstacle(client, scope, paths, repository).into_iter().collect()
}

fn find_obstacle(
    client: Client,
    scope: SetupScope,
    paths: &ClientPaths,
    repository: Option<&Path>,
) -> Option<Obstacle> {
    let check = client.adapter().settings.hooks.as_ref()?.check.as_ref()?;
    let target = paths.targets(client, scope).ok()?.into_iter().next()?;
    let text = read_text(&target.path)?;
    if let Some(error) = check.dialect.refuses(&text) {
        return Some(unreadable(client, &target.path, &error));
    }
    let resolved = fs::canonicalize(&target.path).unwrap_or_else(|_| target.path.clone());
    (check.find)(&InstalledHooks {
        path: &target.path,
        resolved: &resolved,
        text: &text,
        paths,
        repository: if scope == SetupScope::Project { paths.project.as_deref() } else { repository },
        read: &read_text,
        is_ours: &|line| client.owns(line),
    })
}

fn read_text(path: &Path) -> Option<String> {
    String::from_utf8(read(path).ok()??).ok()
}

fn unreadable(client: Client, path: &Path, error: &JsoncError) -> Obstacle {
    let name = client.adapter().display_name;
    let what = format!("{name} does not read {}: {error}", path.display());
    let hint = format!("take it out of {}; {name} wants plain JSON", path.display());
    Obstacle { kind: ObstacleKind::Unread, note: SetupNote { what, hint } }
}
