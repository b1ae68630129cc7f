//! Random damage to the bytes of a file.

use std::fmt::Write as _;

use crate::random::Random;

/// The page size of SQLite.
const PAGE: usize = 4096;
/// The longest run of random bytes.
const NOISE: usize = 600;
/// The most bits that are flipped.
const FLIPS: usize = 8;

/// Damages some bytes. Returns a description.
pub(super) fn mutate(bytes: &mut Vec<u8>, random: &mut Random) -> String {
    match random.below(7) {
        0 => {
            let length = below(random, bytes.len());
            bytes.truncate(length);
            format!("cut at {length}")
        }
        1 => {
            let page = below(random, bytes.len() / PAGE + 1) * PAGE;
            let end = (page + PAGE).min(bytes.len());
            bytes[page..end].fill(0);
            format!("zeroed {page}..{end}")
        }
        2 => {
            let start = below(random, bytes.len());
            let end = (start + 1 + below(random, NOISE)).min(bytes.len());
            bytes[start..end].fill_with(|| byte(random));
            format!("noise in {start}..{end}")
        }
        3 => {
            let length = 1 + below(random, NOISE);
            bytes.extend((0..length).map(|_| byte(random)));
            format!("{length} bytes added")
        }
        _ => {
            let mut done = "flipped".to_owned();
            for _ in 0..=below(random, FLIPS) {
                let (at, bit) = (below(random, bytes.len()), 1_u8 << random.below(8));
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= bit;
                    // Writing into a String cannot fail.
                    let _ = write!(done, " {at}^{bit:#04x}");
                }
            }
            done
        }
    }
}

fn below(random: &mut Random, end: usize) -> usize {
    usize::try_from(random.below(end as u64)).unwrap_or(0)
}

fn byte(random: &mut Random) -> u8 {
    random.number().to_le_bytes()[0]
}

#[cfg(test)]
mod tests {
    use super::mutate;
    use crate::random::Random;

    #[test]
    fn the_same_round_does_the_same_and_also_to_an_empty_file() {
        let damaged = |length: usize, round: u64| {
            let mut bytes = vec![b'x'; length];
            let done = mutate(&mut bytes, &mut Random::new(1, round));
            (bytes, done)
        };
        let mut changed = 0;
        for round in 0..100 {
            assert_eq!(damaged(9000, round), damaged(9000, round));
            changed += u32::from(damaged(9000, round).0 != vec![b'x'; 9000]);
            damaged(0, round);
        }
        // Two flips may undo each other.
        assert!(changed > 95, "{changed}");
    }
}
