//! The agents of the other machines of a team, as they told of them, kept in one file for commands.
//!
//! A machine says how long its list holds, and says it again before that. So a machine that is gone is noticed without the
//! server: its list is no longer current. All of this is what others say: every number has a limit here.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ringer_journal::{Home, IdSource, Lock};
use ringer_platform::{Durability, replace_file};
use serde::{Deserialize, Serialize};

use crate::agents::WireAgent;

/// How the names of the files begin, and how those of a list and of its lock end.
const FILE: &str = "relay-team-agents-";
const LIST: &str = ".json";
const LOCK: &str = ".lock";
/// More of a file is not read. [`MAX_LISTED`] with the longest names are less.
const MAX_FILE: u64 = 16 * 1024 * 1024;
/// The machines of one team. At the limit, one that is gone makes room; if none is, a new one is not listed.
const MAX_MACHINES: usize = 2_000;
/// The agents of all of them. At the limit, those of machines that are gone make room. What is more is only counted.
const MAX_LISTED: usize = 4_000;
/// The most agents that are counted beside those that are listed, whatever a machine says.
const MAX_UNLISTED: usize = 100_000;
/// The longest time that a list holds, whatever its machine says.
const HOLDS_AT_MOST: Duration = Duration::from_hours(1);
/// How long a machine that is gone is listed, in milliseconds: a day. A team may have machines that exist for an hour.
const LISTED_FOR_MS: i64 = 24 * 3_600_000;
/// How long to wait for a command that looks whether the lock is held.
const FREE_WITHIN: Duration = Duration::from_millis(500);

/// The machines of a team, by what they are called here.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TeamAgents {
    /// The team.
    team: String,
    /// The machines.
    pub(crate) machines: BTreeMap<String, ToldAgents>,
    /// How many of them told of their agents in time, in this process. Counted, as it is asked for with each list that comes.
    #[serde(skip)]
    current: usize,
    /// When to look for machines that are gone: not later than the first of them is.
    #[serde(skip)]
    next_expiry: Option<Instant>,
}

/// What a machine of a team told of its agents.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ToldAgents {
    /// When it told of them, in milliseconds since 1970.
    pub(crate) told_ms: i64,
    /// Whether it said so again in time.
    pub(crate) is_current: bool,
    /// Its agents, with the name of the machine in theirs.
    pub(crate) agents: Vec<WireAgent>,
    /// How many it has beside these.
    #[serde(default)]
    pub(crate) unlisted: usize,
    /// Until when that holds, if it is current.
    #[serde(skip)]
    holds_until: Option<Instant>,
}

/// A list as a machine sent it, checked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SentAgents {
    pub(crate) agents: Vec<WireAgent>,
    /// How many it has beside these.
    pub(crate) unlisted: usize,
    /// How long that holds.
    pub(crate) holds: Duration,
}

impl TeamAgents {
    /// The lists of all teams. Machines are current in those of the teams that this machine is connected to.
    pub(crate) fn all(home: &Home) -> Vec<Self> {
        let entries = fs::read_dir(home.path()).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().to_str().map(str::to_owned));
        let mut teams: Vec<String> =
            names.filter_map(|name| Self::team_of_file(&name).map(str::to_owned)).collect();
        teams.sort_unstable();
        let list = |team: &String| {
            // In this order: a file that is read after it was connected is one of this connection.
            if is_connected(home, team) {
                let mut list = Self::read(home, team);
                list.forget_old(IdSource::now().unix_ms);
                list
            } else {
                Self::before_connection(home, team)
            }
        };
        teams.iter().map(list).collect()
    }

    /// The team whose list is in a file of the home.
    pub(crate) fn team_of_file(name: &str) -> Option<&str> {
        name.strip_prefix(FILE)?.strip_suffix(LIST)
    }

    /// The list of a team that this machine is not connected to: it is not known which machines are still there. The file of a
    /// hub that was killed says otherwise.
    pub(crate) fn before_connection(home: &Home, team: &str) -> Self {
        let mut list = Self::read(home, team);
        for told in list.machines.values_mut() {
            told.is_current = false;
        }
        list.forget_old(IdSource::now().unix_ms);
        list
    }

    /// The list of a team, as it was written. Empty if there is none.
    fn read(home: &Home, team: &str) -> Self {
        let read = read(&path(home, team, LIST)).filter(|read| read.team == team);
        read.unwrap_or_else(|| Self { team: team.to_owned(), ..Self::default() })
    }

    /// Keeps the list for commands. One that cannot be written is removed, so that no old one counts.
    pub(crate) fn write(&self, home: &Home) {
        let path = path(home, &self.team, LIST);
        let written = serde_json::to_vec(self)
            .map_err(io::Error::from)
            .and_then(|bytes| replace_file(&path, &bytes, Durability::Unsynced));
        if written.is_err() {
            let _ = fs::remove_file(path);
        }
    }

    /// Forgets the list of a team.
    pub(crate) fn forget(home: &Home, team: &str) {
        for end in [LIST, LOCK] {
            let _ = fs::remove_file(path(home, team, end));
        }
    }

    /// How many machines told of their agents in time.
    pub(crate) fn current(&self) -> usize {
        self.current
    }

    /// Whether a machine told of its agents in time.
    pub(crate) fn is_current(&self, machine: &str) -> bool {
        self.machines.get(machine).is_some_and(|told| told.is_current)
    }

    /// A machine told of its agents. Gives whether lists show something else now.
    pub(crate) fn told(&mut self, now: Instant, unix_ms: i64, machine: &str, sent: SentAgents) -> bool {
        if !self.machines.contains_key(machine) {
            self.forget_old(unix_ms);
        }
        if !self.machines.contains_key(machine) && self.machines.len() >= MAX_MACHINES {
            let gone = self.machines.iter().filter(|(_, told)| !told.is_current);
            let oldest = gone.min_by_key(|(_, told)| told.told_ms).map(|(machine, _)| machine.clone());
            let Some(oldest) = oldest else { return false };
            self.machines.remove(&oldest);
        }
        let before = self.machines.remove(machine).unwrap_or_default();
        let SentAgents { mut agents, unlisted, holds } = sent;
        let room = if agents.is_empty() { 0 } else { self.make_room(agents.len()) };
        let cut = agents.len().saturating_sub(room);
        agents.truncate(room);
        let holds_until = now + holds.min(HOLDS_AT_MOST);
        self.next_expiry = Some(self.next_expiry.map_or(holds_until, |next| next.min(holds_until)));
        self.current += usize::from(!before.is_current);
        let told = ToldAgents {
            told_ms: unix_ms,
            is_current: true,
            agents,
            unlisted: unlisted.saturating_add(cut).min(MAX_UNLISTED),
            holds_until: Some(holds_until),
        };
        let shown = |told: &ToldAgents| (told.is_current, told.unlisted);
        let is_changed = shown(&before) != shown(&told) || before.agents != told.agents;
        self.machines.insert(machine.to_owned(), told);
        is_changed
    }

    /// Gives how many more agents are listed at most, at least as many as are wanted if machines that are gone have so many: these
    /// are only counted then, those of the machine that is gone for longest first.
    fn make_room(&mut self, wanted: usize) -> usize {
        let listed: usize = self.machines.values().map(|told| told.agents.len()).sum();
        let mut room = MAX_LISTED.saturating_sub(listed);
        if room < wanted {
            let mut gone: Vec<_> = self.machines.values_mut().filter(|told| !told.is_current).collect();
            gone.sort_unstable_by_key(|told| told.told_ms);
            for told in gone {
                if room >= wanted {
                    break;
                }
                room += told.agents.len();
                told.unlisted = told.unlisted.saturating_add(told.agents.len());
                told.agents.clear();
            }
        }
        room
    }

    /// A machine said that it leaves. Gives whether lists show something else now.
    pub(crate) fn left(&mut self, machine: &str) -> bool {
        let Some(told) = self.machines.get_mut(machine).filter(|told| told.is_current) else { return false };
        (told.is_current, told.holds_until) = (false, None);
        self.current -= 1;
        true
    }

    /// Notes which machines have not told of their agents in time. Gives whether lists show something else now.
    pub(crate) fn expire(&mut self, now: Instant) -> bool {
        if self.next_expiry.is_none_or(|next| next > now) {
            return false;
        }
        let before = self.current;
        for told in self.machines.values_mut() {
            if told.is_current && told.holds_until.is_none_or(|until| until <= now) {
                (told.is_current, told.holds_until) = (false, None);
                self.current -= 1;
            }
        }
        self.next_expiry = self.machines.values().filter_map(|told| told.holds_until).min();
        self.current != before
    }

    /// When to look for machines that are gone.
    pub(crate) fn next_expiry(&self) -> Option<Instant> {
        self.next_expiry
    }

    fn forget_old(&mut self, unix_ms: i64) {
        let oldest = unix_ms.saturating_sub(LISTED_FOR_MS);
        self.machines.retain(|_, told| told.is_current || told.told_ms >= oldest);
    }
}

/// Held while this machine is connected to a team: commands see by it whether the list counts.
#[derive(Debug)]
pub(crate) struct TeamLock {
    _lock: Lock,
}

impl TeamLock {
    /// Takes it. `None` if a command holds it, which looks, or if it cannot be made: then the list does not count.
    pub(crate) fn take(home: &Home, team: &str) -> Option<Self> {
        let lock = Lock::take(&path(home, team, LOCK), Some(Instant::now() + FREE_WITHIN));
        lock.ok().flatten().map(|lock| Self { _lock: lock })
    }
}

/// Whether this machine is connected to a team now. If it is not, nothing of the list may be true by now.
fn is_connected(home: &Home, team: &str) -> bool {
    let path = path(home, team, LOCK);
    path.exists() && matches!(Lock::take(&path, Some(Instant::now())), Ok(None))
}

fn path(home: &Home, team: &str, end: &str) -> PathBuf {
    home.path().join(format!("{FILE}{team}{end}"))
}

fn read(path: &Path) -> Option<TeamAgents> {
    let mut bytes = Vec::new();
    fs::File::open(path).ok()?.take(MAX_FILE).read_to_end(&mut bytes).ok()?;
    serde_json::from_slice(&bytes).ok()
}

#[cfg(test)]
mod tests {
    use test_support::Random;

    use super::*;

    fn sent(agents: usize, seconds: u64) -> SentAgents {
        let agent = |number| WireAgent { id: format!("claude-{number}"), ..WireAgent::default() };
        SentAgents {
            agents: (0..agents).map(agent).collect(),
            unlisted: 0,
            holds: Duration::from_secs(seconds),
        }
    }

    #[test]
    fn a_machine_that_says_nothing_in_time_is_gone() {
        let (now, mut team) = (Instant::now(), TeamAgents::default());
        assert!(team.told(now, 1, "box.t", sent(1, 50)));
        assert!(!team.told(now, 2, "box.t", sent(1, 60)), "nothing else is shown");
        assert!(team.told(now, 2, "box.t", sent(2, 60)));
        assert!(!team.expire(now + Duration::from_secs(59)));
        assert_eq!(team.next_expiry(), Some(now + Duration::from_mins(1)), "it was looked at 50 s");
        assert!(team.expire(now + Duration::from_mins(1)));
        assert_eq!((team.current(), team.machines["box.t"].agents.len()), (0, 2), "it is known what it had");
        assert!(!team.expire(now + Duration::from_secs(61)) && team.next_expiry().is_none());
        assert!(team.told(now, 3, "box.t", sent(2, 50)), "it is back");
        assert!(team.is_current("box.t") && !team.is_current("vm.t"));
        assert!(team.left("box.t") && !team.left("box.t") && !team.left("vm.t"));
        team.told(now, 3, "vm.t", sent(0, u64::MAX));
        assert!(team.expire(now + HOLDS_AT_MOST), "no list holds for ever");
        assert_eq!(team.current(), 0);
    }

    #[test]
    fn what_a_team_may_tell_has_a_limit() {
        let (now, mut team) = (Instant::now(), TeamAgents::default());
        for number in 0..MAX_MACHINES {
            team.told(now, i64::try_from(number).unwrap(), &format!("m{number}"), sent(3, 50));
        }
        let agents: usize = team.machines.values().map(|told| told.agents.len()).sum();
        let unlisted: usize = team.machines.values().map(|told| told.unlisted).sum();
        assert_eq!((agents, unlisted), (MAX_LISTED, 3 * MAX_MACHINES - MAX_LISTED));
        assert!(!team.told(now, 9, "one-more", sent(1, 50)), "it pushes out none that is there");
        team.expire(now + HOLDS_AT_MOST);
        assert!(team.told(now, 9, "one-more", sent(1, 50)));
        assert_eq!(team.machines.len(), MAX_MACHINES);
        assert!(!team.machines.contains_key("m0") && team.machines.contains_key("m1"));
        let counted = SentAgents { unlisted: usize::MAX, ..sent(1, 50) };
        team.told(now, 9, "one-more", counted);
        assert_eq!(team.machines["one-more"].unlisted, MAX_UNLISTED);
        team.forget_old(LISTED_FOR_MS + 1_000);
        assert!(!team.machines.contains_key("m999") && team.machines.contains_key("m1000"));
        assert!(team.machines.contains_key("one-more"));
    }

    /// What is counted beside the machines fits to them, whatever came in whatever order.
    #[test]
    fn the_count_and_the_next_look_fit_to_the_machines() {
        let mut random = Random::new(7);
        let (mut now, mut team) = (Instant::now(), TeamAgents::default());
        for unix_ms in 0..20_000 {
            now += Duration::from_millis(u64::from(random.byte()));
            let machine = format!("m{}", random.byte() % 20);
            match random.byte() % 8 {
                0 => _ = team.left(&machine),
                1 => _ = team.expire(now),
                _ => _ = team.told(now, unix_ms, &machine, sent(0, u64::from(random.byte() % 9))),
            }
            let current = team.machines.values().filter(|told| told.is_current);
            let first = current.clone().filter_map(|told| told.holds_until).min();
            assert_eq!(team.current(), current.count());
            assert!(first.is_none_or(|first| team.next_expiry().is_some_and(|next| next <= first)));
        }
    }

    #[test]
    fn agents_of_machines_that_are_gone_make_room() {
        let (now, mut team) = (Instant::now(), TeamAgents::default());
        for number in 0..1_000 {
            let machine = format!("container{number}");
            team.told(now, number, &machine, sent(4, 50));
            team.left(&machine);
        }
        let listed =
            |team: &TeamAgents, machine: &str| team.machines.get(machine).map(|told| told.agents.len());
        team.told(now, 2_000, "box.t", sent(5, 50));
        assert_eq!((listed(&team, "box.t"), team.machines["box.t"].unlisted), (Some(5), 0));
        assert_eq!((listed(&team, "container1"), listed(&team, "container2")), (Some(0), Some(4)));
        assert_eq!(team.machines["container0"].unlisted, 4);
        team.told(now, LISTED_FOR_MS + 999, "vm.t", sent(1, 50));
        assert_eq!((listed(&team, "container998"), listed(&team, "container999")), (None, Some(4)));
        assert_eq!(listed(&team, "box.t"), Some(5), "it is there");
    }

    #[test]
    fn a_list_is_kept_for_commands_and_counts_while_this_machine_is_connected() {
        let directory = tempfile::tempdir().unwrap();
        let home = Home::new(directory.path());
        let mut team = TeamAgents::before_connection(&home, "t");
        let unix_ms = IdSource::now().unix_ms;
        team.told(Instant::now(), unix_ms, "box.t", sent(1, 50));
        team.told(Instant::now(), unix_ms - LISTED_FOR_MS - 1, "vm.t", sent(1, 50));
        team.write(&home);
        let listed = || TeamAgents::all(&home).remove(0).machines;
        assert_eq!(listed()["box.t"].agents, team.machines["box.t"].agents);
        assert!(!listed()["box.t"].is_current);
        assert!(!listed().contains_key("vm.t"), "it is not known to be there, and told nothing for a day");
        let lock = TeamLock::take(&home, "t").unwrap();
        assert!(listed()["box.t"].is_current && listed()["vm.t"].is_current);
        drop(lock);
        assert!(!listed()["box.t"].is_current);
        fs::write(path(&home, "t", LIST), "{").unwrap();
        assert!(TeamAgents::all(&home)[0].machines.is_empty(), "a broken file is none");
        TeamAgents::forget(&home, "t");
        assert!(TeamAgents::all(&home).is_empty());
    }
}
