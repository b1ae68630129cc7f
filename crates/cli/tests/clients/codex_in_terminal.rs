//! Codex in a terminal.

use crate::environment::ClientEnvironment;
use crate::model::Model;
use crate::responses::Responses;
use crate::scenarios;
use crate::terminal::Terminal;

/// A session with nothing to do, and something for it to do.
fn check_waking(arguments: &[&str], open: impl FnOnce(&mut Terminal)) {
    let model = Model::new(&Responses);
    let environment = ClientEnvironment::for_codex(&model);
    let mut terminal = environment.start_in_terminal("codex", arguments);
    open(&mut terminal);
    scenarios::check_waking(&environment, &model, |_| {});
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn an_idle_session_is_woken_through_its_queue() {
    check_waking(&["--no-daemon", "--dangerously-bypass-hook-trust", "hello"], |_| {});
}

#[test]
#[ignore = "needs real clients: cargo xtask test --clients"]
fn a_session_in_its_daemon_whose_hooks_the_person_trusts_is_woken_as_well() {
    check_waking(&["hello"], |terminal| {
        terminal.until_drawn("hooks are new or changed");
        // It draws its dialog before it reads keys.
        terminal.press_until_drawn("2", "2. Trust all and continue");
        terminal.press("\r");
    });
}
