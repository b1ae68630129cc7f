//! Arbitrary bytes between the panes' server and its clients: any cut of the stream gives the same frames, frames are read
//! back as they were written, and what a frame says is understood as it was meant.

use ringer_panes::{Frame, FrameReader, rewrite_frame};

use crate::input::split;

pub fn run(data: &[u8]) {
    let Some((stream, pieces)) = split(data) else { return };
    let whole = frames([stream]);
    assert_eq!(whole, frames(pieces));
    let mut written = Vec::new();
    whole.0.iter().for_each(|frame| frame.write(&mut written));
    assert_eq!(frames([&written[..]]), (whole.0.clone(), true));
    for once in whole.0.iter().filter_map(|frame| rewrite_frame(frame).ok()) {
        assert_eq!(rewrite_frame(&once).expect("it was written by us"), once);
    }
}

/// The frames of a stream, and whether it was read to its end.
fn frames<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> (Vec<Frame>, bool) {
    let (mut reader, mut frames) = (FrameReader::default(), Vec::new());
    for piece in pieces {
        reader.push(piece);
        loop {
            match reader.next() {
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) => break,
                Err(_) => return (frames, false),
            }
        }
    }
    (frames, true)
}
