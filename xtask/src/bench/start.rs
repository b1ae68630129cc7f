use std::env;
use std::env::consts::EXE_SUFFIX;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::measure::{Contender, Rounds, interleave, table};
use crate::failure::Failure;
use crate::step::Step;
use crate::timetable::Timetable;

const ROUNDS: Rounds = Rounds { warm_ups: 20, measured: 1000 };

/// Whole-process start-up: `ringer --version` as it is shipped, against a program that does nothing.
pub(crate) fn run(times: &mut Timetable) -> Result<(), Failure> {
    Step::cargo("build", &["build", "--profile", "dist", "-p", "ringer"]).run(times)?;
    let artifacts = artifacts()?;
    let empty = build_empty(&artifacts, times)?;

    let mut ringer = Command::new(artifacts.join("dist").join(format!("ringer{EXE_SUFFIX}")));
    ringer.arg("--version");
    times.time("start", || {
        let contenders = vec![
            Contender::new("`ringer --version`", ringer),
            Contender::new("empty Rust program", Command::new(empty)),
        ];
        let samples = interleave(contenders, ROUNDS)?;
        println!("{}", table(&format!("start ({} runs each, interleaved)", ROUNDS.measured), &samples));
        Ok(())
    })
}

fn build_empty(artifacts: &Path, times: &mut Timetable) -> Result<PathBuf, Failure> {
    let folder = artifacts.join("baseline");
    fs::create_dir_all(&folder).map_err(|error| Failure::io(&folder.display().to_string(), &error))?;
    let empty = folder.join(format!("empty{EXE_SUFFIX}"));
    Step::new("baseline", env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()))
        .args(["--edition", "2024", "-C", "opt-level=3", "-C", "panic=abort", "-C", "strip=symbols"])
        .args(["benches/baseline/empty.rs", "-o"])
        .args([&empty])
        .run(times)?;
    Ok(empty)
}

/// Where cargo puts programs: the folder above the profile's folder that holds us. Asking our own path
/// is right whatever set the target folder (environment, configuration, `--target`).
fn artifacts() -> Result<PathBuf, Failure> {
    let ourselves = env::current_exe().map_err(|error| Failure::io("the path of xtask", &error))?;
    let folder = ourselves.parent().and_then(Path::parent);
    folder
        .map(Path::to_path_buf)
        .ok_or_else(|| Failure::unavailable(format!("{} is not inside a target folder", ourselves.display())))
}
