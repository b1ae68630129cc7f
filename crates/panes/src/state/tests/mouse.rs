//! The mouse: for programs, for selections, for borders and for the sidebar.

use super::*;

const LEFT: u16 = 0;
const DRAG: u16 = 32;
const UP: u16 = 64;
const DOWN: u16 = 65;

#[test]
fn a_program_gets_the_mouse_in_its_own_cells() {
    let mut session = Session::with_shell();
    let pane = session.focused(1);
    session.output(&pane, "\x1b[?1002h\x1b[?1006h");
    // The first cell inside of the border.
    assert_eq!(written(&session.mouse(1, LEFT, (17, 1), 'M'), &pane), "\x1b[<0;1;1M");
    assert_eq!(written(&session.mouse(1, DRAG, (19, 2), 'M'), &pane), "\x1b[<32;3;2M");
    // Held, it is told at the edge when it is outside.
    assert_eq!(written(&session.mouse(1, DRAG, (2, 29), 'M'), &pane), "\x1b[<32;1;26M");
    assert_eq!(written(&session.mouse(1, LEFT, (18, 1), 'm'), &pane), "\x1b[<0;2;1m");
    assert_eq!(written(&session.mouse(1, UP, (18, 1), 'M'), &pane), "\x1b[<64;2;1M");
    assert_eq!(written(&session.mouse(1, LEFT, (16, 5), 'M'), &pane), "", "the border is not its own");
    session.output(&pane, "\x1b[?1002l");
    assert_eq!(written(&session.mouse(1, LEFT, (17, 1), 'M'), &pane), "");
}

#[test]
fn a_click_on_another_pane_gives_it_the_keys_and_is_for_it() {
    let (mut session, left, right) = Session::with_two();
    session.output(&left, "\x1b[?1000h\x1b[?1006h");
    let effects = session.mouse(1, LEFT, (20, 3), 'M');
    assert_eq!((session.focused(1), written(&effects, &left).as_str()), (left, "\x1b[<0;4;3M"));
    session.mouse(1, UP, (70, 3), 'M');
    assert_ne!(session.focused(1), right, "the wheel does not");
}

#[test]
fn what_is_dragged_over_is_copied() {
    let mut session = Session::with_shell();
    let pane = session.focused(1);
    session.output(&pane, "hello world");
    session.mouse(1, LEFT, (17, 1), 'M');
    session.mouse(1, DRAG, (20, 1), 'M');
    let effects = session.mouse(1, LEFT, (21, 1), 'm');
    assert_eq!(copied(&effects), ["hello"]);
    assert!(session.drawn(1).cell(17, 1).unwrap().style.reverse, "it stays marked");
    assert!(session.footer(1).contains("copied"));
    session.input(1, "a");
    assert!(!session.drawn(1).cell(17, 1).unwrap().style.reverse);
}

#[test]
fn two_clicks_copy_a_word_and_three_a_line() {
    let mut session = Session::with_shell();
    let pane = session.focused(1);
    session.output(&pane, "hello world");
    let mut click = || {
        session.mouse(1, LEFT, (24, 1), 'M');
        copied(&session.mouse(1, LEFT, (24, 1), 'm')).join("|")
    };
    assert_eq!([click(), click(), click()], ["", "world", "hello world\n"]);
    session.wait(1000);
    session.mouse(1, LEFT, (24, 1), 'M');
    assert_eq!(copied(&session.mouse(1, LEFT, (24, 1), 'm')), Vec::<&str>::new(), "later it is one click");
}

#[test]
fn the_wheel_scrolls_back_or_is_keys_on_the_alternate_screen() {
    let mut session = Session::with_shell();
    let pane = session.focused(1);
    session.output(&pane, &"line\r\n".repeat(100));
    session.mouse(1, UP, (20, 3), 'M');
    assert_eq!(session.state.pane(&pane).unwrap().emulator.scrolled(), 3);
    session.mouse(1, DOWN, (20, 3), 'M');
    assert_eq!(session.state.pane(&pane).unwrap().emulator.scrolled(), 0);
    session.mouse(1, UP, (20, 3), 'M');
    assert_eq!(written(&session.input(1, "a"), &pane), "a");
    assert_eq!(session.state.pane(&pane).unwrap().emulator.scrolled(), 0, "a key shows the end");
    session.output(&pane, "\x1b[?1049h");
    assert_eq!(written(&session.mouse(1, UP, (20, 3), 'M'), &pane), "\x1b[A\x1b[A\x1b[A");
    session.output(&pane, "\x1b[?1h");
    assert_eq!(written(&session.mouse(1, DOWN, (20, 3), 'M'), &pane), "\x1bOB\x1bOB\x1bOB");
}

#[test]
fn a_selection_of_a_window_that_is_larger_than_the_pane_ends_at_its_edge() {
    let mut session = Session::with_shell();
    let pane = session.focused(1);
    session.output(&pane, "hello");
    session.attach(2, 60, 12);
    assert_eq!(session.size(&pane), (58, 8));
    session.mouse(1, LEFT, (17, 1), 'M');
    session.input(2, "x");
    session.mouse(1, DRAG, (95, 25), 'M');
    session.input(2, "x");
    session.mouse(1, LEFT, (99, 29), 'm');
    session.mouse(1, LEFT, (99, 27), 'M');
}

#[test]
fn the_sidebar_is_clicked_where_it_is_drawn() {
    let (mut session, left, right) = Session::with_two();
    session.prefix(1, "c");
    let other = session.focused(1);
    let lines: Vec<String> =
        session.drawn(1).text().lines().map(|line| line.chars().take(15).collect()).collect();
    assert_eq!(
        lines[..5].iter().map(|line| line.trim()).collect::<Vec<_>>(),
        ["api", "api", "api", "api 2", "api"]
    );
    session.mouse(1, LEFT, (3, 1), 'M');
    assert_eq!(session.focused(1), left);
    session.mouse(1, LEFT, (3, 3), 'M');
    assert_eq!(session.focused(1), other);
    session.mouse(1, LEFT, (3, 2), 'M');
    assert_eq!(session.focused(1), right);
    session.mouse(1, LEFT, (3, 20), 'M');
    assert_eq!(session.focused(1), right);
}

#[test]
fn a_click_on_the_footer_is_not_for_what_the_sidebar_has_no_room_for() {
    let mut session = Session::new();
    session.attach(1, 100, 9);
    for _ in 0..4 {
        session.prefix(1, "c");
    }
    session.prefix(1, "1");
    let first = session.focused(1);
    session.mouse(1, LEFT, (3, 8), 'M');
    assert_eq!(session.focused(1), first);
}

#[test]
fn a_border_is_dragged() {
    let (mut session, left, right) = Session::with_two();
    // The left pane ends at column 57, the right one begins at 58.
    session.mouse(1, LEFT, (58, 10), 'M');
    session.mouse(1, DRAG, (68, 12), 'M');
    assert_eq!((session.area(1, &left).width, session.area(1, &right).width), (52, 32));
    session.mouse(1, DRAG, (400, 12), 'M');
    assert_eq!(session.area(1, &right).width, 12, "the least that a pane has");
    let effects = session.mouse(1, DRAG, (48, 12), 'M');
    assert_eq!((session.area(1, &left).width, session.size(&left)), (32, (30, 26)));
    assert!(effects.iter().any(|effect| matches!(effect, Effect::Resize { .. })), "{effects:?}");
    session.mouse(1, LEFT, (48, 12), 'm');
    session.mouse(1, DRAG, (60, 12), 'M');
    assert_eq!(session.area(1, &left).width, 32, "the button is up");
    session.prefix(1, "-");
    let below = session.focused(1);
    session.mouse(1, LEFT, (60, 13), 'M');
    session.mouse(1, DRAG, (60, 8), 'M');
    assert_eq!(session.area(1, &below), Area::new(48, 9, 52, 19));
}
