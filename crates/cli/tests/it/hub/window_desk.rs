//! A real display with a real window manager and real terminals.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use test_support::{ServerCall, VirtualScreen, started, until};
use x11rb::connection::Connection;
use x11rb::protocol::xproto::{AtomEnum, ClientMessageEvent, ConnectionExt, EventMask};
use x11rb::rust_connection::RustConnection;

use super::looking::Desktop;

/// Commands, one line each, of a shell in a terminal. A file says that one is done.
const SHELL: &str = r#"n=0; while read -r line; do eval "$line"; n=$((n+1)); : >"$0.done$n"; done <"$0""#;

/// A process that ends with the test.
pub(super) struct Running(Child);

impl Running {
    pub(super) fn start(command: &mut Command) -> Self {
        let name = command.get_program().to_string_lossy().into_owned();
        let silent = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Self(started(&name, silent.spawn()))
    }

    fn end(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

/// A display, its window manager and a hub with popups.
pub(super) struct WindowDesk {
    pub(super) desktop: Desktop,
    connection: RustConnection,
    manager: Option<Running>,
    pub(super) screen: VirtualScreen,
}

impl WindowDesk {
    pub(super) fn new() -> Self {
        let mut desk = Self::without_manager();
        desk.manager = Some(Running::start(desk.program("evilwm").args(["-bw", "1", "-fn", "fixed"])));
        until("a window manager", || desk.property("_NET_SUPPORTED", AtomEnum::ATOM).is_some());
        desk
    }

    pub(super) fn without_manager() -> Self {
        let screen = VirtualScreen::start();
        let (connection, _) = RustConnection::connect(Some(screen.display())).expect("a display");
        let desk = Self { desktop: Desktop::new(""), connection, manager: None, screen };
        // evilwm gives the focus to the window under the pointer.
        desk.connection.warp_pointer(x11rb::NONE, desk.root(), 0, 0, 0, 0, 639, 479).expect("a pointer");
        desk.connection.flush().expect("a display");
        desk.start_hub();
        desk
    }

    pub(super) fn start_hub(&self) {
        let mut hub = self.program(env!("CARGO_BIN_EXE_ringer"));
        assert!(started("ringer", hub.args(["hub", "start"]).output()).status.success());
    }

    fn program(&self, program: &str) -> Command {
        let mut command = self.desktop.program(program);
        let home = self.desktop.environment.base.path();
        command.env("DISPLAY", self.screen.display()).env("HOME", home).env_remove("RINGER_WINDOWS");
        command
    }

    /// A terminal with a shell that runs what it is told.
    pub(super) fn xterm(&self, name: &str, options: &[&str], variables: &[&str]) -> ShellInTerminal {
        let shell = ShellInTerminal::prepare(self.desktop.environment.base.path(), name);
        let mut xterm = self.program("xterm");
        xterm.args(["-geometry", "20x4+0+0"]).args(options).args(["-e", "env"]).args(variables);
        let running = Running::start(xterm.args(["sh", "-c", SHELL]).arg(&shell.lines));
        let window = self.window_of(running.0.id());
        ShellInTerminal { running: Some(running), window, ..shell }
    }

    /// Two terminals with an agent each, the second in front.
    #[track_caller]
    pub(super) fn two_xterms(&self) -> [ShellInTerminal; 2] {
        let [mut one, mut two] = ["one", "two"].map(|name| self.xterm(name, &[], &[]));
        self.activate(two.window);
        self.begin_agent(&mut one);
        self.begin_agent(&mut two);
        [one, two]
    }

    /// A kitty with one tab.
    pub(super) fn kitty(&self, name: &str, options: &[&str]) -> ShellInTerminal {
        let shell = ShellInTerminal::prepare(self.desktop.environment.base.path(), name);
        let mut kitty = self.program("kitty");
        // Without a socket it asks the session bus for the desktop's colours, and waits.
        kitty.args(["-c", "NONE", "-o", "update_check_interval=0", "-o", "shell_integration=disabled"]);
        kitty.args(["-o", "remember_window_size=no", "-o", "initial_window_width=300"]);
        kitty.args(["-o", "initial_window_height=200"]).args(options);
        let running = Running::start(kitty.args(["sh", "-c", SHELL]).arg(&shell.lines));
        let window = self.window_of(running.0.id());
        ShellInTerminal { running: Some(running), window, ..shell }
    }

    /// Another tab of a kitty that listens here.
    pub(super) fn kitty_tab(&self, kitty: &ShellInTerminal, listens: &str, name: &str) -> ShellInTerminal {
        let shell = ShellInTerminal::prepare(self.desktop.environment.base.path(), name);
        let mut launch = self.program("kitty");
        launch.args(["@", "--to", listens, "launch", "--type=tab", "--copy-env", "sh", "-c", SHELL]);
        let launched = started("kitty", launch.arg(&shell.lines).output());
        assert!(launched.status.success(), "{}", String::from_utf8_lossy(&launched.stderr));
        ShellInTerminal { window: kitty.window, ..shell }
    }

    /// A kitty with two tabs of these titles, the second in front, and where it listens.
    pub(super) fn kitty_with_two_tabs(&self, titles: [&str; 2]) -> (String, [ShellInTerminal; 2]) {
        let listens = format!("unix:{}/kitty", self.desktop.environment.base.path().display());
        let options = ["-o", "allow_remote_control=socket-only", "--listen-on", &listens];
        let mut one = self.kitty("one", &options);
        one.set_title(titles[0]);
        let mut two = self.kitty_tab(&one, &listens, "two");
        two.set_title(titles[1]);
        (listens, [one, two])
    }

    /// Whether a kitty that listens here says that the person is there.
    pub(super) fn has_focus(&self, listens: &str) -> bool {
        self.list_kitty(listens)[0]["is_focused"].as_bool().expect("kitty says it")
    }

    /// The titles of the windows in a kitty that listens here, tab after tab.
    pub(super) fn titles(&self, listens: &str) -> Vec<String> {
        let listed = self.list_kitty(listens);
        let tabs = listed[0]["tabs"].as_array().expect("tabs").iter();
        tabs.map(|tab| tab["windows"][0]["title"].as_str().expect("a title").to_owned()).collect()
    }

    fn list_kitty(&self, listens: &str) -> Value {
        let listed = started("kitty", self.program("kitty").args(["@", "--to", listens, "ls"]).output());
        serde_json::from_slice(&listed.stdout).expect("JSON")
    }

    /// The window of a process, when it is managed.
    fn window_of(&self, pid: u32) -> u32 {
        let mut found = None;
        until("a window", || {
            let windows = if self.manager.is_some() {
                self.property("_NET_CLIENT_LIST", AtomEnum::WINDOW).unwrap_or_default()
            } else {
                let tree = self.connection.query_tree(self.root()).expect("a request").reply();
                tree.expect("windows").children
            };
            let own = |window: &u32| self.property_of(*window, "_NET_WM_PID", AtomEnum::CARDINAL);
            found = windows.into_iter().find(|window| own(window).is_some_and(|own| own == [pid]));
            found.is_some()
        });
        found.expect("a window")
    }

    fn root(&self) -> u32 {
        self.connection.setup().roots[0].root
    }

    fn atom(&self, name: &str) -> u32 {
        self.connection.intern_atom(false, name.as_bytes()).expect("a request").reply().expect("an atom").atom
    }

    fn property(&self, name: &str, kind: AtomEnum) -> Option<Vec<u32>> {
        self.property_of(self.root(), name, kind)
    }

    fn property_of(&self, window: u32, name: &str, kind: AtomEnum) -> Option<Vec<u32>> {
        let asked = self.connection.get_property(false, window, self.atom(name), kind, 0, 1024);
        Some(asked.expect("a request").reply().ok()?.value32()?.collect())
    }

    /// The window that is active.
    pub(super) fn active(&self) -> Option<u32> {
        self.property("_NET_ACTIVE_WINDOW", AtomEnum::WINDOW)?.first().copied()
    }

    /// The person goes to a window.
    pub(super) fn activate(&self, window: u32) {
        let data = [2, x11rb::CURRENT_TIME, 0, 0, 0];
        let message = ClientMessageEvent::new(32, window, self.atom("_NET_ACTIVE_WINDOW"), data);
        let mask = EventMask::SUBSTRUCTURE_REDIRECT | EventMask::SUBSTRUCTURE_NOTIFY;
        self.connection.send_event(false, self.root(), mask, message).expect("a request");
        self.connection.flush().expect("a display");
        until("it is active", || self.active() == Some(window));
    }

    /// The terminals whose windows the hub knows, as `/dev/pts/1`.
    pub(super) fn known(&self) -> Vec<String> {
        let list = self.desktop.environment.connect().call("surface.list", &Value::Null);
        let list = list["result"].as_array().expect("a list").clone();
        let windows = list.iter().filter(|surface| surface["host"] == "window");
        windows.map(|surface| surface["tty"].as_str().expect("a device").to_owned()).collect()
    }

    /// An agent begins in a terminal, and Ringer knows its window.
    #[track_caller]
    pub(super) fn begin_agent(&self, terminal: &mut ShellInTerminal) {
        let repository = self.desktop.environment.base.repository();
        let input = json!({ "hook_event_name": "SessionStart", "session_id": terminal.name, "cwd": repository,
                            "source": "startup" });
        let tty = terminal.tty();
        // Where a terminal or the display did not answer in time, it is asked again with the next one.
        until("its window is known", || {
            terminal.run(&format!("\"$RINGER\" hook claude SessionStart <<'END' >/dev/null\n{input}\nEND"));
            self.known().contains(&tty)
        });
    }

    /// The person goes to what needs them. Where a terminal or the display did not answer in time, it stays unread until they try
    /// it again, or the answer comes late.
    #[track_caller]
    pub(super) fn jump(&self) {
        until("gone there", || {
            let tried = self.desktop.environment.ringer(&["jump"]).output().expect("it runs");
            tried.status.success() || self.unread().is_empty()
        });
    }

    /// The text of the next popup.
    #[track_caller]
    pub(super) fn popup(&self) -> String {
        loop {
            if let ServerCall::Notify(popup) = self.desktop.server.next_call() {
                return popup.body;
            }
        }
    }

    /// A notification of a kitty that the person looks at, of which nothing would tell when they go: it is to pop up, until kitty
    /// says that they are there. On a busy machine that may be before the popup is there.
    #[track_caller]
    pub(super) fn notify_where_they_are(&self, terminal: &mut ShellInTerminal, text: &str) {
        terminal.notify(text);
        let row = || self.desktop.environment.list(&[]).into_iter().find(|row| row["body"] == text);
        until("it is read", || row().is_some_and(|row| row["is_read"] == true));
        let why = self.desktop.why(&row().expect("it is listed"));
        assert!(why.contains("channels: desktop, else terminal (listed as unread)"), "{why}");
    }

    /// The text of the next popup but one that may have been withdrawn before it was shown.
    #[track_caller]
    pub(super) fn popup_after(&self, withdrawn: &str) -> String {
        let next = self.popup();
        if next == withdrawn { self.popup() } else { next }
    }

    /// The person goes to a window, and the hub has learned of it: what is unread there is read.
    #[track_caller]
    pub(super) fn look_at(&self, terminal: &mut ShellInTerminal) {
        // The hub may not have learned yet that they are elsewhere.
        let (mut number, mut text) = (0, String::new());
        until("it is unread", || {
            number += 1;
            text = format!("look here {number}");
            terminal.notify(&text);
            self.unread().contains(&text)
        });
        while self.popup() != text {}
        self.activate(terminal.window);
        until("it is read", || !self.unread().contains(&text));
    }

    pub(super) fn unread(&self) -> Vec<String> {
        self.desktop.environment.bodies(&["--unread"])
    }
}

/// A shell in a terminal.
pub(super) struct ShellInTerminal {
    name: String,
    pub(super) window: u32,
    running: Option<Running>,
    lines: PathBuf,
    write: File,
    done: usize,
}

impl ShellInTerminal {
    fn prepare(directory: &Path, name: &str) -> Self {
        let lines = directory.join(name);
        let made = started("mkfifo", Command::new("mkfifo").arg(&lines).status());
        assert!(made.success());
        // For both, so that it need not wait for the shell.
        let write = OpenOptions::new().read(true).write(true).open(&lines).expect("a FIFO");
        Self { name: name.to_owned(), window: 0, running: None, lines, write, done: 0 }
    }

    /// Runs a command, and waits until it is done.
    #[track_caller]
    pub(super) fn run(&mut self, command: &str) {
        self.begin(command);
        self.done += 1;
        let done = PathBuf::from(format!("{}.done{}", self.lines.display(), self.done));
        until(command, || done.exists());
    }

    /// Begins to run a command.
    pub(super) fn begin(&mut self, command: &str) {
        let script = self.lines.with_extension(format!("script{}", self.done));
        fs::write(&script, command).expect("a file");
        writeln!(self.write, ". {}", script.display()).expect("it reads");
    }

    /// What a command prints.
    #[track_caller]
    pub(super) fn output(&mut self, command: &str) -> String {
        let output = self.lines.with_extension("output");
        self.run(&format!("{command} >{}", output.display()));
        fs::read_to_string(output).expect("a file").trim().to_owned()
    }

    pub(super) fn tty(&mut self) -> String {
        self.output("readlink /proc/$$/fd/2")
    }

    /// A program in it tells something.
    #[track_caller]
    pub(super) fn notify(&mut self, text: &str) {
        self.run(&format!("\"$RINGER\" notify --kind error '{text}'"));
    }

    pub(super) fn set_title(&mut self, title: &str) {
        self.run(&format!("printf '\\033]2;{title}\\007' >/dev/tty"));
    }

    /// The person closes it.
    pub(super) fn close(&mut self) {
        self.running.as_mut().expect("a terminal of its own").end();
    }
}
