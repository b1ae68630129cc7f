//! Ten agents for an hour: recorded hooks, a real journal, the hub's rules, and a clock that the test moves. After every step,
//! the agents that need the person are those that last reported it.

#![expect(clippy::expect_used, reason = "helpers of tests, outside any test function")]

use std::cell::Cell;
use std::os::fd::AsFd;
use std::path::Path;
use std::time::Duration;

use ringer_agents::client::{Client, ClientPaths, agent_id};
use ringer_agents::hook::{HookContext, call};
use ringer_core::agent::AgentTimeouts;
use ringer_core::engine::{Caller, IncomingMessage};
use ringer_core::message::{Agent, MessageOrigin, ShownKind, SurfaceId, WorkspaceId};
use ringer_core::time::TimeOfDay;
use ringer_core::{Engine, Event, Now, Preferences};
use ringer_journal::{Home, IdSource, Journal};
use serde_json::json;
use test_support::Random;

use crate::hook::{NOWHERE, recorded};

const MINUTE: u64 = 60;
/// The default time after which an agent that works in silence is stuck.
const STUCK_AFTER: u64 = 10 * MINUTE;

/// The state of an agent, as the test knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Doing {
    Idle,
    Working,
    InTool,
    Permission,
    Question,
    Failed,
}
use Doing::{Failed, Idle, InTool, Permission, Question, Working};

/// A transition: from, recorded hook, to.
type Step = (Doing, &'static str, Doing);

const CLAUDE: &[Step] = &[
    (Idle, "claude_UserPromptSubmit", Working),
    (Working, "claude_PreToolUse_Write", InTool),
    (InTool, "claude_PostToolUse_Write", Working),
    (InTool, "claude_PermissionRequest_Write", Permission),
    (Permission, "claude_PostToolUse_Write", Working),
    (Permission, "claude_UserPromptSubmit", Working),
    (Permission, "claude_Notification_permission_prompt", Permission),
    (Working, "claude_PreToolUse_AskUserQuestion", Question),
    (Question, "claude_PermissionRequest_AskUserQuestion", Question),
    (Question, "claude_UserPromptSubmit", Working),
    (Working, "claude_Stop", Idle),
    (Idle, "claude_Notification_idle_prompt", Idle),
    (Working, "claude_StopFailure", Failed),
    (Failed, "claude_UserPromptSubmit", Working),
];
const CODEX: &[Step] = &[
    (Idle, "codex_UserPromptSubmit", Working),
    (Working, "codex_PreToolUse_Bash", InTool),
    (InTool, "codex_PostToolUse_Bash", Working),
    (InTool, "codex_PermissionRequest_Bash", Permission),
    (Permission, "codex_PostToolUse_Bash", Working),
    (Working, "codex_Stop", Idle),
];
const GEMINI: &[Step] = &[
    (Idle, "gemini_BeforeAgent", Working),
    (Working, "gemini_PreCompress", Working),
    (Working, "gemini_BeforeTool_run_shell_command", InTool),
    (InTool, "gemini_AfterTool_run_shell_command", Working),
    (InTool, "gemini_Notification_ToolPermission", Permission),
    (Permission, "gemini_AfterTool_run_shell_command", Working),
    (Working, "gemini_AfterAgent", Idle),
];

struct Session {
    client: Client,
    steps: &'static [Step],
    id: String,
    agent: Agent,
    doing: Doing,
    last_step: u64,
}

impl Session {
    fn new(number: usize) -> Self {
        let (client, steps) = match number {
            0..5 => (Client::Claude, CLAUDE),
            5..8 => (Client::Codex, CODEX),
            _ => (Client::Gemini, GEMINI),
        };
        let id = format!("{number:08x}-d2b2-442c-995b-a5ac3619{number:04x}");
        let agent = agent_id(client, &id).expect("an agent");
        Self { client, steps, id, agent, doing: Idle, last_step: 0 }
    }

    /// What the agent needs from the person at this second.
    fn need(&self, now: u64) -> Option<ShownKind> {
        match self.doing {
            Permission => Some(ShownKind::Permission),
            Question => Some(ShownKind::Question),
            Failed => Some(ShownKind::Error),
            Working if now >= self.last_step + STUCK_AFTER => Some(ShownKind::Stuck),
            Idle | Working | InTool => None,
        }
    }
}

struct Hour {
    _directory: tempfile::TempDir,
    home: Home,
    journal: Journal,
    engine: Engine,
    read_up_to: i64,
    seconds: Cell<u64>,
    sessions: Vec<Session>,
    /// The kinds that occurred at least once.
    seen: Vec<ShownKind>,
}

impl Hour {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let home = Home::new(directory.path().join("home"));
        let journal = Journal::open(&home).expect("a journal");
        let sessions: Vec<Session> = (0..10).map(Session::new).collect();
        let mut engine = Engine::new(Preferences::default());
        let start = Now { mono: Duration::ZERO, wall_ms: 0, local: TimeOfDay::default() };
        for session in &sessions {
            let surface = SurfaceId::new(session.agent.as_str());
            let workspace = WorkspaceId::new("w");
            engine.handle(start, Event::Surface { surface, workspace, tty: None, reports_focus: false });
        }
        let seconds = Cell::new(1000);
        Self {
            _directory: directory,
            home,
            journal,
            engine,
            read_up_to: 0,
            seconds,
            sessions,
            seen: Vec::new(),
        }
    }

    fn mono(&self) -> Duration {
        Duration::from_secs(self.seconds.get())
    }

    /// Advances the hub's clock.
    fn pass(&mut self, seconds: u64) {
        self.seconds.set(self.seconds.get() + seconds);
        let (mono, timeouts) = (self.mono(), AgentTimeouts::default());
        self.journal.tick_agents(mono, timeouts, &IdSource::now()).expect("ticked");
        self.read();
        self.check("time passed");
    }

    fn step(&mut self, number: usize, random: &mut Random) {
        let session = &self.sessions[number];
        let possible: Vec<&Step> = session.steps.iter().filter(|step| step.0 == session.doing).collect();
        let (_, name, next) = **random.pick(&possible);
        self.play(number, name, next);
    }

    fn play(&mut self, number: usize, name: &str, next: Doing) {
        let now = self.seconds.get();
        let session = &mut self.sessions[number];
        let mut input = recorded(name, &session.id);
        if name == "codex_PermissionRequest_Bash" {
            input["tool_input"] = json!({ "command": "echo hello-from-mock", "description": "May I?" });
        }
        let surface = session.agent.as_str().to_owned();
        // No client reads the output, so no hook waits for the person.
        let (_, unread) = std::io::pipe().expect("a pipe");
        let context = HookContext {
            home: self.home.clone(),
            clock: &|| Duration::from_secs(now),
            origin: &|| MessageOrigin { surface: Some(surface.clone()), ..MessageOrigin::default() },
            process: None,
            manager: None,
            name: None,
            variable: &|_| None,
            paths: &|| ClientPaths::new(Path::new(NOWHERE)),
            stdout: Some(unread.as_fd()),
            before_wait: &|_| {},
        };
        let event = name.split('_').nth(1).expect("client_event");
        call(session.client, event, input.to_string().as_bytes(), &mut Vec::new(), &context)
            .expect("recorded");
        (session.doing, session.last_step) = (next, now);
        self.read();
        self.check(name);
    }

    /// The hub reads new messages.
    fn read(&mut self) {
        let mono = self.mono();
        for message in self.journal.messages_after(self.read_up_to, usize::MAX).expect("it reads") {
            self.read_up_to = message.seq;
            let now = Now { mono, wall_ms: message.unix_ms, local: TimeOfDay::default() };
            let surface = message.draft.origin.surface.as_deref().map(SurfaceId::new);
            let caller = Caller { surface, ..Caller::default() };
            let incoming = IncomingMessage { message, caller, is_subagent: false, pending: false };
            self.engine.handle(now, Event::Message(Box::new(incoming)));
        }
    }

    /// Checks that the rows match the agents' last hooks, in the order of the table.
    #[track_caller]
    fn check(&mut self, after: &str) {
        let now = self.seconds.get();
        let mut rows: Vec<_> = self.engine.attention().store().needs_person().collect();
        rows.sort_by(|one, two| one.by_urgency(two));
        assert!(rows.is_sorted_by_key(|row| row.unix_ms), "all are urgent, so the oldest comes first");
        let mut shown: Vec<(String, ShownKind)> =
            rows.iter().map(|row| (row.sender.to_string(), row.shown_kind())).collect();
        let needs =
            self.sessions.iter().filter_map(|one| Some((one.agent.as_str().to_owned(), one.need(now)?)));
        let mut expected: Vec<(String, ShownKind)> = needs.collect();
        shown.sort_by(|one, two| one.0.cmp(&two.0));
        expected.sort_by(|one, two| one.0.cmp(&two.0));
        assert_eq!(shown, expected, "after {after}, at {now} s");
        for (_, kind) in expected {
            if !self.seen.contains(&kind) {
                self.seen.push(kind);
            }
        }
    }
}

#[test]
fn who_needs_the_person_is_right_at_every_step_of_an_hour_with_ten_agents() {
    let mut random = Random::new(0x7e2);
    let mut hour = Hour::new();
    let end = hour.seconds.get() + 60 * MINUTE;
    let quiet = hour.seconds.get() + 20 * MINUTE..hour.seconds.get() + 40 * MINUTE;
    let mut is_quiet = false;
    while hour.seconds.get() < end {
        hour.pass(1 + random.below(12));
        if quiet.contains(&hour.seconds.get()) && !is_quiet {
            is_quiet = true;
            // One model hangs, and one tool runs for a long time.
            while hour.sessions[0].doing != Working {
                hour.step(0, &mut random);
            }
            while hour.sessions[5].doing != InTool {
                hour.step(5, &mut random);
            }
        }
        let number = usize::try_from(random.below(10)).expect("it fits");
        if !(quiet.contains(&hour.seconds.get()) && [0, 5].contains(&number)) {
            hour.step(number, &mut random);
        }
    }
    for kind in [ShownKind::Permission, ShownKind::Question, ShownKind::Error, ShownKind::Stuck] {
        assert!(hour.seen.contains(&kind), "{kind:?} never came");
    }
}
