//! Reading and writing on streams that do not block, until a time.

use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Writes everything.
pub fn write_until(mut stream: &UnixStream, mut bytes: &[u8], end: Instant) -> io::Result<()> {
    while !bytes.is_empty() {
        match stream.write(bytes) {
            Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
            // Its buffer is full of what the other side has not read.
            Err(error) if error.kind() == ErrorKind::WouldBlock => wait(stream, PollFlags::OUT, end)?,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Reads one line of at most `most` bytes, and gives it without its end. What comes after it is lost.
pub fn read_line_until(mut stream: &UnixStream, most: usize, end: Instant) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    let mut piece = [0; 4096];
    loop {
        match stream.read(&mut piece) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(count) => {
                let piece = &piece[..count];
                let length = piece.iter().position(|byte| *byte == b'\n');
                line.extend_from_slice(&piece[..length.unwrap_or(count)]);
                if line.len() > most {
                    return Err(ErrorKind::InvalidData.into());
                }
                if length.is_some() {
                    return Ok(line);
                }
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => wait(stream, PollFlags::IN, end)?,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn wait(stream: &UnixStream, flags: PollFlags, end: Instant) -> io::Result<()> {
    let rest = Timespec::try_from(end.saturating_duration_since(Instant::now())).map_err(io::Error::other)?;
    match poll(&mut [PollFd::new(stream, flags)], Some(&rest)) {
        Ok(0) => Err(ErrorKind::TimedOut.into()),
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn pair() -> (UnixStream, UnixStream) {
        let (one, other) = UnixStream::pair().unwrap();
        one.set_nonblocking(true).unwrap();
        (one, other)
    }

    #[test]
    fn a_line_is_read_whole_or_not_at_all() {
        let later = || Instant::now() + Duration::from_secs(30);
        let check = |sent: &[u8], most, expected: Result<&[u8], ErrorKind>| {
            let (stream, mut other) = pair();
            other.write_all(sent).unwrap();
            drop(other);
            let read = read_line_until(&stream, most, later()).map_err(|error| error.kind());
            assert_eq!(read.as_deref().map_err(|kind| *kind), expected, "{sent:?}");
        };
        check(b"hello\n", 5, Ok(b"hello"));
        check(b"hello\nmore", 5, Ok(b"hello"));
        check(b"\n", 0, Ok(b""));
        check(b"hello\n", 4, Err(ErrorKind::InvalidData));
        check(b"hello", 5, Err(ErrorKind::UnexpectedEof));
        check(&[vec![b'a'; 10_000], vec![b'\n']].concat(), 10_000, Ok(&[b'a'; 10_000]));
        let (stream, _other) = pair();
        assert_eq!(read_line_until(&stream, 5, Instant::now()).unwrap_err().kind(), ErrorKind::TimedOut);
    }

    #[test]
    fn what_the_other_side_does_not_read_is_given_up() {
        let (stream, _other) = pair();
        let much = vec![0; 16 << 20];
        let end = Instant::now() + Duration::from_millis(10);
        assert_eq!(write_until(&stream, &much, end).unwrap_err().kind(), ErrorKind::TimedOut);
    }
}
