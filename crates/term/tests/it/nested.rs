//! tmux and GNU screen nested in each other: each removes its own wrapper.

use ringer_term::Multiplexer;

use crate::screen::session::{self, Session};
use crate::sender_script::{METHODS, SenderScript, Sent, long, mark, short};
use crate::terminal::{NAME, Terminal};
use crate::tmux::server::{self, Server};

/// The test terminal around both. Dropped in this order: first screen, which would only detach if tmux ended around it,
/// and both before their sockets go with the script.
struct Nested {
    _session: Session,
    _server: Server,
    terminal: Terminal,
    script: SenderScript,
}

impl Nested {
    /// Nearest layer first.
    fn start(layers: [Multiplexer; 2]) -> Self {
        let script = SenderScript::new(&mark("first"));
        // If the start fails, these are dropped in reverse order, so screen comes first here, too.
        let server = Server::prepare(&script, "set -g allow-passthrough on");
        let session = Session::prepare(&script);
        let argv = layers.iter().fold(vec!["sh", "script"], |inside, layer| match layer {
            Multiplexer::Tmux => server::argv(&inside),
            _ => session::argv(&inside),
        });
        let mut terminal = Terminal::run(&argv, script.path(), &[server.variable(), session.variable()]);
        terminal.wait_for("script", |terminal| terminal.shows("<first>"));
        server.wait_for_client();
        // tmux redraws once it knows the name of the terminal or has given up waiting for it, and passes nothing through
        // until then. screen does not answer, so the answer is typed here. Later input is shown after the redraw.
        if layers[1] == Multiplexer::Screen {
            terminal.type_bytes(NAME);
        } else {
            terminal.wait_for("question", Terminal::sent_its_name);
        }
        let mut nested = Self { _session: session, _server: server, terminal, script };
        nested.send("drawn", b"");
        nested
    }

    /// Makes the script send these bytes, and waits for the mark after them.
    fn send(&mut self, name: &str, bytes: &[u8]) {
        self.script.prepare(name, &[bytes, &mark(name)].concat());
        self.terminal.type_line(name);
        self.terminal.wait_for("mark", |terminal| terminal.shows(&format!("<{name}>")));
    }
}

fn check_passes_through(sent: &Sent, layers: [Multiplexer; 2]) {
    let mut nested = Nested::start(layers);
    for method in METHODS {
        nested.send(method.as_str(), &sent.bytes(method, &layers));
    }
    let expected = METHODS.map(|method| sent.arrived(method));
    assert_eq!(nested.terminal.notifications(), expected.each_ref());
}

#[test]
fn a_notice_passes_through_tmux_inside_screen() {
    check_passes_through(&short(), [Multiplexer::Tmux, Multiplexer::Screen]);
    check_passes_through(&long(), [Multiplexer::Tmux, Multiplexer::Screen]);
}

#[test]
fn a_notice_passes_through_screen_inside_tmux() {
    check_passes_through(&short(), [Multiplexer::Screen, Multiplexer::Tmux]);
    check_passes_through(&long(), [Multiplexer::Screen, Multiplexer::Tmux]);
}
