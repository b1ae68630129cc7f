//! The catalogue of sources, row by row.

use super::*;

fn about(source: &str, subject: &str, text: &str) -> Observation {
    Observation { subject: Some(subject.to_owned()), ..Observation::new(source, text) }
}

fn ended(source: &str) -> Observation {
    Observation { active: false, ..Observation::new(source, "") }
}

/// The changes of toasts, as short words.
fn words(sources: &mut Sources, observation: &Observation) -> Vec<String> {
    let changes = sources.observe(observation).unwrap().into_iter();
    changes
        .filter_map(|change| match change {
            ToastChange::Add(toast) => Some(format!("+{}", toast.key)),
            ToastChange::Remove(key) => Some(format!("-{key}")),
            ToastChange::Indicator { key, text } => Some(format!("={key}:{text}")),
            ToastChange::Notify(_) => None,
        })
        .collect()
}

/// Key, priority and time of every row of the catalogue, as documents list them.
#[test]
fn every_row_of_the_catalogue() {
    let check = |source: &str, key: &str, priority, seconds| {
        let changes = Sources::default().observe(&about(source, "x", "text")).unwrap();
        let Some(ToastChange::Add(toast)) = changes.first() else { panic!("{source}: {changes:?}") };
        assert_eq!((toast.key.as_str(), toast.priority, toast.timeout.as_secs()), (key, priority, seconds));
        assert_eq!(toast.text(), "text");
    };
    check("rate-limit-warning", "rate-limit-warning", High, 8);
    check("limit-reached", "limit-reached", Immediate, 8);
    check("model-deprecation", "model-deprecation-warning", High, 8);
    check("language-server", "lsp-error-x", Medium, 8);
    check("fast-mode", "fast-mode", High, 8);
    check("auto-mode", "auto-mode-unavailable", High, 8);
    check("model-migration", "model-migration", High, 8);
    check("npm-deprecation", "npm-deprecation", High, 8);
    check("plugin-update", "plugin-autoupdate", Low, 8);
    check("plugin-install", "plugin-install-x", Medium, 8);
    check("mcp-connectivity", "mcp-connectivity", Medium, 8);
    check("install-notes", "install-msg-x", Low, 8);
    check("teammate-shutdown", "teammate-shutdown", High, 8);
    check("settings", "settings-error-x", High, 8);
    check("editor-hint", "external-editor-hint", Immediate, 5);
    check("env-hook", "env-hook", Low, 5);
    assert_eq!(
        words(&mut Sources::default(), &Observation::new("ide-status", "VS Code")),
        ["=ide-status:VS Code"]
    );
    assert_eq!(names().count(), 17);
}

#[test]
fn an_env_hook_that_fails_is_medium_for_eight_seconds() {
    let failed = Observation { error: true, ..Observation::new("env-hook", "direnv failed") };
    let changes = Sources::default().observe(&failed).unwrap();
    let [ToastChange::Add(toast)] = &changes[..] else { panic!("{changes:?}") };
    assert_eq!((toast.priority, toast.timeout.as_secs(), toast.spans[0].colour), (Medium, 8, Error));
}

#[test]
fn a_text_is_shown_again_only_when_it_differs_from_the_last_one() {
    let mut sources = Sources::default();
    for (text, shown) in [("a", true), ("a", false), ("b", true), ("a", true)] {
        let shows = !words(&mut sources, &Observation::new("rate-limit-warning", text)).is_empty();
        assert_eq!(shows, shown, "{text}");
    }
}

#[test]
fn limits_and_models_are_notifications_too_once_and_not_for_each_percent() {
    let mut sources = Sources::default();
    let mut sent = |observation: &Observation| -> Vec<String> {
        let changes = sources.observe(observation).unwrap().into_iter();
        changes
            .filter_map(|change| match change {
                ToastChange::Notify(sent) => Some(format!("{}: {}", sent.title, sent.text)),
                _ => None,
            })
            .collect()
    };
    let near = |percent: u8| Observation::new("rate-limit-warning", format!("{percent}% is used"));
    assert_eq!(sent(&near(80)), ["limit near: 80% is used"]);
    assert_eq!(sent(&near(80)), [""; 0]);
    assert_eq!(sent(&near(97)), [""; 0]);
    sent(&ended("rate-limit-warning"));
    assert_eq!(sent(&near(80)), ["limit near: 80% is used"], "the next week");
    assert_eq!(sent(&Observation::new("model-migration", "a became b")), ["model: a became b"]);
    assert_eq!(sent(&Observation::new("model-migration", "b became a")), ["model: b became a"]);
    let failed = Observation { error: true, ..Observation::new("limit-reached", "over") };
    assert_eq!(sent(&failed), [""; 0], "the turn that failed was told as an error");
    assert_eq!(sent(&Observation::new("fast-mode", "fast")), [""; 0]);
}

#[test]
fn overage_is_shown_once_per_entry() {
    let mut sources = Sources::default();
    let reached = Observation::new("limit-reached", "using extra credits");
    assert_eq!(words(&mut sources, &reached), ["+limit-reached"]);
    assert!(words(&mut sources, &Observation::new("limit-reached", "another text")).is_empty());
    assert!(words(&mut sources, &ended("limit-reached")).is_empty());
    assert_eq!(words(&mut sources, &reached), ["+limit-reached"]);
}

#[test]
fn the_editor_hint_goes_when_its_condition_does() {
    let mut sources = Sources::default();
    let hint = Observation::new("editor-hint", "ctrl-g opens your editor");
    assert!(words(&mut sources, &ended("editor-hint")).is_empty(), "it never was there");
    assert_eq!(words(&mut sources, &hint), ["+external-editor-hint"]);
    assert!(words(&mut sources, &hint).is_empty());
    assert_eq!(words(&mut sources, &ended("editor-hint")), ["-external-editor-hint"]);
    assert_eq!(words(&mut sources, &hint), ["+external-editor-hint"]);
}

#[test]
fn each_language_server_has_its_own_toast() {
    let mut sources = Sources::default();
    assert_eq!(words(&mut sources, &about("language-server", "rust", "crashed")), ["+lsp-error-rust"]);
    assert!(words(&mut sources, &about("language-server", "rust", "crashed")).is_empty(), "looked at again");
    assert_eq!(words(&mut sources, &about("language-server", "go", "crashed")), ["+lsp-error-go"]);
}

#[test]
fn each_agent_has_its_own_conditions_and_all_share_a_toast() {
    let mut sources = Sources::default();
    let fast = |agent: &str| about("fast-mode", agent, &format!("{agent} is in fast mode"));
    assert_eq!(words(&mut sources, &fast("claude-1")), ["+fast-mode"]);
    assert_eq!(words(&mut sources, &fast("claude-2")), ["+fast-mode"]);
    assert!(words(&mut sources, &fast("claude-1")).is_empty(), "it is still so");
    let over = Observation { active: false, ..fast("claude-1") };
    assert!(words(&mut sources, &over).is_empty());
    assert!(words(&mut sources, &fast("claude-2")).is_empty(), "that was another agent");
    assert_eq!(words(&mut sources, &fast("claude-1")), ["+fast-mode"]);
}

#[test]
fn the_ide_is_an_indicator_and_never_a_toast() {
    let mut sources = Sources::default();
    assert_eq!(words(&mut sources, &Observation::new("ide-status", "connected")), ["=ide-status:connected"]);
    assert!(words(&mut sources, &Observation::new("ide-status", "connected")).is_empty());
    assert_eq!(words(&mut sources, &ended("ide-status")), ["=ide-status:"]);
}

#[test]
fn a_start_up_source_shows_once_and_never_in_remote_mode() {
    let mut sources = Sources::default();
    assert_eq!(words(&mut sources, &about("install-notes", "a", "new in 2")), ["+install-msg-a"]);
    assert!(words(&mut sources, &about("install-notes", "a", "another")).is_empty());
    let of = |session: &str, remote: bool, text: &str| Observation {
        session: Some(session.to_owned()),
        remote,
        ..about("install-notes", "a", text)
    };
    assert_eq!(words(&mut sources, &of("one", false, "new in 2")).len(), 1, "a session of its own");
    assert!(words(&mut sources, &of("one", false, "new in 3")).is_empty());
    assert!(words(&mut sources, &of("two", true, "new in 2")).is_empty());
    let fast = Observation { remote: true, ..Observation::new("fast-mode", "on") };
    assert_eq!(words(&mut sources, &fast), ["+fast-mode"]);
}

#[test]
fn the_error_for_an_unknown_source_lists_the_known_ones() {
    let error = Sources::default().observe(&Observation::new("weather", "rain")).unwrap_err();
    assert!(error.to_string().contains("env-hook"), "{error}");
}

#[test]
fn memory_is_bounded() {
    let mut sources = Sources::default();
    for number in 0..10_000 {
        words(&mut sources, &about("plugin-install", &number.to_string(), "installed"));
    }
    assert!(sources.seen.len() <= MAX_SUBJECTS);
}
