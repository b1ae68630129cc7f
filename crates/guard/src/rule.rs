//! The rule: facts about processes in, verdict out.

use std::fmt;

use ringer_core::message::Agent;
use ringer_journal::ProcessStat;

use crate::AgentProcesses;
use crate::programs::{Executable, Owner, Role, is_login_name};

/// Maximum number of parents followed. Far more than lie between a person's shell and a command.
const MAX_ANCESTORS: usize = 256;
/// Maximum number of nested terminals followed: sudo in tmux in a pane in tmux over ssh are four.
const MAX_TERMINALS: usize = 8;
/// Environment variables that clients set for the commands they run. They reveal an agent whose hooks are not set up.
pub const OF_CLIENTS: [(&str, &str); 3] =
    [("CLAUDECODE", "claude"), ("CODEX_THREAD_ID", "codex"), ("GEMINI_CLI", "gemini")];

const YOUNGER: &str = "which may have been opened by an agent";

/// Facts about processes.
pub trait ProcessFacts {
    /// Returns `None` if the process has ended or cannot be read.
    fn stat(&self, pid: u32) -> Option<ProcessStat>;
    /// Returns the file that a process executes, if it can be read.
    fn executable(&self, pid: u32) -> Option<Executable>;
    /// Returns the name of a process that runs as root, and `None` for other processes, which can choose their names.
    fn name_if_root(&self, pid: u32) -> Option<String>;
    /// Returns true if the kernel hides the files of a process, as it does for one that was root's before.
    fn is_hidden(&self, pid: u32) -> bool;
    /// Returns a variable of the environment with which the process was started. An empty variable counts as unset.
    fn variable(&self, pid: u32, name: &str) -> Option<String>;
    /// Returns true if a process is known to be in another namespace than the hub or than the processes above it.
    fn is_elsewhere(&self, pid: u32) -> bool;
    /// Returns true if the hub is known to run here. A session leader without a parent is then the first process of a container.
    fn is_container(&self) -> bool;
    /// Returns the processes that hold the other end of the pseudo-terminal with this number.
    fn holders(&self, terminal: u32) -> Vec<u32>;
    /// Returns the clients of a tmux server that are attached to a session of the pane with this terminal.
    fn tmux_clients(&self, server: u32, terminal: u32) -> Vec<u32>;
    /// Returns the windows that show panes, if this is the terminal of a pane.
    fn pane_windows(&self, terminal: u32) -> Vec<u32>;
}

/// Decides who acts with a process. `since` is the time at which the question was asked, in the unit of
/// [`ProcessStat::started`]: a younger terminal may have been opened for the answer.
pub fn examine(facts: &dyn ProcessFacts, agents: &AgentProcesses, pid: u32, since: Option<u64>) -> Verdict {
    let walk = Walk { facts, agents };
    if let Err(verdict) = walk.not_below_agent(pid) {
        return verdict;
    }
    if facts.is_elsewhere(pid) {
        return Verdict::Refused(Refusal::Elsewhere);
    }
    let verdict = walk.terminal_of(pid, MAX_TERMINALS);
    let leader = facts.stat(pid).and_then(|stat| facts.stat(stat.session));
    // Without a question, any running agent may have prepared the terminal, so the start of the oldest one counts.
    let runs = |(pid, started): &&(u32, u64)| facts.stat(*pid).is_some_and(|stat| stat.started == *started);
    let since = since.or_else(|| agents.keys().filter(runs).map(|(_, started)| *started).min());
    let is_younger = since.zip(leader).is_some_and(|(since, leader)| leader.started > since);
    match verdict {
        Verdict::Proven(evidence) if is_younger => Verdict::Known(evidence.doubted(YOUNGER)),
        verdict => verdict,
    }
}

struct Walk<'a> {
    facts: &'a dyn ProcessFacts,
    agents: &'a AgentProcesses,
}

impl Walk<'_> {
    /// Returns a process and all processes above it. Fails with a verdict if an agent is among them or they cannot be followed.
    fn not_below_agent(&self, pid: u32) -> Result<Vec<(u32, ProcessStat)>, Verdict> {
        let mut above: Vec<(u32, ProcessStat)> = Vec::new();
        let mut next = pid;
        while above.len() < MAX_ANCESTORS {
            let Some(stat) = self.facts.stat(next) else {
                return Err(Verdict::Refused(Refusal::Unreadable));
            };
            if let Some(agent) = self.agents.get(&(next, stat.started)) {
                return Err(Verdict::Agent(agent.clone()));
            }
            above.push((next, stat));
            // A process without a parent is the first of a namespace, or entered the namespace from outside.
            if stat.parent == 0 {
                return self
                    .unregistered_agent(pid, &above)
                    .map_or(Ok(above), |agent| Err(Verdict::Agent(agent)));
            }
            next = stat.parent;
        }
        Err(Verdict::Refused(Refusal::TooDeep))
    }

    /// Finds a client whose hooks are not set up, by a variable that was set between the shell of the terminal and the process. A
    /// variable that the shell also has came from the program that opened the terminal.
    fn unregistered_agent(&self, pid: u32, above: &[(u32, ProcessStat)]) -> Option<Agent> {
        let leader = above.first()?.1.session;
        let set = |pid, name| self.facts.variable(pid, name).is_some();
        let (_, client) = OF_CLIENTS.into_iter().find(|(name, _)| set(pid, name) && !set(leader, name))?;
        Agent::new(client).ok()
    }

    /// Follows the terminal of a process outwards, through at most `left` terminals.
    fn terminal_of(&self, pid: u32, left: usize) -> Verdict {
        let Some(left) = left.checked_sub(1) else { return Verdict::Refused(Refusal::TooDeep) };
        let above = match self.not_below_agent(pid) {
            Ok(above) => above,
            Err(verdict) => return verdict,
        };
        let Some((_, stat)) = above.first() else { return Verdict::Refused(Refusal::Unreadable) };
        if stat.tty == 0 {
            return Verdict::Refused(Refusal::NoTerminal);
        }
        // The process is an orphan, and an agent may have started it.
        let Some(leader) = above.iter().position(|(pid, _)| *pid == stat.session) else {
            return Verdict::Refused(Refusal::Adopted);
        };
        let outside = &above[leader + 1..];
        match pseudo_terminal(stat.tty) {
            None => self.console(outside),
            Some(number) => match self.outermost(&self.facts.holders(number)).as_slice() {
                [] => self.hidden_login(outside),
                holders => worst(holders.iter().map(|holder| self.holder(*holder, number, left))),
            },
        }
    }

    /// Returns the processes that are not below another process of the list: children of a terminal emulator may inherit its
    /// terminals.
    fn outermost(&self, pids: &[u32]) -> Vec<u32> {
        let is_inner = |pid: u32| {
            let mut next = self.facts.stat(pid).map(|stat| stat.parent);
            for _ in 0..MAX_ANCESTORS {
                match next {
                    None | Some(0) => return false,
                    Some(above) if pids.contains(&above) => return true,
                    Some(above) => next = self.facts.stat(above).map(|stat| stat.parent),
                }
            }
            false
        };
        pids.iter().copied().filter(|pid| !is_inner(*pid)).collect()
    }

    /// Judges a terminal that is a device: a console or a serial line, where login or getty ran before the shell.
    fn console(&self, outside: &[(u32, ProcessStat)]) -> Verdict {
        let login = outside
            .iter()
            .find_map(|(pid, _)| self.facts.name_if_root(*pid).filter(|name| is_login_name(name)));
        match login {
            Some(name) => Verdict::Proven(Evidence::of(&name)),
            None => Verdict::Known(Evidence::of("a console").doubted("where no login is seen")),
        }
    }

    /// Judges a terminal whose holder cannot be seen. sshd hides itself; then root's sshd is above the shell, with at most one
    /// other hidden process between them.
    fn hidden_login(&self, outside: &[(u32, ProcessStat)]) -> Verdict {
        let named = |place: usize| {
            let (pid, _) = outside.get(place)?;
            self.facts.name_if_root(*pid).filter(|name| is_login_name(name))
        };
        let child_hides = || outside.first().is_some_and(|(pid, _)| self.facts.is_hidden(*pid));
        match named(0).or_else(|| named(1).filter(|_| child_hides())) {
            Some(name) => Verdict::Proven(Evidence::of(&name)),
            None if outside.is_empty() && self.facts.is_container() => {
                Verdict::Known(Evidence::of("this container").doubted("whose other end is outside"))
            }
            None => Verdict::Refused(Refusal::NoHolder),
        }
    }

    /// Judges a process that holds the other end of a terminal.
    fn holder(&self, pid: u32, terminal: u32, left: usize) -> Verdict {
        let Some(executable) = self.facts.executable(pid) else {
            return Verdict::Refused(Refusal::NoHolder);
        };
        let name = executable.name().to_owned();
        let verdict = match executable.role() {
            Role::Other => return Verdict::Refused(Refusal::HeldBy(name)),
            _ if executable.owner == Owner::Others => return Verdict::Refused(Refusal::Doubtful(name)),
            Role::Login => Verdict::Proven(Evidence::of(&name)),
            Role::Opaque => Verdict::Known(Evidence::of(&name).doubted("whose viewers cannot be seen")),
            Role::Emulator
                if ["DISPLAY", "WAYLAND_DISPLAY"]
                    .iter()
                    .any(|display| self.facts.variable(pid, display).is_some()) =>
            {
                Verdict::Proven(Evidence::of(&name))
            }
            Role::Emulator => return Verdict::Refused(Refusal::NoDisplay(name)),
            Role::Relay => within(&name, self.terminal_of(pid, left)),
            // Any program can be called `tmux`, but a shell that was copied to that name leads no session that holds panes.
            Role::Tmux if self.facts.stat(pid).is_some_and(|stat| stat.session == pid) => {
                self.windows(&name, &self.facts.tmux_clients(pid, terminal), left)
            }
            Role::Tmux => return Verdict::Refused(Refusal::HeldBy(name)),
            Role::Ringer if self.facts.stat(pid).is_some_and(|stat| stat.tty != 0) => {
                within(&name, self.terminal_of(pid, left))
            }
            Role::Ringer => self.windows(&name, &self.facts.pane_windows(terminal), left),
        };
        match verdict {
            // Ringer's own executable often belongs to the user, who built it.
            Verdict::Proven(evidence)
                if executable.owner == Owner::User && executable.role() != Role::Ringer =>
            {
                Verdict::Known(evidence.doubted("whose program is not root's"))
            }
            verdict => verdict,
        }
    }

    /// Returns the best verdict of a multiplexer's windows.
    fn windows(&self, multiplexer: &str, windows: &[u32], left: usize) -> Verdict {
        let mut found = Verdict::Refused(Refusal::NotAttached(multiplexer.to_owned()));
        for window in windows {
            let verdict = within(multiplexer, self.terminal_of(*window, left));
            match verdict {
                Verdict::Proven(_) => return verdict,
                Verdict::Known(_) => found = verdict,
                // A window of an agent, or one without a person, proves nothing about the pane.
                Verdict::Refused(_) | Verdict::Agent(_) => {}
            }
        }
        found
    }
}

fn within(program: &str, verdict: Verdict) -> Verdict {
    match verdict {
        Verdict::Proven(evidence) => Verdict::Proven(evidence.inside(program)),
        Verdict::Known(evidence) => Verdict::Known(evidence.inside(program)),
        verdict => verdict,
    }
}

fn worst(verdicts: impl Iterator<Item = Verdict>) -> Verdict {
    let rank = |verdict: &Verdict| match verdict {
        Verdict::Proven(_) => 0,
        Verdict::Known(_) => 1,
        Verdict::Refused(_) => 2,
        Verdict::Agent(_) => 3,
    };
    verdicts.max_by_key(rank).unwrap_or(Verdict::Refused(Refusal::NoHolder))
}

/// Returns the number of a pseudo-terminal, from its device number.
pub(crate) fn pseudo_terminal(device: u32) -> Option<u32> {
    let (major, minor) = ((device >> 8) & 0xfff, (device & 0xff) | ((device >> 12) & 0xf_ff00));
    matches!(major, 136..=143).then(|| (major - 136) * 256 + minor)
}

/// Who acts with a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The person, at a terminal that Ringer can follow to its end.
    Proven(Evidence),
    /// Probably the person: the end of the terminal cannot be seen, or the terminal may have been opened for this operation. The
    /// operation passes and is announced.
    Known(Evidence),
    /// There is no evidence of a person.
    Refused(Refusal),
    /// An agent: the process runs below it.
    Agent(Agent),
}

/// The evidence that a process acts for the person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evidence {
    /// The programs that hold terminals, from the process outwards: `tmux`, `sshd`.
    pub programs: Vec<String>,
    /// The reason why it is not proven, if there is one.
    pub doubt: Option<&'static str>,
}

impl Evidence {
    pub(crate) fn of(program: &str) -> Self {
        Self { programs: vec![program.to_owned()], doubt: None }
    }

    pub(crate) fn doubted(self, doubt: &'static str) -> Self {
        Self { doubt: self.doubt.or(Some(doubt)), ..self }
    }

    pub(crate) fn inside(mut self, program: &str) -> Self {
        self.programs.insert(0, program.to_owned());
        self
    }
}

impl fmt::Display for Evidence {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.programs.split_last() {
            Some((last, [])) => write!(formatter, "the terminal of {last}")?,
            Some((last, inner)) => write!(formatter, "{} in the terminal of {last}", inner.join(" in "))?,
            None => formatter.write_str("no terminal")?,
        }
        match self.doubt {
            Some(doubt) => write!(formatter, ", {doubt}"),
            None => Ok(()),
        }
    }
}

/// The reason why there is no evidence of a person.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// The process has no controlling terminal.
    NoTerminal,
    /// The process is not below the shell of its terminal.
    Adopted,
    /// No visible process holds the other end of its terminal.
    NoHolder,
    /// The program that holds the terminal is not known as one that a person uses.
    HeldBy(String),
    /// The program that holds the terminal can be written by other users, or its file cannot be examined.
    Doubtful(String),
    /// The terminal emulator has no display.
    NoDisplay(String),
    /// No terminal of a person is attached to the multiplexer.
    NotAttached(String),
    /// The processes above it cannot be read.
    Unreadable,
    /// Too many processes or terminals are above it.
    TooDeep,
    /// The process is in another namespace than the hub or than its parents.
    Elsewhere,
}

impl Refusal {
    /// Returns true if `[answers] scripts = true` allows it: the process is certainly not below an agent that is still running.
    pub fn may_be_script(&self) -> bool {
        !matches!(self, Self::Unreadable | Self::TooDeep | Self::Elsewhere)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoTerminal => formatter.write_str("it has no terminal"),
            Self::Adopted => formatter.write_str("the shell of its terminal did not start it"),
            Self::NoHolder => formatter.write_str("the program behind its terminal cannot be seen"),
            Self::HeldBy(program) => write!(formatter, "its terminal is held by {program}"),
            Self::Doubtful(program) => {
                write!(formatter, "its terminal is held by {program}, which others can write")
            }
            Self::NoDisplay(program) => {
                write!(formatter, "its terminal is held by {program}, which has no display")
            }
            Self::NotAttached(program) => {
                write!(formatter, "no terminal of yours shows its pane of {program}")
            }
            Self::Unreadable => formatter.write_str("the processes above it cannot be read"),
            Self::TooDeep => formatter.write_str("too many processes are above it"),
            Self::Elsewhere => formatter.write_str("it is in another namespace"),
        }
    }
}

#[cfg(test)]
mod tests;
