//! Tests with a real GNU screen: notices pass through it unchanged.

pub(crate) mod session;

use ringer_term::{Method, Multiplexer, SCREEN_PIECE, TerminalEventKind};

use crate::sender_script::{METHODS, SenderScript, Sent, ascii_of, long, mark, short, unicode};
use crate::terminal::Terminal;

use session::{Session, argv};

/// A session with a client attached in a test terminal. It forwards text in order, so text is a mark in the stream.
struct Screen {
    session: Session,
    terminal: Terminal,
    script: SenderScript,
}

impl Screen {
    fn start() -> Self {
        let script = SenderScript::new(&mark("first"));
        let session = Session::prepare(&script);
        let mut terminal = Terminal::run(&argv(&["sh", "script"]), script.path(), &[session.variable()]);
        terminal.wait_for("script", |terminal| terminal.shows("<first>"));
        Self { session, terminal, script }
    }

    /// Makes the script send these bytes, and waits for the mark after them.
    fn send(&mut self, name: &str, bytes: &[u8]) {
        self.script.prepare(name, &[bytes, &mark(name)].concat());
        self.terminal.type_line(name);
        self.terminal.wait_for("mark", |terminal| terminal.shows(&format!("<{name}>")));
    }
}

const LAYERS: [Multiplexer; 1] = [Multiplexer::Screen];

fn check_passes_through(sent: &Sent) {
    let mut screen = Screen::start();
    for method in METHODS {
        screen.send(method.as_str(), &sent.bytes(method, &LAYERS));
    }
    let expected = METHODS.map(|method| sent.arrived(method));
    assert_eq!(screen.terminal.notifications(), expected.each_ref());
}

#[test]
fn a_notice_passes_through() {
    check_passes_through(&short());
}

#[test]
fn a_notice_of_several_pieces_passes_through() {
    for method in METHODS {
        assert!(long().bytes(method, &[]).len() > SCREEN_PIECE, "{method:?}");
    }
    check_passes_through(&long());
}

/// screen keeps only the low byte of each character that passes through: 日 (U+65E5) comes out as å (U+00E5). So only
/// ASCII arrives unchanged, and other text must be sent as base64 where the protocol has it.
#[test]
fn a_notice_in_any_script_passes_through_in_base64() {
    let mut screen = Screen::start();
    screen.send("unicode", &unicode().bytes(Method::Kitty, &LAYERS));
    assert_eq!(screen.terminal.notifications(), [&unicode().arrived(Method::Kitty)]);
}

#[test]
fn a_notice_in_any_script_keeps_its_ascii() {
    let mut screen = Screen::start();
    for method in [Method::Iterm2, Method::Ghostty] {
        screen.send(method.as_str(), &unicode().bytes(method, &LAYERS));
        let arrived = unicode().arrived(method);
        let came = screen.terminal.notifications();
        let came = came.last().expect("a notification");
        assert_eq!(
            (ascii_of(&came.title), ascii_of(&came.body)),
            (ascii_of(&arrived.title), ascii_of(&arrived.body))
        );
    }
}

/// ě is U+011B and ć is U+0107: screen turns these into ESC and BEL, after any sanitiser has run.
#[test]
fn no_character_becomes_a_control() {
    for method in METHODS {
        let mut screen = Screen::start();
        let hostile = Sent::new("hostile", "ě]0;gotchać".to_owned());
        screen.send(method.as_str(), &hostile.bytes(method, &LAYERS));
        assert!(
            !screen.terminal.has(&TerminalEventKind::Title("gotcha".to_owned())),
            "{method:?} set the title"
        );
        assert_eq!((screen.terminal.notifications().len(), screen.terminal.bells()), (1, 0), "{method:?}");
    }
}

/// The window in front: `vbell off` forwards the bell.
#[test]
fn a_bell_in_the_window_in_front_rings_the_terminal() {
    let mut screen = Screen::start();
    screen.send("bell", &short().bytes(Method::TerminalBell, &LAYERS));
    assert_eq!(screen.terminal.bells(), 1);
}

/// A hidden window: screen prints a message and flags the window with `!`. The message comes first and can be awaited.
#[test]
fn a_bell_in_a_hidden_window_sets_its_flag() {
    let mut screen = Screen::start();
    screen.script.prepare("ready", &mark("second"));
    screen.session.run(&["-X", "screen", "sh", "script"]);
    screen.terminal.wait_for("second window", |terminal| terminal.shows("<second>"));
    assert!(!screen.session.windows().contains('!'));
    screen.script.prepare("bell", &short().bytes(Method::TerminalBell, &LAYERS));
    screen.session.run(&["-p", "0", "-X", "stuff", "bell^M"]);
    screen.terminal.wait_for("message", |terminal| terminal.shows("bell in window 0"));
    let windows = screen.session.windows();
    assert!(windows.starts_with("0-!"), "{windows}");
}
