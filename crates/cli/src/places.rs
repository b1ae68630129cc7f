//! Where notifications happened, in words.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use ringer_core::message::SurfaceId;
use ringer_hub::TmuxPane;
use ringer_term::sanitise_line;
use serde_json::Value;
use tokio::runtime;

/// How long tmux may take to say where panes are. It answers within milliseconds; a server that hangs must not hold a
/// list up.
const TMUX_DEADLINE: Duration = Duration::from_millis(300);

/// Where the panes of tmux in a list are now.
#[derive(Debug, Default)]
pub(crate) struct Places {
    windows: HashMap<TmuxPane, String>,
}

impl Places {
    /// For the notifications of a list, as the hub shows them. Asks the tmux servers that occur in it.
    pub(crate) fn of<'a>(rows: impl Iterator<Item = &'a Value>) -> Self {
        let panes: HashSet<TmuxPane> = rows.filter_map(|row| pane(row["surface"].as_str()?)).collect();
        if panes.is_empty() {
            return Self::default();
        }
        let Ok(runtime) = runtime::Builder::new_current_thread().enable_all().build() else {
            return Self::default();
        };
        let windows = runtime.block_on(TmuxPane::windows(panes.into_iter().collect(), TMUX_DEADLINE));
        // A thread that starts tmux from a disk that hangs is not waited for.
        runtime.shutdown_background();
        Self { windows }
    }

    /// A surface in words: `tmux main:3`, `tmux %3` where the window is not known, `pts/4`.
    pub(crate) fn name(&self, surface: &str) -> String {
        let words = match surface.split_once(':') {
            Some(("tmux", rest)) => {
                let number = rest.rsplit(':').next().unwrap_or_default();
                let window = pane(surface).and_then(|pane| self.windows.get(&pane));
                format!("tmux {}", window.map_or(number, String::as_str))
            }
            Some(("tty", device)) => {
                let device = device.split('@').next().unwrap_or_default();
                device.strip_prefix("/dev/").unwrap_or(device).to_owned()
            }
            Some(("pane", id)) => format!("pane {id}"),
            // A surface of another machine: which of its windows it is in is not known here.
            Some(("machine", rest)) => match rest.split_once(':') {
                Some((machine, there)) => format!("{machine} · {}", Self::default().name(there)),
                None => rest.to_owned(),
            },
            _ => surface.to_owned(),
        };
        sanitise_line(&words)
    }
}

fn pane(surface: &str) -> Option<TmuxPane> {
    TmuxPane::of(&SurfaceId::new(surface))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_in_words() {
        let known = pane("tmux:/tmp/tmux-0/default:12:%3").unwrap();
        let places = Places { windows: HashMap::from([(known, "ma\x1bin:3".to_owned())]) };
        assert_eq!(places.name("tmux:/tmp/tmux-0/default:12:%3"), "tmux main:3");
        assert_eq!(places.name("tmux:/tmp/tmux-0/default:13:%3"), "tmux %3");
        assert_eq!(places.name("tmux:anything"), "tmux anything");
        assert_eq!(places.name("tty:/dev/pts/4@99"), "pts/4");
        assert_eq!(places.name("anything\x1b"), "anything");
        assert_eq!(places.name("machine:box:tmux:/tmp/tmux-0/default:12:%3"), "box · tmux %3");
        assert_eq!(places.name("machine:box:tty:/dev/pts/4@99"), "box · pts/4");
    }
}
