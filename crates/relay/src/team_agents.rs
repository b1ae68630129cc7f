//! The last lists of agents of the other machines in a team, in one file for commands.
//!
//! A machine states how long its list is valid, and repeats it before that. So a machine that is gone is noticed without the
//! server: its list expires. All input is untrusted: every number has a limit here.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ringer_journal::{Home, IdSource, Lock};
use ringer_platform::{Durability, replace_file};
use serde::{Deserialize, Serialize};

use crate::agents::WireAgent;

/// The prefix of the file names, and the suffixes of a list and of its lock.
const FILE: &str = "relay-team-agents-";
const LIST: &str = ".json";
const LOCK: &str = ".lock";
/// The largest file that is read. [`MAX_LISTED`] agents with the longest names take less.
const MAX_FILE: u64 = 16 * 1024 * 1024;
/// The most machines of one team. At the limit, one that is gone makes room; if none is, a new one is not listed.
const MAX_MACHINES: usize = 2_000;
/// The most agents of all machines. At the limit, agents of machines that are gone make room. Further agents are only counted.
const MAX_LISTED: usize = 4_000;
/// The most unlisted agents that are counted, whatever a machine claims.
const MAX_UNLISTED: usize = 100_000;
/// The longest validity of a list, whatever its machine claims.
const MAX_VALIDITY: Duration = Duration::from_hours(1);
/// How long a machine that is gone is listed, in milliseconds: a day. A team may have machines that exist for an hour.
const RETENTION_MS: i64 = 24 * 3_600_000;
/// Time limit for a command that inspects the lock to release it.
const LOCK_TIMEOUT: Duration = Duration::from_millis(500);

/// The machines of a team, by their names here.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TeamAgents {
    team: String,
    pub(crate) machines: BTreeMap<String, ListedMachine>,
    /// The number of current machines, in this process. It is cached because it is needed for each list that arrives.
    #[serde(skip)]
    current: usize,
    /// When to look for machines that are gone: no later than the first list expires.
    #[serde(skip)]
    next_expiry: Option<Instant>,
}

/// The agents of a machine of a team, from its last list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ListedMachine {
    /// When the list arrived, in milliseconds since 1970.
    pub(crate) told_ms: i64,
    /// The list has not expired.
    pub(crate) is_current: bool,
    /// Its agents; their names include the machine.
    pub(crate) agents: Vec<WireAgent>,
    /// The number of agents that are not in the list.
    #[serde(default)]
    pub(crate) unlisted: usize,
    /// When a current list expires.
    #[serde(skip)]
    expires_at: Option<Instant>,
}

/// A list as a machine sent it, checked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ReceivedList {
    pub(crate) agents: Vec<WireAgent>,
    /// The number of agents that are not in the list.
    pub(crate) unlisted: usize,
    /// The validity of the list.
    pub(crate) validity: Duration,
}

impl TeamAgents {
    /// Returns the lists of all teams. Machines are current only in teams to which this machine is connected.
    pub(crate) fn all(home: &Home) -> Vec<Self> {
        let entries = fs::read_dir(home.path()).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().to_str().map(str::to_owned));
        let mut teams: Vec<String> =
            names.filter_map(|name| Self::team_of_file(&name).map(str::to_owned)).collect();
        teams.sort_unstable();
        let list = |team: &String| {
            // The lock is checked first: a file that is read after it was held belongs to this connection.
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

    /// Returns the team of a list's file name.
    pub(crate) fn team_of_file(name: &str) -> Option<&str> {
        name.strip_prefix(FILE)?.strip_suffix(LIST)
    }

    /// Returns the list of a team to which this machine is not connected. No machine is current in it, although the file of a hub
    /// that was killed may say so.
    pub(crate) fn before_connection(home: &Home, team: &str) -> Self {
        let mut list = Self::read(home, team);
        for listed in list.machines.values_mut() {
            listed.is_current = false;
        }
        list.forget_old(IdSource::now().unix_ms);
        list
    }

    /// Reads the list of a team. Empty if there is none.
    fn read(home: &Home, team: &str) -> Self {
        let read = read(&path(home, team, LIST)).filter(|read| read.team == team);
        read.unwrap_or_else(|| Self { team: team.to_owned(), ..Self::default() })
    }

    /// Writes the list for commands. A file that cannot be written is removed, so that no outdated one is used.
    pub(crate) fn write(&self, home: &Home) {
        let path = path(home, &self.team, LIST);
        let written = serde_json::to_vec(self)
            .map_err(io::Error::from)
            .and_then(|bytes| replace_file(&path, &bytes, Durability::Unsynced));
        if written.is_err() {
            let _ = fs::remove_file(path);
        }
    }

    pub(crate) fn forget(home: &Home, team: &str) {
        for end in [LIST, LOCK] {
            let _ = fs::remove_file(path(home, team, end));
        }
    }

    /// Returns the number of machines whose lists have not expired.
    pub(crate) fn current(&self) -> usize {
        self.current
    }

    /// Returns true if the list of a machine has not expired.
    pub(crate) fn is_current(&self, machine: &str) -> bool {
        self.machines.get(machine).is_some_and(|listed| listed.is_current)
    }

    /// Stores a machine's list. Returns true if the visible lists have changed.
    pub(crate) fn update(&mut self, now: Instant, unix_ms: i64, machine: &str, sent: ReceivedList) -> bool {
        if !self.machines.contains_key(machine) {
            self.forget_old(unix_ms);
        }
        if !self.machines.contains_key(machine) && self.machines.len() >= MAX_MACHINES {
            let gone = self.machines.iter().filter(|(_, listed)| !listed.is_current);
            let oldest = gone.min_by_key(|(_, listed)| listed.told_ms).map(|(machine, _)| machine.clone());
            let Some(oldest) = oldest else { return false };
            self.machines.remove(&oldest);
        }
        let before = self.machines.remove(machine).unwrap_or_default();
        let ReceivedList { mut agents, unlisted, validity } = sent;
        let room = if agents.is_empty() { 0 } else { self.make_room(agents.len()) };
        let cut = agents.len().saturating_sub(room);
        agents.truncate(room);
        let expires_at = now + validity.min(MAX_VALIDITY);
        self.next_expiry = Some(self.next_expiry.map_or(expires_at, |next| next.min(expires_at)));
        self.current += usize::from(!before.is_current);
        let listed = ListedMachine {
            told_ms: unix_ms,
            is_current: true,
            agents,
            unlisted: unlisted.saturating_add(cut).min(MAX_UNLISTED),
            expires_at: Some(expires_at),
        };
        let visible = |listed: &ListedMachine| (listed.is_current, listed.unlisted);
        let is_changed = visible(&before) != visible(&listed) || before.agents != listed.agents;
        self.machines.insert(machine.to_owned(), listed);
        is_changed
    }

    /// Returns how many more agents can be listed, at least `wanted` if machines that are gone have that many agents: these are
    /// then only counted, starting with the machine that has been gone for longest.
    fn make_room(&mut self, wanted: usize) -> usize {
        let total: usize = self.machines.values().map(|listed| listed.agents.len()).sum();
        let mut room = MAX_LISTED.saturating_sub(total);
        if room < wanted {
            let mut gone: Vec<_> = self.machines.values_mut().filter(|listed| !listed.is_current).collect();
            gone.sort_unstable_by_key(|listed| listed.told_ms);
            for listed in gone {
                if room >= wanted {
                    break;
                }
                room += listed.agents.len();
                listed.unlisted = listed.unlisted.saturating_add(listed.agents.len());
                listed.agents.clear();
            }
        }
        room
    }

    /// A machine announced that it leaves. Returns true if the visible lists have changed.
    pub(crate) fn mark_left(&mut self, machine: &str) -> bool {
        let Some(listed) = self.machines.get_mut(machine).filter(|listed| listed.is_current) else {
            return false;
        };
        (listed.is_current, listed.expires_at) = (false, None);
        self.current -= 1;
        true
    }

    /// Marks machines whose lists have expired. Returns true if the visible lists have changed.
    pub(crate) fn expire(&mut self, now: Instant) -> bool {
        if self.next_expiry.is_none_or(|next| next > now) {
            return false;
        }
        let before = self.current;
        for listed in self.machines.values_mut() {
            if listed.is_current && listed.expires_at.is_none_or(|until| until <= now) {
                (listed.is_current, listed.expires_at) = (false, None);
                self.current -= 1;
            }
        }
        self.next_expiry = self.machines.values().filter_map(|listed| listed.expires_at).min();
        self.current != before
    }

    pub(crate) fn next_expiry(&self) -> Option<Instant> {
        self.next_expiry
    }

    fn forget_old(&mut self, unix_ms: i64) {
        let oldest = unix_ms.saturating_sub(RETENTION_MS);
        self.machines.retain(|_, listed| listed.is_current || listed.told_ms >= oldest);
    }
}

/// Held while this machine is connected to a team. Commands use it to determine whether the list is valid.
#[derive(Debug)]
pub(crate) struct TeamLock {
    _lock: Lock,
}

impl TeamLock {
    /// Takes the lock. Returns `None` if a command is inspecting it, or if it cannot be created: then the list is not used.
    pub(crate) fn take(home: &Home, team: &str) -> Option<Self> {
        let lock = Lock::take(&path(home, team, LOCK), Some(Instant::now() + LOCK_TIMEOUT));
        lock.ok().flatten().map(|lock| Self { _lock: lock })
    }
}

/// Returns true if this machine is connected to a team now. Otherwise the whole list may be outdated.
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

    fn sent(agents: usize, seconds: u64) -> ReceivedList {
        let agent = |number| WireAgent { id: format!("claude-{number}"), ..WireAgent::default() };
        ReceivedList {
            agents: (0..agents).map(agent).collect(),
            unlisted: 0,
            validity: Duration::from_secs(seconds),
        }
    }

    #[test]
    fn a_machine_whose_list_expires_is_gone() {
        let (now, mut team) = (Instant::now(), TeamAgents::default());
        assert!(team.update(now, 1, "box.t", sent(1, 50)));
        assert!(!team.update(now, 2, "box.t", sent(1, 60)), "the visible list is the same");
        assert!(team.update(now, 2, "box.t", sent(2, 60)));
        assert!(!team.expire(now + Duration::from_secs(59)));
        assert_eq!(
            team.next_expiry(),
            Some(now + Duration::from_mins(1)),
            "the earlier expiry was superseded"
        );
        assert!(team.expire(now + Duration::from_mins(1)));
        assert_eq!(
            (team.current(), team.machines["box.t"].agents.len()),
            (0, 2),
            "its last agents stay listed"
        );
        assert!(!team.expire(now + Duration::from_secs(61)) && team.next_expiry().is_none());
        assert!(team.update(now, 3, "box.t", sent(2, 50)), "it is back");
        assert!(team.is_current("box.t") && !team.is_current("vm.t"));
        assert!(team.mark_left("box.t") && !team.mark_left("box.t") && !team.mark_left("vm.t"));
        team.update(now, 3, "vm.t", sent(0, u64::MAX));
        assert!(team.expire(now + MAX_VALIDITY), "validity is capped");
        assert_eq!(team.current(), 0);
    }

    #[test]
    fn machines_and_agents_of_a_team_are_limited() {
        let (now, mut team) = (Instant::now(), TeamAgents::default());
        for number in 0..MAX_MACHINES {
            team.update(now, i64::try_from(number).unwrap(), &format!("m{number}"), sent(3, 50));
        }
        let agents: usize = team.machines.values().map(|listed| listed.agents.len()).sum();
        let unlisted: usize = team.machines.values().map(|listed| listed.unlisted).sum();
        assert_eq!((agents, unlisted), (MAX_LISTED, 3 * MAX_MACHINES - MAX_LISTED));
        assert!(!team.update(now, 9, "one-more", sent(1, 50)), "current machines are not evicted");
        team.expire(now + MAX_VALIDITY);
        assert!(team.update(now, 9, "one-more", sent(1, 50)));
        assert_eq!(team.machines.len(), MAX_MACHINES);
        assert!(!team.machines.contains_key("m0") && team.machines.contains_key("m1"));
        let counted = ReceivedList { unlisted: usize::MAX, ..sent(1, 50) };
        team.update(now, 9, "one-more", counted);
        assert_eq!(team.machines["one-more"].unlisted, MAX_UNLISTED);
        team.forget_old(RETENTION_MS + 1_000);
        assert!(!team.machines.contains_key("m999") && team.machines.contains_key("m1000"));
        assert!(team.machines.contains_key("one-more"));
    }

    /// The cached values match the machines after any input.
    #[test]
    fn cached_count_and_expiry_match_the_machines() {
        let mut random = Random::new(7);
        let (mut now, mut team) = (Instant::now(), TeamAgents::default());
        for unix_ms in 0..20_000 {
            now += Duration::from_millis(u64::from(random.byte()));
            let machine = format!("m{}", random.byte() % 20);
            match random.byte() % 8 {
                0 => _ = team.mark_left(&machine),
                1 => _ = team.expire(now),
                _ => _ = team.update(now, unix_ms, &machine, sent(0, u64::from(random.byte() % 9))),
            }
            let current = team.machines.values().filter(|listed| listed.is_current);
            let first = current.clone().filter_map(|listed| listed.expires_at).min();
            assert_eq!(team.current(), current.count());
            assert!(first.is_none_or(|first| team.next_expiry().is_some_and(|next| next <= first)));
        }
    }

    #[test]
    fn agents_of_machines_that_are_gone_make_room() {
        let (now, mut team) = (Instant::now(), TeamAgents::default());
        for number in 0..1_000 {
            let machine = format!("container{number}");
            team.update(now, number, &machine, sent(4, 50));
            team.mark_left(&machine);
        }
        let listed =
            |team: &TeamAgents, machine: &str| team.machines.get(machine).map(|listed| listed.agents.len());
        team.update(now, 2_000, "box.t", sent(5, 50));
        assert_eq!((listed(&team, "box.t"), team.machines["box.t"].unlisted), (Some(5), 0));
        assert_eq!((listed(&team, "container1"), listed(&team, "container2")), (Some(0), Some(4)));
        assert_eq!(team.machines["container0"].unlisted, 4);
        team.update(now, RETENTION_MS + 999, "vm.t", sent(1, 50));
        assert_eq!((listed(&team, "container998"), listed(&team, "container999")), (None, Some(4)));
        assert_eq!(listed(&team, "box.t"), Some(5), "it is there");
    }

    #[test]
    fn a_saved_list_is_current_only_while_this_machine_is_connected() {
        let directory = tempfile::tempdir().unwrap();
        let home = Home::new(directory.path());
        let mut team = TeamAgents::before_connection(&home, "t");
        let unix_ms = IdSource::now().unix_ms;
        team.update(Instant::now(), unix_ms, "box.t", sent(1, 50));
        team.update(Instant::now(), unix_ms - RETENTION_MS - 1, "vm.t", sent(1, 50));
        team.write(&home);
        let listed = || TeamAgents::all(&home).remove(0).machines;
        assert_eq!(listed()["box.t"].agents, team.machines["box.t"].agents);
        assert!(!listed()["box.t"].is_current);
        assert!(!listed().contains_key("vm.t"), "it is not current, and its list is older than a day");
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
