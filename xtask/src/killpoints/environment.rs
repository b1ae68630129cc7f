use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::boundary::{Boundaries, Boundary};
use super::finding::{Expectation, Finding, compare, messages};
use crate::asleep;
use crate::codex::turn_ended;
use crate::environment::{TestEnvironment, copy_folder, failed};
use crate::failure::Failure;
use crate::process_result::ProcessResult;

/// The timeout of a process. Longer than the five seconds after which the journal itself gives up.
const DEADLINE: Duration = Duration::from_secs(10);

/// The most listeners that read in a row. More than necessary, so that reaching the limit means that the cursor is stuck.
const MOST_READS: usize = 20;

/// A turn whose end is in the spool: its number and last message.
const SPOOLED_TURN: (u64, &str) = (1, "all done");
/// The next turn of the same session.
const NEXT_TURN: (u64, &str) = (2, "still done");
/// The message about [`SPOOLED_TURN`].
const COMPLETED: &str = "Manager codex-0badcafe completed its goal: all done";
/// The message about [`NEXT_TURN`].
const COMPLETED_AGAIN: &str = "Manager codex-0badcafe completed its goal: still done";
/// The message about an agent that has waited for a minute. On a busy machine a run may take that long.
const WAITING: &str = "Manager codex-0badcafe is waiting";
/// The consumer that listens in scenarios with hooks.
const READER: &str = "reader";

/// The process that is killed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Operation {
    Notify,
    /// A listener that finds a message.
    Listen,
    /// A listener that is woken by a message.
    ListenAsleep,
    /// A hook that finds the write lock held and spools its event.
    HookSpools,
    /// A hook that applies the spooled events of its session, because no hub may be started here.
    HookApplies,
    /// A listener that applies the spooled event of a hook.
    ListenApplies,
}

impl Operation {
    /// Returns true if an event is in the spool before the process starts.
    fn finds_spooled(self) -> bool {
        matches!(self, Self::HookApplies | Self::ListenApplies)
    }

    fn is_of_hooks(self) -> bool {
        self == Self::HookSpools || self.finds_spooled()
    }
}

/// The state of the home before the process starts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// No home, and a repository without an id.
    New,
    Used,
    /// The write-ahead log is so long that the next commit checkpoints it.
    LogFull,
}

/// An environment that repeats an operation from the same state.
pub(super) struct KillEnvironment {
    environment: TestEnvironment,
    operation: Operation,
    state: State,
    texts: Texts,
}

/// The messages that are sent before, during and after the operation. They are long enough to be torn, and contain
/// characters that break line formats.
struct Texts {
    before: String,
    victim: String,
    after: String,
}

impl Texts {
    fn new(state: State) -> Self {
        let length = if state == State::LogFull { 60_000 } else { 5_000 };
        let text = |name: &str| format!("{name} \"quoted\"\n\u{1b}[31m\\ {}", "…".repeat(length / 3));
        Self { before: text("before"), victim: text("victim"), after: text("after") }
    }
}

impl KillEnvironment {
    /// The environment is in memory: on any file system, a killed process loses no data that it has passed to the kernel.
    pub(super) fn new(operation: Operation, state: State, ringer: &Path) -> Result<Self, Failure> {
        let environment = TestEnvironment::in_memory(&format!("killpoints-{operation:?}-{state:?}"), ringer)?;
        let own = Self { environment, operation, state, texts: Texts::new(state) };
        if state != State::New {
            // A listener has read before, so the cursor exists.
            own.must(["notify", "--from", "first", "hello"])?;
            own.must(["listen", "--timeout", "0"])?;
        }
        if state == State::LogFull {
            own.fill_log()?;
        }
        if own.has_unread() {
            own.must(["notify", "--from", "before", &own.texts.before])?;
        }
        if operation.finds_spooled() {
            own.with_lock_held(|| own.spool_event())?;
        }
        for part in ["home", "repository"] {
            if own.environment.path(part).exists() {
                copy_folder(&own.environment.path(part), &own.environment.path(&format!("{part}.kept")))?;
            }
        }
        Ok(own)
    }

    /// Returns the points at which the operation can be killed.
    pub(super) fn boundaries(&self) -> Result<Boundaries, Failure> {
        self.reset()?;
        let trace = self.environment.path("trace");
        let database = self.environment.home().join("ringer.db");
        let length = |path: &Path| fs::metadata(path).map_or(0, |meta| meta.len());
        let before = length(&database);
        let ending =
            self.perform([OsStr::new("-s"), OsStr::new("400"), OsStr::new("-o"), trace.as_os_str()])?;
        let text = fs::read(&trace).map_err(|error| failed(&trace, &error))?;
        let found =
            Boundaries::read(&String::from_utf8_lossy(&text), &self.environment.root().to_string_lossy());
        if !ending.is_success() || found.points.is_empty() {
            let (status, complaints) = (ending.status(), self.environment.first_errors());
            return Err(Failure::unavailable(format!(
                "strace could not follow ringer: {status}\n{complaints}"
            )));
        }
        if self.state == State::LogFull && length(&database) == before {
            // A run that passes because it tested nothing is worse than none.
            return Err(Failure::complaints(
                "the log was not copied into the database: fill_log no longer fits".into(),
            ));
        }
        Ok(found)
    }

    /// Kills the process at a boundary and checks the state afterwards.
    pub(super) fn kill_at(&self, boundary: &Boundary) -> Result<Finding, Failure> {
        self.reset()?;
        let (filter, injection) = (boundary.filter(), boundary.injection());
        let ending = self.perform(["-o", "/dev/null", "-e", &filter, "-e", &injection])?;
        let mut finding = Finding::default();
        finding.missed += u32::from(ending.is_success());
        if ending.overran || !(ending.is_success() || ending.is_kill()) {
            finding.wedged += 1;
        }
        let after = self.run(["notify", "--from", "after", &self.texts.after])?;
        finding.wedged += u32::from(!after.is_success());
        let came = self.read_all(&mut finding)?;
        let printed = messages(&ending.output).unwrap_or_else(|torn| {
            finding.torn += torn;
            Vec::new()
        });
        finding.add(&compare(&came, &self.expectations(&ending, &printed)));
        finding.leftovers += self.count_leftovers();
        Ok(finding)
    }

    fn expectations(&self, ending: &ProcessResult, printed: &[String]) -> Vec<(&str, Expectation)> {
        let Texts { before, victim, after } = &self.texts;
        let of_listener = |text: &String| match (printed.contains(text), ending.is_success()) {
            (false, _) => Expectation::Come,
            (true, false) => Expectation::MayComeAgain,
            (true, true) => Expectation::Stay,
        };
        let mut expectations = vec![(after.as_str(), Expectation::Come)];
        match self.operation {
            Operation::Notify => {
                let expectation = if ending.is_success() { Expectation::Come } else { Expectation::MayCome };
                expectations.push((victim, expectation));
                if self.has_unread() {
                    expectations.push((before, Expectation::Come));
                }
            }
            Operation::Listen => expectations.push((before, of_listener(before))),
            Operation::ListenAsleep => expectations.push((victim, of_listener(victim))),
            Operation::HookSpools => {
                let expectation = if ending.is_success() { Expectation::Come } else { Expectation::MayCome };
                expectations.extend([(COMPLETED, expectation), (before.as_str(), Expectation::Come)]);
            }
            Operation::HookApplies => {
                let own = if ending.is_success() { Expectation::Come } else { Expectation::MayCome };
                expectations.extend([
                    (COMPLETED, Expectation::Come),
                    (COMPLETED_AGAIN, own),
                    (before.as_str(), Expectation::Come),
                ]);
            }
            Operation::ListenApplies => {
                let completed = COMPLETED.to_owned();
                expectations
                    .extend([(COMPLETED, of_listener(&completed)), (before.as_str(), of_listener(before))]);
            }
        }
        if self.operation.is_of_hooks() {
            expectations.push((WAITING, Expectation::MayCome));
        }
        expectations
    }

    /// Returns true if there is an unread message before the operation starts.
    fn has_unread(&self) -> bool {
        self.state != State::New && self.operation != Operation::ListenAsleep
    }

    /// Runs the operation under strace.
    fn perform<S: AsRef<OsStr>>(
        &self,
        strace: impl IntoIterator<Item = S>,
    ) -> Result<ProcessResult, Failure> {
        let mut command = Command::new("strace");
        command.arg("-f").arg("-qq").args(strace);
        command.stderr(self.environment.complaints()?);
        match self.operation {
            Operation::Notify => {
                let arguments = ["notify", "--from", "victim", &self.texts.victim];
                ProcessResult::of(&mut self.environment.around(command, arguments), DEADLINE)
            }
            Operation::Listen => ProcessResult::of(
                &mut self.environment.around(command, ["listen", "--timeout", "0"]),
                DEADLINE,
            ),
            Operation::ListenAsleep => self.perform_asleep(command),
            Operation::HookSpools => self.with_lock_held(|| {
                let mut hook =
                    self.environment.around(command, ["hook", "codex", "notify", &event(SPOOLED_TURN)]);
                ProcessResult::of(&mut hook, DEADLINE)
            }),
            Operation::HookApplies => {
                let mut hook =
                    self.environment.around(command, ["hook", "codex", "notify", &event(NEXT_TURN)]);
                ProcessResult::of(&mut hook, DEADLINE)
            }
            Operation::ListenApplies => {
                let mut listen = self.environment.around(command, ["listen", "--timeout", "0"]);
                ProcessResult::of(listen.env("RINGER_AGENT", READER), DEADLINE)
            }
        }
    }

    /// Runs `work` while the write lock is held, as by a stopped writer.
    fn with_lock_held<T>(&self, work: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
        let path = self.environment.home().join("write.lock");
        let lock = fs::File::options().append(true).create(true).open(&path);
        let lock = lock.map_err(|error| failed(&path, &error))?;
        lock.lock().map_err(|error| failed(&path, &error))?;
        work()
    }

    fn perform_asleep(&self, strace: Command) -> Result<ProcessResult, Failure> {
        let mut command = self.environment.around(strace, ["listen", "--timeout", "8"]);
        thread::scope(|scope| {
            let listener = scope.spawn(move || ProcessResult::of(&mut command, DEADLINE));
            self.wait_for_listener(|| listener.is_finished());
            let sent = self.must(["notify", "--from", "victim", &self.texts.victim]);
            let ending = listener
                .join()
                .unwrap_or_else(|_| Err(Failure::complaints("the thread of a listener panicked".into())));
            sent.and(ending)
        })
    }

    /// Waits until the listener sleeps at its doorbell or has exited.
    fn wait_for_listener(&self, is_finished: impl Fn() -> bool) {
        let deadline = Instant::now() + DEADLINE / 2;
        while !is_finished() && Instant::now() < deadline {
            // Reads the lock file, because reading the doorbell FIFO itself would block.
            let pid = entries(&self.environment.home().join("bells"))
                .filter(|entry| entry.extension().is_some_and(|extension| extension == "lock"))
                .find_map(|entry| holder(&fs::read_to_string(entry).ok()?));
            if pid.is_some_and(|pid| asleep::at_fifo(pid, self.environment.root(), deadline)) {
                return;
            }
            thread::sleep(Duration::from_millis(1));
        }
    }

    fn read_all(&self, finding: &mut Finding) -> Result<Vec<String>, Failure> {
        let mut came = Vec::new();
        for _ in 0..MOST_READS {
            let ending = self.run(["listen", "--timeout", "0"])?;
            if !ending.is_success() {
                break;
            }
            match messages(&ending.output) {
                Ok(texts) if texts.is_empty() && ending.output.is_empty() => return Ok(came),
                Ok(texts) => came.extend(texts),
                Err(torn) => finding.torn += torn,
            }
        }
        finding.wedged += 1;
        Ok(came)
    }

    fn count_leftovers(&self) -> u32 {
        let bells = entries(&self.environment.home().join("bells")).count();
        let damaged = entries(&self.environment.home())
            .filter(|path| path.to_string_lossy().contains("ringer.db.damaged"))
            .count();
        u32::try_from(bells + damaged).unwrap_or(u32::MAX)
    }

    /// Sends messages that no listener reads, until the log is just below the checkpoint threshold.
    fn fill_log(&self) -> Result<(), Failure> {
        const FRAME: u64 = 4096 + 24;
        // The journal checkpoints its log beyond 512 KiB, or 127 frames. The message before the operation takes some twenty
        // frames and must not reach the threshold; the operation's message takes as many and must.
        const ENOUGH: u64 = 95 * FRAME;
        const MOST_MESSAGES: usize = 200;
        let log = self.environment.home().join("ringer.db-wal");
        for _ in 0..MOST_MESSAGES {
            if fs::metadata(&log).is_ok_and(|meta| meta.len() >= ENOUGH) {
                break;
            }
            self.must(["notify", "--from", "filler", "--to", "person", "fills the log"])?;
        }
        Ok(())
    }

    fn reset(&self) -> Result<(), Failure> {
        for part in ["home", "repository"] {
            let (path, kept) = (self.environment.path(part), self.environment.path(&format!("{part}.kept")));
            if path.exists() {
                fs::remove_dir_all(&path).map_err(|error| failed(&path, &error))?;
            }
            if kept.exists() {
                copy_folder(&kept, &path)?;
            }
        }
        Ok(())
    }

    fn run<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Result<ProcessResult, Failure> {
        let mut command = self.environment.ringer(arguments);
        // The agent whose hooks run here has another name: an agent does not receive messages about itself.
        if self.operation.is_of_hooks() {
            command.env("RINGER_AGENT", READER);
        }
        ProcessResult::of(command.stderr(self.environment.complaints()?), DEADLINE)
    }

    /// Runs the hook for the end of [`SPOOLED_TURN`], in a session without a name.
    fn spool_event(&self) -> Result<(), Failure> {
        let mut hook = self.environment.ringer(["hook", "codex", "notify", &event(SPOOLED_TURN)]);
        self.succeeded(&ProcessResult::of(hook.stderr(self.environment.complaints()?), DEADLINE)?)
    }

    fn must<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Result<(), Failure> {
        self.succeeded(&self.run(arguments)?)
    }

    fn succeeded(&self, ending: &ProcessResult) -> Result<(), Failure> {
        if ending.is_success() {
            return Ok(());
        }
        let (status, complaints) = (ending.status(), self.environment.first_errors());
        Err(Failure::complaints(format!("ringer failed and it was not killed: {status}\n{complaints}")))
    }
}

fn entries(folder: &Path) -> impl Iterator<Item = std::path::PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
}

/// Returns the event of the end of a turn, in the session whose hooks are killed.
fn event((turn, message): (u64, &str)) -> String {
    turn_ended(0x0bad_cafe, turn, message)
}

/// Parses the process id in the lock file of a doorbell.
fn holder(text: &str) -> Option<u32> {
    u32::try_from(serde_json::from_str::<Value>(text).ok()?["pid"].as_u64()?).ok()
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_doorbell_names_its_owner() {
        assert_eq!(super::holder("{\"pid\":4711,\"started\":12,\"consumer\":\"lead\"}\n"), Some(4711));
        assert_eq!(super::holder(""), None);
    }
}
