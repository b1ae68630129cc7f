//! The program in the foreground of a pane, if it is an agent's client.

use std::fs;
use std::path::Path;

/// The clients whose titles and notifications are understood, by the names of their programs.
const CLIENTS: [&str; 4] = ["claude", "codex", "gemini", "opencode"];

/// A client that runs in a pane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RunningClient {
    pub(crate) name: &'static str,
    pub(crate) pid: u32,
}

impl RunningClient {
    /// The client that has the terminal of a process. Only where the kernel tells it as files.
    pub(crate) fn on_terminal_of(pid: u32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let leader = foreground(&stat)?;
        // A shell or a script may have started it.
        let children =
            || fs::read_to_string(format!("/proc/{leader}/task/{leader}/children")).unwrap_or_default();
        Self::of(leader).or_else(|| children().split_whitespace().find_map(|pid| Self::of(pid.parse().ok()?)))
    }

    fn of(pid: u32) -> Option<Self> {
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        let arguments = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        Some(Self { name: client(name.trim(), &arguments)?, pid })
    }
}

/// The process that leads the foreground of a terminal, in the words of the kernel about one of its processes.
fn foreground(stat: &str) -> Option<u32> {
    // The name in parentheses may hold anything, so count from its end.
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(5)?.parse().ok()
}

/// The client by the name of a process and its arguments: a script is run by a shell or by Node.js.
fn client(name: &str, arguments: &[u8]) -> Option<&'static str> {
    let words = arguments.split(|byte| *byte == 0).take(2).filter_map(|word| std::str::from_utf8(word).ok());
    let files = words.filter_map(|word| Path::new(word).file_name()?.to_str());
    let mut names = [name].into_iter().chain(files);
    names.find_map(|name| CLIENTS.into_iter().find(|client| *client == name.trim_end_matches(".js")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_known_by_its_name_or_as_the_script_that_is_run() {
        for (name, arguments, expected) in [
            ("claude", "claude\0--resume\0", Some("claude")),
            ("node", "node\0/usr/lib/bin/gemini\0-x\0", Some("gemini")),
            ("node", "node\0/opt/bin/codex.js\0", Some("codex")),
            ("claude", "/bin/sh\0./claude\0", Some("claude")),
            ("vim", "vim\0src/claude.rs\0", None),
            ("sh", "sh\0-c\0claude\0", None),
            ("", "", None),
        ] {
            assert_eq!(client(name, arguments.as_bytes()), expected, "{name} {arguments:?}");
        }
    }

    #[test]
    fn the_foreground_of_a_terminal_is_read_however_a_process_is_called() {
        assert_eq!(foreground("7 (a ) b (c) S 5 7 6 34817 4711 0 0"), Some(4711));
        for none in ["", "7 (x", "7 (x) S 5", "7 (x) S 5 7 6 0 -1 0"] {
            assert_eq!(foreground(none), None, "{none}");
        }
    }
}
