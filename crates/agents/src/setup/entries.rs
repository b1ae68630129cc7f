//! The entry that each client runs, and how Ringer recognises its entries.
//!
//! A hook entry is one shell line. It ends in [`MARKER`], by which an entry is recognised, whatever path or form it
//! has; entries without it are not Ringer's and stay.

use std::path::Path;

use ringer_platform::shell_word;

use super::error::SetupError;
use super::splice::NewValue;
use crate::client::{Client, Format, HookEntryForm};

/// The end of every shell line that the setup writes.
pub(crate) const MARKER: &str = "# ringer-hook";

/// The member of a handler in a group that has its timeout.
pub(crate) const TIMEOUT: &str = "timeout";

/// How long a hook may take before the client gives up on it, in seconds. Ours takes milliseconds; this is for a
/// machine that hangs.
const TIMEOUT_SECONDS: u32 = 5;
/// The same for a hook that waits for the person.
const WAITING_TIMEOUT_SECONDS: u32 = 24 * 60 * 60;

/// The name of Ringer's MCP server.
pub(crate) const MCP_SERVER: &str = "ringer";

/// What the program is called with to be that server.
pub(crate) const MCP_ARGUMENT: &str = "mcp";

/// Whether a program and its first argument are Ringer's MCP server.
pub(crate) fn runs_mcp_server(program: Option<&str>, argument: Option<&str>) -> bool {
    program.is_some_and(is_ringer) && argument == Some(MCP_ARGUMENT)
}

/// Which entries of Ringer's a setup is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entries {
    /// What makes a client report its events: hooks, a plugin, a notification program.
    Hooks,
    /// The MCP server `ringer`, which a client starts for its agents.
    McpServer,
    /// Both.
    All,
}

impl Entries {
    /// Whether hooks and the like are among them.
    pub fn has_hooks(self) -> bool {
        self != Self::McpServer
    }

    /// Whether the MCP server is among them.
    pub fn has_mcp_server(self) -> bool {
        self != Self::Hooks
    }
}

impl Client {
    /// Whether there are entries of this kind for it.
    pub fn takes(self, entries: Entries) -> bool {
        let mut files = self.adapter().settings.files.iter();
        files.any(|file| {
            (entries.has_hooks() && file.format != Format::McpServers)
                || (entries.has_mcp_server() && file.mcp.is_some())
        })
    }

    /// The events of its hook file; none for opencode, which has a plugin file, and aider, which has no hooks.
    pub fn hook_events(self) -> &'static [&'static str] {
        self.adapter().settings.hooks.as_ref().map_or(&[], |hooks| hooks.events)
    }

    fn hook_entry(self) -> Option<HookEntryForm> {
        self.adapter().settings.hooks.as_ref().map(|hooks| hooks.entry)
    }

    /// Whether an event's array has the handlers themselves, in a file with a version, and not groups of them.
    pub(crate) fn is_flat(self) -> bool {
        matches!(self.hook_entry(), Some(HookEntryForm::Flat { .. }))
    }

    /// The member of a handler that has the shell line.
    pub(crate) fn line_key(self) -> &'static str {
        if let Some(HookEntryForm::Flat { line, .. }) = self.hook_entry() { line } else { "command" }
    }

    /// Whether the hook of an event waits for the person.
    fn hook_waits(self, event: &str) -> bool {
        let prompts = self.adapter().prompts.as_ref();
        prompts.is_some_and(|prompts| prompts.waiting_events.contains(&event))
    }

    /// A time in the unit of its hook file.
    fn timeout(self, seconds: u32) -> u32 {
        match self.hook_entry() {
            Some(HookEntryForm::Group { timeout_per_second, .. }) => seconds * timeout_per_second,
            _ => seconds,
        }
    }

    /// The entry that an event's array gets: one handler, for every tool, in a group where the client has them.
    pub(crate) fn entry(self, program: &RingerProgram, event: &str) -> NewValue {
        let line = NewValue::Text(program.shell_line(self, event));
        let kind = ("type", NewValue::Text("command".to_owned()));
        let seconds = if self.hook_waits(event) { WAITING_TIMEOUT_SECONDS } else { TIMEOUT_SECONDS };
        match self.hook_entry() {
            Some(HookEntryForm::Flat { has_type, line: line_key, timeout }) => {
                let mut handler: Vec<(&str, NewValue)> = has_type.then_some(kind).into_iter().collect();
                handler.extend([(line_key, line), (timeout, NewValue::Number(self.timeout(seconds)))]);
                NewValue::Object(handler)
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

    /// Whether a shell line in this client's hook file is ours: by its marker, or as people write it who follow the documentation.
    pub(crate) fn owns(self, line: &str) -> bool {
        let line = line.trim();
        let words = format!(" hook {} ", self.as_str());
        if !line.contains(&words) {
            return false;
        }
        line.ends_with(MARKER) || self.is_plain_call(line)
    }

    /// `ringer hook claude Stop`, with whatever path before it, and nothing else on the line.
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
    /// A program to call. A relative path is refused, because an agent runs its hooks in any directory; so is a name
    /// that does not begin with `ringer`, because a removal could not know it again.
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

    /// The line for an event of a client.
    ///
    /// One shell and no process besides: `command -v` and `[` are built in, and `exec` makes the shell become the hook,
    /// so the exit code is the hook's own. A missing program is exit 0 without a word. Only words that sh, bash, zsh
    /// and fish read alike are used, for Codex runs the person's own shell.
    pub(crate) fn shell_line(&self, client: Client, event: &str) -> String {
        self.line(&format!("hook {client} {event}"))
    }

    /// The line that aider runs, with `sh`, when it waits. It says nothing of a session, so this is a message, and no
    /// state. What goes wrong is kept from aider, which would show it.
    pub(crate) fn waiting_line(&self) -> String {
        self.line("notify --from \"${RINGER_AGENT:-aider}\" --type waiting 'aider waits for you' 2>/dev/null")
    }

    fn line(&self, arguments: &str) -> String {
        let program = shell_word(&self.0);
        let test = if self.0.starts_with('/') {
            format!("[ -x {program} ]")
        } else {
            format!("command -v {program} >/dev/null 2>&1")
        };
        format!("{test} && exec {program} {arguments} || exit 0 {MARKER}")
    }
}

/// Whether a program is Ringer, by its file name; `ringer-next` counts.
pub(crate) fn is_ringer(program: &str) -> bool {
    Path::new(program)
        .file_name()
        .and_then(|name| name.to_str())
        .is_some_and(|name| name.starts_with("ringer"))
}

/// The file, with a place for the program.
const PLUGIN_TEMPLATE: &str = include_str!("opencode.js");

/// The first words of every plugin file that any version of Ringer wrote.
const PLUGIN_MARK: &str = "// ringer-hook:";

/// The plugin file for a program.
pub(crate) fn plugin_source(program: &RingerProgram) -> String {
    // A JSON string is a JavaScript string.
    PLUGIN_TEMPLATE.replace("\"@PROGRAM@\"", &serde_json::Value::from(program.as_str()).to_string())
}

/// Whether Ringer wrote the file at the plugin's path.
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
