//! Generated files: any bytes, and any valid settings.

use std::path::{Path, PathBuf};
use std::time::Duration;

use proptest::prelude::*;
use ringer_core::message::ShownKind;
use ringer_core::policy::{OnFailure, PopupMode, RateLimit};
use ringer_term::Channel;

use super::super::types::Words;
use super::super::*;
use super::{PATH, read, uncommented};

fn words_of<T: Words + std::fmt::Debug>() -> impl Strategy<Value = T> {
    prop::sample::select(T::words().into_iter().map(|(_, value)| value).collect::<Vec<_>>())
}

fn commands(least: usize) -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec("[a-zA-Z0-9 \"'äß\n\\\\-]{1,8}", least..4)
}

fn matchers() -> impl Strategy<Value = Matcher> {
    (prop::option::of("[a-z]{1,8}"), prop::option::of("[a-z0-9]{8}"), words_of::<ShownKind>())
        .prop_map(|(agent, scope, kind)| Matcher { agent, scope, kind: Some(kind) })
}

fn notifies() -> impl Strategy<Value = Notify> {
    let sounds = prop_oneof![
        Just(SoundSetting::Off),
        Just(SoundSetting::Theme),
        "/[a-z ]{1,9}".prop_map(|path| SoundSetting::File(path.into()))
    ];
    let rates = prop::sample::select(vec![
        None,
        RateLimit::parse("1/s"),
        RateLimit::parse("7/min"),
        RateLimit::parse("9/h"),
    ]);
    let spans = || (0..=86_400_000u64).prop_map(Duration::from_millis);
    let quiet = prop::collection::vec(prop::sample::select(vec!["22:00-07:00", "1:05 - 2:00"]), 0..3);
    (
        (words_of::<PopupMode>(), words_of::<TitleMark>(), spans(), prop::option::of(spans())),
        sounds,
        commands(0),
        any::<[bool; 3]>(),
        quiet,
        prop::collection::vec(matchers(), 0..3),
        rates,
    )
        .prop_map(
            |(
                (popup, title_mark, min_turn, idle_reminder),
                sound,
                command,
                [ring, reorder, subagents],
                quiet,
                mute,
                rate_limit,
            )| {
                let quiet_hours = quiet.into_iter().filter_map(QuietHours::parse).collect();
                Notify {
                    popup,
                    sounds: vec![
                        (ShownKind::Permission, sound.clone()),
                        (ShownKind::Stuck, SoundSetting::Theme),
                    ],
                    sound,
                    command,
                    ring,
                    title_mark,
                    reorder,
                    quiet_hours,
                    mute,
                    rate_limit,
                    subagents,
                    min_turn,
                    idle_reminder,
                    escalate_after: min_turn,
                    away_after: idle_reminder.filter(|span| !span.is_zero()),
                    ..Notify::default()
                }
            },
        )
}

fn relays() -> impl Strategy<Value = RelayEntry> {
    let relays = (any::<bool>(), prop::option::of("[a-z~/]{1,8}"), commands(1), any::<(bool, bool)>());
    relays.prop_map(|(is_ssh, program, command, (may_answer, may_reach_lead))| {
        let (ssh, program, command) =
            if is_ssh { (Some("me@box.lan".to_owned()), program, Vec::new()) } else { (None, None, command) };
        RelayEntry { ssh, program, command, may_answer, may_reach_lead, ..RelayEntry::default() }
    })
}

fn entry<P: Into<PathBuf>>((path, name): (P, String)) -> RepositoryEntry {
    RepositoryEntry { path: path.into(), name }
}

fn configs() -> impl Strategy<Value = Config> {
    let source = || Source { origin: Origin::User, path: PATH.into() };
    let times = || (1..=86_400_000u64).prop_map(Duration::from_millis);
    let hooks = (commands(1), times(), words_of::<OnFailure>(), any::<bool>()).prop_map(
        move |(command, timeout, on_failure, enabled)| HookEntry {
            id: String::new(),
            command,
            timeout,
            on_failure,
            enabled,
            source: source(),
            scope: None,
        },
    );
    let kinds = prop::collection::vec(words_of::<ShownKind>(), 0..3);
    let kinds = (prop::sample::select(vec!["slack", "json"]), words_of::<WebhookWhen>(), kinds);
    let webhooks =
        (kinds, prop::option::of("/[a-z]{1,5}")).prop_map(|((kind, when, kinds), secret)| WebhookEntry {
            id: None,
            kind,
            url: "https://h/x?y#z".into(),
            secret_file: secret.map(PathBuf::from),
            kinds,
            when,
        });
    let paths = prop::collection::vec("/[a-z ]{1,9}".prop_map(PathBuf::from), 1..3);
    let watches =
        (paths, commands(1), prop::option::of("/[a-z]{1,5}"), prop::option::of("[a-z]{1,5}"), times())
            .prop_map(move |(paths, command, directory, agent, timeout)| Watch {
                paths,
                command,
                directory: directory.map(PathBuf::from),
                agent,
                timeout,
                source: source(),
            });
    let senders = prop::collection::vec("[a-z@]{1,5}", 0..3);
    let channels = (commands(1), "[a-z]{1,5}", senders, any::<bool>());
    let channels = channels.prop_map(move |(command, to, allow, may_answer)| ChannelEntry {
        name: String::new(),
        command,
        to,
        allow,
        may_answer,
        source: source(),
    });
    let many = 0..3usize;
    let texts = prop::collection::btree_map("[a-z .\"]{0,5}", "[a-zä \n]{0,5}", many.clone());
    (
        (words_of::<Channel>(), times(), notifies(), words_of::<OnePane>()),
        (
            any::<bool>(),
            prop::collection::vec(channels, many.clone()),
            prop::collection::vec(relays(), many.clone()),
            prop::collection::btree_map("/[a-z ]{1,9}", "[a-z0-9][a-z._-]{0,5}", many.clone()),
        ),
        prop::collection::vec(hooks, many.clone()),
        prop::collection::vec(webhooks, many.clone()),
        prop::collection::vec(watches, many),
        texts,
    )
        .prop_map(
            |(
                (preferred_channel, stuck_threshold, notify, one_pane),
                (enabled, mut channel_servers, mut relays, repositories),
                mut hooks,
                webhooks,
                watches,
                keys,
            )| {
                for (index, channel) in channel_servers.iter_mut().enumerate() {
                    channel.name = format!("channel {index}");
                }
                for (index, relay) in relays.iter_mut().enumerate() {
                    relay.name = Some(format!("box-{index}"));
                }
                for (index, hook) in hooks.iter_mut().enumerate() {
                    hook.id = format!("hook {index}");
                }
                Config {
                    preferred_channel,
                    stuck_threshold,
                    notify,
                    hooks,
                    webhooks,
                    watches,
                    channels: Channels { enabled },
                    channel_servers,
                    theme: keys.clone(),
                    tmux: Tmux { one_pane },
                    relays,
                    repositories: repositories.into_iter().map(entry).collect(),
                    keys,
                    path: PATH.into(),
                    ..Config::default()
                }
            },
        )
}

/// Lines that are nearly right, which find more than noise does.
fn nearly() -> impl Strategy<Value = String> {
    let lines: Vec<String> = uncommented().lines().map(str::to_owned).collect();
    let line = (prop::sample::select(lines), prop::option::of(0..40usize), "[\\[\\]{}\"=#ä\\\\ \u{1b}]{0,2}");
    let line = line.prop_map(|(line, cut, noise)| match cut {
        Some(cut) => format!("{}{noise}", line.chars().take(cut).collect::<String>()),
        None => line,
    });
    prop::collection::vec(line, 0..20).prop_map(|lines| lines.join("\n"))
}

proptest! {
    #[test]
    fn no_text_is_too_strange(text in prop_oneof![any::<String>(), "[\\[\\]{}=\"'\n #a-c.,0-9_]{0,80}", nearly()]) {
        for result in [read(&text).err(), parse_repository(Path::new("x"), None, &text).err()] {
            for error in result.map(|errors| errors.0).unwrap_or_default() {
                let lines = text.split('\n').count();
                prop_assert!((1..=lines).contains(&error.line) && error.column >= 1, "{}", error);
                prop_assert!(!error.message.contains(char::is_control), "{:?}", error.message);
            }
        }
    }

    #[test]
    fn what_is_written_reads_the_same(config in configs()) {
        let text = config.to_toml().unwrap();
        prop_assert_eq!(read(&text).map_err(|errors| format!("{errors}\n{text}")), Ok(config));
    }
}
