//! Finds out that no window shows the sessions of Codex's server.
//!
//! A session goes on in the server when its window closes, and the server ends it after a minute. Until then nothing says which
//! window shows which session. But each window keeps a connection to the server's socket, so without a connection nobody sees
//! any of its sessions.

use crate::client::ClientPaths;

/// Returns true if this process is Codex's server, and no window is connected to it. Only Linux lists connections: elsewhere, and
/// while another window is open, a session counts as shown until the server ends it.
#[cfg(target_os = "linux")]
pub(crate) fn has_no_window(paths: &ClientPaths, process: u32) -> bool {
    // The path is a link to the socket.
    let Ok(socket) = std::fs::canonicalize(super::socket(paths)) else { return false };
    let sockets = std::fs::read("/proc/net/unix").unwrap_or_default();
    let sockets = String::from_utf8_lossy(&sockets);
    let usage = SocketUsage::read(&sockets, &socket.to_string_lossy());
    usage.connections == 0 && usage.listener.is_some_and(|inode| has_open(process, inode))
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn has_no_window(_: &ClientPaths, _: u32) -> bool {
    false
}

/// Returns true if a process has this socket open.
#[cfg(target_os = "linux")]
fn has_open(process: u32, inode: &str) -> bool {
    let socket = format!("socket:[{inode}]");
    let mut files = std::fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
    files
        .any(|file| std::fs::read_link(file.path()).is_ok_and(|target| target.as_os_str() == socket.as_str()))
}

/// A server's socket in `/proc/net/unix`.
#[cfg(target_os = "linux")]
#[derive(Debug, Default, PartialEq, Eq)]
struct SocketUsage<'a> {
    /// The inode of the socket that accepts connections.
    listener: Option<&'a str>,
    connections: usize,
}

#[cfg(target_os = "linux")]
impl<'a> SocketUsage<'a> {
    /// The flag of a socket that accepts connections, `__SO_ACCEPTCON`.
    const ACCEPTS: u32 = 1 << 16;

    /// Reads the rows with this path: one for the socket that accepts connections, and one for each connection.
    fn read(sockets: &'a str, path: &str) -> Self {
        let mut usage = Self::default();
        for row in sockets.lines() {
            // A path is absolute, and may have spaces.
            let Some((columns, name)) = row.find(" /").map(|at| row.split_at(at)) else { continue };
            let columns: Vec<&str> = columns.split_whitespace().collect();
            let [_, _, _, flags, _, _, inode] = columns[..] else { continue };
            match u32::from_str_radix(flags, 16) {
                Ok(flags) if &name[1..] == path && flags & Self::ACCEPTS != 0 => {
                    usage.listener = Some(inode);
                }
                Ok(_) if &name[1..] == path => usage.connections += 1,
                _ => {}
            }
        }
        usage
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::os::unix::fs::symlink;
    use std::os::unix::net::{UnixListener, UnixStream};

    use super::*;

    #[test]
    fn connections_to_a_socket_are_counted() {
        let sockets = "Num       RefCount Protocol Flags    Type St Inode Path\n\
             000000009f15488f: 00000002 00000000 00010000 0001 01   811 /tmp/a b\n\
             000000009ceaaf15: 00000003 00000000 00000000 0001 03 80106\n\
             0000000037ce9c91: 00000003 00000000 00000000 0001 03 80107 /tmp/a b\n\
             0000000037ce9c92: 00000003 00000000 00000000 0001 03 80108 /tmp/a\n";
        let usage = SocketUsage::read(sockets, "/tmp/a b");
        assert_eq!(usage, SocketUsage { listener: Some("811"), connections: 1 });
        assert_eq!(SocketUsage::read(sockets, "/tmp/b"), SocketUsage::default());
    }

    #[test]
    fn a_server_without_a_connection_has_no_window() {
        let home = tempfile::tempdir().unwrap();
        let paths = ClientPaths::new(home.path());
        let own = std::process::id();
        assert!(!has_no_window(&paths, own), "there is no server");
        let directory = home.path().join(".codex/app-server-control");
        std::fs::create_dir_all(&directory).unwrap();
        let listener = UnixListener::bind(home.path().join("socket")).unwrap();
        symlink(home.path().join("socket"), directory.join("app-server-control.sock")).unwrap();
        assert!(has_no_window(&paths, own));
        assert!(!has_no_window(&paths, 1), "another process is a window itself");
        let window = UnixStream::connect(home.path().join("socket")).unwrap();
        let accepted = listener.accept().unwrap();
        assert!(!has_no_window(&paths, own));
        drop((window, accepted));
        assert!(has_no_window(&paths, own));
    }
}
