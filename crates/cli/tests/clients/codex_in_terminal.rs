//! Codex in a terminal.

use crate::model::{Answer, Model};
use crate::responses::Responses;
use crate::terminal::Terminal;
use crate::world::{SENDER, World};

/// A session with nothing to do, and something for it to do.
fn check_waking(arguments: &[&str], open: impl FnOnce(&mut Terminal)) {
    let model = Model::new(&Responses);
    let Some(world) = World::for_codex(&model) else { return };
    let mut terminal = world.start_in_terminal("codex", arguments);
    open(&mut terminal);
    assert_eq!(model.request().count_new("hello"), 1);
    model.answer(Answer::Text("good morning"));
    world.notified("complete");
    let agent = world.agent();
    for text in ["the build is red", "the build is red"] {
        world.ringer(&["notify", "--from", SENDER, "--to", &agent, text]);
        let woken = model.request();
        let block = format!("<notification source=\"agent:{SENDER}\">\n{text}\n</notification>");
        assert_eq!(woken.count_new(&block), 1, "{}", woken.news());
        assert_eq!(woken.count_new("</notification>"), 1, "nothing is told again: {}", woken.news());
        model.answer(Answer::Text("I will look at it"));
        world.notified("complete");
    }
    assert_eq!(world.kinds(), ["complete"; 3]);
    assert!(!model.has_request(), "each was told once");
    assert_eq!(world.complaints(), "");
}

#[test]
fn an_idle_session_is_woken_through_its_queue() {
    check_waking(&["--no-daemon", "--dangerously-bypass-hook-trust", "hello"], |_| {});
}

#[test]
fn a_session_in_its_daemon_whose_hooks_the_person_trusts_is_woken_as_well() {
    check_waking(&["hello"], |terminal| {
        terminal.until_drawn("hooks are new or changed");
        // It draws its dialog before it reads keys.
        terminal.press_until_drawn("2", "2. Trust all and continue");
        terminal.press("\r");
    });
}
