//! Random settings files as people have them: comments, foreign hooks, old entries of Ringer, CRLF, tabs, no line end at the end.

#![expect(clippy::unwrap_used, reason = "helpers of tests, outside any test function")]

use proptest::prelude::*;
use ringer_agents::setup::Client;

/// A generated settings file.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    pub(crate) client: Client,
    pub(crate) text: String,
    /// The number of Ringer's handlers in it, in older forms.
    pub(crate) old_entries: usize,
    /// Texts of others, each of which must stay unchanged.
    pub(crate) foreign: Vec<String>,
}

/// Any settings file of a client with hooks.
pub(crate) fn any_config() -> impl Strategy<Value = Config> {
    let with_hooks = Client::ALL.into_iter().filter(|client| !client.hook_events().is_empty());
    let client = prop::sample::select(with_hooks.collect::<Vec<_>>());
    (client, proptest::collection::vec(any::<u8>(), 200..600))
        .prop_map(|(client, dice)| Writer::config(client, dice))
}

#[expect(clippy::struct_excessive_bools, reason = "each is one independent habit of a person")]
struct Writer {
    dice: std::vec::IntoIter<u8>,
    client: Client,
    newline: &'static str,
    step: &'static str,
    trailing_commas: bool,
    comments: bool,
    one_line: bool,
    with_old: bool,
    old_entries: usize,
    foreign: Vec<String>,
}

impl Writer {
    fn config(client: Client, dice: Vec<u8>) -> Config {
        let mut dice = dice.into_iter();
        let mut roll = |n: u8| dice.next().unwrap_or(0) % n;
        let newline = ["\n", "\n", "\r\n"][usize::from(roll(3))];
        let step = ["  ", "    ", "\t", " ", "", "   "][usize::from(roll(6))];
        let (trailing_commas, comments, one_line) = (roll(4) == 0, roll(2) == 0, roll(6) == 0);
        let (with_old, bom, last_newline, empty) = (roll(2) == 0, roll(8) == 0, roll(3) > 0, roll(24) == 0);
        let mut writer = Self {
            dice,
            client,
            newline,
            step,
            trailing_commas: trailing_commas && !one_line,
            comments: comments && !one_line,
            one_line,
            with_old,
            old_entries: 0,
            foreign: Vec::new(),
        };
        let root = if empty { writer.comment(0) } else { writer.root() };
        let text = format!(
            "{}{}{}",
            if bom { "\u{feff}" } else { "" },
            root,
            if last_newline { newline } else { "" }
        );
        Config { client, text, old_entries: writer.old_entries, foreign: writer.foreign }
    }

    fn roll(&mut self, n: u8) -> u8 {
        self.dice.next().unwrap_or(0) % n
    }

    /// A text that is not Ringer's and occurs only once.
    fn mark(&mut self) -> String {
        let mark = format!("foreign-{}-é", self.foreign.len());
        self.foreign.push(mark.clone());
        mark
    }

    fn comment(&mut self, depth: usize) -> String {
        let mark = self.mark();
        match self.roll(2) {
            0 => format!("// {mark} }} ] \" ,{}{}", self.newline, self.step.repeat(depth)),
            _ => format!("/* {mark} // }} */"),
        }
    }

    /// The items of an array or object between its brackets.
    fn body(&mut self, [open, close]: [char; 2], items: &[String], depth: usize) -> String {
        let inline = self.one_line || (self.roll(4) == 0 && !items.iter().any(|item| item.contains('\n')));
        let gap = if inline { [" ", ""][usize::from(self.roll(2))].to_owned() } else { String::new() };
        let lead = |depth: usize| format!("{}{}", self.newline, self.step.repeat(depth));
        let (inner, outer) = if inline { (gap.clone(), gap) } else { (lead(depth + 1), lead(depth)) };
        let mut out = open.to_string();
        for (index, item) in items.iter().enumerate() {
            out.push_str(if inline && index > 0 { " " } else { &inner });
            if self.comments && !inline && self.roll(4) == 0 {
                out.push_str(&self.comment(depth + 1));
                out.push(' ');
            }
            out.push_str(item);
            if self.comments && !inline && self.roll(6) == 0 {
                out.push_str(" /* between */");
            }
            if index + 1 < items.len() || self.trailing_commas {
                out.push(',');
            }
            if self.comments && !inline && self.roll(4) == 0 {
                out.push_str(" // ");
                out.push_str(&self.mark());
            }
        }
        if !items.is_empty() || (!inline && self.roll(2) == 0) {
            out.push_str(&outer);
        }
        out.push(close);
        out
    }

    fn root(&mut self) -> String {
        let mut members = Vec::new();
        for index in 0..self.roll(4) {
            let mark = self.mark();
            let value = ["1", "true", "null", "\"a \\\"b\\\" // no comment\"", "-1.5e3", "[]", "{}"];
            let value = value[usize::from(self.roll(7))];
            members.push(format!("\"{mark}-{index}\": {value}"));
        }
        if self.is_flat() && self.roll(3) > 0 {
            members.push("\"version\": 1".to_owned());
        }
        if self.roll(4) > 0 {
            let hooks = self.hooks();
            let at = usize::from(self.roll(4)).min(members.len());
            members.insert(at, format!("\"hooks\":{}{hooks}", [" ", ""][usize::from(self.roll(2))]));
        }
        self.body(['{', '}'], &members, 0)
    }

    fn hooks(&mut self) -> String {
        let mut members = Vec::new();
        for event in self.client.hook_events().iter().chain(&["PreCompact", "Elsewhere"]) {
            if self.roll(3) == 0 {
                let groups: Vec<String> = (0..self.roll(3)).map(|_| self.group(event)).collect();
                members.push(format!("\"{event}\": {}", self.body(['[', ']'], &groups, 2)));
            }
        }
        self.body(['{', '}'], &members, 1)
    }

    /// Copilot CLI has no groups.
    fn is_flat(&self) -> bool {
        self.client == Client::Copilot
    }

    fn group(&mut self, event: &str) -> String {
        if self.is_flat() {
            return self.handler(event);
        }
        let handlers: Vec<String> = (0..=self.roll(2)).map(|_| self.handler(event)).collect();
        let mut members = Vec::new();
        if self.roll(2) == 0 {
            members.push("\"matcher\": \"Bash|Write\"".to_owned());
        }
        members.push(format!("\"hooks\": {}", self.body(['[', ']'], &handlers, 4)));
        self.body(['{', '}'], &members, 3)
    }

    fn handler(&mut self, event: &str) -> String {
        let client = self.client;
        let command = if self.with_old && self.roll(2) == 0 {
            self.old_entries += 1;
            match self.roll(3) {
                0 => format!("ringer hook {client} {event}"),
                1 => format!("/old/place/ringer hook {client} {event}"),
                _ => format!("/x/ringer --old hook {client} {event} || true # ringer-hook"),
            }
        } else {
            let mark = self.mark();
            format!("echo {mark} \\\"ringer hook {client} {event}\\\" \\u0041")
        };
        let key = if client == Client::Copilot { "bash" } else { "command" };
        let members = ["\"type\": \"command\"".to_owned(), format!("\"{key}\": \"{command}\"")];
        // A comment inside an entry of Ringer is removed with it.
        let comments = self.comments;
        self.comments &= command.starts_with("echo");
        let handler = self.body(['{', '}'], &members, 5);
        self.comments = comments;
        handler
    }
}

/// Plain JSON: the text without comments, trailing commas and byte order mark. A second implementation, independent of the parser
/// under test.
pub(crate) fn plain_json(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text.trim_start_matches('\u{feff}');
    while let Some(first) = rest.chars().next() {
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").unwrap() + 2
        } else if first == '"' {
            let mut escaped = false;
            let end = rest.char_indices().skip(1).find(|(_, c)| {
                let end = *c == '"' && !escaped;
                escaped = *c == '\\' && !escaped;
                end
            });
            let end = end.unwrap().0 + 1;
            out.push_str(&rest[..end]);
            end
        } else {
            if matches!(first, '}' | ']') && out.trim_end().ends_with(',') {
                out.truncate(out.trim_end().len() - 1);
            }
            out.push(first);
            first.len_utf8()
        };
        rest = &rest[length..];
    }
    out
}
