//! `ringer surfaces` and `ringer workspaces`.

use std::collections::BTreeMap;

use ringer_term::sanitise_line;
use ringer_ui::columns::pad;
use ringer_workspace::PaneListed;
use serde::Serialize;
use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr;

use crate::failure::{Failure, Outcome};
use crate::output::{print_json, print_line, print_text};
use crate::{hub_client, panes};

/// List panes, windows and terminals that Ringer knows
///
/// Examples:
///   ringer surfaces
///   ringer surfaces --json | jq -r '.[] | select(.unread > 0).id'
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct SurfacesArgs {
    /// Print one JSON array
    #[arg(long)]
    json: bool,
}

/// List workspaces with their unread notifications
///
/// Examples:
///   ringer workspaces
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct WorkspacesArgs {
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

pub(super) fn surfaces(arguments: &SurfacesArgs) -> Outcome {
    let all = read()?;
    if arguments.json {
        return print_json(&all);
    }
    if all.is_empty() {
        return print_line("No surfaces. To open a pane: ringer open");
    }
    let lines: Vec<[String; 6]> = all.iter().map(Surface::columns).collect();
    print_text(&table(&lines))
}

pub(super) fn workspaces(arguments: &WorkspacesArgs) -> Outcome {
    let names: BTreeMap<String, String> =
        panes::list()?.into_iter().map(|pane| (pane.workspace_id, pane.workspace)).collect();
    let mut rows = hub_client::call("workspace.list", &Value::Null)?;
    let listed = rows.as_array_mut().map(std::mem::take).unwrap_or_default();
    let mut known: Vec<Value> = Vec::new();
    for mut row in listed {
        row["name"] = json!(names.get(row["id"].as_str().unwrap_or_default()));
        known.push(row);
    }
    for (id, name) in &names {
        if !known.iter().any(|row| row["id"] == **id) {
            known.push(json!({ "id": id, "name": name, "badge": 0, "text": "", "unread": 0 }));
        }
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

fn read() -> Result<Vec<Surface>, Failure> {
    let own = panes::list()?;
    let listed = hub_client::call("surface.list", &Value::Null)?;
    let agents = hub_client::call("agent.list", &Value::Null)?;
    let unread = hub_client::call("notification.list", &json!({ "unread": true, "limit": 1000 }))?;
    let rows = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let (agents, unread) = (rows(&agents), rows(&unread));
    let mut all: Vec<Surface> = rows(&listed).iter().map(|row| Surface::of(row, &agents, &unread)).collect();
    for pane in own {
        match all.iter_mut().find(|surface| surface.id == pane.surface) {
            Some(surface) => surface.add(pane),
            // The hub has not heard of it yet, or there is none.
            None => all.push(Surface::of_pane(pane, &agents, &unread)),
        }
    }
    Ok(all)
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

    fn of_pane(pane: PaneListed, agents: &[Value], unread: &[Value]) -> Self {
        let row = json!({
            "surface": pane.surface, "host": "panes", "workspace": pane.workspace_id, "tty": pane.tty,
            "title": pane.title,
        });
        let mut surface = Self::of(&row, agents, unread);
        surface.add(pane);
        surface
    }

    fn add(&mut self, pane: PaneListed) {
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

/// Columns of equal width, without those that are empty.
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
