//! The programs and scripts in `benches/baseline`, to which Ringer is compared.

use std::env;
use std::env::consts::EXE_SUFFIX;
use std::fs;
use std::path::PathBuf;

use crate::binary;
use crate::environment::failed;
use crate::failure::Failure;
use crate::step::Step;
use crate::step_times::StepTimes;

/// Compiles a baseline program with the optimisation of the shipped program.
pub(super) fn build(name: &str, times: &mut StepTimes) -> Result<PathBuf, Failure> {
    let folder = binary::artifacts()?.join("baseline");
    fs::create_dir_all(&folder).map_err(|error| failed(&folder, &error))?;
    let program = folder.join(format!("{name}{EXE_SUFFIX}"));
    Step::new("baseline", env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()))
        .args(["--edition", "2024", "-C", "opt-level=3", "-C", "panic=abort", "-C", "strip=symbols"])
        .args([&format!("benches/baseline/{name}.rs"), "-o"])
        .args([&program])
        .run(times)?;
    Ok(program)
}

/// Returns the absolute path of a script.
pub(super) fn script(name: &str) -> Result<PathBuf, Failure> {
    let path = PathBuf::from("benches/baseline").join(name);
    fs::canonicalize(&path).map_err(|error| failed(&path, &error))
}
