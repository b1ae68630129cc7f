//! `ringer completions`, and `ringer complete`, which its scripts call for the candidates for the next word.

use std::ffi::OsString;

use clap::builder::Str;
use clap::{Arg, Command, ValueEnum, ValueHint};
use clap_complete::generate;
use clap_complete_nushell::Nushell;
use ringer_agents::setup::Client;
use ringer_core::attention::{Record, local_first};
use ringer_core::message::ShownKind;
use ringer_journal::Journal;
use ringer_relay::{MachineAgents, WireAgent};
use ringer_term::sanitise_line;

use crate::failure::{Exit, Failure, Outcome};
use crate::output::print_bytes;
use crate::{context, notifications};

/// Generate shell completions
///
/// In bash, zsh and fish they offer open notifications and running agents, too.
///
/// Examples:
///   ringer completions bash > ~/.local/share/bash-completion/completions/ringer
///   ringer completions zsh > ~/.zfunc/_ringer   # with fpath+=~/.zfunc before compinit
///   ringer completions fish > ~/.config/fish/completions/ringer.fish
///   ringer completions nushell > ~/.config/nushell/completions/ringer.nu   # and source it
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Shell to generate for
    shell: Shell,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
    Nushell,
}

/// These scripts call `ringer complete`, which knows the open ids and agents.
const BASH: &str = include_str!("completions/ringer.bash");
const ZSH: &str = include_str!("completions/ringer.zsh");
const FISH: &str = include_str!("completions/ringer.fish");

/// Prints the script for a shell. The script for Nushell contains the whole command line, which is `command`.
pub(crate) fn run(arguments: &Args, mut command: Command) -> Outcome {
    match arguments.shell {
        Shell::Bash => print_bytes(BASH.as_bytes()),
        Shell::Zsh => print_bytes(ZSH.as_bytes()),
        Shell::Fish => print_bytes(FISH.as_bytes()),
        Shell::Nushell => {
            let mut script = Vec::new();
            generate(Nushell, &mut command, "ringer", &mut script);
            print_bytes(&script)
        }
    }
}

/// The most notifications and agents that are offered: more than fit on a screen.
const MAX_OFFERED: usize = 100;
/// The most characters of a notification that are shown beside its id.
const MAX_HELP: usize = 60;

/// Print what can follow these words
///
/// One candidate per line, and a tab with its description. Exits with 1 where the name of
/// a file is expected. Starts no hub, and prints nothing if something fails.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct CompleteArgs {
    /// The words after `ringer`; the last one is the one that is being typed
    #[arg(last = true)]
    words: Vec<OsString>,
}

/// Completes words of the command line that `command` describes.
pub(crate) fn complete(arguments: &CompleteArgs, mut command: Command) -> Outcome {
    command.build();
    let words: Vec<String> = arguments.words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let (typed, before) = words.split_last().map_or(("", &[][..]), |(typed, before)| (typed, before));
    let candidates = match expected(&command, before, typed) {
        ExpectedWord::Path => return Err(Failure::reported(Exit::Broken)),
        ExpectedWord::Words(candidates) => candidates,
        ExpectedWord::Value(value) => value.candidates(typed),
    };
    let lines = candidates.iter().filter(|candidate| candidate.text.starts_with(typed)).map(|candidate| {
        let help = sanitise_line(candidate.help.lines().next().unwrap_or_default());
        format!("{}\t{help}\n", sanitise_line(&candidate.text))
    });
    // Both parts are safe to print, with a tab between them.
    print_bytes(lines.collect::<String>().as_bytes())
}

#[derive(Debug, PartialEq)]
enum ExpectedWord {
    Words(Vec<Candidate>),
    /// A value that is read from the journal.
    Value(ValueKind),
    /// A path, which shells complete themselves.
    Path,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Candidate {
    text: String,
    help: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ValueKind {
    /// A notification that is open or unread.
    Notification,
    /// A question or permission that is open.
    Prompt,
    Agent,
    /// An agent, or one of the words for several.
    Recipient,
}

impl Candidate {
    fn new(text: impl Into<String>, help: impl Into<String>) -> Self {
        Self { text: text.into(), help: help.into() }
    }
}

/// Returns the candidates after the words `before`, for a word of which `typed` is the beginning.
fn expected(root: &Command, before: &[String], typed: &str) -> ExpectedWord {
    let mut command = root;
    let mut positional = 1;
    let mut waiting: Option<&Arg> = None;
    let mut options_ended = false;
    for word in before {
        // bash passes `--to=lead` as three words.
        if word == "=" || waiting.take().is_some() {
            continue;
        }
        if options_ended || !word.starts_with('-') || word == "-" {
            match command.find_subcommand(word) {
                Some(subcommand) if positional == 1 && !options_ended => command = subcommand,
                _ => positional += 1,
            }
        } else if word == "--" {
            options_ended = true;
        } else {
            waiting = option(command, word).filter(|option| option.get_action().takes_values());
        }
    }
    if let Some(option) = waiting {
        return values(command, option);
    }
    if typed.starts_with('-') && !options_ended {
        return ExpectedWord::Words(options(command));
    }
    let arguments: Vec<&Arg> = command.get_positionals().collect();
    let takes_more = |argument: &&&Arg| argument.get_num_args().is_some_and(|range| range.max_values() > 1);
    let argument = arguments
        .iter()
        .find(|argument| argument.get_index() == Some(positional))
        .or_else(|| arguments.last().filter(takes_more));
    match argument {
        Some(argument) => values(command, argument),
        None if positional == 1 => ExpectedWord::Words(subcommands(command)),
        None => ExpectedWord::Words(Vec::new()),
    }
}

/// Returns the option of a word such as `--kind` or `-h`. `None` if the word also contains its value.
fn option<'a>(command: &'a Command, word: &str) -> Option<&'a Arg> {
    command.get_arguments().find(|argument| match word.strip_prefix("--") {
        Some(long) => argument.get_long_and_visible_aliases().is_some_and(|names| names.contains(&long)),
        None => argument.get_short().is_some_and(|short| word.strip_prefix('-') == Some(&short.to_string())),
    })
}

fn options(command: &Command) -> Vec<Candidate> {
    let shown = command.get_arguments().filter(|argument| !argument.is_hide_set());
    let options = shown.filter_map(|argument| Some((argument.get_long()?, argument)));
    options.map(|(long, argument)| Candidate::new(format!("--{long}"), help(argument.get_help()))).collect()
}

fn subcommands(command: &Command) -> Vec<Candidate> {
    let shown = command.get_subcommands().filter(|command| !command.is_hide_set());
    shown.map(|command| Candidate::new(command.get_name(), help(command.get_about()))).collect()
}

fn help(text: Option<&clap::builder::StyledStr>) -> String {
    text.map(ToString::to_string).unwrap_or_default()
}

/// Returns the candidates for an argument, by the value name that help shows.
fn values(command: &Command, argument: &Arg) -> ExpectedWord {
    if matches!(argument.get_value_hint(), ValueHint::AnyPath | ValueHint::FilePath | ValueHint::DirPath) {
        return ExpectedWord::Path;
    }
    let possible = argument.get_possible_values();
    if !possible.is_empty() {
        let words = possible.iter().filter(|value| !value.is_hide_set());
        return ExpectedWord::Words(
            words.map(|value| Candidate::new(value.get_name(), help(value.get_help()))).collect(),
        );
    }
    let name = argument.get_value_names().and_then(|names| names.first()).map(Str::as_str);
    match (command.get_name(), name, argument.is_positional()) {
        ("setup", Some("AGENT"), true) => {
            let clients = Client::ALL.iter();
            ExpectedWord::Words(
                clients.map(|client| Candidate::new(client.as_str(), client.display_name())).collect(),
            )
        }
        ("help", Some("COMMAND"), true) => {
            ExpectedWord::Words(super::help::all_names().map(|name| Candidate::new(name, "")).collect())
        }
        ("answer" | "acknowledge", Some("WHO"), true) => ExpectedWord::Value(ValueKind::Prompt),
        ("tell" | "wait", Some("WHO"), true) | (_, Some("AGENT"), _) => ExpectedWord::Value(ValueKind::Agent),
        (_, Some("WHO"), true) => ExpectedWord::Value(ValueKind::Notification),
        (_, Some("WHO"), _) => ExpectedWord::Value(ValueKind::Recipient),
        (_, Some("KIND"), _) => {
            ExpectedWord::Words(ShownKind::all().map(|kind| Candidate::new(kind.as_str(), "")).collect())
        }
        _ => ExpectedWord::Words(Vec::new()),
    }
}

impl ValueKind {
    /// Reads the candidates from the journal. Offers nothing if it cannot be read.
    fn candidates(self, typed: &str) -> Vec<Candidate> {
        let journal = context::home().ok().and_then(|home| Journal::open_to_read(&home).ok().flatten());
        let Some(mut journal) = journal else { return Vec::new() };
        match self {
            Self::Notification | Self::Prompt => notifications(&mut journal, self, typed),
            Self::Agent => agents(&mut journal),
            Self::Recipient => {
                let words = [
                    ("lead", "the lead agent of this repository"),
                    ("person", "you"),
                    ("all", "you and all agents"),
                ];
                let words = words.map(|(word, help)| Candidate::new(word, help));
                words.into_iter().chain(agents(&mut journal)).chain(agents_elsewhere()).collect()
            }
        }
    }
}

/// Offers the names that only one notification has, and ids: of the others, and of those whose id has been begun.
fn notifications(journal: &mut Journal, wanted: ValueKind, typed: &str) -> Vec<Candidate> {
    let Ok(list) = notifications::read() else { return Vec::new() };
    let open = notifications::open_prompts(&list, journal).unwrap_or_default();
    let is_wanted = |record: &&Record| match wanted {
        ValueKind::Prompt => open.contains(&record.id),
        _ => !record.is_resolved || !record.is_read,
    };
    let local = list.newest().filter(|record| record.machine.is_none() && is_wanted(record));
    let elsewhere = list.newest_elsewhere().filter(is_wanted);
    let offered: Vec<&Record> = local_first(local, elsewhere, MAX_OFFERED).collect();
    let name = |record: &Record| {
        let name = record.label.as_deref().unwrap_or(&record.sender);
        let is_unique = || offered.iter().filter(|other| other.has_name(|own| own == name)).count() == 1;
        Some(name)
            .filter(|name| *name != "system" && is_plain(name, char::is_alphanumeric) && is_unique())
            .map(str::to_owned)
    };
    let candidate = |record: &&Record| {
        let title = record.title.as_deref().filter(|title| !title.is_empty());
        let text: Vec<&str> = title.into_iter().chain([&*record.body]).collect();
        let text = sanitise_line(&text.join(": "));
        let short_id = list.short_id(&record.id).filter(|id| !typed.is_empty() && id.starts_with(typed));
        let word =
            short_id.or_else(|| name(record)).or_else(|| list.short_id(&record.id)).unwrap_or_default();
        Candidate::new(word, text.chars().take(MAX_HELP).collect::<String>())
    };
    offered.iter().map(candidate).collect()
}

fn agents(journal: &mut Journal) -> Vec<Candidate> {
    let known = journal.agent_summaries().unwrap_or_default();
    let running = known.iter().filter(|agent| agent.state.as_deref() != Some("exited"));
    let candidate = |agent: &ringer_journal::AgentSummary| {
        let word = agent_word(agent.name.as_deref(), &agent.id, char::is_alphanumeric)?;
        let state = agent.state.as_deref().unwrap_or_default();
        let place = agent.cwd.as_deref().unwrap_or_default();
        Some(Candidate::new(word, [state, place].join(" ").trim()))
    };
    running.filter_map(candidate).take(MAX_OFFERED).collect()
}

/// Agents of connected machines.
fn agents_elsewhere() -> Vec<Candidate> {
    let machines = context::home().map(|home| MachineAgents::all(&home)).unwrap_or_default();
    let connected = machines.into_iter().filter(|machine| machine.is_connected);
    let candidate = |agent: WireAgent| {
        let word =
            agent_word(agent.name.as_deref(), &agent.id, |character| character.is_ascii_alphanumeric())?;
        let help = [agent.state, agent.directory.unwrap_or_default()].join(" ");
        Some(Candidate::new(word, help.trim()))
    };
    connected.flat_map(|machine| machine.agents).filter_map(candidate).take(MAX_OFFERED).collect()
}

/// Returns the name of an agent, or else its id, if it contains nothing that a shell interprets: agents choose their names.
fn agent_word<'a>(name: Option<&'a str>, id: &'a str, is_letter: fn(char) -> bool) -> Option<&'a str> {
    let is_plain = |word: &&str| is_plain(word, is_letter);
    name.filter(is_plain).or(Some(id).filter(is_plain))
}

/// Returns true if a word contains nothing that a shell interprets.
fn is_plain(word: &str, is_letter: fn(char) -> bool) -> bool {
    !word.starts_with('-')
        && word.chars().all(|character| is_letter(character) || "._@:+-/".contains(character))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::commands::Ringer;

    #[track_caller]
    fn check(line: &str, expected_here: &ExpectedWord) {
        let mut command = Ringer::command();
        command.build();
        let mut words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let typed = words.pop().unwrap();
        assert_eq!(&expected(&command, &words, &typed), expected_here, "{line}");
    }

    #[track_caller]
    fn offers(line: &str, offered: &[&str]) {
        let mut command = Ringer::command();
        command.build();
        let mut words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let typed = words.pop().unwrap();
        let ExpectedWord::Words(found) = expected(&command, &words, &typed) else { panic!("{line}") };
        let found: Vec<&str> = found.iter().map(|candidate| candidate.text.as_str()).collect();
        assert!(offered.iter().all(|word| found.contains(word)), "{line}: {found:?}");
        assert_eq!(found.is_empty(), offered.is_empty(), "{line}: {found:?}");
    }

    #[test]
    fn what_stands_at_the_cursor() {
        for line in [
            "read ",
            "read k3",
            "read k3fx ",
            "read --json ",
            "unread ",
            "clear ",
            "jump ",
            "why ",
            "snooze ",
        ] {
            check(line, &ExpectedWord::Value(ValueKind::Notification));
        }
        check("answer ", &ExpectedWord::Value(ValueKind::Prompt));
        check("acknowledge ", &ExpectedWord::Value(ValueKind::Prompt));
        check("mute ", &ExpectedWord::Value(ValueKind::Agent));
        check("mute --off ", &ExpectedWord::Value(ValueKind::Agent));
        check("show ", &ExpectedWord::Value(ValueKind::Agent));
        check("show -v ", &ExpectedWord::Value(ValueKind::Agent));
        check("why --agent ", &ExpectedWord::Value(ValueKind::Agent));
        check("notify --to ", &ExpectedWord::Value(ValueKind::Recipient));
        check("notify hello --to = l", &ExpectedWord::Value(ValueKind::Recipient));
        check("term scan ", &ExpectedWord::Path);
        check("man ", &ExpectedWord::Path);
        offers("", &["notify", "setup", "uninstall", "help"]);
        offers("hub ", &["start", "stop", "status"]);
        offers("help ", &["notify", "hub"]);
        offers("setup claude ", &["claude", "codex"]);
        offers("completions ", &["bash", "zsh", "fish", "nushell"]);
        offers("notify --kind ", &["permission", "complete"]);
        offers("dnd --allow ", &["permission", "complete"]);
        offers("notify --", &["--to", "--json", "--help"]);
        for line in ["notify ", "notify -- --", "why k3fx ", "answer k3fx ", "bogus "] {
            offers(line, &[]);
        }
    }

    #[test]
    fn only_names_that_mean_nothing_to_a_shell_are_offered() {
        let offered = |name, id| agent_word(name, id, |character| character.is_ascii_alphanumeric());
        assert_eq!(offered(Some("worker-7@box.t"), "claude-1@box.t"), Some("worker-7@box.t"));
        assert_eq!(offered(None, "claude-1@box.t"), Some("claude-1@box.t"));
        for name in [
            "a$(id)", "a`id`", "a;id", "a b", "a|b", "a&", "$IFS", "~a", "a\\", "a'", "a\"", "-a", "a*",
            "wörker", "!a",
        ] {
            assert_eq!(offered(Some(name), "claude-1"), Some("claude-1"), "{name}");
            assert_eq!(offered(Some(name), name), None, "{name}");
        }
        assert_eq!(agent_word(Some("größe"), "claude-1", char::is_alphanumeric), Some("größe"));
    }

    #[test]
    fn what_is_hidden_is_not_offered() {
        let mut command = Ringer::command();
        command.build();
        assert!(subcommands(&command).iter().all(|command| command.text != "complete"));
        let hub = command.find_subcommand("hub").unwrap();
        assert!(subcommands(hub).iter().all(|command| command.text != "run"));
    }
}
