//! The inbox on the screen, with what agents of another machine ask.

use test_support::until;

use super::machines::linked;
use super::repositories::hook;
use crate::hub::dialogs::{decision, until_hooks_wait};
use crate::hub::inbox::Screen;
use crate::hub::tmux::Tmux;

#[test]
fn what_an_agent_of_another_machine_asks_is_answered_in_place() {
    let laptop = linked();
    let hook = laptop.ask_permission("make deploy");
    until_hooks_wait(&laptop.far, 1);
    until("it needs the person here", || !laptop.near.list(&[]).is_empty());
    let tmux = Tmux::start(&laptop.near, "");
    let screen = Screen::open(&tmux);
    screen.until("make deploy");
    // Not without the person's leave.
    screen.press(&["a"]);
    screen.until("It cannot be answered here: what agents on box ask may not be");
    screen.leave("It cannot be answered here");
    laptop.allow_answers();
    screen.press(&["a"]);
    screen.until("[1] Allow once");
    screen.press(&["3"]);
    screen.until("enter send");
    screen.press(&["not", "Space", "today", "Enter"]);
    let decided = decision(hook);
    assert_eq!(decided["behavior"], "deny", "{decided}");
    assert!(decided["message"].as_str().is_some_and(|text| text.contains("not today")), "{decided}");
}

#[test]
fn what_agents_of_another_machine_do_is_followed() {
    let laptop = linked();
    let tmux = Tmux::start(&laptop.near, "");
    let screen = Screen::open(&tmux);
    screen.until("No agent has reported yet");
    // No message comes with it.
    hook(&laptop.far, "SessionStart");
    screen.until("box:repository");
    hook(&laptop.far, "UserPromptSubmit");
    screen.until("working");
    laptop.near.set("[notify]\npopup = \"off\"\n");
    screen.until_not("box:repository");
}
