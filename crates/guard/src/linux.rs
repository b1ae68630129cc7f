//! Facts about processes: from `/proc`, and from tmux about its clients.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::fs;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use ringer_journal::ProcessStat;

use crate::programs::{DELETED, Executable, Owner};
use crate::rule::ProcessFacts;
use crate::{HubProcess, PaneWindows};

/// `USER_HZ`: the unit in which the kernel reports times to programs, whatever it uses internally.
const TICKS_PER_SECOND: u64 = 100;
/// Maximum number of bytes read of a process's environment.
const MAX_ENVIRONMENT: u64 = 1024 * 1024;

/// Reads facts about the processes of this machine.
pub struct System<'a> {
    hub: HubProcess,
    ask_panes: &'a dyn Fn() -> Option<PaneWindows>,
    panes: OnceCell<Option<PaneWindows>>,
    /// The processes that hold each pseudo-terminal.
    holders: OnceCell<HashMap<u32, Vec<u32>>>,
    own_uid: u32,
}

impl<'a> System<'a> {
    /// `ask_panes` asks the pane server for its windows. It is called at most once.
    pub fn new(hub: HubProcess, ask_panes: &'a dyn Fn() -> Option<PaneWindows>) -> Self {
        let own_uid = rustix::process::geteuid().as_raw();
        Self { hub, ask_panes, panes: OnceCell::new(), holders: OnceCell::new(), own_uid }
    }

    /// Returns the PID of this process as `/proc` reports it.
    pub fn own_pid() -> Option<u32> {
        fs::read_link("/proc/self").ok()?.to_str()?.parse().ok()
    }

    /// Converts a time in milliseconds since 1970 to the unit of [`ProcessStat::started`].
    pub fn ticks_at(unix_ms: i64) -> Option<u64> {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
        let up = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        let ago_ms = (now.tv_sec * 1000 + now.tv_nsec / 1_000_000).saturating_sub(unix_ms);
        let up_ms = up.tv_sec * 1000 + up.tv_nsec / 1_000_000;
        Some(u64::try_from(up_ms - ago_ms).unwrap_or(0) * TICKS_PER_SECOND / 1000)
    }

    /// Returns true if a process runs the same program as this process, even if its file was replaced since.
    pub fn runs_this_program(pid: u32) -> bool {
        let link = |pid: &str| format!("/proc/{pid}/exe");
        let (theirs, own) = (link(&pid.to_string()), link("self"));
        let file = |link: &str| fs::metadata(link).map(|file| (file.dev(), file.ino())).ok();
        let path = |link: &str| {
            let path = fs::read_link(link).ok()?;
            path.to_str().map(str::to_owned)
        };
        let replaced = |path: &str| path.strip_suffix(DELETED).map(str::to_owned);
        let is_older = || {
            path(&theirs)
                .as_deref()
                .and_then(replaced)
                .is_some_and(|old| path(&own).is_some_and(|own| replaced(&own).unwrap_or(own) == old))
        };
        // In another namespace, the same path can be another file.
        !Self::differ(pid, std::process::id())
            && (file(&theirs).is_some_and(|theirs| Some(theirs) == file(&own)) || is_older())
    }

    /// Returns the kernel's name for a namespace of a process.
    fn namespace(pid: u32, kind: &str) -> Option<std::path::PathBuf> {
        fs::read_link(format!("/proc/{pid}/ns/{kind}")).ok()
    }

    /// Returns true if two processes are in different namespaces. A namespace that cannot be read does not count.
    fn differ(one: u32, other: u32) -> bool {
        ["pid", "user"].iter().any(|kind| match (Self::namespace(one, kind), Self::namespace(other, kind)) {
            (Some(one), Some(other)) => one != other,
            _ => false,
        })
    }

    fn runs_hub(&self) -> Option<u32> {
        match self.hub {
            HubProcess::Running(pid, started) => {
                ProcessStat::of(pid).filter(|stat| started.is_none_or(|since| since == stat.started))?;
                Some(pid)
            }
            HubProcess::None => None,
        }
    }

    fn panes(&self) -> Option<&PaneWindows> {
        self.panes.get_or_init(self.ask_panes).as_ref()
    }
}

impl ProcessFacts for System<'_> {
    fn stat(&self, pid: u32) -> Option<ProcessStat> {
        ProcessStat::of(pid)
    }

    fn executable(&self, pid: u32) -> Option<Executable> {
        let path = fs::read_link(format!("/proc/{pid}/exe")).ok()?;
        let owner = owner(&path, self.own_uid);
        Some(Executable { path: path.to_string_lossy().into_owned(), owner })
    }

    fn name_if_root(&self, pid: u32) -> Option<String> {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        // Real, effective, saved and file system uid. sudo keeps the caller's real uid; its effective and saved uid are root's.
        let is_root = field("Uid:")?.split_whitespace().skip(1).take(2).all(|uid| uid == "0");
        is_root.then(|| field("Name:").map(str::to_owned)).flatten()
    }

    fn is_hidden(&self, pid: u32) -> bool {
        fs::read_link(format!("/proc/{pid}/exe")).is_err()
    }

    fn variable(&self, pid: u32, name: &str) -> Option<String> {
        use std::io::Read as _;
        let mut environment = Vec::new();
        let file = fs::File::open(format!("/proc/{pid}/environ")).ok()?;
        file.take(MAX_ENVIRONMENT).read_to_end(&mut environment).ok()?;
        let mut variables = environment.split(|byte| *byte == 0);
        let value =
            variables.find_map(|variable| variable.strip_prefix(name.as_bytes())?.strip_prefix(b"="))?;
        (!value.is_empty()).then(|| String::from_utf8_lossy(value).into_owned())
    }

    fn is_elsewhere(&self, pid: u32) -> bool {
        // If /proc belongs to another namespace, its PIDs mean other processes.
        let own = std::process::id();
        if Self::own_pid() != Some(own) {
            return true;
        }
        if matches!(self.hub, HubProcess::Running(..)) {
            return self.runs_hub().is_none_or(|hub| Self::differ(hub, pid));
        }
        let mut next = pid;
        while let Some(stat) = ProcessStat::of(next).filter(|stat| stat.parent > 0) {
            if Self::differ(next, stat.parent) {
                return true;
            }
            next = stat.parent;
        }
        false
    }

    fn is_container(&self) -> bool {
        self.runs_hub().is_some()
    }

    fn holders(&self, terminal: u32) -> Vec<u32> {
        self.holders.get_or_init(masters).get(&terminal).cloned().unwrap_or_default()
    }

    fn tmux_clients(&self, server: u32, terminal: u32) -> Vec<u32> {
        tmux_clients(server, &format!("/dev/pts/{terminal}"))
    }

    fn pane_windows(&self, terminal: u32) -> Vec<u32> {
        let holders = self.holders(terminal);
        let panes = self.panes().filter(|panes| holders.contains(&panes.server));
        panes.map(|panes| panes.windows.clone()).unwrap_or_default()
    }
}

/// Returns who can change a file, by the owners and modes of the file and of every directory above it. Ignores the write
/// permission of groups.
fn owner(path: &Path, own_uid: u32) -> Owner {
    // An executable that was replaced has no file any more. Its directories tell who could have replaced it.
    let path = match path.to_string_lossy().strip_suffix(DELETED) {
        Some(before) => Path::new(before).parent().map(Path::to_owned),
        None => Some(path.to_owned()),
    };
    let mut found = Owner::Root;
    for part in path.iter().flat_map(|path| path.ancestors()) {
        let Ok(metadata) = fs::symlink_metadata(part) else { return Owner::Others };
        let uid = metadata.uid();
        // A sticky directory does not pass: others can put their own programs there.
        if metadata.mode() & 0o002 != 0 || (uid != 0 && uid != own_uid) {
            return Owner::Others;
        }
        if uid != 0 {
            found = Owner::User;
        }
    }
    found
}

/// Returns the processes that hold the master of each pseudo-terminal, by its number. Processes of other users cannot be read.
fn masters() -> HashMap<u32, Vec<u32>> {
    let mut masters: HashMap<u32, Vec<u32>> = HashMap::new();
    for process in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = process.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        let files = fs::read_dir(process.path().join("fd")).into_iter().flatten().flatten();
        for file in files {
            let is_master =
                fs::read_link(file.path()).is_ok_and(|path| path.as_os_str().as_bytes().ends_with(b"/ptmx"));
            if !is_master {
                continue;
            }
            let info = process.path().join("fdinfo").join(file.file_name());
            let info = fs::read_to_string(info).unwrap_or_default();
            let number = info.lines().find_map(|line| line.strip_prefix("tty-index:")?.trim().parse().ok());
            if let Some(number) = number {
                let holders: &mut Vec<u32> = masters.entry(number).or_default();
                if !holders.contains(&pid) {
                    holders.push(pid);
                }
            }
        }
    }
    masters
}

/// Timeout for tmux. It answers within milliseconds unless its server hangs.
const TMUX_DEADLINE: Duration = Duration::from_secs(2);
/// Maximum number of bytes read from tmux: enough for thousands of panes.
const MAX_TMUX_OUTPUT: u64 = 1024 * 1024;

/// Returns the clients that are attached to the sessions of the pane with this terminal. Clients in control mode are left out,
/// because they show nothing themselves.
///
/// Runs the server's own executable, on a socket that the server listens on: the caller's `TMUX` and `PATH` are not trusted.
pub(crate) fn tmux_clients(server: u32, terminal: &str) -> Vec<u32> {
    let Some(socket) = listening_socket(server) else { return Vec::new() };
    let words = ["list-panes", "-a", "-F", "p #{pid} #{session_id} #{pane_tty}", ";"];
    let more = ["list-clients", "-F", "c #{client_pid} #{session_id} #{client_control_mode}"];
    let mut command = Command::new(format!("/proc/{server}/exe"));
    command.arg("-S").arg(socket).args(words).args(more);
    command.env_remove("TMUX").current_dir("/").stdin(Stdio::null()).stderr(Stdio::null());
    output_of(command).map(|listed| clients_showing(&listed, server, terminal)).unwrap_or_default()
}

fn output_of(mut command: Command) -> Option<String> {
    let mut child = command.stdout(Stdio::piped()).spawn().ok()?;
    let output = child.stdout.take()?;
    let (send, receive) = channel();
    thread::spawn(move || {
        let mut text = Vec::new();
        let _ = output.take(MAX_TMUX_OUTPUT).read_to_end(&mut text);
        let _ = send.send(text);
    });
    let text = receive.recv_timeout(TMUX_DEADLINE).ok();
    if text.is_none() {
        let _ = child.kill();
    }
    let _ = child.wait();
    text.map(|text| String::from_utf8_lossy(&text).into_owned())
}

/// Parses the output of tmux.
fn clients_showing(listed: &str, server: u32, terminal: &str) -> Vec<u32> {
    let rows = || listed.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    let server = server.to_string();
    let is_server = rows().any(|row| matches!(row[..], ["p", pid, ..] if pid == server));
    // A popup is not a pane. tmux does not tell which client shows it, so all clients count.
    let is_pane = rows().any(|row| matches!(row[..], ["p", _, _, tty] if tty == terminal));
    if is_server && !is_pane {
        return rows()
            .filter_map(|row| match row[..] {
                ["c", pid, _, "0"] => pid.parse().ok(),
                _ => None,
            })
            .collect();
    }
    let sessions: Vec<&str> = rows()
        .filter_map(|row| match row[..] {
            ["p", pid, session, tty] if pid == server && tty == terminal => Some(session),
            _ => None,
        })
        .collect();
    let clients = rows().filter_map(|row| match row[..] {
        ["c", pid, session, "0"] if sessions.contains(&session) => pid.parse().ok(),
        _ => None,
    });
    clients.collect()
}

/// Returns the path of a socket that a process listens on, from the kernel's table of sockets.
fn listening_socket(pid: u32) -> Option<String> {
    let table = fs::read_to_string(format!("/proc/{pid}/net/unix")).ok()?;
    let paths = listening_paths(&table);
    let files = fs::read_dir(format!("/proc/{pid}/fd")).ok()?;
    let links = files.flatten().filter_map(|file| fs::read_link(file.path()).ok());
    let mut inodes = links
        .filter_map(|link| link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']').map(str::to_owned));
    inodes.find_map(|inode| paths.get(inode.as_str()).map(|path| (*path).to_owned()))
}

/// Returns the paths of listening sockets, by inode.
fn listening_paths(table: &str) -> HashMap<&str, &str> {
    let rows = table.lines().filter_map(|line| {
        let mut fields = line.split_ascii_whitespace();
        // `__SO_ACCEPTCON`, the flag of a listening socket.
        let is_listening = fields.nth(3)? == "00010000";
        let inode = fields.nth(2)?;
        // A path may contain spaces.
        let (_, path) = line.split_at(line.find(" /")? + 1);
        is_listening.then_some((inode, path))
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_program_that_others_can_replace_is_theirs() {
        let own = rustix::process::geteuid().as_raw();
        assert_eq!(owner(Path::new("/proc/self/no-such-file"), own), Owner::Others);
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("tmux");
        fs::write(&file, "").unwrap();
        assert_eq!(
            owner(&file, own),
            Owner::Others,
            "everybody may write to the directory for temporary files"
        );
        fs::set_permissions(&file, fs::Permissions::from_mode(0o777)).unwrap();
        assert_eq!(owner(&file, own), Owner::Others);
    }

    #[test]
    fn the_processes_above_this_one_are_read() {
        let nothing = || None;
        let system = System::new(HubProcess::None, &nothing);
        let own = std::process::id();
        assert_eq!(System::own_pid(), Some(own));
        assert!(!system.is_elsewhere(own));
        assert!(system.executable(own).is_some_and(|file| file.name().starts_with("ringer_guard")));
        assert_eq!(system.variable(own, "PATH"), std::env::var("PATH").ok());
    }

    #[test]
    fn only_clients_of_the_sessions_of_the_pane_count() {
        let listed = "p 7 $0 /dev/pts/3\np 7 $1 /dev/pts/4\np 7 $2 /dev/pts/3\n\
                      c 20 $0 0\nc 21 $1 0\nc 22 $2 1\nc 23 $2 0\n";
        assert_eq!(clients_showing(listed, 7, "/dev/pts/3"), [20, 23]);
        assert_eq!(clients_showing(listed, 7, "/dev/pts/4"), [21]);
        assert_eq!(clients_showing(listed, 7, "/dev/pts/5"), [20, 21, 23], "a popup");
        assert_eq!(clients_showing(listed, 8, "/dev/pts/3"), [0; 0], "another server answers at the socket");
        assert_eq!(clients_showing("c\np 7\n", 7, ""), [0; 0]);
    }

    #[test]
    fn sockets_that_listen_are_found() {
        let table = "Num       RefCount Protocol Flags    Type St Inode Path\n\
                     000000007005228a: 00000003 00000000 00000000 0001 03 18068 /tmp/tmux-0/other\n\
                     000000007005228b: 00000002 00000000 00010000 0001 01 18069 /tmp/tmux-0/with space\n\
                     000000007005228c: 00000002 00000000 00010000 0001 01 18070\n";
        assert_eq!(listening_paths(table), HashMap::from([("18069", "/tmp/tmux-0/with space")]));
    }
}
