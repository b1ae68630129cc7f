use std::process::Stdio;
use std::thread;
use std::time::Duration;

use crate::asleep::Activity;
use crate::background::BackgroundProcess;
use crate::environment::TestEnvironment;
use crate::failure::Failure;

/// Counts how often an idle listener is woken.
pub(super) fn run(environment: &TestEnvironment, watched: Duration) -> Result<(), Failure> {
    let mut command = environment.ringer(["listen", "--as", "idle", "--from-now"]);
    let listener = BackgroundProcess::spawn(command.stdout(Stdio::null()).stderr(Stdio::null()))?;
    listener.wait_until_asleep(&environment.home())?;
    let look = || {
        Activity::of(listener.pid()).ok_or_else(|| Failure::complaints("the waiting listener ended".into()))
    };
    let before = look()?;
    // The benchmark measures what happens while time passes.
    thread::sleep(watched);
    let after = look()?;
    println!(
        "| waiting `ringer listen` | seconds | voluntary context switches | involuntary |\n|---|---:|---:|---:|\n\
         | nothing is sent | {} | {} | {} |\n",
        watched.as_secs(),
        after.voluntary - before.voluntary,
        after.involuntary - before.involuntary
    );
    Ok(())
}
