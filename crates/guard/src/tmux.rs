//! Which clients of tmux show a pane.

use std::collections::HashMap;
use std::fs;
use std::io::Read as _;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

/// How long tmux may take. It answers within milliseconds unless its server hangs.
const DEADLINE: Duration = Duration::from_secs(2);
/// The most that is read: a row for each of thousands of panes.
const MAX_OUTPUT: u64 = 1024 * 1024;

/// The attached clients of the sessions that a pane is in, by its terminal. Clients in control mode show nothing by themselves.
///
/// The server's own executable asks, at a socket that the server listens on: neither `TMUX` nor `PATH` of the caller is believed.
pub(crate) fn clients(server: u32, terminal: &str) -> Vec<u32> {
    let Some(socket) = socket(server) else { return Vec::new() };
    let words = ["list-panes", "-a", "-F", "p #{pid} #{session_id} #{pane_tty}", ";"];
    let more = ["list-clients", "-F", "c #{client_pid} #{session_id} #{client_control_mode}"];
    let mut command = Command::new(format!("/proc/{server}/exe"));
    command.arg("-S").arg(socket).args(words).args(more);
    command.env_remove("TMUX").current_dir("/").stdin(Stdio::null()).stderr(Stdio::null());
    run(command).map(|listed| read(&listed, server, terminal)).unwrap_or_default()
}

fn run(mut command: Command) -> Option<String> {
    let mut child = command.stdout(Stdio::piped()).spawn().ok()?;
    let output = child.stdout.take()?;
    let (send, receive) = channel();
    thread::spawn(move || {
        let mut text = Vec::new();
        let _ = output.take(MAX_OUTPUT).read_to_end(&mut text);
        let _ = send.send(text);
    });
    let text = receive.recv_timeout(DEADLINE).ok();
    if text.is_none() {
        let _ = child.kill();
    }
    let _ = child.wait();
    text.map(|text| String::from_utf8_lossy(&text).into_owned())
}

/// The clients in what tmux lists.
fn read(listed: &str, server: u32, terminal: &str) -> Vec<u32> {
    let rows = || listed.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    let server = server.to_string();
    let is_server = rows().any(|row| matches!(row[..], ["p", pid, ..] if pid == server));
    // A popup is no pane. It has a client around it, which tmux does not name.
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

/// A socket that a process listens on, by the kernel's table of sockets.
fn socket(pid: u32) -> Option<String> {
    let table = fs::read_to_string(format!("/proc/{pid}/net/unix")).ok()?;
    let paths = listening(&table);
    let files = fs::read_dir(format!("/proc/{pid}/fd")).ok()?;
    let links = files.flatten().filter_map(|file| fs::read_link(file.path()).ok());
    let mut inodes = links
        .filter_map(|link| link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']').map(str::to_owned));
    inodes.find_map(|inode| paths.get(inode.as_str()).map(|path| (*path).to_owned()))
}

/// The paths of listening sockets, by their inodes.
fn listening(table: &str) -> HashMap<&str, &str> {
    let rows = table.lines().filter_map(|line| {
        let mut fields = line.split_ascii_whitespace();
        // `__SO_ACCEPTCON`.
        let is_listening = fields.nth(3)? == "00010000";
        let inode = fields.nth(2)?;
        // A path may have spaces.
        let (_, path) = line.split_at(line.find(" /")? + 1);
        is_listening.then_some((inode, path))
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_clients_of_the_sessions_of_the_pane_count() {
        let listed = "p 7 $0 /dev/pts/3\np 7 $1 /dev/pts/4\np 7 $2 /dev/pts/3\n\
                      c 20 $0 0\nc 21 $1 0\nc 22 $2 1\nc 23 $2 0\n";
        assert_eq!(read(listed, 7, "/dev/pts/3"), [20, 23]);
        assert_eq!(read(listed, 7, "/dev/pts/4"), [21]);
        assert_eq!(read(listed, 7, "/dev/pts/5"), [20, 21, 23], "a popup");
        assert_eq!(read(listed, 8, "/dev/pts/3"), [0; 0], "another server answers at the socket");
        assert_eq!(read("c\np 7\n", 7, ""), [0; 0]);
    }

    #[test]
    fn sockets_that_listen_are_found() {
        let table = "Num       RefCount Protocol Flags    Type St Inode Path\n\
                     000000007005228a: 00000003 00000000 00000000 0001 03 18068 /tmp/tmux-0/other\n\
                     000000007005228b: 00000002 00000000 00010000 0001 01 18069 /tmp/tmux-0/with space\n\
                     000000007005228c: 00000002 00000000 00010000 0001 01 18070\n";
        assert_eq!(listening(table), HashMap::from([("18069", "/tmp/tmux-0/with space")]));
    }
}
