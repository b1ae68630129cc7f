//! Agents: their rows, their messages and recipients, and their timeouts.

use std::time::Duration;

use ringer_core::agent::{AgentState, AgentTimeouts, Authority, BlockedOn, Signal, SignalContent};
use ringer_core::message::{Agent, Mark, MessagePart, Tag};
use ringer_core::{Draft, Kind, Message, Recipient};
use ringer_journal::{AgentChange, AgentInfo, AgentUpdate, EnteredPart, HubLock, InboxUpdate, Journal};
use rusqlite::Connection;

use crate::home::{TestHome, append, at, draft, scope};

mod time;

/// An agent of which only the id is known.
pub(crate) fn agent_info(id: &str) -> AgentInfo {
    AgentInfo::new(agent(id), "claude", format!("session of {id}"), scope("aaaaaaaa"))
}

fn agent(id: &str) -> Agent {
    Agent::new(id).expect("a name")
}

/// A journal and a time, in seconds since the start of both clocks.
pub(crate) struct JournalAt<'a> {
    journal: &'a mut Journal,
    seconds: u64,
}

impl<'a> JournalAt<'a> {
    pub(crate) fn at(journal: &'a mut Journal, seconds: u64) -> Self {
        Self { journal, seconds }
    }

    fn unix_ms(&self) -> i64 {
        i64::try_from(self.seconds * 1000).expect("not long")
    }

    fn hear(
        &mut self,
        of: &AgentInfo,
        signals: &[Signal],
        claim: Option<&InboxUpdate<'_>>,
        notify: bool,
    ) -> AgentChange {
        let mono = Duration::from_secs(self.seconds);
        let heard = AgentUpdate { agent: of, signals, mono, timeouts: AgentTimeouts::default(), notify };
        let stamp = at(self.unix_ms());
        self.journal.update_agent(&heard, claim, &stamp).expect("heard")
    }

    pub(crate) fn hook(&mut self, of: &AgentInfo, state: AgentState) -> AgentChange {
        self.hear(of, &[Signal::state(Authority::Hook, state)], None, true)
    }

    pub(crate) fn working(&mut self, of: &AgentInfo) -> AgentChange {
        self.hook(of, AgentState::Working)
    }

    fn alive(&mut self, of: &AgentInfo, claim: Option<&InboxUpdate<'_>>) -> AgentChange {
        let alive = Signal::new(Authority::Hook, SignalContent::Alive);
        self.hear(of, &[alive], claim, true)
    }

    fn tick(&mut self) -> usize {
        let mono = Duration::from_secs(self.seconds);
        let stamp = at(self.unix_ms());
        self.journal.tick_agents(mono, AgentTimeouts::default(), &stamp).expect("ticked")
    }
}

fn messages(journal: &mut Journal) -> Vec<Message> {
    let mut messages = journal.messages_after(0, usize::MAX).expect("readable");
    messages.retain(|message| message.draft.tag != Tag::Mark(Mark::Resolve));
    messages
}

/// State, start of the state, and time last seen.
fn row(test: &TestHome, id: &str) -> (String, i64, i64) {
    let query = "SELECT state, since, seen FROM agent WHERE id = ?1";
    let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
    test.connection().query_row(query, [id], read).expect("a row")
}

/// Changes whenever another connection changes the database.
fn version(connection: &Connection) -> i64 {
    connection.query_row("PRAGMA data_version", [], |row| row.get(0)).expect("a number")
}

#[test]
fn a_new_agent_is_written_down_with_all_that_is_seen_of_it() {
    let test = TestHome::new();
    let mut journal = test.open();
    let seen = AgentInfo {
        worktree: Some("/src/ringer".to_owned()),
        cwd: Some("/src/ringer/crates".to_owned()),
        surface: Some("tmux:1".to_owned()),
        manager: Some(agent("boss")),
        name: Some("painter".to_owned()),
        process: Some((7, 99)),
        by_hooks: true,
        ..agent_info("a")
    };
    let change = JournalAt::at(&mut journal, 5).working(&seen);
    assert_eq!(change, AgentChange { written: true, messages_sent: 0, claimed: None });
    assert_eq!(row(&test, "a"), ("working".to_owned(), 5000, 5000));
    assert_eq!(format!("{:?}", journal.agent_info(&agent("a")).unwrap()), format!("{:?}", Some(&seen)));
    // An update with fewer details deletes none.
    JournalAt::at(&mut journal, 6).hook(&agent_info("a"), AgentState::Blocked(BlockedOn::Auth));
    assert_eq!(format!("{:?}", journal.agent_info(&agent("a")).unwrap()), format!("{:?}", Some(&seen)));
    // An update with other details changes them.
    let moved = AgentInfo {
        worktree: Some("/src/other".to_owned()),
        cwd: Some("/".to_owned()),
        surface: Some("tmux:2".to_owned()),
        manager: Some(agent("new boss")),
        name: Some("tester".to_owned()),
        process: Some((8, 100)),
        ..seen
    };
    JournalAt::at(&mut journal, 7).working(&moved);
    assert_eq!(format!("{:?}", journal.agent_info(&agent("a")).unwrap()), format!("{:?}", Some(moved)));
    assert!(journal.agent_info(&agent("nobody")).unwrap().is_none());
}

#[test]
fn a_session_that_replaces_others_ends_those_of_its_process() {
    let test = TestHome::new();
    let mut journal = test.open();
    let in_process = |id: &str, process| AgentInfo { process: Some(process), ..agent_info(id) };
    for (id, process) in [("left", (7, 99)), ("elsewhere", (8, 99)), ("before it", (7, 98))] {
        JournalAt::at(&mut journal, 1).hook(&in_process(id, process), AgentState::Done);
    }
    let other = AgentInfo { client: "another".to_owned(), ..in_process("another", (7, 99)) };
    JournalAt::at(&mut journal, 1).hook(&other, AgentState::Done);
    let state = |id: &str| row(&test, id).0;
    JournalAt::at(&mut journal, 2).hook(&in_process("beside it", (7, 99)), AgentState::Ready);
    assert_eq!(state("left"), "done", "a server may have many sessions");
    let new = AgentInfo { replaces_others: true, ..in_process("new", (7, 99)) };
    JournalAt::at(&mut journal, 3).hook(&new, AgentState::Ready);
    let states = ["left", "beside it", "elsewhere", "before it", "another", "new"].map(state);
    assert_eq!(states, ["exited", "exited", "done", "done", "done", "ready"]);
}

#[test]
fn every_state_has_one_word() {
    let check = |state, expect: &str| {
        let test = TestHome::new();
        JournalAt::at(&mut test.open(), 0).hook(&agent_info("a"), state);
        assert_eq!(row(&test, "a").0, expect);
    };
    check(AgentState::Starting, "starting");
    check(AgentState::Ready, "ready");
    check(AgentState::Working, "working");
    for on in [BlockedOn::Permission, BlockedOn::Question, BlockedOn::Auth, BlockedOn::Input] {
        check(AgentState::Blocked(on), "blocked");
    }
    check(AgentState::Done, "done");
    check(AgentState::Stuck, "stuck");
    check(AgentState::Error, "error");
    check(AgentState::Exited, "exited");
    check(AgentState::RateLimited, "rate_limited");
    check(AgentState::Compacting, "compacting");
}

#[test]
fn since_when_changes_only_with_the_state() {
    let test = TestHome::new();
    let mut journal = test.open();
    let of = agent_info("a");
    JournalAt::at(&mut journal, 1).working(&of);
    JournalAt::at(&mut journal, 90).working(&of);
    assert_eq!(row(&test, "a"), ("working".to_owned(), 1000, 90_000), "the same, seen again");
    JournalAt::at(&mut journal, 91).hook(&of, AgentState::Done);
    assert_eq!(row(&test, "a"), ("done".to_owned(), 91_000, 91_000));
    let richer = Signal::state(Authority::Hook, AgentState::Done).text("all green");
    assert_eq!(
        JournalAt::at(&mut journal, 92).hear(&of, &[richer], None, true).messages_sent,
        1,
        "it says more"
    );
    assert_eq!(row(&test, "a"), ("done".to_owned(), 91_000, 92_000));
}

#[test]
fn where_nothing_changes_nothing_is_written() {
    let test = TestHome::new();
    let mut journal = test.open();
    let watcher = test.connection();
    let mut of = agent_info("a");
    of.cwd = Some("/src".to_owned());
    JournalAt::at(&mut journal, 0).working(&of);
    let bell = HubLock::acquire(&test.home).unwrap().unwrap();
    let before = (version(&watcher), row(&test, "a"));
    for seconds in [1, 2, 4] {
        assert_eq!(JournalAt::at(&mut journal, seconds).working(&of), AgentChange::default());
        assert_eq!(JournalAt::at(&mut journal, seconds).alive(&of, None), AgentChange::default());
        // With fewer details it counts as not moved.
        assert_eq!(JournalAt::at(&mut journal, seconds).working(&agent_info("a")), AgentChange::default());
    }
    assert_eq!((version(&watcher), row(&test, "a")), before);
    assert!(!journal.hub_was_woken(), "and no process was woken");
    drop(bell);
}

#[test]
fn an_agent_that_moved_is_written_at_once() {
    let check = |change: fn(&mut AgentInfo)| {
        let test = TestHome::new();
        let mut journal = test.open();
        let mut of = agent_info("a");
        JournalAt::at(&mut journal, 0).working(&of);
        change(&mut of);
        assert!(JournalAt::at(&mut journal, 1).working(&of).written);
        assert_eq!(format!("{:?}", journal.agent_info(&of.id).unwrap()), format!("{:?}", Some(&of)));
        assert!(!JournalAt::at(&mut journal, 2).working(&of).written, "and only once");
    };
    check(|of| of.scope = scope("bbbbbbbb"));
    check(|of| of.surface = Some("tmux:2".to_owned()));
    check(|of| of.cwd = Some("/elsewhere".to_owned()));
}

#[test]
fn a_row_that_makes_no_sense_is_begun_anew() {
    let test = TestHome::new();
    let mut journal = test.open();
    let of = agent_info("a");
    JournalAt::at(&mut journal, 0).hook(&of, AgentState::Done);
    test.connection().execute("UPDATE agent SET machine = 'dance'", []).unwrap();
    assert!(
        journal.live_agents(Duration::ZERO, AgentTimeouts::default()).unwrap().agents.is_empty(),
        "passed over"
    );
    assert!(JournalAt::at(&mut journal, 1).working(&of).written);
    assert_eq!(row(&test, "a"), ("working".to_owned(), 1000, 1000));
}

#[test]
fn what_is_told_is_written_with_the_state_or_not_at_all() {
    let test = TestHome::new();
    let mut journal = test.open();
    let of = agent_info("a");
    JournalAt::at(&mut journal, 0).working(&of);
    let refuse = "CREATE TRIGGER no BEFORE INSERT ON message BEGIN SELECT RAISE(ABORT, 'no'); END";
    test.connection().execute_batch(refuse).unwrap();
    let signals = [Signal::state(Authority::Hook, AgentState::Done)];
    let mono = Duration::from_secs(1);
    let heard =
        AgentUpdate { agent: &of, signals: &signals, mono, timeouts: AgentTimeouts::default(), notify: true };
    assert!(journal.update_agent(&heard, None, &at(1000)).is_err());
    assert_eq!(row(&test, "a").0, "working");
    test.connection().execute_batch("DROP TRIGGER no").unwrap();
    assert_eq!(journal.update_agent(&heard, None, &at(1000)).unwrap().messages_sent, 1);
    assert_eq!(row(&test, "a").0, "done");
}

#[test]
fn whom_it_is_told_depends_on_the_tier() {
    let check = |manager: Option<&str>, lead: Option<&str>, recipients: &[&str], text: &str| {
        let test = TestHome::new();
        let mut journal = test.open();
        let mut of = agent_info("a");
        of.manager = manager.map(agent);
        if let Some(lead) = lead {
            journal.want_lead(&of.scope, true).unwrap();
            assert!(journal.claim_lead(&of.scope, &agent(lead)).unwrap());
        }
        JournalAt::at(&mut journal, 0).working(&of);
        assert_eq!(
            JournalAt::at(&mut journal, 1).hook(&of, AgentState::Done).messages_sent,
            recipients.len()
        );
        let told = messages(&mut journal);
        let to: Vec<String> = told.iter().map(|message| message.draft.recipient.to_string()).collect();
        assert_eq!(to, recipients, "{manager:?}, {lead:?}");
        assert!(told.iter().all(|message| message.draft.body == text), "{told:?}");
        let waits = manager.map(|manager| journal.pending_for(&agent(manager), 1000).unwrap().len());
        let in_inbox = recipients.iter().filter(|to| to.starts_with("agent:")).count();
        assert_eq!(waits.unwrap_or(0), in_inbox, "an inbox of the manager's has it");
    };
    check(None, None, &["default"], "Manager a completed its goal");
    check(Some("m"), None, &["agent:m", "default"], "Agent a completed (worker of m)");
    check(Some("m"), Some("l"), &["agent:m", "default"], "Agent a completed (worker of m)");
    check(None, Some("l"), &["default"], "Agent a completed (worker of l)");
    check(Some("l"), Some("l"), &["default"], "Agent a completed (worker of l)");
    check(None, Some("a"), &["person"], "Manager a completed its goal");
    check(Some("a"), None, &["default"], "Agent a completed (worker of a)");
}

#[test]
fn a_look_that_sees_less_tells_the_same_people_in_the_same_words() {
    let test = TestHome::new();
    let mut journal = test.open();
    let of = AgentInfo {
        manager: Some(agent("m")),
        name: Some("painter".to_owned()),
        worktree: Some("/src/ringer".to_owned()),
        surface: Some("tmux:1".to_owned()),
        ..agent_info("a")
    };
    JournalAt::at(&mut journal, 0).working(&of);
    JournalAt::at(&mut journal, 1).hook(&agent_info("a"), AgentState::Done);
    let told = messages(&mut journal);
    let to: Vec<String> = told.iter().map(|message| message.draft.recipient.to_string()).collect();
    assert_eq!(to, ["agent:m", "default"]);
    assert_eq!(told[0].draft.title.as_deref(), Some("painter in ringer"));
    assert_eq!(told[0].draft.origin.surface, of.surface);
}

#[test]
fn a_lead_of_another_scope_is_nobodys_manager_here() {
    let test = TestHome::new();
    let mut journal = test.open();
    journal.want_lead(&scope("bbbbbbbb"), true).unwrap();
    assert!(journal.claim_lead(&scope("bbbbbbbb"), &agent("l")).unwrap());
    JournalAt::at(&mut journal, 0).working(&agent_info("a"));
    JournalAt::at(&mut journal, 1).hook(&agent_info("a"), AgentState::Done);
    assert_eq!(messages(&mut journal)[0].draft.body, "Manager a completed its goal");
}

#[test]
fn a_manager_is_done_when_its_workers_are() {
    let check = |manager: &str, state, told| {
        let test = TestHome::new();
        let mut journal = test.open();
        let mut worker = agent_info("w");
        worker.manager = Some(agent(manager));
        JournalAt::at(&mut journal, 0).hook(&worker, state);
        JournalAt::at(&mut journal, 0).working(&agent_info("m"));
        assert_eq!(
            JournalAt::at(&mut journal, 1).hook(&agent_info("m"), AgentState::Done).messages_sent,
            told,
            "{state:?}"
        );
        assert_eq!(row(&test, "m").0, "done");
    };
    check("m", AgentState::Working, 0);
    check("m", AgentState::Blocked(BlockedOn::Question), 0);
    for finished in [AgentState::Done, AgentState::Exited, AgentState::Error] {
        check("m", finished, 1);
    }
    check("another", AgentState::Working, 1);
}

#[test]
fn a_notice_says_who_where_and_why() {
    let test = TestHome::new();
    let mut journal = test.open();
    let of = AgentInfo {
        worktree: Some("/src/ringer".to_owned()),
        cwd: Some("/src/ringer/crates".to_owned()),
        surface: Some("tmux:1".to_owned()),
        tty: Some("/dev/pts/1".to_owned()),
        ..agent_info("a")
    };
    JournalAt::at(&mut journal, 0).working(&of);
    let blocked = Signal::state(Authority::Hook, AgentState::Blocked(BlockedOn::Permission)).text("rm -r x");
    JournalAt::at(&mut journal, 1).hear(&of, &[blocked], None, true);
    let told = messages(&mut journal).remove(0);
    assert_eq!(
        (told.unix_ms, told.draft.sender.as_str(), told.draft.tag),
        (1000, "a", Tag::Notice(Kind::Waiting))
    );
    assert_eq!(told.draft.scope, of.scope);
    assert_eq!(told.draft.body, "Agent a needs permission: rm -r x");
    assert_eq!(told.draft.title.as_deref(), Some("claude in ringer"));
    assert_eq!(told.draft.category.as_deref(), Some("permission_prompt"));
    let origin = &told.draft.origin;
    assert_eq!((&origin.cwd, &origin.surface, &origin.tty), (&of.cwd, &of.surface, &of.tty));
    // Notices of one episode share a key, the next episode has another; the sender is the agent's name, if it has one.
    let named = AgentInfo { name: Some("painter".to_owned()), worktree: None, ..of };
    let question = Signal::state(Authority::Hook, AgentState::Blocked(BlockedOn::Question)).text("why?");
    JournalAt::at(&mut journal, 2).hear(&named, &[question], None, true);
    JournalAt::at(&mut journal, 3).working(&named);
    JournalAt::at(&mut journal, 4).hook(&named, AgentState::Error);
    let told = messages(&mut journal);
    let keys: Vec<&str> = told.iter().filter_map(|message| message.draft.key.as_deref()).collect();
    assert!(keys.iter().all(|key| key.starts_with("episode:a:")) && keys.first() != keys.last(), "{keys:?}");
    let last = told.last().expect("it failed");
    assert_eq!(last.draft.title.as_deref(), Some("painter in ringer"));
    let elsewhere = AgentInfo { cwd: Some("/src/other".to_owned()), ..agent_info("b") };
    JournalAt::at(&mut journal, 5).hook(&elsewhere, AgentState::Error);
    assert_eq!(
        messages(&mut journal).pop().expect("it failed").draft.title.as_deref(),
        Some("claude in other")
    );
}

#[test]
fn a_subagent_is_silent() {
    let test = TestHome::new();
    let mut journal = test.open();
    let of = agent_info("a");
    for (seconds, state) in [(0, AgentState::Working), (1, AgentState::Done), (2, AgentState::Error)] {
        let signals = [Signal::state(Authority::Hook, state)];
        let change = JournalAt::at(&mut journal, seconds).hear(&of, &signals, None, false);
        assert_eq!(change, AgentChange { written: true, messages_sent: 0, claimed: None });
    }
    assert!(messages(&mut journal).is_empty());
    assert_eq!(row(&test, "a").0, "error");
}

#[test]
fn several_signals_of_one_moment_are_heard_in_order() {
    let test = TestHome::new();
    let mut journal = test.open();
    let states = [AgentState::Working, AgentState::Error, AgentState::Working, AgentState::Done];
    let signals = states.map(|state| Signal::state(Authority::Hook, state));
    let mut of = agent_info("a");
    of.manager = Some(agent("m"));
    assert_eq!(JournalAt::at(&mut journal, 0).hear(&of, &signals, None, true).messages_sent, 4);
    let told = messages(&mut journal);
    let said: Vec<(&str, String)> = told
        .iter()
        .map(|message| (message.draft.tag.as_str(), message.draft.recipient.to_string()))
        .collect();
    let expect =
        [("error", "agent:m"), ("error", "default"), ("complete", "agent:m"), ("complete", "default")];
    assert_eq!(said, expect.map(|(kind, to)| (kind, to.to_owned())), "each under an id of its own");
}

#[test]
fn what_waits_for_an_agent_enters_its_turn_in_the_same_transaction() {
    let test = TestHome::new();
    let mut journal = test.open();
    let watcher = test.connection();
    let of = agent_info("a");
    JournalAt::at(&mut journal, 0).working(&of);
    let everything = |parts: &[MessagePart], _: &[EnteredPart]| (0..parts.len()).collect();
    let takes = |call_id| InboxUpdate { call_id, choose: Some(&everything), ..InboxUpdate::default() };
    let only_confirms = |call_id| InboxUpdate { call_id, ..InboxUpdate::default() };
    // Other agents have messages; this one has none.
    append(&mut journal, "for the lead");
    let before = version(&watcher);
    assert!(!JournalAt::at(&mut journal, 1).alive(&of, Some(&takes(Some("1")))).written, "nothing waits");
    assert_eq!(version(&watcher), before);
    let mut for_agent = draft("look");
    for_agent.recipient = Recipient::Agent(of.id.clone());
    let expired = Draft { ttl: Some(Duration::from_millis(1)), ..for_agent.clone() };
    journal.append(&expired, &at(0)).unwrap();
    assert!(!JournalAt::at(&mut journal, 1).alive(&of, Some(&takes(Some("1")))).written, "out of date");
    journal.append(&for_agent, &at(0)).unwrap();
    assert!(!JournalAt::at(&mut journal, 2).alive(&of, None).written, "no question is open");
    assert!(
        !JournalAt::at(&mut journal, 2).alive(&of, Some(&only_confirms(Some("1")))).written,
        "nothing can enter"
    );
    let change = JournalAt::at(&mut journal, 3).alive(&of, Some(&takes(Some("2"))));
    let claimed = change.claimed.expect("it waits");
    assert!(change.written && claimed.parts.len() == 1);
    assert!(!JournalAt::at(&mut journal, 4).alive(&of, Some(&takes(Some("3")))).written, "it is leased");
    journal.mark_delivered(&of.id, &claimed, 4000).unwrap();
    let state = |journal: &mut Journal| {
        journal.receipts(claimed.parts[0].message.id.as_str()).unwrap()[0].state.clone()
    };
    assert!(!JournalAt::at(&mut journal, 5).alive(&of, Some(&takes(Some("2")))).written, "the same event");
    assert_eq!(state(&mut journal), "delivered");
    let change = JournalAt::at(&mut journal, 6).alive(&of, Some(&only_confirms(Some("4"))));
    assert_eq!(
        (change, state(&mut journal).as_str()),
        (AgentChange { written: true, messages_sent: 0, claimed: None }, "seen")
    );
}
