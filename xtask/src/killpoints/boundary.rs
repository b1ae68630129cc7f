use std::collections::HashMap;

/// A point between two system calls: just before the n-th call of one name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Boundary {
    call: String,
    /// Counted from 1 and separately for each name, like in strace.
    occurrence: u32,
}

impl Boundary {
    /// Returns the argument for strace's `-e` that kills the process on entering the call, before the kernel executes it.
    pub(super) fn injection(&self) -> String {
        format!("inject={}:signal=KILL:when={}", self.call, self.occurrence)
    }

    /// Returns the argument for strace's `-e` that stops only at this call; each stop costs two context switches.
    pub(super) fn filter(&self) -> String {
        format!("trace={}", self.call)
    }
}

/// The points at which a program can be killed.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct Boundaries {
    /// The number of calls before it touches its files: loading and arguments. They are skipped.
    pub(super) before: usize,
    pub(super) points: Vec<Boundary>,
}

impl Boundaries {
    /// Parses the output of `strace -f -o`. The first call that counts is the first one that names `place`.
    pub(super) fn read(trace: &str, place: &str) -> Self {
        let mut counts: HashMap<&str, u32> = HashMap::new();
        let mut all = Self { before: 0, points: Vec::new() };
        for line in trace.lines() {
            let Some((call, rest)) = call(line) else { continue };
            let occurrence = counts.entry(call).or_default();
            *occurrence += 1;
            if all.points.is_empty() && !rest.contains(place) {
                all.before += 1;
            } else {
                all.points.push(Boundary { call: call.to_owned(), occurrence: *occurrence });
            }
        }
        all
    }
}

/// Splits `123 openat(AT_FDCWD, …) = 3` into `openat` and the rest. Returns `None` for a resumed call, a signal or an exit.
fn call(line: &str) -> Option<(&str, &str)> {
    let line = line.trim_start_matches(|c: char| c.is_ascii_digit()).trim_start();
    let (name, rest) = line.split_once('(')?;
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    is_name.then_some((name, rest))
}

#[cfg(test)]
mod tests {
    use super::Boundaries;

    const TRACE: &str = "\
10551 execve(\"ringer\", [\"ringer\", \"notify\"], 0x7ffc /* 20 vars */) = 0
10551 openat(AT_FDCWD, \"/etc/ld.so.cache\", O_RDONLY|O_CLOEXEC) = 3
10551 getcwd(\"/tmp/x/repository\", 512)  = 15
10551 openat(AT_FDCWD, \"/tmp/x/home/ringer.db\", O_RDONLY|O_CLOEXEC) = 3
10551 poll([{fd=9, events=POLLIN}], 1, NULL <unfinished ...>
10551 <... poll resumed>)               = 1 ([{fd=9, revents=POLLIN}])
10551 --- SIGCHLD {si_signo=SIGCHLD, si_code=CLD_EXITED} ---
10551 openat(AT_FDCWD, \"/dev/null\", O_RDONLY) = 4
10551 exit_group(0)                     = ?
10551 +++ exited with 0 +++
";

    #[test]
    fn every_call_since_the_first_of_ours() {
        let found = Boundaries::read(TRACE, "/tmp/x");
        let injections: Vec<String> = found.points.iter().map(super::Boundary::injection).collect();
        assert_eq!(found.before, 2);
        assert_eq!(
            injections,
            [
                "inject=getcwd:signal=KILL:when=1",
                "inject=openat:signal=KILL:when=2",
                "inject=poll:signal=KILL:when=1",
                "inject=openat:signal=KILL:when=3",
                "inject=exit_group:signal=KILL:when=1",
            ]
        );
        assert_eq!(found.points[1].filter(), "trace=openat");
    }

    #[test]
    fn a_program_that_never_came_there() {
        let found = Boundaries::read(TRACE, "/tmp/y");
        assert_eq!((found.before, found.points.len()), (7, 0));
    }
}
