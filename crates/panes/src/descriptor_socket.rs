//! Sends and receives descriptors with bytes on a Unix socket (`SCM_RIGHTS`).

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::cmsg_space;
use rustix::io::{Errno, Result};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

/// The most descriptors in one read. The keeper sends one at a time, and the kernel does not merge two such sends.
const DESCRIPTORS: usize = 4;

/// Writes as many bytes as the socket accepts; the descriptor goes with the first one. Returns their number.
pub fn send(socket: impl AsFd, bytes: &[u8], descriptor: Option<BorrowedFd<'_>>) -> Result<usize> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let descriptors = descriptor.as_slice();
    if !descriptors.is_empty() && !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(Errno::NOBUFS);
    }
    sendmsg(socket, &[IoSlice::new(bytes)], &mut control, SendFlags::empty())
}

/// The result of one read from a socket.
#[derive(Debug)]
pub struct SocketRead {
    /// The number of bytes in the buffer.
    pub bytes: usize,
    /// The received descriptors. They are close-on-exec.
    pub descriptors: Vec<OwnedFd>,
    /// The kernel dropped descriptors: more were sent than are expected, or this process has no free descriptor.
    pub has_lost_some: bool,
}

/// Reads available bytes and descriptors.
pub fn receive(socket: impl AsFd, buffer: &mut [u8]) -> Result<SocketRead> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(DESCRIPTORS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received = recvmsg(socket, &mut [IoSliceMut::new(buffer)], &mut control, close_on_exec())?;
    let mut descriptors = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(those) = message {
            descriptors.extend(those);
        }
    }
    #[cfg(target_os = "macos")]
    for descriptor in &descriptors {
        rustix::io::fcntl_setfd(descriptor, rustix::io::FdFlags::CLOEXEC)?;
    }
    let has_lost_some = received.flags.contains(ReturnFlags::CTRUNC);
    Ok(SocketRead { bytes: received.bytes, descriptors, has_lost_some })
}

#[cfg(not(target_os = "macos"))]
fn close_on_exec() -> RecvFlags {
    RecvFlags::CMSG_CLOEXEC
}

/// macOS has no such flag; `receive` sets it afterwards.
#[cfg(target_os = "macos")]
fn close_on_exec() -> RecvFlags {
    RecvFlags::empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::FdFlags;
    use std::fs::File;
    use std::io::{Read, Seek, Write};
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_descriptor_arrives_with_its_bytes_and_is_not_inherited() {
        let (one, other) = UnixStream::pair().unwrap();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"inside").unwrap();
        assert_eq!(send(&one, b"before", None), Ok(6));
        assert_eq!(send(&one, b"with", Some(file.as_fd())), Ok(4));
        assert_eq!(send(&one, b"after", None), Ok(5));
        let (mut bytes, mut descriptors, mut buffer) = (Vec::new(), Vec::new(), [0; 100]);
        while bytes.len() < 15 {
            let received = receive(&other, &mut buffer).unwrap();
            assert!(!received.has_lost_some);
            bytes.extend_from_slice(&buffer[..received.bytes]);
            descriptors.extend(received.descriptors);
        }
        assert_eq!((bytes.as_slice(), descriptors.len()), (&b"beforewithafter"[..], 1));
        let received = descriptors.remove(0);
        assert!(rustix::io::fcntl_getfd(&received).unwrap().contains(FdFlags::CLOEXEC));
        let (mut same, mut text) = (File::from(received), String::new());
        same.rewind().unwrap();
        same.read_to_string(&mut text).unwrap();
        assert_eq!(text, "inside");
    }
}
