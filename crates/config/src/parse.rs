//! Parses a text into settings, or into the list of all its problems.

use std::collections::BTreeMap;
use std::path::Path;

use ringer_core::Scope;
use ringer_core::message::ShownKind;
use ringer_core::policy::RateLimit;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::entry::{ChannelEntry, DEFAULT_TIMEOUT, HookEntry, Origin, Source, Watch, WebhookEntry};
use crate::notify::{Matcher, NotARate, Notify, QuietHours, SoundSetting, read_rate};
use crate::page::{Item, Page, Section};
use crate::problem::ConfigErrors;
use crate::relay_entry::{relays, repositories};
use crate::rules::{Rules, WebhookRule};
use crate::settings::{Answers, Channels, Config, RepositorySettings, Tmux};

pub(crate) const ROOT: [&str; 14] = [
    "preferred_channel",
    "stuck_threshold_ms",
    "notify",
    "hook",
    "webhook",
    "watch",
    "channels",
    "channel",
    "keys",
    "theme",
    "tmux",
    "answers",
    "relay",
    "repository",
];
pub(crate) const NOTIFY: [&str; 16] = [
    "popup",
    "sound",
    "command",
    "ring",
    "title_mark",
    "flash",
    "reorder",
    "quiet_hours",
    "mute",
    "rate_limit",
    "subagents",
    "min_turn",
    "idle_reminder",
    "escalate_after",
    "away_after",
    "sounds",
];
pub(crate) const TMUX: [&str; 1] = ["one_pane"];
pub(crate) const MATCHER: [&str; 3] = ["agent", "scope", "kind"];
pub(crate) const HOOK: [&str; 5] = ["id", "command", "timeout_ms", "on_failure", "enabled"];
pub(crate) const WEBHOOK: [&str; 6] = ["id", "kind", "url", "secret_file", "kinds", "when"];
pub(crate) const WATCH: [&str; 5] = ["paths", "command", "directory", "agent", "timeout_ms"];
pub(crate) const CHANNELS: [&str; 1] = ["enabled"];
pub(crate) const ANSWERS: [&str; 1] = ["scripts"];
pub(crate) const CHANNEL: [&str; 5] = ["name", "command", "to", "allow", "may_answer"];
/// Each MCP server needs a process and a thread of the hub.
const MAX_CHANNELS: usize = 16;
/// The keys that a repository may set.
const REPOSITORY: [&str; 3] = ["notify", "hook", "watch"];
const REPOSITORY_NOTIFY: [&str; 1] = ["mute"];

const NOT_HERE: &str = "cannot be set by a repository; it belongs in your own config.toml";

/// Parses the person's settings. `path` is the origin of the text, for messages and relative paths; no file is opened.
pub fn parse(path: &Path, home: Option<&Path>, text: &str, rules: &Rules) -> Result<Config, ConfigErrors> {
    let page = Page::new(path, home, text);
    let Some(tree) = tree(&page, text) else { return page.finish(Config::default()) };
    let root = Section::root(&page, &tree).with_keys(&ROOT, belongs_in_notify);
    let source = Source { origin: Origin::User, path: path.to_owned() };
    let default = Config::default();
    let config = Config {
        preferred_channel: root
            .get("preferred_channel")
            .and_then(|item| item.word())
            .unwrap_or(default.preferred_channel),
        stuck_threshold: root
            .get("stuck_threshold_ms")
            .and_then(|item| item.duration())
            .unwrap_or(default.stuck_threshold),
        notify: root.get("notify").and_then(|item| notify(&item)).unwrap_or(default.notify),
        hooks: hooks(&root, &source),
        webhooks: tables(&root, "webhook", |section| webhook(section, &rules.webhooks)),
        watches: tables(&root, "watch", |section| watch(section, &source)),
        channels: root.get("channels").and_then(|item| channels(&item)).unwrap_or_default(),
        channel_servers: channel_servers(&root, &source),
        keys: root.get("keys").map(|item| texts(&item)).unwrap_or_default(),
        theme: root.get("theme").map(|item| texts(&item)).unwrap_or_default(),
        tmux: root.get("tmux").and_then(|item| tmux(&item)).unwrap_or_default(),
        answers: root.get("answers").and_then(|item| answers(&item)).unwrap_or_default(),
        relays: relays(&root),
        repositories: repositories(&root),
        path: path.to_owned(),
    };
    unique(&root, "webhook", "id");
    for rule in &rules.tables {
        rule.apply(&root);
    }
    page.finish(config)
}

/// Parses the settings of a repository. Only `[notify] mute`, `[[hook]]` and `[[watch]]` are allowed.
pub fn parse_repository(
    path: &Path,
    home: Option<&Path>,
    text: &str,
) -> Result<RepositorySettings, ConfigErrors> {
    let page = Page::new(path, home, text);
    let Some(tree) = tree(&page, text) else { return page.finish(RepositorySettings::default()) };
    let own: Vec<&str> = ROOT.into_iter().filter(|key| !REPOSITORY.contains(key)).collect();
    let root = Section::root(&page, &tree).with_keys(&ROOT, belongs_in_notify).forbid(&own, NOT_HERE);
    let own: Vec<&str> = NOTIFY.into_iter().filter(|key| !REPOSITORY_NOTIFY.contains(key)).collect();
    let notify = root.get("notify").and_then(|item| item.section("a table"));
    let notify = notify.map(|section| section.with_keys(&NOTIFY, |_| None).forbid(&own, NOT_HERE));
    let source = Source { origin: Origin::Repository, path: path.to_owned() };
    let repository = RepositorySettings {
        mute: notify.and_then(|section| section.get("mute")).map(|item| mute(&item)).unwrap_or_default(),
        hooks: hooks(&root, &source),
        watches: tables(&root, "watch", |section| watch(section, &source)),
        path: path.to_owned(),
    };
    page.finish(repository)
}

/// Parses TOML. After a syntax error the parser recovers, but its tree is then a guess, and problems found in it would
/// mislead; so the tree is dropped.
fn tree<'i>(page: &Page<'_>, text: &'i str) -> Option<Spanned<DeTable<'i>>> {
    let (tree, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        let end = text.len()..text.len();
        page.wrong(&error.span().unwrap_or(end), error.message().to_owned(), None);
    }
    errors.is_empty().then_some(tree)
}

fn belongs_in_notify(key: &str) -> Option<String> {
    NOTIFY.contains(&key).then(|| format!("{key} belongs under [notify]"))
}

fn notify(item: &Item<'_, '_>) -> Option<Notify> {
    let section = item.section("a table")?.with_keys(&NOTIFY, |_| None);
    let default = Notify::default();
    let switch = |key, default| section.get(key).and_then(|item| item.boolean()).unwrap_or(default);
    Some(Notify {
        popup: section.get("popup").and_then(|item| item.word()).unwrap_or(default.popup),
        sound: section.get("sound").and_then(|item| sound(&item)).unwrap_or(default.sound),
        command: section.get("command").and_then(|item| item.command()).unwrap_or(default.command),
        ring: switch("ring", default.ring),
        title_mark: section.get("title_mark").and_then(|item| item.word()).unwrap_or(default.title_mark),
        flash: switch("flash", default.flash),
        reorder: switch("reorder", default.reorder),
        quiet_hours: section.get("quiet_hours").map(|item| quiet_hours(&item)).unwrap_or_default(),
        mute: section.get("mute").map(|item| mute(&item)).unwrap_or_default(),
        rate_limit: section.get("rate_limit").map_or(default.rate_limit, |item| rate_limit(&item)),
        subagents: switch("subagents", default.subagents),
        min_turn: section.get("min_turn").and_then(|item| item.span()).unwrap_or(default.min_turn),
        idle_reminder: section.get("idle_reminder").map_or(default.idle_reminder, |item| item.span_or_off()),
        escalate_after: section
            .get("escalate_after")
            .and_then(|item| item.span())
            .unwrap_or(default.escalate_after),
        away_after: section.get("away_after").map_or(default.away_after, |item| item.positive_span_or_off()),
        sounds: section.get("sounds").map(|item| sounds(&item)).unwrap_or_default(),
    })
}

fn sound(item: &Item<'_, '_>) -> Option<SoundSetting> {
    match item.value() {
        DeValue::Boolean(false) => Some(SoundSetting::Off),
        DeValue::Boolean(true) => Some(SoundSetting::Theme),
        DeValue::String(_) => item.path().map(SoundSetting::File),
        _ => item.expected("true, false or a file to play"),
    }
}

fn sounds(item: &Item<'_, '_>) -> Vec<(ShownKind, SoundSetting)> {
    let kinds: Vec<&str> = ShownKind::all().map(ShownKind::as_str).collect();
    let Some(section) = item.section("a table of kinds") else { return Vec::new() };
    let section = section.with_keys(&kinds, |_| None);
    ShownKind::all().filter_map(|kind| Some((kind, sound(&section.get(kind.as_str())?)?))).collect()
}

fn quiet_hours(item: &Item<'_, '_>) -> Vec<QuietHours> {
    let read = |item: &Item<'_, '_>| {
        let text = item.text()?;
        let wrong =
            || item.wrong(format!("has {text:?}; expected a span of the day like \"22:00-07:00\""), None);
        QuietHours::parse(text).or_else(wrong)
    };
    let items = item.list("a list of spans like \"22:00-07:00\"").unwrap_or_default();
    items.iter().filter_map(read).collect()
}

fn rate_limit(item: &Item<'_, '_>) -> Option<RateLimit> {
    let text = item.text()?;
    let expected = "expected a rate like \"30/min\" (per s, min or h), or \"off\"";
    read_rate(text).unwrap_or_else(|NotARate| item.wrong(format!("is {text:?}; {expected}"), None))
}

fn mute(item: &Item<'_, '_>) -> Vec<Matcher> {
    let items = item.list("a list of tables like { agent = \"noisy\" }").unwrap_or_default();
    items.iter().filter_map(matcher).collect()
}

fn matcher(item: &Item<'_, '_>) -> Option<Matcher> {
    let section = item.section("a table like { agent = \"noisy\" }")?.with_keys(&MATCHER, |_| None);
    let matcher = Matcher {
        agent: section.get("agent").and_then(|item| item.name_text("agent")),
        scope: section.get("scope").and_then(|item| {
            let text = item.text()?;
            let wrong = |invalid| item.wrong(format!("cannot be used: {invalid}"), None);
            Scope::new(text).map_or_else(wrong, |scope| Some(scope.as_str().to_owned()))
        }),
        kind: section.get("kind").and_then(|item| item.word()),
    };
    if section.items().next().is_none() {
        return item.wrong("has an empty table, which matches nothing; expected agent, scope or kind", None);
    }
    Some(matcher)
}

/// Reads every `[[name]]` table.
fn tables<'a, 'i, T>(
    root: &Section<'a, 'i>,
    name: &str,
    read: impl Fn(&Section<'a, 'i>) -> Option<T>,
) -> Vec<T> {
    let expected = format!("tables that begin with [[{name}]]");
    let items = root.get(name).and_then(|item| item.list(&expected)).unwrap_or_default();
    items.iter().filter_map(|item| read(&item.section(&expected)?)).collect()
}

fn hooks(root: &Section<'_, '_>, source: &Source) -> Vec<HookEntry> {
    unique(root, "hook", "id");
    tables(root, "hook", |section| hook(section, source))
}

fn hook(section: &Section<'_, '_>, source: &Source) -> Option<HookEntry> {
    let section = section.clone().with_keys(&HOOK, |_| None);
    // All keys are read before a missing one returns, so that every problem is reported.
    let id = section.require("id").and_then(|item| item.name_text("id"));
    let command = section.require("command").and_then(|item| item.program());
    let timeout = section.get("timeout_ms").and_then(|item| item.duration()).unwrap_or(DEFAULT_TIMEOUT);
    let on_failure = section.get("on_failure").and_then(|item| item.word()).unwrap_or_default();
    let enabled = section.get("enabled").and_then(|item| item.boolean()).unwrap_or(true);
    Some(HookEntry {
        id: id?,
        command: command?,
        timeout,
        on_failure,
        enabled,
        source: source.clone(),
        scope: None,
    })
}

fn webhook(section: &Section<'_, '_>, rule: &WebhookRule) -> Option<WebhookEntry> {
    let section = section.clone().with_keys(&WEBHOOK, |_| None);
    let id = section.get("id").and_then(|item| item.name_text("id"));
    let kind = section.require("kind").and_then(|item| item.one_of(&rule.names));
    let has_secret = section.get("secret_file").is_some();
    let url = section.require("url").and_then(|item| {
        let url = address(&item)?;
        let wrong = |why: &str| item.wrong(format!("cannot be used: {why}"), None);
        // Without a kind there is nothing more to check.
        kind.map_or(Ok(()), |kind| (rule.check)(kind, &url, has_secret)).map_or_else(wrong, |()| Some(url))
    });
    let secret_file = section.get("secret_file").and_then(|item| item.path());
    let kinds = section.get("kinds").and_then(|item| item.list("a list of kinds")).unwrap_or_default();
    let kinds: Vec<ShownKind> = kinds.iter().filter_map(Item::word).collect();
    let when = section.get("when").and_then(|item| item.word()).unwrap_or_default();
    Some(WebhookEntry { id, kind: kind?, url: url?, secret_file, kinds, when })
}

/// Reads a URL. Problems do not quote it: Slack and Discord URLs contain secrets, and problems are displayed.
fn address(item: &Item<'_, '_>) -> Option<String> {
    let text = item.text()?;
    let rest = text
        .split_once("://")
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("https") || scheme.eq_ignore_ascii_case("http"));
    let Some((_, rest)) = rest else {
        return item.wrong("is not a web address; expected one that begins with https:// or http://", None);
    };
    if rest.is_empty() || rest.starts_with(['/', '?', '#']) {
        return item.wrong("names no host", None);
    }
    if rest.contains(|character: char| character.is_whitespace() || character.is_control()) {
        return item.wrong("has a space or a control character in it", None);
    }
    Some(text.to_owned())
}

fn watch(section: &Section<'_, '_>, source: &Source) -> Option<Watch> {
    let section = section.clone().with_keys(&WATCH, |_| None);
    let paths = section.require("paths").and_then(|item| {
        let items = item.list("a list of paths")?;
        if items.is_empty() {
            return item.wrong("is empty; expected at least one path", None);
        }
        items.iter().map(Item::path).collect()
    });
    let command = section.require("command").and_then(|item| item.program());
    let directory = section.get("directory").and_then(|item| item.path());
    let agent = section.get("agent").and_then(|item| item.name_text("agent"));
    let timeout = section.get("timeout_ms").and_then(|item| item.duration()).unwrap_or(DEFAULT_TIMEOUT);
    Some(Watch { paths: paths?, command: command?, directory, agent, timeout, source: source.clone() })
}

fn channels(item: &Item<'_, '_>) -> Option<Channels> {
    let section = item.section("a table")?.with_keys(&CHANNELS, |_| None);
    Some(Channels { enabled: section.get("enabled").and_then(|item| item.boolean()).unwrap_or_default() })
}

fn channel_servers(root: &Section<'_, '_>, source: &Source) -> Vec<ChannelEntry> {
    unique(root, "channel", "name");
    let servers = tables(root, "channel", |section| channel_server(section, source));
    if servers.len() > MAX_CHANNELS
        && let Some(item) = root.get("channel")
    {
        return item
            .wrong(format!("has {} tables; {MAX_CHANNELS} are possible", servers.len()), None)
            .unwrap_or_default();
    }
    servers
}

fn channel_server(section: &Section<'_, '_>, source: &Source) -> Option<ChannelEntry> {
    let section = section.clone().with_keys(&CHANNEL, |_| None);
    let name = section.require("name").and_then(|item| item.name_text("name"));
    let command = section.require("command").and_then(|item| item.program());
    let to = section.require("to").and_then(|item| item.name_text("agent"));
    let allow = section.get("allow").and_then(|item| item.list("a list of senders")).unwrap_or_default();
    let allow = allow.iter().filter_map(|item| item.name_text("sender")).collect();
    let may_answer = section.get("may_answer").and_then(|item| item.boolean()).unwrap_or_default();
    Some(ChannelEntry { name: name?, command: command?, to: to?, allow, may_answer, source: source.clone() })
}

/// Records a problem for each id or name that an earlier table uses.
fn unique(root: &Section<'_, '_>, name: &str, key: &str) {
    let Some(item) = root.get(name) else { return };
    let DeValue::Array(tables) = item.value() else { return };
    let mut seen: Vec<&str> = Vec::new();
    for (id, span) in tables.iter().filter_map(|table| {
        let (_, id) = table.get_ref().as_table()?.iter().find(|(own, _)| own.get_ref() == key)?;
        Some((id.get_ref().as_str()?, id.span()))
    }) {
        if seen.contains(&id) {
            item.page.wrong(
                &span,
                format!("{name}.{key} {id:?} is used twice; each {key} must be unique"),
                None,
            );
        }
        seen.push(id);
    }
}

fn answers(item: &Item<'_, '_>) -> Option<Answers> {
    let section = item.section("a table")?.with_keys(&ANSWERS, |_| None);
    Some(Answers { scripts: section.get("scripts").and_then(|item| item.boolean()).unwrap_or_default() })
}

fn tmux(item: &Item<'_, '_>) -> Option<Tmux> {
    let section = item.section("a table")?.with_keys(&TMUX, |_| None);
    let one_pane = section.get("one_pane").and_then(|item| item.word());
    Some(Tmux { one_pane: one_pane.unwrap_or_default() })
}

/// Reads a table of strings. Its keys are not checked here, but by a [`TableRule`](crate::TableRule).
fn texts(item: &Item<'_, '_>) -> BTreeMap<String, String> {
    let Some(section) = item.section("a table of strings") else { return BTreeMap::new() };
    section.items().filter_map(|(key, item)| Some((key.to_owned(), item.text()?.to_owned()))).collect()
}
