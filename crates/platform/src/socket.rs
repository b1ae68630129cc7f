//! Connecting to a Unix socket, and who is behind it.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;

use rustix::io::FdFlags;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketType};

/// Connects without waiting: a process that is stopped takes no connection, and those that wait for it are limited. The
/// stream does not block.
pub fn connect_at_once(socket: &Path) -> io::Result<UnixStream> {
    let address = SocketAddrUnix::new(socket)?;
    let stream = rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None)?;
    rustix::io::fcntl_setfd(&stream, FdFlags::CLOEXEC)?;
    rustix::io::ioctl_fionbio(&stream, true)?;
    rustix::net::connect(&stream, &address)?;
    Ok(stream.into())
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
