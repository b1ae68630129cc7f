//! Splits a byte stream into lines. A line that is too long to buffer is passed on in pieces.

/// The longest line that is buffered. A longer one is passed on in pieces and not interpreted.
pub(crate) const MAX_LINE: usize = 4 * 1024 * 1024;

/// A piece of the stream. All pieces together are the input, unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Piece<'a> {
    /// A whole line with its line break.
    Line(&'a [u8]),
    /// Part of a line that is too long.
    Part(&'a [u8]),
}

impl<'a> Piece<'a> {
    pub(crate) fn bytes(self) -> &'a [u8] {
        match self {
            Self::Line(bytes) | Self::Part(bytes) => bytes,
        }
    }
}

/// Buffers an incomplete line.
#[derive(Debug, Default)]
pub(crate) struct LineSplitter {
    kept: Vec<u8>,
    /// The beginning of the current line was already passed on.
    is_too_long: bool,
}

impl LineSplitter {
    /// Reads bytes, and calls `piece` for each piece that they complete.
    pub(crate) fn feed<E>(
        &mut self,
        bytes: &[u8],
        mut piece: impl FnMut(Piece<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut rest = bytes;
        while let Some(end) = memchr::memchr(b'\n', rest) {
            let (line, after) = rest.split_at(end + 1);
            rest = after;
            if self.is_too_long {
                self.is_too_long = false;
                piece(Piece::Part(line))?;
            } else if self.kept.is_empty() {
                piece(Piece::Line(line))?;
            } else {
                self.kept.extend_from_slice(line);
                let whole = std::mem::take(&mut self.kept);
                piece(Piece::Line(&whole))?;
            }
        }
        if self.is_too_long {
            return if rest.is_empty() { Ok(()) } else { piece(Piece::Part(rest)) };
        }
        self.kept.extend_from_slice(rest);
        if self.kept.len() > MAX_LINE {
            self.is_too_long = true;
            let long = std::mem::take(&mut self.kept);
            piece(Piece::Part(&long))?;
        }
        Ok(())
    }

    /// Takes the bytes after the last line break.
    pub(crate) fn finish(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.kept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn split(chunks: &[&[u8]]) -> (Vec<Vec<u8>>, Vec<u8>) {
        let (mut splitter, mut lines, mut all) = (LineSplitter::default(), Vec::new(), Vec::new());
        for chunk in chunks {
            let fed: Result<(), ()> = splitter.feed(chunk, |piece| {
                all.extend_from_slice(piece.bytes());
                if let Piece::Line(line) = piece {
                    lines.push(line.to_vec());
                }
                Ok(())
            });
            fed.unwrap();
        }
        all.extend(splitter.finish());
        (lines, all)
    }

    #[test]
    fn a_long_line_is_forwarded_and_the_next_one_is_parsed() {
        let long = vec![b'x'; MAX_LINE + 1];
        let (lines, all) = split(&[b"one\n", &long, b"more\ntwo\n", b"three"]);
        assert_eq!(lines, [b"one\n".to_vec(), b"two\n".to_vec()]);
        assert_eq!(all, [b"one\n", &long[..], b"more\ntwo\nthree"].concat());
    }

    proptest! {
        #[test]
        fn lines_do_not_depend_on_how_the_input_is_split(bytes in prop::collection::vec(prop_oneof![Just(b'\n'), any::<u8>()], 0..200),
                                          cuts in prop::collection::vec(0_usize..200, 0..6)) {
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let chunks: Vec<&[u8]> = cuts.windows(2).map(|cut| &bytes[cut[0]..cut[1]]).collect();
            let (lines, all) = split(&chunks);
            prop_assert_eq!(&all, &bytes);
            prop_assert_eq!(lines, split(&[&bytes]).0);
        }
    }
}
