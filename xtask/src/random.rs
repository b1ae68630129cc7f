/// A seeded random number generator (`SplitMix64`), so that a failed run can be repeated with the same messages and kills.
pub(crate) struct Random(u64);

impl Random {
    /// Creates one of several streams of a seed; each thread has its own.
    pub(crate) fn new(seed: u64, stream: u64) -> Self {
        let mut random = Self(seed ^ stream.wrapping_mul(0xd134_2543_de82_ef95));
        // The first numbers of adjacent streams are similar.
        random.number();
        random
    }

    pub(crate) fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number in `0..bound`, or 0 if the range is empty.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.number().checked_rem(bound).unwrap_or(0)
    }

    pub(crate) fn one_in(&mut self, many: u64) -> bool {
        self.below(many) == 0
    }

    pub(crate) fn pick<T: Copy>(&mut self, choices: &[T]) -> Option<T> {
        let place = self.below(choices.len() as u64);
        usize::try_from(place).ok().and_then(|place| choices.get(place)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::Random;

    #[test]
    fn the_same_seed_gives_the_same_numbers() {
        let numbers = |seed, stream| {
            let mut random = Random::new(seed, stream);
            [0; 4].map(|_: u8| random.number())
        };
        assert_eq!(numbers(7, 1), numbers(7, 1));
        assert_ne!(numbers(7, 1), numbers(7, 2));
        assert_ne!(numbers(7, 1), numbers(8, 1));
    }

    #[test]
    fn every_side_comes_up_and_no_other() {
        let mut random = Random::new(1, 0);
        let mut seen = [0; 6];
        for _ in 0..600 {
            seen[usize::try_from(random.below(6)).expect("less than six")] += 1;
        }
        assert!(seen.iter().all(|count| (50..150).contains(count)), "{seen:?}");
        assert_eq!((random.below(0), random.pick::<u8>(&[])), (0, None));
    }
}
