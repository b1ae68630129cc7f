//! Unix sockets: connecting to one, who is behind it, and a pair that only wakes a loop which polls it.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use rustix::net::{AddressFamily, SocketAddrUnix, SocketType};

/// How long a connection to any of Ringer's sockets may take for its first frame or line. Programs send theirs at once; a
/// connection that says nothing must not keep the place of one that does.
pub const FIRST_FRAME_WITHIN: Duration = Duration::from_secs(2);

/// Connects without waiting: a process that is stopped takes no connection, and those that wait for it are limited. The
/// stream does not block.
pub(crate) fn connect_at_once(socket: &Path) -> io::Result<UnixStream> {
    connect(&SocketAddrUnix::new(socket)?)
}

/// The same, for a socket with a name of the kernel's own instead of a file.
#[cfg(target_os = "linux")]
pub(crate) fn connect_abstract_at_once(name: &[u8]) -> io::Result<UnixStream> {
    connect(&SocketAddrUnix::new_abstract_name(name)?)
}

fn connect(address: &SocketAddrUnix) -> io::Result<UnixStream> {
    let stream = new_socket()?;
    rustix::net::connect(&stream, address)?;
    Ok(stream.into())
}

/// A socket that does not block and that other programs do not inherit.
#[cfg(target_os = "linux")]
fn new_socket() -> io::Result<OwnedFd> {
    use rustix::net::{SocketFlags, socket_with};
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Ok(socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?)
}

/// A socket that does not block and that other programs do not inherit.
#[cfg(not(target_os = "linux"))]
fn new_socket() -> io::Result<OwnedFd> {
    let stream = rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None)?;
    rustix::io::fcntl_setfd(&stream, rustix::io::FdFlags::CLOEXEC)?;
    rustix::io::ioctl_fionbio(&stream, true)?;
    Ok(stream)
}

/// The user who owns the process behind a socket.
#[cfg(not(target_os = "macos"))]
pub fn peer_uid(stream: &UnixStream) -> io::Result<u32> {
    Ok(rustix::net::sockopt::socket_peercred(stream)?.uid.as_raw())
}

/// The user who owns the process behind a socket.
#[cfg(target_os = "macos")]
pub fn peer_uid(stream: &UnixStream) -> io::Result<u32> {
    Ok(nix::unistd::getpeereid(stream)?.0.as_raw())
}

/// The process behind a socket. `None` if it is in another process namespace, such as a container.
#[cfg(not(target_os = "macos"))]
pub fn peer_pid(stream: impl AsFd) -> io::Result<Option<u32>> {
    // The kernel says 0 where the process has no number here.
    let pid = rustix::net::sockopt::socket_peercred(stream)?.pid.as_raw_pid();
    Ok(u32::try_from(pid).ok().filter(|pid| *pid != 0))
}

/// The process behind a socket.
#[cfg(target_os = "macos")]
pub fn peer_pid(stream: impl AsFd) -> io::Result<Option<u32>> {
    let pid = nix::sys::socket::getsockopt(&stream, nix::sys::socket::sockopt::LocalPeerPid)?;
    Ok(u32::try_from(pid).ok().filter(|pid| *pid != 0))
}

/// The end that is polled, and the end that wakes. Neither blocks.
pub fn wake_pair() -> io::Result<(UnixStream, UnixStream)> {
    let (polled, wakes) = UnixStream::pair()?;
    polled.set_nonblocking(true)?;
    wakes.set_nonblocking(true)?;
    Ok((polled, wakes))
}

/// Makes the other end readable.
pub fn wake(mut wakes: &UnixStream) {
    // If it is full, the loop is awake already.
    let _ = wakes.write(&[0]);
}

/// Reads all that woke: it is not readable until the next time.
pub fn clear_wakes(mut polled: &UnixStream) {
    let mut room = [0; 64];
    while polled.read(&mut room).is_ok_and(|read| read > 0) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thousand_wakes_are_one() {
        let (polled, wakes) = wake_pair().unwrap();
        let is_readable = || (&polled).read(&mut [0]).is_ok();
        assert!(!is_readable());
        for _ in 0..1000 {
            wake(&wakes);
        }
        assert!(is_readable());
        clear_wakes(&polled);
        assert!(!is_readable());
    }
}
