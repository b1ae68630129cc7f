use std::fs;
use std::path::Path;

use crate::background::{BackgroundProcess, START_TIMEOUT, until};
use crate::environment::{TestEnvironment, failed};
use crate::failure::Failure;

/// Starts a real hub without a terminal or desktop.
pub(super) fn quiet_hub(environment: &TestEnvironment, home: &Path) -> Result<BackgroundProcess, Failure> {
    let settings = environment.path("config.toml");
    fs::write(&settings, "[answers]\nscripts = true\n[notify]\npopup = \"off\"\n")
        .map_err(|error| failed(&settings, &error))?;
    let mut command = environment.ringer_at(home, ["hub", "start", "--foreground"]);
    command.env("RINGER_CONFIG", &settings).env("XDG_RUNTIME_DIR", environment.root());
    let hub = BackgroundProcess::start(&mut command, &environment.path("hub.log"))?;
    // The hub writes this file once it accepts messages.
    if until(START_TIMEOUT, || home.join("hub.json").exists()) {
        return Ok(hub);
    }
    Err(Failure::complaints("the hub did not come up".to_owned()))
}
