use std::path::{Path, PathBuf};
use std::{env, fs};

use crate::failure::Failure;

/// Returns an absolute path, because the root is entered from another working directory.
pub(super) fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(path).map_err(|error| Failure::io(&path.display().to_string(), &error))
}

/// Creates a folder and its parents.
pub(super) fn make_folder(path: &Path) -> Result<(), Failure> {
    fs::create_dir_all(path).map_err(|error| Failure::io(&path.display().to_string(), &error))
}

pub(super) fn write(path: &Path, text: &str) -> Result<(), Failure> {
    fs::write(path, text).map_err(|error| Failure::io(&path.display().to_string(), &error))
}

/// Returns `CARGO_HOME` of this machine, or its default.
pub(super) fn cargo_home() -> Result<PathBuf, Failure> {
    let set = env::var_os("CARGO_HOME").filter(|path| !path.is_empty()).map(PathBuf::from);
    let below_home = || env::home_dir().map(|home| home.join(".cargo"));
    let found = set.or_else(below_home);
    found.ok_or_else(|| {
        Failure::unavailable("neither CARGO_HOME nor HOME says where cargo keeps crates".into())
    })
}
