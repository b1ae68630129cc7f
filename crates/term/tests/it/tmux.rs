//! Tests with a real tmux: notices pass through it unchanged, and it behaves as its answers say.

pub(crate) mod server;

use ringer_term::outer::tmux_query;
use ringer_term::{
    Method, Multiplexer, OuterTerminal, Passthrough, TerminalEventKind, TerminalIdentity, TerminalProgram,
    Version, tmux_text,
};

use crate::sender_script::{METHODS, SenderScript, Sent, long, short, unicode};
use crate::terminal::Terminal;

use server::{Server, argv};

/// A tmux server with a client attached in a test terminal. The terminal gets the title of the pane, so a title is a mark in
/// the stream that the scanner sees. Dropped in this order: the server ends before its socket goes with the script.
struct Tmux {
    server: Server,
    terminal: Terminal,
    script: SenderScript,
}

impl Tmux {
    fn start(options: &str) -> Self {
        let script = SenderScript::new(&mark("ready"));
        let titles = "set -g set-titles on\nset -g set-titles-string '#T'\n";
        let server = Server::prepare(&script, &format!("{titles}{options}"));
        let mut terminal = Terminal::run(&argv(&["sh", "script"]), script.path(), &[server.variable()]);
        terminal
            .wait_for("first title", |terminal| terminal.sent_its_name() && terminal.has(&title("ready")));
        server.wait_for_client();
        let mut tmux = Self { server, terminal, script };
        // tmux redraws the window after the answers and the client's size, and passes nothing through until then. This is
        // typed after both, and titles are sent when a window is drawn, so a title shows that the redraw is done.
        tmux.send("drawn", b"");
        tmux
    }

    /// Makes the script send these bytes, and waits for the mark after them.
    fn send(&mut self, name: &str, bytes: &[u8]) {
        self.script.prepare(name, &[bytes, &mark(name)].concat());
        self.terminal.type_line(name);
        self.terminal.wait_for("mark", |terminal| terminal.has(&title(name)));
    }

    /// Creates a second window, which no client shows.
    fn hidden_window(&self) -> String {
        let answer = self.server.answer(&["new-window", "-d", "-P", "-F", "#{pane_id}", "sh", "script"]);
        answer.trim().to_owned()
    }

    /// Makes the script in the hidden window send these bytes and a bell, and waits for the bell: tmux also rings it in the
    /// terminal, after all earlier output.
    fn send_hidden(&mut self, pane: &str, bytes: &[u8]) {
        self.script.prepare("hidden", &[bytes, b"\x07"].concat());
        let before = self.terminal.bells();
        self.server.answer(&["send-keys", "-t", pane, "hidden", "Enter"]);
        self.terminal.wait_for("bell", |terminal| terminal.bells() > before);
    }

    /// Returns tmux's answer to the query about the outer terminal.
    fn outer(&self, pane: Option<&str>) -> OuterTerminal {
        let query = tmux_query(pane);
        let query: Vec<&str> = query.iter().map(String::as_str).collect();
        OuterTerminal::from_tmux(&self.server.answer(&query)).unwrap()
    }
}

fn mark(name: &str) -> Vec<u8> {
    format!("\x1b]2;{name}\x1b\\").into_bytes()
}

fn title(name: &str) -> TerminalEventKind {
    TerminalEventKind::Title(name.to_owned())
}

const LAYERS: [Multiplexer; 1] = [Multiplexer::Tmux];

fn check_passes_through(sent: &Sent) {
    let mut tmux = Tmux::start("set -g allow-passthrough on");
    for method in METHODS {
        tmux.send(method.as_str(), &sent.bytes(method, &LAYERS));
    }
    let expected = METHODS.map(|method| sent.arrived(method));
    assert_eq!(tmux.terminal.notifications(), expected.each_ref());
}

#[test]
fn a_notice_passes_through() {
    check_passes_through(&short());
}

#[test]
fn a_long_notice_passes_through() {
    check_passes_through(&long());
}

#[test]
fn a_notice_in_any_script_passes_through() {
    check_passes_through(&unicode());
}

#[test]
fn nothing_passes_with_passthrough_off() {
    let mut tmux = Tmux::start("set -g allow-passthrough off");
    for method in METHODS {
        // The mark after it arrived, so the notice itself will not.
        tmux.send(method.as_str(), &short().bytes(method, &LAYERS));
    }
    assert!(tmux.terminal.notifications().is_empty());
}

#[test]
fn a_bell_in_a_hidden_window_sets_its_flag() {
    let tmux = Tmux::start("");
    let pane = tmux.hidden_window();
    let flags = || tmux.server.answer(&["list-windows", "-F", "#{window_index}#{window_bell_flag}"]);
    assert_eq!(flags(), "00\n10\n");
    tmux.script.prepare("hidden", &short().bytes(Method::TerminalBell, &LAYERS));
    tmux.server.answer(&["send-keys", "-t", &pane, "hidden", "Enter"]);
    tmux.server.wait_for("bell");
    assert_eq!(flags(), "00\n11\n");
}

#[test]
fn a_bell_in_the_window_in_front_rings_the_terminal() {
    let mut tmux = Tmux::start("");
    tmux.send("bell", &short().bytes(Method::TerminalBell, &LAYERS));
    tmux.terminal.wait_for("bell", |terminal| terminal.bells() == 1);
}

#[test]
fn a_notice_with_a_bell_does_both() {
    let mut tmux = Tmux::start("set -g allow-passthrough on");
    tmux.send("both", &short().bytes(Method::Iterm2WithBell, &LAYERS));
    tmux.terminal.wait_for("bell", |terminal| terminal.bells() == 1);
    assert_eq!(tmux.terminal.notifications(), [&short().arrived(Method::Iterm2)]);
}

/// The name with which the test terminal identifies itself to tmux.
const OURS: TerminalIdentity =
    TerminalIdentity { program: TerminalProgram::Kitty, version: Some(Version(0, 48, 2)) };

/// tmux reports its passthrough option and the visibility of the window; the conclusion from these matches its behaviour.
#[test]
fn tmux_passes_what_its_answer_says() {
    let mut tmux = Tmux::start("");
    let pane = tmux.hidden_window();
    let notice = short().bytes(Method::Kitty, &LAYERS);
    for (word, passthrough) in
        [("off", Passthrough::Off), ("on", Passthrough::Visible), ("all", Passthrough::All)]
    {
        let set = tmux.server.run(&["set-option", "-g", "allow-passthrough", word]);
        if !set.status.success() {
            assert_eq!(word, "all", "only that is newer than the option itself, which came with tmux 3.3");
            test_support::unsupported("this tmux has no `allow-passthrough all`, which came with 3.4");
            continue;
        }
        // By then tmux has redrawn everything that the option affects.
        tmux.send(word, b"");
        let shown = tmux.outer(Some("%0"));
        assert_eq!((shown.passthrough, shown.shown), (passthrough, true), "{word}");
        assert_eq!(shown.identity, OURS, "{word}");
        let before = tmux.terminal.notifications().len();
        tmux.send(&format!("{word}-shown"), &notice);
        let came = tmux.terminal.notifications().len() - before;
        assert_eq!(came, usize::from(shown.allows_passthrough()), "{word}, from the window in front");

        let hidden = tmux.outer(Some(&pane));
        assert_eq!((hidden.passthrough, hidden.shown), (passthrough, false), "{word}");
        let before = tmux.terminal.notifications().len();
        tmux.send_hidden(&pane, &notice);
        let came = tmux.terminal.notifications().len() - before;
        assert_eq!(came, usize::from(hidden.allows_passthrough()), "{word}, from a window behind");
    }
}

#[test]
fn tmux_answers_for_the_current_pane_too() {
    assert_eq!(Tmux::start("").outer(None).identity, OURS);
}

/// A text for tmux is unchanged however often a person's formats expand it, and no command in it runs.
#[test]
fn a_text_for_tmux_is_expanded_to_itself() {
    let tmux = Tmux::start("");
    let ran = tmux.script.path().join("ran");
    let hostile =
        format!("#1 #[fg=red]x#{{pid}} #(touch {}) ##[bold] #S #{{E:#{{pane_title}}}} #", ran.display());
    let safe = tmux_text(&hostile);
    tmux.server.answer(&["set-option", "-g", "@text", &safe]);
    for format in ["#{@text}", "#{E:@text}", "#{T:@text}"] {
        let expanded = tmux.server.answer(&["display-message", "-p", format]);
        assert_eq!(expanded.trim_end_matches('\n'), safe, "{format}");
    }
    // As a title, which `select-pane -T` expands, and as a part of the person's own format.
    tmux.server.answer(&["select-pane", "-t", "%0", "-T", &safe]);
    let shown = tmux.server.answer(&["display-message", "-p", "-t", "%0", "#{pane_title}|#{E:pane_title}"]);
    assert_eq!(shown.trim_end_matches('\n'), format!("{safe}|{safe}"));
    // tmux runs commands in the background, in order, so a later command finishes after those.
    tmux.server.answer(&["run-shell", "true"]);
    assert!(!ran.exists());
}
