use std::collections::{HashMap, HashSet};

use super::*;

/// Processes as a test describes them.
#[derive(Default)]
struct World {
    processes: HashMap<u32, Process>,
    /// Who holds the other end of a terminal, by its number.
    holders: HashMap<u32, Vec<u32>>,
    /// The clients of tmux servers and the windows of panes, by the terminal of the pane.
    windows: HashMap<u32, Vec<u32>>,
    elsewhere: HashSet<u32>,
    is_container: bool,
    agents: AgentProcesses,
}

#[derive(Clone)]
struct Process {
    stat: ProcessStat,
    path: Option<&'static str>,
    owner: Owner,
    root_name: Option<&'static str>,
    variables: Vec<&'static str>,
}

const DISPLAY: &[&str] = &["DISPLAY"];

/// The kernel's number for a pseudo-terminal.
fn device(terminal: u32) -> u32 {
    (136 << 8) | terminal
}

impl World {
    /// With the first process, and a shell of a person (10, started at 100) in terminal 1 of xterm (5).
    fn new() -> Self {
        let mut world = Self::default();
        world.add(1, 0, 1, None, "/sbin/init").add(5, 1, 5, None, "/usr/bin/xterm").set(5, DISPLAY);
        world.add(10, 5, 10, Some(1), "/bin/bash").holds(1, &[5]);
        world
    }

    /// A process with its parent, session, terminal and executable. It was started at ten times its number.
    fn add(
        &mut self,
        pid: u32,
        parent: u32,
        session: u32,
        terminal: Option<u32>,
        path: &'static str,
    ) -> &mut Self {
        let stat = ProcessStat {
            parent,
            group: pid,
            session,
            tty: terminal.map_or(0, device),
            foreground_group: -1,
            started: u64::from(pid) * 10,
        };
        let process =
            Process { stat, path: Some(path), owner: Owner::Root, root_name: None, variables: Vec::new() };
        self.processes.insert(pid, process);
        self
    }

    fn process(&mut self, pid: u32) -> &mut Process {
        self.processes.get_mut(&pid).unwrap()
    }

    fn set(&mut self, pid: u32, variables: &[&'static str]) -> &mut Self {
        self.process(pid).variables = variables.to_vec();
        self
    }

    fn owned(&mut self, pid: u32, owner: Owner) -> &mut Self {
        self.process(pid).owner = owner;
        self
    }

    /// A process of root's, whose files this user cannot read.
    fn root(&mut self, pid: u32, name: &'static str) -> &mut Self {
        let process = self.process(pid);
        (process.path, process.root_name) = (None, Some(name));
        self
    }

    fn holds(&mut self, terminal: u32, pids: &[u32]) -> &mut Self {
        self.holders.insert(terminal, pids.to_vec());
        self
    }

    fn shows(&mut self, terminal: u32, windows: &[u32]) -> &mut Self {
        self.windows.insert(terminal, windows.to_vec());
        self
    }

    fn agent(&mut self, pid: u32) -> &mut Self {
        self.agents.insert((pid, u64::from(pid) * 10), Agent::new("claude-1").unwrap());
        self
    }

    #[track_caller]
    fn check(&self, pid: u32, since: Option<u64>, expected: &str) {
        let said = match examine(self, &self.agents, pid, since) {
            Verdict::Proven(evidence) => format!("proven: {evidence}"),
            Verdict::Known(evidence) => format!("known: {evidence}"),
            Verdict::Refused(refusal) => format!("refused: {refusal}"),
            Verdict::Agent(agent) => format!("agent: {}", agent.as_str()),
        };
        assert_eq!(said, expected);
    }
}

impl ProcessFacts for World {
    fn stat(&self, pid: u32) -> Option<ProcessStat> {
        Some(self.processes.get(&pid)?.stat)
    }

    fn executable(&self, pid: u32) -> Option<Executable> {
        let process = self.processes.get(&pid)?;
        Some(Executable { path: process.path?.to_owned(), owner: process.owner })
    }

    fn name_if_root(&self, pid: u32) -> Option<String> {
        self.processes.get(&pid)?.root_name.map(str::to_owned)
    }

    fn is_hidden(&self, pid: u32) -> bool {
        self.processes.get(&pid).is_none_or(|process| process.path.is_none())
    }

    fn variable(&self, pid: u32, name: &str) -> Option<String> {
        self.processes.get(&pid)?.variables.contains(&name).then(|| "1".to_owned())
    }

    fn is_elsewhere(&self, pid: u32) -> bool {
        self.elsewhere.contains(&pid)
    }

    fn is_container(&self) -> bool {
        self.is_container
    }

    fn holders(&self, terminal: u32) -> Vec<u32> {
        self.holders.get(&terminal).cloned().unwrap_or_default()
    }

    fn tmux_clients(&self, _: u32, terminal: u32) -> Vec<u32> {
        self.windows.get(&terminal).cloned().unwrap_or_default()
    }

    fn pane_windows(&self, terminal: u32) -> Vec<u32> {
        self.windows.get(&terminal).cloned().unwrap_or_default()
    }
}

#[test]
fn a_person_at_a_terminal_emulator_is_proven_and_a_younger_terminal_is_known() {
    let mut world = World::new();
    world.add(30, 10, 10, Some(1), "/usr/bin/ringer");
    world.check(30, None, "proven: the terminal of xterm");
    world.check(30, Some(200), "proven: the terminal of xterm");
    world.check(30, Some(99), "known: the terminal of xterm, which may have been opened by an agent");
    world.add(7, 1, 7, None, "/usr/bin/claude").agent(7);
    world.check(30, None, "known: the terminal of xterm, which may have been opened by an agent");
    world.processes.remove(&7);
    world.check(30, None, "proven: the terminal of xterm");
    world.set(5, &[]);
    world.check(30, None, "refused: its terminal is held by xterm, which has no display");
}

#[test]
fn whose_program_it_is_counts() {
    let mut world = World::new();
    world.set(5, DISPLAY).owned(5, Owner::User);
    world.check(10, None, "known: the terminal of xterm, whose program is not root's");
    world.owned(5, Owner::Others);
    world.check(10, None, "refused: its terminal is held by xterm, which others can write");
    let programs: [(&'static str, &str); 9] = [
        ("/usr/bin/script", "refused: its terminal is held by script"),
        ("/usr/bin/python3.12", "refused: its terminal is held by python3.12"),
        ("/usr/bin/bash", "refused: its terminal is held by bash"),
        ("/usr/sbin/sshd", "proven: the terminal of sshd"),
        ("/usr/lib/openssh/sshd-session", "proven: the terminal of sshd-session"),
        ("/usr/bin/emacs-29.1", "known: the terminal of emacs-29.1, whose viewers cannot be seen"),
        ("/usr/bin/zellij", "known: the terminal of zellij, whose viewers cannot be seen"),
        ("/people/a/.vscode-server/bin/x/node", "known: the terminal of node, whose viewers cannot be seen"),
        ("/usr/bin/foot (deleted)", "proven: the terminal of foot"),
    ];
    for (path, expected) in programs {
        let mut world = World::new();
        world.process(5).path = Some(path);
        world.check(10, None, expected);
    }
    let mut world = World::new();
    world.process(5).path = Some("/people/a/bin/sshd");
    world.owned(5, Owner::User);
    world.check(10, None, "refused: its terminal is held by sshd");
}

#[test]
fn below_an_agent_is_the_agent_wherever_its_terminal_is() {
    let mut world = World::new();
    world.add(20, 10, 10, Some(1), "/usr/bin/claude").agent(20).add(30, 20, 10, Some(1), "/bin/sh");
    world.check(30, None, "agent: claude-1");
    world.check(20, None, "agent: claude-1");
    world
        .add(31, 20, 31, Some(2), "/bin/sh")
        .add(32, 20, 32, None, "/usr/bin/xterm")
        .set(32, DISPLAY)
        .holds(2, &[32]);
    world.check(31, None, "agent: claude-1");
}

#[test]
fn what_left_its_agent_is_refused() {
    let mut world = World::new();
    world.add(30, 1, 30, None, "/bin/sh");
    world.check(30, None, "refused: it has no terminal");
    // Left by a process between it and the shell of the terminal.
    world.add(31, 1, 10, Some(1), "/bin/sh");
    world.check(31, None, "refused: the shell of its terminal did not start it");
    world.elsewhere.insert(10);
    world.check(10, None, "refused: it is in another namespace");
    world.check(99, None, "refused: the processes above it cannot be read");
    for pid in 1000..1300 {
        world.add(pid, pid - 1, 10, Some(1), "/bin/sh");
    }
    world.add(1000, 10, 10, Some(1), "/bin/sh");
    world.check(1299, None, "refused: too many processes are above it");
    world.check(1200, None, "proven: the terminal of xterm");
}

#[test]
fn a_client_without_hooks_is_known_by_what_it_sets() {
    let mut world = World::new();
    world.add(30, 10, 10, Some(1), "/usr/bin/ringer").set(30, &["CLAUDECODE"]);
    world.check(30, None, "agent: claude");
    // tmux was started in an agent once: every shell in it has the variable.
    world.set(10, &["CLAUDECODE"]);
    world.check(30, None, "proven: the terminal of xterm");
}

#[test]
fn a_pane_of_tmux_counts_as_its_best_window() {
    let mut world = World::new();
    world.add(40, 1, 40, None, "/usr/bin/tmux").add(50, 40, 50, Some(7), "/bin/sh").holds(7, &[40]);
    world.check(50, None, "refused: no terminal of yours shows its pane of tmux");
    world.add(60, 1, 60, Some(8), "/usr/bin/tmux").holds(8, &[61]).add(61, 1, 61, None, "/usr/bin/script");
    world.shows(7, &[60]);
    world.check(50, None, "refused: no terminal of yours shows its pane of tmux");
    world.add(20, 10, 10, Some(1), "/usr/bin/claude").agent(20).add(21, 20, 10, Some(1), "/usr/bin/tmux");
    world.shows(7, &[60, 21]);
    world.check(50, Some(9999), "refused: no terminal of yours shows its pane of tmux");
    world.add(11, 10, 10, Some(1), "/usr/bin/tmux").shows(7, &[60, 21, 11]);
    world.check(50, Some(9999), "proven: tmux in the terminal of xterm");
    // A shell that was copied to the name of tmux leads no session that it made.
    world.add(40, 1, 39, None, "/usr/bin/tmux");
    world.check(50, Some(9999), "refused: its terminal is held by tmux");
    // A window that shows itself.
    world.add(40, 1, 40, None, "/usr/bin/tmux").add(51, 50, 50, Some(7), "/usr/bin/tmux").shows(7, &[51]);
    world.check(50, Some(9999), "refused: no terminal of yours shows its pane of tmux");
}

#[test]
fn panes_count_as_their_windows_and_run_as_its_own_terminal() {
    let mut world = World::new();
    world.add(40, 1, 40, None, "/people/a/bin/ringer").owned(40, Owner::User);
    world.add(41, 1, 41, None, "/people/a/bin/ringer").owned(41, Owner::User);
    world.add(50, 40, 50, Some(7), "/bin/sh").holds(7, &[40, 41]);
    world.check(50, None, "refused: no terminal of yours shows its pane of ringer");
    world.add(11, 10, 10, Some(1), "/people/a/bin/ringer").shows(7, &[11]);
    world.check(50, None, "proven: ringer in the terminal of xterm");
    world
        .add(12, 10, 10, Some(1), "/people/a/bin/ringer")
        .add(13, 12, 13, Some(9), "/bin/sh")
        .holds(9, &[12]);
    world.check(13, None, "proven: ringer in the terminal of xterm");
    world.add(12, 1, 12, None, "/people/a/bin/ringer");
    world.check(13, None, "refused: no terminal of yours shows its pane of ringer");
}

#[test]
fn every_holder_counts_but_what_inherited_a_terminal() {
    let mut world = World::new();
    world.add(6, 1, 6, None, "/usr/bin/python3").holds(1, &[5, 6]);
    world.check(10, None, "refused: its terminal is held by python3");
    world.add(6, 5, 6, None, "/usr/bin/python3");
    world.check(10, None, "proven: the terminal of xterm");
}

#[test]
fn a_login_whose_processes_are_hidden_is_known_by_roots_process_above() {
    let mut world = World::new();
    world.add(60, 1, 60, None, "").root(60, "sshd").add(61, 60, 60, None, "").root(61, "sshd");
    world.add(62, 61, 62, Some(3), "/bin/bash");
    world.check(62, None, "proven: the terminal of sshd");
    world.process(61).root_name = None;
    world.check(62, None, "proven: the terminal of sshd");
    // A process between them that this user can read is the user's own.
    world.process(61).path = Some("/usr/bin/script");
    world.check(62, None, "refused: the program behind its terminal cannot be seen");
    // A console has no other end.
    world.add(70, 1, 70, None, "").root(70, "login").add(71, 70, 71, None, "/bin/bash");
    world.process(71).stat.tty = 0x0401;
    world.check(71, None, "proven: the terminal of login");
    world.process(70).root_name = None;
    world.check(71, None, "known: the terminal of a console, where no login is seen");
    // sudo's terminal is inside another one.
    world.add(80, 10, 10, Some(1), "/usr/bin/sudo").add(81, 80, 81, Some(4), "/bin/bash").holds(4, &[80]);
    world.check(81, None, "proven: sudo in the terminal of xterm");
}

#[test]
fn a_container_with_its_hub_is_known_and_without_one_refused() {
    let mut world = World::new();
    world.add(90, 0, 90, Some(2), "/bin/bash");
    world.check(90, None, "refused: the program behind its terminal cannot be seen");
    world.is_container = true;
    world.check(90, None, "known: the terminal of this container, whose other end is outside");
}
