//! Arbitrary settings, of a repository and of the person: each problem is one short line at a place that is in the file, and
//! what a repository may set means the same in the person's own file. What the person is asked to trust is all shown.

use std::path::Path;

use ringer_config::{ConfigErrors, MAX_PROBLEMS, Rules, Trustable, WebhookRule, parse, parse_repository};

use crate::input::assert_printable;

const HOME: &str = "/people/ada";

pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let path = Path::new("/people/ada/repository/.ringer.toml");
    let webhooks = WebhookRule { names: vec!["ntfy", "slack", "discord", "json"], ..WebhookRule::default() };
    let rules = Rules { webhooks, ..Rules::default() };
    let own = parse(path, Some(Path::new(HOME)), text, &rules);
    let repository = parse_repository(path, Some(Path::new(HOME)), text);
    [own.as_ref().err(), repository.as_ref().err()]
        .into_iter()
        .flatten()
        .for_each(|errors| check(errors, text));
    if let Ok(own) = &own {
        let written = own.to_toml().expect("settings can be written");
        let again = parse(path, Some(Path::new(HOME)), &written, &rules);
        assert_eq!(again.as_ref(), Ok(own), "{written}");
    }
    let Ok(repository) = repository else { return };
    let own = own.expect("the person may set what a repository may");
    assert_eq!(own.notify.mute, repository.mute);
    let digests = |hooks: &[ringer_config::HookEntry], watches: &[ringer_config::Watch]| {
        let hooks = hooks.iter().map(Trustable::digest);
        hooks.chain(watches.iter().map(Trustable::digest)).collect::<Vec<_>>()
    };
    assert_eq!(digests(&own.hooks, &own.watches), digests(&repository.hooks, &repository.watches));
    let asked = repository.hooks.iter().map(Trustable::what);
    asked.chain(repository.watches.iter().map(Trustable::what)).for_each(|what| assert_printable(&what));
}

fn check(errors: &ConfigErrors, text: &str) {
    assert!((1..=MAX_PROBLEMS).contains(&errors.0.len()));
    for error in &errors.0 {
        // One more: after the last line, and after the last character of a line.
        let line = text.split('\n').nth(error.line - 1).expect("a line of the file");
        assert!((1..=line.chars().count() + 1).contains(&error.column), "{error}");
        assert_printable(&error.to_string());
        assert_printable(error.hint.as_deref().unwrap_or_default());
    }
}
