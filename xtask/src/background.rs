use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::asleep;
use crate::environment::failed;
use crate::failure::Failure;

/// How long a program may take to start on a busy machine.
pub(crate) const START_TIMEOUT: Duration = Duration::from_secs(20);

/// How often a condition without an event is checked.
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// A program that runs alongside a test or measurement. It is killed on drop.
pub(crate) struct BackgroundProcess {
    child: Child,
}

impl BackgroundProcess {
    /// Starts a program with its output in a file: the output may be long, and a full pipe would block the program.
    pub(crate) fn start(command: &mut Command, log: &Path) -> Result<Self, Failure> {
        let file =
            || File::options().create(true).append(true).open(log).map_err(|error| failed(log, &error));
        let (out, err) = (file()?, file()?);
        Self::spawn(command.stdin(Stdio::null()).stdout(out).stderr(err))
    }

    /// Starts a program with the streams of the command.
    pub(crate) fn spawn(command: &mut Command) -> Result<Self, Failure> {
        let name = command.get_program().to_string_lossy().into_owned();
        let child =
            command.env_remove("LD_LIBRARY_PATH").spawn().map_err(|error| Failure::io(&name, &error))?;
        Ok(Self { child })
    }

    pub(crate) fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until it sleeps while it has a FIFO below a folder open.
    pub(crate) fn wait_until_asleep(&self, folder: &Path) -> Result<(), Failure> {
        if asleep::at_fifo(self.pid(), folder, Instant::now() + START_TIMEOUT) {
            return Ok(());
        }
        Err(Failure::complaints(format!("a listener below {} did not come to rest", folder.display())))
    }

    /// Waits until it exits; kills it if it does not.
    pub(crate) fn finish(mut self) {
        // `drop` kills it.
        until(START_TIMEOUT, || !matches!(self.child.try_wait(), Ok(None)));
    }
}

impl Drop for BackgroundProcess {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until a condition holds. Returns false if the time passed first.
pub(crate) fn until(time: Duration, mut is_so: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + time;
    loop {
        if is_so() {
            return true;
        }
        if Instant::now() >= deadline {
            return false;
        }
        thread::sleep(POLL_INTERVAL);
    }
}

#[cfg(test)]
mod tests {
    use super::{BackgroundProcess, until};
    use crate::asleep::Activity;
    use std::process::Command;
    use std::time::Duration;

    #[test]
    fn a_service_ends_with_its_owner() {
        let service = BackgroundProcess::spawn(Command::new("sleep").arg("60")).expect("sleep is everywhere");
        let pid = service.pid();
        assert!(Activity::of(pid).is_some());
        drop(service);
        assert_eq!(Activity::of(pid), None);
    }

    #[test]
    fn waiting_ends() {
        assert!(until(Duration::ZERO, || true));
        assert!(!until(Duration::from_millis(3), || false));
    }
}
