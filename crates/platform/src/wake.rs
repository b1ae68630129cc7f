//! A stream that only wakes a loop which polls it.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;

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
