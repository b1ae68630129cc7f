use std::fs;
use std::path::Path;
use std::process::Command;

use crate::failure::Failure;

/// A text file of the repository, with its path from the root.
pub(super) struct TextFile {
    pub(super) path: String,
    pub(super) text: String,
}

/// Returns the files that git tracks or would track. Recordings and pictures that are not UTF-8 are left out.
pub(super) fn text_files() -> Result<Vec<TextFile>, Failure> {
    let output = Command::new("git")
        .args(["ls-files", "-co", "--exclude-standard", "-z"])
        .output()
        .map_err(|error| Failure::io("git ls-files", &error))?;
    if !output.status.success() {
        let reason = String::from_utf8_lossy(&output.stderr);
        return Err(Failure::unavailable(format!("git ls-files: {}", reason.trim())));
    }
    let listing = String::from_utf8_lossy(&output.stdout);
    listing.split('\0').filter(|path| !path.is_empty()).filter_map(|path| read(path).transpose()).collect()
}

/// Returns `None` for entries without text: a symlink, a submodule, or a file whose deletion is not committed yet.
fn read(path: &str) -> Result<Option<TextFile>, Failure> {
    if !Path::new(path).symlink_metadata().is_ok_and(|meta| meta.is_file()) {
        return Ok(None);
    }
    let bytes = fs::read(path).map_err(|error| Failure::io(path, &error))?;
    Ok(String::from_utf8(bytes).ok().map(|text| TextFile { path: path.to_owned(), text }))
}
