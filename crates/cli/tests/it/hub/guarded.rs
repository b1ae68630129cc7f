//! What only the person may do, attacked with what one line of an injected prompt can do; and the terminals that count as theirs.

use std::fs;
use std::process::{Command, Stdio};

use ringer_journal::{Home, Journal};
use serde_json::json;
use test_support::{VirtualScreen, started, until};

use super::agents_that_try::{agent, asked, check_denied};
use super::dialogs::until_hooks_wait;
use super::environment::HubEnvironment;
use crate::background::Background;
use crate::pty::Pane;
use crate::relay::sshd::SshServer;
use crate::ringer::check;

const STRICT: &str = "[notify]\nrate_limit = \"off\"\npopup = \"off\"\n";

/// What every attempt begins with: an agent whose shell is `$$`, the answer, and where its exit code goes.
const PRELUDE: &str = r#"
    "$RINGER" hook claude SessionStart < "$INPUT" > /dev/null
    clean="env -i PATH=$PATH RINGER_HOME=$RINGER_HOME XDG_RUNTIME_DIR=$XDG_RUNTIME_DIR"
    answer="$clean $RINGER answer $ID allow"
    printf '%s > /dev/null 2> %s.err; echo $? > %s.new; mv %s.new %s\n' "$answer" "$OUT" "$OUT" "$OUT" "$OUT" > "$OUT.sh"
"#;

/// An agent that asks, which nothing answers that is not checked, and one that tries.
struct Attack {
    environment: HubEnvironment,
    waiting: Background,
    id: String,
}

impl Attack {
    fn new() -> Self {
        let (environment, waiting) = asked();
        environment.set_exactly(STRICT);
        let id = environment.list(&[])[0]["short_id"].as_str().expect("a short id").to_owned();
        Self { environment, waiting, id }
    }

    /// Runs an attempt as an agent, and waits for the exit code of its answer.
    #[track_caller]
    fn exit_of(&self, name: &str, attempt: &str) -> String {
        let out = self.environment.base.path().join(name);
        let script = format!("{PRELUDE}\n{attempt}");
        let mut shell = agent(&self.environment, &format!("fedc{name}"), &script);
        shell.env("ID", &self.id).env("OUT", &out).stderr(Stdio::null());
        let running = Background::start(shell);
        until("the attempt has ended", || out.exists());
        let exit = fs::read_to_string(out).expect("an exit code").trim().to_owned();
        drop(running);
        exit
    }

    /// Checks that an attempt is refused, and changes nothing.
    #[track_caller]
    fn check_refused(&self, name: &str, attempt: &str) {
        assert_eq!(self.exit_of(name, attempt), "77", "{name}");
        let mut journal = Journal::open(&Home::new(self.environment.base.home())).expect("a journal");
        let prompt = journal.open_prompts().expect("prompts").pop().expect("it is open");
        assert_eq!((prompt.decision, prompt.handed_ms), (None, None), "{name}");
    }

    /// The person was told, and can still deny it.
    #[track_caller]
    fn end(self) {
        let told = self.environment.bodies(&[]);
        assert!(told.iter().any(|body| body.contains("It was refused")), "{told:?}");
        self.environment.set(STRICT);
        until_hooks_wait(&self.environment, 1);
        check_denied(&self.environment, &["answer", &self.id, "deny"], self.waiting);
    }
}

#[test]
fn a_session_that_says_that_it_ended_is_still_an_agent() {
    let attack = Attack::new();
    attack.check_refused("ended", r#""$RINGER" hook claude SessionEnd < "$INPUT" > /dev/null; sh "$OUT.sh""#);
    let moved = r#"sh -c '"$RINGER" hook claude SessionStart < "$INPUT" > /dev/null; :'; sh "$OUT.sh""#;
    attack.check_refused("moved", moved);
    attack.end();
}

#[test]
fn a_process_with_the_name_of_a_tmux_server_is_none() {
    let attack = Attack::new();
    let named = r#"cp /bin/sh "$OUT.tmux: server"; "$OUT.tmux: server" "$OUT.sh""#;
    attack.check_refused("named", named);
    let detached =
        r#"mkdir "$OUT.d"; cp /bin/sh "$OUT.d/tmux: server"; setsid -f "$OUT.d/tmux: server" "$OUT.sh""#;
    attack.check_refused("detached", detached);
    attack.end();
}

#[test]
fn too_many_processes_in_between_are_not_the_person() {
    let attack = Attack::new();
    let nested = r#"
        echo 'if [ "$1" -gt 0 ]; then sh "$0" $(($1 - 1)); exit $?; fi; sh "$OUT.sh"; exit 0' > "$OUT.nest"
        sh "$OUT.nest" 300
    "#;
    attack.check_refused("nested", nested);
    attack.end();
}

#[test]
fn another_namespace_is_not_the_person_not_even_with_scripts_allowed() {
    let may_unshare = Command::new("unshare").args(["-Urpf", "--mount-proc", "true"]).output();
    if !started("unshare", may_unshare).status.success() {
        return test_support::skip("it needs the right to make namespaces");
    }
    let attack = Attack::new();
    attack.check_refused("inside", r#"unshare -Urpf --mount-proc sh "$OUT.sh""#);
    attack.check_refused("without_proc", r#"unshare -Urpf sh "$OUT.sh""#);
    attack.environment.set(STRICT);
    attack.check_refused("with_scripts", r#"unshare -Urpf --mount-proc sh "$OUT.sh""#);
    attack.end();
}

/// Says on the hub's socket that the person looks at a terminal, and prints the answers.
const LOOKS: &str = r#"
import json, os, socket
hub = json.load(open(os.environ["RINGER_HOME"] + "/hub.json"))
stream = socket.socket(socket.AF_UNIX)
stream.connect(hub["socket"])
lines = stream.makefile()
for method, params in [
    ("host.attach", {"name": "forged"}),
    ("surface.opened", {"surface_id": "theirs"}),
    ("surface.views", {"views": [{"client": "forged", "surface_id": "theirs"}]}),
    ("ping", {}),
]:
    stream.sendall((json.dumps({"id": method, "method": method, "params": params}) + "\n").encode())
    while True:
        answer = json.loads(lines.readline())
        if answer.get("id") == method:
            break
    print(json.dumps(answer))
open(os.environ["OUT"], "w").close()
"#;

#[test]
fn no_agent_says_what_the_person_looks_at_unnoticed() {
    let environment = HubEnvironment::new();
    environment.set_exactly(STRICT);
    environment.run(&["hub", "start"]);
    check(environment.ringer(&["notify", "for the person"]).env("RINGER_SURFACE", "theirs"), 0);
    let out = environment.base.path().join("out");
    let run = |session: &str, attempt: &str| {
        let script = format!("\"$RINGER\" hook claude SessionStart < \"$INPUT\" > /dev/null\n{attempt}");
        let mut shell = agent(&environment, session, &script);
        let (answers, _) = check(shell.env("LOOKS", LOOKS).env("OUT", &out), 0);
        until("it has tried", || out.exists());
        fs::remove_file(&out).expect("a file");
        answers
    };
    let is_read = || {
        environment
            .list(&["--all"])
            .iter()
            .any(|row| row["body"] == "for the person" && row["is_read"] == true)
    };
    let announced =
        || environment.bodies(&[]).iter().filter(|body| body.contains("says what you look at")).count();
    let answers = run("0123456789", r#"python3 -c "$LOOKS""#);
    assert!(answers.contains("no_permission") && answers.contains("an agent (claude-01234567)"), "{answers}");
    assert_eq!((is_read(), announced()), (false, 0));
    run("fedcba9876", r#"setsid -f python3 -c "$LOOKS""#);
    until("it is announced", || announced() == 1);
}

#[test]
fn a_process_that_left_its_agent_has_no_terminal_of_a_person() {
    let attack = Attack::new();
    attack.check_refused("adopted", r#"setsid -f sh "$OUT.sh""#);
    attack.check_refused("in_tmux", r#"tmux -L "$$" -f /dev/null new-session -d "sh '$OUT.sh'""#);
    attack.check_refused("in_script", r#"setsid -f script -qec "sh '$OUT.sh'" /dev/null > /dev/null 2>&1"#);
    let python = r#"setsid -f python3 -c "import pty; pty.spawn(['sh', '$OUT.sh'])" > /dev/null 2>&1"#;
    attack.check_refused("in_python", python);
    // Its client is in a terminal that no person sits at.
    let attached = r#"setsid -f script -qec "tmux -L '$$x' -f /dev/null new-session 'sh \"$OUT.sh\"'" /dev/null > /dev/null 2>&1"#;
    attack.check_refused("in_attached_tmux", &format!("export TERM=xterm; {attached}"));
    attack.check_refused("in_pane", r#""$RINGER" open --detached -- sh "$OUT.sh" > /dev/null"#);
    attack.end();
}

#[test]
fn a_terminal_that_an_agent_made_cannot_be_attached_to_panes() {
    let attack = Attack::new();
    let with_attach = r#"sed -i "s/answer .* allow/attach/" "$OUT.sh"; "#;
    let script = r#"TERM=xterm setsid -f script -qec "sh '$OUT.sh'" /dev/null > /dev/null 2>&1"#;
    // The cleaned environment has no TERM.
    let keeps_term =
        r#"sed -i "s/env -i/env -i TERM=xterm/" "$OUT.sh"; sed -i "s/> .dev.null 2/2/" "$OUT.sh"; "#;
    let attempt =
        format!(r#""$RINGER" open --detached -- cat > /dev/null; {with_attach}{keeps_term}{script}"#);
    attack.check_refused("attach", &attempt);
    attack.end();
}

#[test]
fn a_refused_agent_cannot_hide_that_it_was_refused() {
    let attack = Attack::new();
    let hide = r#"
        "$RINGER" dnd 1h > /dev/null 2>&1; echo $? > "$OUT.codes"
        "$RINGER" clear --all > /dev/null 2>&1; echo $? >> "$OUT.codes"
        "$RINGER" read --all > /dev/null 2>&1; echo $? >> "$OUT.codes"
        own=$("$RINGER" notify --json --from claude-fedchide "mine" | sed 's/.*"id":"\([^"]*\)".*/\1/')
        "$RINGER" clear "$own" > /dev/null 2>&1; echo $? >> "$OUT.codes"
        sh "$OUT.sh"
    "#;
    attack.check_refused("hides", hide);
    let codes = fs::read_to_string(attack.environment.base.path().join("hides.codes")).expect("exit codes");
    assert_eq!(codes.lines().collect::<Vec<_>>(), ["77", "77", "77", "0"]);
    attack.end();
}

/// A terminal of a person, who answers in it once there is a question.
fn answer_script(environment: &HubEnvironment) -> std::path::PathBuf {
    let path = environment.base.path().join("answers.sh");
    let script = ": > \"$FIFO.begun\"; read -r id < \"$FIFO\"; \"$RINGER\" answer \"$id\" deny > \"$FIFO.out\" 2>&1; echo $? >> \"$FIFO.out\"; mv \"$FIFO.out\" \"$FIFO.done\"; exec cat\n";
    fs::write(&path, script).expect("a file");
    path
}

/// Asks for a permission, has it answered in the terminal that waits at the pipe, and gives what `why` says of it.
#[track_caller]
fn answered_by(environment: &HubEnvironment, fifo: &std::path::Path) -> String {
    // A terminal that is younger than the agent is not as good.
    let begun = std::path::PathBuf::from(format!("{}.begun", fifo.display()));
    until("the terminal is there", || begun.exists());
    let asks = agent(environment, "0123456789", super::agents_that_try::ASKS);
    let waiting = Background::start(asks);
    until_hooks_wait(environment, 1);
    let row = environment.list(&[]).remove(0);
    let id = row["short_id"].as_str().expect("a short id");
    fs::write(fifo, format!("{id}\n")).expect("it reads");
    let done = std::path::PathBuf::from(format!("{}.done", fifo.display()));
    until("it is answered", || done.exists());
    let said = fs::read_to_string(done).expect("its output");
    assert!(said.ends_with("0\n") || said.ends_with("75\n"), "{said}");
    drop(waiting);
    environment.run(&["why", row["id"].as_str().expect("an id")])
}

fn fifo(environment: &HubEnvironment) -> std::path::PathBuf {
    let fifo = environment.base.path().join("fifo");
    test_support::make_fifo(&fifo);
    fifo
}

#[test]
fn a_person_at_a_terminal_emulator_answers_and_why_says_where() {
    let environment = HubEnvironment::new();
    environment.set_exactly(STRICT);
    environment.run(&["hub", "start"]);
    let (screen, fifo) = (VirtualScreen::start(), fifo(&environment));
    let mut xterm = environment.program("xterm");
    xterm.env("DISPLAY", screen.display()).env("FIFO", &fifo).arg("-e").arg("sh");
    let terminal = Background::start({
        xterm.arg(answer_script(&environment));
        xterm
    });
    let why = answered_by(&environment, &fifo);
    assert!(why.contains("from the terminal of xterm: deny"), "{why}");
    assert!(!environment.bodies(&[]).iter().any(|body| body.contains("did this")), "it is proven");
    drop(terminal);
}

#[test]
fn a_person_in_tmux_over_ssh_answers_and_a_terminal_that_was_opened_since_is_announced() {
    let environment = HubEnvironment::new();
    environment.set_exactly(STRICT);
    environment.run(&["hub", "start"]);
    let server = SshServer::new(&environment.base.home());
    let fifo = fifo(&environment);
    let mut words = vec!["ssh".to_owned(), "-tt".to_owned(), "box".to_owned(), "env".to_owned()];
    words.extend(environment.variables().into_iter().map(|(name, value)| format!("{name}={value}")));
    words.extend([format!("FIFO={}", fifo.display()), "TERM=xterm".to_owned()]);
    words.extend(["tmux", "-L", "guarded", "-f", "/dev/null", "new-session"].map(str::to_owned));
    words.push(format!("\"sh {}\"", answer_script(&environment).display()));
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let path = server.search_path();
    let terminal = Pane::start(&words, &[("TERM", "xterm"), ("PATH", path.as_str())], None);
    let why = answered_by(&environment, &fifo);
    assert!(why.contains("from tmux in the terminal of sshd"), "{why}");
    let _ = Command::new("tmux").args(["-L", "guarded", "kill-server"]).output();
    drop(terminal);
}

#[test]
fn a_terminal_in_a_test_is_refused_with_the_setting_that_allows_it() {
    let environment = HubEnvironment::new();
    environment.set_exactly(STRICT);
    let mut mute = environment.ringer(&["mute", "ci", "1h"]);
    let (_, complaint) = check(&mut mute, 77);
    assert!(
        complaint.contains("has no terminal") && complaint.contains("[answers] scripts = true"),
        "{complaint}"
    );
    environment.set(STRICT);
    environment.run(&["mute", "ci", "1h"]);
    environment.run(&["dnd", "1h"]);
    let rows = environment.json(&["list", "--json"]);
    let told = rows.as_array().expect("a list").iter();
    let told =
        told.filter(|row| row["body"].as_str().is_some_and(|body| body.starts_with("A script of yours")));
    assert_eq!(told.filter(|row| row["is_open"] == true).count(), 1, "{rows}");
}

#[test]
fn a_bus_that_a_client_named_shows_no_button_that_decides() {
    use test_support::{BlockingNotificationServer, ServerBehaviour, SessionBus};
    let bus = SessionBus::start();
    let server = BlockingNotificationServer::start(&bus.address(), ServerBehaviour::Normal);
    let environment = HubEnvironment::with_settings("[notify]\nrate_limit = \"off\"\npopup = \"desktop\"\n");
    environment.run(&["hub", "start"]);
    let offered = environment.connect().call("hub.environment", &json!({ "bus": bus.address() }));
    assert!(
        offered["result"]["desktop"]["server"].is_object()
            || offered["result"]["desktop"]["server"].is_string(),
        "{offered}"
    );
    let waiting = Background::start(agent(&environment, "0123456789", super::agents_that_try::ASKS));
    let popup = server.next_popup();
    assert!(!popup.actions.iter().any(|action| action == "allow" || action == "deny"), "{:?}", popup.actions);
    drop(waiting);
}
