//! Policy hooks, as people write them and as they go wrong.

use std::path::PathBuf;
use std::time::Duration;

use ringer_core::policy::{AgentContext, HookAnswer, HookInput, HookInputContext, HookInputText, HookPatch};
use ringer_deliver::HookProgram;
use test_support::{DEADLINE, in_time};

fn hook(script: &str) -> HookProgram {
    HookProgram {
        id: "test".to_owned(),
        argv: vec!["sh".to_owned(), "-c".to_owned(), script.to_owned()],
        directory: PathBuf::from("/"),
        timeout: DEADLINE,
    }
}

fn hook_input(body: &str) -> HookInput {
    let text = HookInputText {
        workspace_id: "w".to_owned(),
        surface_id: Some("s".to_owned()),
        title: "$(touch /tmp/never) \"quoted\"".to_owned(),
        subtitle: "sub".to_owned(),
        body: body.to_owned(),
    };
    HookInput::new(text, HookInputContext::default(), AgentContext::default())
}

/// What hooks read after the hook has answered.
async fn patched(script: &str, body: &str) -> HookInput {
    let mut hook_input = hook_input(body);
    match in_time("an answer", hook(script).run(&hook_input)).await {
        HookAnswer::Patched(patch) => hook_input.apply(patch),
        HookAnswer::Failed(why) => panic!("{why}"),
    }
    hook_input
}

async fn failure(hook: HookProgram) -> String {
    match in_time("an answer", hook.run(&hook_input("b"))).await {
        HookAnswer::Failed(why) => why,
        HookAnswer::Patched(patch) => panic!("{patch:?}"),
    }
}

#[tokio::test]
async fn a_hook_reads_both_ways_and_changes_what_it_names() {
    let script = r#"cat > /dev/null
        printf '{"notification":{"body":"%s %s %s"},"effects":{"sound":false}}' \
            "$RINGER_NOTIFICATION_SUBTITLE" "$CMUX_NOTIFICATION_SURFACE_ID" "$RINGER_NOTIFICATION_WORKSPACE_ID""#;
    let changed = patched(script, "b").await;
    assert_eq!(changed.notification.body, "sub s w");
    assert!(!changed.effects.sound && changed.effects.desktop);

    let echo = r#"test "$(cat)" = "$RINGER_NOTIFICATION_POLICY_JSON" && test "$CMUX_NOTIFICATION_BODY" = "b
c" && echo '{"stop":true}'"#;
    let answer = in_time("an answer", hook(echo).run(&hook_input("b\nc"))).await;
    assert!(matches!(answer, HookAnswer::Patched(patch) if patch.stop));
}

#[tokio::test]
async fn saying_nothing_changes_nothing() {
    for script in ["true", "echo", "printf ' \\n\\t'"] {
        let answer = in_time("an answer", hook(script).run(&hook_input("b"))).await;
        assert_eq!(answer, HookAnswer::Patched(HookPatch::default()), "{script}");
    }
}

#[tokio::test]
async fn a_large_notification_arrives_whole_on_stdin_and_cut_in_the_environment() {
    let body = format!("{}\0", "é".repeat(300 * 1024));
    let expected = serde_json::to_vec(&hook_input(&body)).expect("JSON").len();
    let script = r#"printf '{"notification":{"title":"%s","subtitle":"%s","body":"%s"}}' \
        "$(wc -c | tr -d ' ')" "$(printf %s "$RINGER_NOTIFICATION_BODY" | wc -c | tr -d ' ')" \
        "${RINGER_NOTIFICATION_POLICY_JSON-absent}""#;
    let read = patched(script, &body).await.notification;
    assert_eq!(
        (read.title.as_str(), read.subtitle.as_str(), read.body.as_str()),
        (expected.to_string().as_str(), "102400", "absent")
    );
}

#[tokio::test]
async fn failures_are_told_in_words() {
    let short = |script| HookProgram { timeout: Duration::from_secs(5), ..hook(script) };
    for (hook, expected) in [
        (hook("printf 'no \\033[31mconfig\\n' >&2; exit 4"), "exit status: 4: no [31mconfig"),
        (hook("kill -9 $$"), "signal: 9 (SIGKILL)"),
        (short("echo busy >&2; exec sleep 600"), "no end after 5s: busy"),
        (short("trap '' TERM; while :; do sleep 600; done"), "no end after 5s"),
        (hook("exec yes '{}'"), "too much output"),
        (hook("echo 'all good'"), "its answer is no patch: it is not a JSON object"),
    ] {
        assert_eq!(failure(hook).await, expected);
    }
    for lie in [r#"{"effects":{"sound":"no"}}"#, r#"{"stop":1}"#, "[]", r#"{"stop":true"#, r"{} {}"] {
        let why = failure(hook(&format!("echo '{lie}'"))).await;
        assert!(why.starts_with("its answer is no patch"), "{lie}: {why}");
    }
    let missing = HookProgram { argv: vec!["/nowhere/triage".to_owned()], ..hook("") };
    assert!(failure(missing).await.starts_with("cannot be started: No such file"));
}
