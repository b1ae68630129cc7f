//! Describes where notifications happened.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use ringer_core::message::SurfaceId;
use ringer_term::sanitise_line;
use ringer_tmux::windows_of;
use serde_json::Value;

use crate::{context, hub_client};

/// Time limit for tmux. It answers within milliseconds; a server that hangs must not delay a list.
const TMUX_DEADLINE: Duration = Duration::from_millis(300);

/// The current places of the panes in a list.
#[derive(Debug, Default)]
pub(crate) struct Places {
    /// The windows of tmux panes, by session and number.
    windows: HashMap<SurfaceId, String>,
    /// Ringer's own panes, with workspace and name or number. Closed panes are absent.
    own_panes: HashMap<String, String>,
}

impl Places {
    /// Looks up the panes in the hub's list of notifications. Asks the tmux servers that occur in it, and a running hub for
    /// Ringer's own panes.
    pub(crate) fn of<'a>(rows: impl Iterator<Item = &'a Value>) -> Self {
        let surfaces: HashSet<SurfaceId> =
            rows.filter_map(|row| row["surface"].as_str()).map(SurfaceId::new).collect();
        let own_panes = if surfaces.iter().any(SurfaceId::is_pane) { own_panes() } else { HashMap::new() };
        Self { windows: windows_of(&surfaces, TMUX_DEADLINE), own_panes }
    }

    /// Describes a surface: `tmux main:3`, `tmux %3` if the window is unknown, `pts/4`, `api · tests`.
    pub(crate) fn name(&self, surface: &str) -> String {
        let words = match surface.split_once(':') {
            Some(("tmux", rest)) => {
                let number = rest.rsplit(':').next().unwrap_or_default();
                let window = self.windows.get(&SurfaceId::new(surface));
                format!("tmux {}", window.map_or(number, String::as_str))
            }
            Some(("tty", device)) => {
                let device = device.split('@').next().unwrap_or_default();
                device.strip_prefix("/dev/").unwrap_or(device).to_owned()
            }
            Some(("pane", id)) => {
                self.own_panes.get(surface).map_or_else(|| format!("pane {id}"), String::clone)
            }
            // On another machine the window is unknown.
            Some(("machine", rest)) => match rest.split_once(':') {
                Some((machine, there)) => format!("{machine} · {}", Self::default().name(there)),
                None => rest.to_owned(),
            },
            _ => surface.to_owned(),
        };
        sanitise_line(&words)
    }
}

/// Returns the places of Ringer's own panes, from the hub. None if no hub runs.
fn own_panes() -> HashMap<String, String> {
    let Ok(home) = context::home() else { return HashMap::new() };
    let listed = hub_client::call_running(&home, "surface.list", &Value::Null).unwrap_or_default();
    let text = |row: &Value, name: &str| row[name].as_str().map(str::to_owned);
    let named = |row: &Value| Some((text(row, "surface")?, text(row, "place")?));
    listed.as_array().into_iter().flatten().filter_map(named).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_in_words() {
        let known = SurfaceId::new("tmux:/tmp/tmux-0/default:12:%3");
        let windows = HashMap::from([(known, "ma\x1bin:3".to_owned())]);
        let own_panes = HashMap::from([("pane:4f0k2m1c".to_owned(), "api · te\x1bsts".to_owned())]);
        let places = Places { windows, own_panes };
        assert_eq!(places.name("tmux:/tmp/tmux-0/default:12:%3"), "tmux main:3");
        assert_eq!(places.name("tmux:/tmp/tmux-0/default:13:%3"), "tmux %3");
        assert_eq!(places.name("tmux:anything"), "tmux anything");
        assert_eq!(places.name("tty:/dev/pts/4@99"), "pts/4");
        assert_eq!(places.name("anything\x1b"), "anything");
        assert_eq!(places.name("pane:4f0k2m1c"), "api · tests");
        assert_eq!(places.name("pane:gone0000"), "pane gone0000");
        assert_eq!(places.name("machine:box:tmux:/tmp/tmux-0/default:12:%3"), "box · tmux %3");
        assert_eq!(places.name("machine:box:tty:/dev/pts/4@99"), "box · pts/4");
    }
}
