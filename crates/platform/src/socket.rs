//! Unix sockets: connecting, the credentials of the peer, and a pair that wakes a polling loop.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use rustix::net::{AddressFamily, SocketAddrUnix, SocketType};

/// Timeout for the first frame or line of a connection to any of Ringer's sockets. Programs send theirs at once; a silent
/// connection must not take the place of another one.
pub const FIRST_FRAME_WITHIN: Duration = Duration::from_secs(2);

/// Connects without waiting: a stopped process accepts no connections, and once its backlog is full, a blocking connect hangs.
/// The stream is non-blocking.
pub(crate) fn connect_at_once(socket: &Path) -> io::Result<UnixStream> {
    connect(&SocketAddrUnix::new(socket)?)
}

/// The same for an abstract socket, which has no file.
#[cfg(target_os = "linux")]
pub(crate) fn connect_abstract_at_once(name: &[u8]) -> io::Result<UnixStream> {
    connect(&SocketAddrUnix::new_abstract_name(name)?)
}

fn connect(address: &SocketAddrUnix) -> io::Result<UnixStream> {
    let stream = new_socket()?;
    rustix::net::connect(&stream, address)?;
    Ok(stream.into())
}

/// Returns a non-blocking socket that other programs do not inherit.
#[cfg(target_os = "linux")]
fn new_socket() -> io::Result<OwnedFd> {
    use rustix::net::{SocketFlags, socket_with};
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Ok(socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?)
}

/// Returns a non-blocking socket that other programs do not inherit.
#[cfg(not(target_os = "linux"))]
fn new_socket() -> io::Result<OwnedFd> {
    let stream = rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None)?;
    rustix::io::fcntl_setfd(&stream, rustix::io::FdFlags::CLOEXEC)?;
    rustix::io::ioctl_fionbio(&stream, true)?;
    Ok(stream)
}

/// Returns the user of the process behind a socket.
#[cfg(not(target_os = "macos"))]
pub fn peer_uid(stream: &UnixStream) -> io::Result<u32> {
    Ok(rustix::net::sockopt::socket_peercred(stream)?.uid.as_raw())
}

/// Returns the user of the process behind a socket.
#[cfg(target_os = "macos")]
pub fn peer_uid(stream: &UnixStream) -> io::Result<u32> {
    Ok(nix::unistd::getpeereid(stream)?.0.as_raw())
}

/// Returns the process behind a socket. `None` if it has no PID here because it is in another PID namespace, as in a container.
#[cfg(not(target_os = "macos"))]
pub fn peer_pid(stream: impl AsFd) -> io::Result<Option<u32>> {
    // The kernel returns 0 if the process has no PID in this namespace.
    let pid = rustix::net::sockopt::socket_peercred(stream)?.pid.as_raw_pid();
    Ok(u32::try_from(pid).ok().filter(|pid| *pid != 0))
}

/// Returns the process behind a socket.
#[cfg(target_os = "macos")]
pub fn peer_pid(stream: impl AsFd) -> io::Result<Option<u32>> {
    let pid = nix::sys::socket::getsockopt(&stream, nix::sys::socket::sockopt::LocalPeerPid)?;
    Ok(u32::try_from(pid).ok().filter(|pid| *pid != 0))
}

/// Returns the end that is polled, and the end that wakes. Both are non-blocking.
pub fn wake_pair() -> io::Result<(UnixStream, UnixStream)> {
    let (polled, wakes) = UnixStream::pair()?;
    polled.set_nonblocking(true)?;
    wakes.set_nonblocking(true)?;
    Ok((polled, wakes))
}

/// Makes the other end readable.
pub fn wake(mut wakes: &UnixStream) {
    // If the buffer is full, the other end is readable already.
    let _ = wakes.write(&[0]);
}

/// Drains the polled end, so that it is not readable until the next wake.
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
