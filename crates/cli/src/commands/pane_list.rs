//! `ringer panes`.

use ringer_core::message::{MACHINE_PREFIX, REPOSITORY_PREFIX};
use ringer_panes::PaneEntry;
use ringer_term::sanitise_line;
use ringer_ui::columns::pad;
use serde::Serialize;
use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr;

use crate::failure::{Failure, Outcome};
use crate::output::{print_json, print_line, print_text};
use crate::{hub_client, panes};

/// List panes, windows and terminals, by workspace
///
/// Examples:
///   ringer panes
///   ringer panes --json | jq -r '.[] | select(.unread > 0).id'
///   ringer panes --workspaces
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// List only the workspaces, with what is unread in each
    #[arg(long)]
    workspaces: bool,
    /// Print one JSON array
    #[arg(long)]
    json: bool,
}

/// A surface of any host.
#[derive(Debug, Serialize)]
struct Surface {
    id: String,
    host: String,
    workspace: String,
    name: Option<String>,
    tty: Option<String>,
    title: Option<String>,
    agent: Option<String>,
    state: Option<String>,
    unread: usize,
    focused: bool,
}

pub(super) fn run(arguments: &Args) -> Outcome {
    if arguments.workspaces {
        return workspaces(arguments);
    }
    let all = read()?;
    if arguments.json {
        return print_json(&all);
    }
    if all.is_empty() {
        return print_line("No panes. To open one: ringer open");
    }
    let lines: Vec<[String; 6]> = all.iter().map(Surface::columns).collect();
    print_text(&table(&lines))
}

fn workspaces(arguments: &Args) -> Outcome {
    let mut own: Vec<(String, String)> =
        panes::list()?.into_iter().map(|pane| (pane.workspace_id, pane.workspace)).collect();
    // The panes of a workspace are adjacent in the list.
    own.dedup();
    let mut rows = hub_client::call("workspace.list", &Value::Null)?;
    let mut others = rows.as_array_mut().map(std::mem::take).unwrap_or_default();
    let mut known: Vec<Value> = Vec::new();
    for (id, name) in own {
        let listed = others.iter().position(|row| row["id"] == *id).map(|at| others.remove(at));
        let mut row = listed.unwrap_or_else(|| json!({ "id": id, "unread": 0, "text": "", "surfaces": 0 }));
        row["name"] = json!(name);
        known.push(row);
    }
    // A closed workspace has no panes to go to. Its unread notifications are in the inbox.
    others.retain(exists);
    others.sort_by_cached_key(|row| natural_order(row["id"].as_str().unwrap_or_default()));
    for mut row in others {
        row["name"] = Value::Null;
        known.push(row);
    }
    if arguments.json {
        return print_json(&known);
    }
    if known.is_empty() {
        return print_line("No workspaces.");
    }
    let text = |value: &Value| sanitise_line(value.as_str().unwrap_or_default());
    let lines: Vec<[String; 3]> = known
        .iter()
        .map(|row| {
            let name = if row["name"].is_null() { text(&row["id"]) } else { text(&row["name"]) };
            [name, row["unread"].as_u64().unwrap_or(0).to_string(), text(&row["latest"])]
        })
        .collect();
    print_text(&table(&lines))
}

/// Returns true if a workspace exists: it has surfaces, or stands for a repository or another machine.
fn exists(row: &Value) -> bool {
    let id = row["id"].as_str().unwrap_or_default();
    let is_lasting = [REPOSITORY_PREFIX, MACHINE_PREFIX].iter().any(|prefix| id.starts_with(prefix));
    is_lasting || row["surfaces"].as_u64().is_some_and(|surfaces| surfaces > 0)
}

fn read() -> Result<Vec<Surface>, Failure> {
    let own = panes::list()?;
    let listed = hub_client::call("surface.list", &Value::Null)?;
    let agents = hub_client::call("agent.list", &Value::Null)?;
    let unread = hub_client::call("notification.list", &json!({ "unread": true, "limit": 1000 }))?;
    let rows = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let (agents, unread) = (rows(&agents), rows(&unread));
    let mut others: Vec<Surface> =
        rows(&listed).iter().map(|row| Surface::of(row, &agents, &unread)).collect();
    let mut all = Vec::new();
    for pane in own {
        let known = others.iter().position(|surface| surface.id == pane.surface);
        all.push(match known.map(|at| others.remove(at)) {
            Some(mut surface) => {
                surface.add(pane);
                surface
            }
            // The hub does not know it yet, or none runs.
            None => Surface::of_pane(pane, &agents, &unread),
        });
    }
    others.sort_by_cached_key(|surface| (surface.host.clone(), natural_order(&surface.id)));
    all.extend(others);
    Ok(all)
}

/// A part of an id: numbers sort before text.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Piece {
    Number(u64),
    Text(String),
}

/// Returns a sort key in which `tmux:%2` comes before `tmux:%10`.
fn natural_order(id: &str) -> Vec<Piece> {
    let chunks = id.as_bytes().chunk_by(|one, two| one.is_ascii_digit() == two.is_ascii_digit());
    let piece = |chunk: &[u8]| {
        let text = String::from_utf8_lossy(chunk).into_owned();
        text.parse().map(Piece::Number).unwrap_or(Piece::Text(text))
    };
    chunks.map(piece).collect()
}

impl Surface {
    fn of(row: &Value, agents: &[Value], unread: &[Value]) -> Self {
        let text = |name: &str| row[name].as_str().map(str::to_owned);
        let id = text("surface").unwrap_or_default();
        let agent = agents.iter().rfind(|agent| agent["surface"].as_str() == Some(&id));
        let of_agent = |name: &str| agent.and_then(|agent| agent[name].as_str()).map(str::to_owned);
        Self {
            host: text("host").unwrap_or_default(),
            workspace: text("workspace").unwrap_or_default(),
            name: None,
            tty: text("tty"),
            title: text("title").or_else(|| text("place")),
            agent: of_agent("name").or_else(|| of_agent("id")),
            state: of_agent("state"),
            unread: unread.iter().filter(|row| row["surface"].as_str() == Some(&id)).count(),
            focused: false,
            id,
        }
    }

    fn of_pane(pane: PaneEntry, agents: &[Value], unread: &[Value]) -> Self {
        let row = json!({
            "surface": pane.surface, "host": "panes", "workspace": pane.workspace_id, "tty": pane.tty,
            "title": pane.title,
        });
        let mut surface = Self::of(&row, agents, unread);
        surface.add(pane);
        surface
    }

    fn add(&mut self, pane: PaneEntry) {
        (self.name, self.focused) = (Some(pane.name), pane.is_focused);
        self.workspace = pane.workspace;
        if let Some(ending) = pane.ending {
            self.state = Some(ending);
        }
    }

    fn columns(&self) -> [String; 6] {
        let text = |value: &Option<String>| sanitise_line(value.as_deref().unwrap_or_default());
        let unread = if self.unread == 0 { String::new() } else { format!("{} unread", self.unread) };
        [
            sanitise_line(&self.id),
            sanitise_line(&self.workspace),
            text(&self.name),
            text(&self.state),
            unread,
            text(&self.title),
        ]
    }
}

/// Formats columns of equal width, without empty ones.
fn table<const N: usize>(lines: &[[String; N]]) -> String {
    let widths: [usize; N] =
        std::array::from_fn(|column| lines.iter().map(|line| line[column].width()).max().unwrap_or(0));
    let line = |line: &[String; N]| {
        let cells = line.iter().zip(widths).filter(|(_, width)| *width > 0);
        let cells: Vec<String> = cells.map(|(cell, width)| pad(cell, width)).collect();
        format!("{}\n", cells.join("  ").trim_end())
    };
    lines.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_ids_are_sorted_as_numbers() {
        let mut ids =
            ["tmux:%10", "tmux:%2", "tty:/dev/pts/11", "tty:/dev/pts/9", "tmux:%2a", "99999999999999999999"];
        ids.sort_by_cached_key(|id| natural_order(id));
        assert_eq!(
            ids,
            ["99999999999999999999", "tmux:%2", "tmux:%2a", "tmux:%10", "tty:/dev/pts/9", "tty:/dev/pts/11"]
        );
    }
}
