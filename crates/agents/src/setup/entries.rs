//! Ringer's entries in clients' settings, and how they are recognised.
//!
//! A hook entry is one shell line that ends in [`MARKER`], by which it is recognised, whatever its path or form. Entries without
//! the marker are not Ringer's and stay.

use std::path::Path;

use ringer_platform::shell_word;

use super::error::SetupError;
use super::splice::NewValue;
use crate::client::{Client, Format, HookEntryForm};

/// The end of every shell line that setup writes.
pub(crate) const MARKER: &str = "# ringer-hook";

/// The member with the timeout, in a handler of a group.
pub(crate) const TIMEOUT: &str = "timeout";

/// Seconds after which the client gives up on a hook. Ringer's takes milliseconds; the limit is for a machine that hangs.
const TIMEOUT_SECONDS: u32 = 5;
/// Timeout of a hook that waits for the person.
const WAITING_TIMEOUT_SECONDS: u32 = 24 * 60 * 60;

/// The name of Ringer's MCP server.
pub(crate) const MCP_SERVER: &str = "ringer";

/// The argument that runs the MCP server.
pub(crate) const MCP_ARGUMENT: &str = "mcp";

/// Returns true if a program with this first argument is Ringer's MCP server.
pub(crate) fn runs_mcp_server(program: Option<&str>, argument: Option<&str>) -> bool {
    program.is_some_and(is_ringer) && argument == Some(MCP_ARGUMENT)
}

/// The kinds of entries that a setup concerns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entries {
    /// Entries that make a client report its events: hooks, a plugin, a notification program.
    Hooks,
    /// The MCP server `ringer`, which a client starts for its agents.
    McpServer,
    /// Both.
    All,
}

impl Entries {
    /// Returns true if they include entries that report events.
    pub fn has_hooks(self) -> bool {
        self != Self::McpServer
    }

    /// Returns true if they include the MCP server.
    pub fn has_mcp_server(self) -> bool {
        self != Self::Hooks
    }
}

impl Client {
    /// Returns true if the client has entries of this kind.
    pub fn takes(self, entries: Entries) -> bool {
        let mut files = self.adapter().settings.files.iter();
        files.any(|file| {
            (entries.has_hooks() && file.format != Format::McpServers)
                || (entries.has_mcp_server() && file.mcp.is_some())
        })
    }

    /// The events of its hook file. Empty for opencode, which has a plugin.
    pub fn hook_events(self) -> &'static [&'static str] {
        self.adapter().settings.hooks.as_ref().map_or(&[], |hooks| hooks.events)
    }

    fn hook_entry(self) -> Option<HookEntryForm> {
        self.adapter().settings.hooks.as_ref().map(|hooks| hooks.entry)
    }

    /// Returns true if an event's array has handlers directly, in a file with a version, and not groups of handlers.
    pub(crate) fn is_flat(self) -> bool {
        matches!(self.hook_entry(), Some(HookEntryForm::Flat { .. }))
    }

    /// The member of a handler with the shell line.
    pub(crate) fn line_key(self) -> &'static str {
        if let Some(HookEntryForm::Flat { line, .. }) = self.hook_entry() { line } else { "command" }
    }

    /// Returns true if the hook of an event waits for the person.
    fn hook_waits(self, event: &str) -> bool {
        let prompts = self.adapter().prompts.as_ref();
        prompts.is_some_and(|prompts| prompts.waiting_events.contains(&event))
    }

    /// Converts seconds to the unit of its hook file.
    fn timeout(self, seconds: u32) -> u32 {
        match self.hook_entry() {
            Some(HookEntryForm::Group { timeout_per_second, .. }) => seconds * timeout_per_second,
            _ => seconds,
        }
    }

    /// The entry for an event: one handler for every tool, in a group if the client has groups.
    pub(crate) fn entry(self, program: &RingerProgram, event: &str) -> NewValue {
        let line = NewValue::Text(program.shell_line(self, event));
        let kind = ("type", NewValue::Text("command".to_owned()));
        let seconds = if self.hook_waits(event) { WAITING_TIMEOUT_SECONDS } else { TIMEOUT_SECONDS };
        match self.hook_entry() {
            Some(HookEntryForm::Flat { line: line_key, timeout }) => {
                let seconds = NewValue::Number(self.timeout(seconds));
                NewValue::Object(vec![kind, (line_key, line), (timeout, seconds)])
            }
            group => {
                let name = match group {
                    Some(HookEntryForm::Group { name, .. }) => name,
                    _ => None,
                };
                let mut handler = vec![kind];
                handler.extend(name.map(|name| ("name", NewValue::Text(name.to_owned()))));
                handler.extend([("command", line), (TIMEOUT, NewValue::Number(self.timeout(seconds)))]);
                NewValue::Object(vec![("hooks", NewValue::Array(vec![NewValue::Object(handler)]))])
            }
        }
    }

    /// Returns true if a shell line is Ringer's: it has the marker, or the form that the documentation gives for manual setup.
    pub(crate) fn owns(self, line: &str) -> bool {
        let line = line.trim();
        let words = format!(" hook {} ", self.as_str());
        if !line.contains(&words) {
            return false;
        }
        line.ends_with(MARKER) || self.is_plain_call(line)
    }

    /// Returns true for `ringer hook claude Stop` with any path, and nothing else on the line.
    fn is_plain_call(self, line: &str) -> bool {
        let mut parts = line.rsplitn(4, ' ');
        let event = parts.next().unwrap_or_default();
        let (client, hook) = (parts.next(), parts.next());
        let program = parts.next().unwrap_or_default().trim();
        let quoted = ['\'', '"'].iter().find_map(|mark| program.strip_prefix(*mark)?.strip_suffix(*mark));
        let one_word = quoted.unwrap_or(program);
        client == Some(self.as_str())
            && hook == Some("hook")
            && !event.is_empty()
            && event.bytes().all(|byte| byte.is_ascii_alphanumeric())
            && !one_word.contains(['\'', '"', ';', '|', '&', '$', '`', '\n'])
            && (quoted.is_some() || !one_word.contains(char::is_whitespace))
            && is_ringer(one_word)
    }
}

/// The `ringer` that the entries call: a bare name, looked up at every call, or an absolute path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RingerProgram(String);

impl RingerProgram {
    /// Checks a program. A relative path is refused, because an agent runs its hooks in any directory. So is a name that does not
    /// begin with `ringer`, because a removal could not recognise it.
    pub fn new(path: &Path) -> Result<Self, SetupError> {
        let refused = || SetupError::Program(path.to_path_buf());
        let text = path.to_str().filter(|text| !text.contains('\0')).ok_or_else(refused)?;
        let bare = !text.is_empty()
            && !text.starts_with('-')
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-'));
        if (path.is_absolute() || bare) && is_ringer(text) {
            Ok(Self(text.to_owned()))
        } else {
            Err(refused())
        }
    }

    /// The program as one argument.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The shell line for an event of a client.
    ///
    /// It needs no process but the shell: `command -v` and `[` are built in, and `exec` replaces the shell by the hook, so the
    /// exit code is the hook's. A missing program is a silent exit 0. The line uses only what sh, bash, zsh and fish read alike,
    /// because Codex runs the person's shell.
    pub(crate) fn shell_line(&self, client: Client, event: &str) -> String {
        let program = shell_word(&self.0);
        let test = if self.0.starts_with('/') {
            format!("[ -x {program} ]")
        } else {
            format!("command -v {program} >/dev/null 2>&1")
        };
        format!("{test} && exec {program} hook {client} {event} || exit 0 {MARKER}")
    }
}

/// Returns true if a program is Ringer, by its file name; `ringer-next` counts.
pub(crate) fn is_ringer(program: &str) -> bool {
    Path::new(program)
        .file_name()
        .and_then(|name| name.to_str())
        .is_some_and(|name| name.starts_with("ringer"))
}

/// opencode's plugin, with a placeholder for the program. Ringer owns the whole file.
const PLUGIN_TEMPLATE: &str = include_str!("opencode.js");

/// The beginning of every plugin file that Ringer writes.
const PLUGIN_MARK: &str = "// ringer-hook:";

/// The plugin for a program.
pub(crate) fn plugin_source(program: &RingerProgram) -> String {
    // A JSON string is a JavaScript string.
    PLUGIN_TEMPLATE.replace("\"@PROGRAM@\"", &serde_json::Value::from(program.as_str()).to_string())
}

/// Returns true if Ringer wrote this plugin file.
pub(crate) fn is_ringer_plugin(text: &str) -> bool {
    text.trim_start_matches('\u{feff}').trim_start().starts_with(PLUGIN_MARK)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn the_line_for_a_name_and_for_a_path() {
        for (path, expect) in [
            (
                "ringer",
                "command -v ringer >/dev/null 2>&1 && exec ringer hook claude Stop || exit 0 # ringer-hook",
            ),
            (
                "/usr/bin/ringer",
                "[ -x /usr/bin/ringer ] && exec /usr/bin/ringer hook claude Stop || exit 0 # ringer-hook",
            ),
            (
                "/a b/it's/ringer",
                r"[ -x '/a b/it'\''s/ringer' ] && exec '/a b/it'\''s/ringer' hook claude Stop || exit 0 # ringer-hook",
            ),
        ] {
            let line = RingerProgram::new(Path::new(path)).unwrap().shell_line(Client::Claude, "Stop");
            assert_eq!(line, expect);
            assert!(Client::Claude.owns(&line));
            assert!(!Client::Codex.owns(&line));
        }
        for refused in ["", "./ringer", "bin/ringer", "/bin/true", "/", "ringer; true", "-ringer"] {
            assert!(RingerProgram::new(Path::new(refused)).is_err(), "{refused}");
        }
    }

    #[test]
    fn ours_and_not_ours() {
        for (line, ours) in [
            ("ringer hook claude Stop", true),
            ("/opt/x/ringer hook claude PreToolUse", true),
            ("\"/opt/my x/ringer\" hook claude Stop", true),
            ("command -v ringer >/dev/null && ringer hook claude Stop", false),
            ("/old/ringer hook claude Stop || true # ringer-hook ", true),
            ("echo 'ringer hook claude Stop'", false),
            ("mine && ringer hook claude Stop", false),
            ("wrapper ringer hook claude Stop", false),
            ("ringer hook codex Stop", false),
            ("stringer hook claude Stop", false),
            ("./notify.sh # ringer-hook", false),
            ("ringer hook claude Stop | tee log", false),
        ] {
            assert_eq!(Client::Claude.owns(line), ours, "{line}");
        }
    }

    #[test]
    fn the_program_is_written_as_a_string() {
        let program = RingerProgram::new(Path::new("/a \"b\"\\/ringer")).unwrap();
        let source = plugin_source(&program);
        assert!(source.contains(r#"const PROGRAM = "/a \"b\"\\/ringer""#));
        assert!(is_ringer_plugin(&source) && !source.contains("@PROGRAM@"));
        assert!(!is_ringer_plugin("export const Mine = async () => ({}) // ringer-hook:"));
    }
}
