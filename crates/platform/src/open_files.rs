//! How many files this process may have open.

use std::sync::OnceLock;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// As many as a process is to have, and as many as macOS allows one that asks for more.
const WANTED: [u64; 2] = [65_536, 10_240];

/// The limit with which this process was started.
static FIRST: OnceLock<u64> = OnceLock::new();

/// Lets this process have more files open: as many as it may, and at most 65,536. A person's shell often has 1,024 or 256, and a process
/// that serves many others needs a file for each.
pub fn raise_open_files() {
    let Rlimit { current: Some(current), maximum } = getrlimit(Resource::Nofile) else { return };
    let _ = FIRST.set(current);
    for wanted in WANTED.map(|wanted| maximum.map_or(wanted, |most| most.min(wanted))) {
        if wanted > current && setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum }).is_ok()
        {
            return;
        }
    }
}

/// Starts a program with the limit that this process had before [`raise_open_files`]: some programs are slow or wrong with a high one.
/// It is higher if this process would have no room for files up to this number.
pub fn with_first_open_files<T>(needed: u64, start: impl FnOnce() -> T) -> T {
    let raised = getrlimit(Resource::Nofile);
    let first = FIRST.get().map(|first| (*first).max(needed));
    let first = first.filter(|first| raised.current.is_some_and(|raised| *first < raised));
    if let Some(first) = first {
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(first), maximum: raised.maximum });
    }
    let started = start();
    if first.is_some() {
        let _ = setrlimit(Resource::Nofile, raised);
    }
    started
}

#[cfg(test)]
mod tests {
    use super::*;

    fn current() -> u64 {
        getrlimit(Resource::Nofile).current.unwrap()
    }

    #[test]
    fn the_limit_is_raised_and_not_for_programs() {
        let maximum = getrlimit(Resource::Nofile).maximum;
        setrlimit(Resource::Nofile, Rlimit { current: Some(100), maximum }).unwrap();
        assert_eq!(with_first_open_files(0, current), 100, "it was not raised");
        raise_open_files();
        let raised = current();
        assert!(raised > 100 && raised <= 65_536);
        assert_eq!(with_first_open_files(0, current), 100);
        assert_eq!(with_first_open_files(200, current), 200, "there would be no room");
        assert_eq!(current(), raised);
    }
}
