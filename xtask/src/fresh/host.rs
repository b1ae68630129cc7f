//! The settings that a bare root takes over from this machine: only access to packages and crates.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use super::folders::{cargo_home, make_folder, write};
use crate::failure::Failure;

/// Variables that configure network access or mark CI.
const VARIABLES: &[&str] = &[
    "CI",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
];

/// Tables of cargo's configuration that configure registries. The others are local preferences, such as a compiler wrapper
/// or another linker.
const TABLES: &[&str] = &["source", "registries", "registry", "http", "net"];

/// The certificates that this machine trusts: a network may have its own authority.
const CERTIFICATES: &[&str] = &["etc/ssl/certs/ca-certificates.crt", "usr/local/share/ca-certificates"];

/// Returns the package sources of this machine if it runs the same Debian release; they name a mirror that is reachable.
pub(super) fn package_sources(suite: &str) -> Vec<PathBuf> {
    let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
    if !is_suite(&release, suite) {
        return Vec::new();
    }
    let mut files: Vec<PathBuf> = entries(Path::new("/etc/apt/sources.list.d"));
    files.push(PathBuf::from("/etc/apt/sources.list"));
    files.retain(|file| {
        let is_list = file.extension().is_some_and(|ending| ending == "sources" || ending == "list");
        // A third-party list needs the vendor's keys and is not part of a bare Debian.
        is_list && fs::read_to_string(file).is_ok_and(|text| names_suite(&text, suite))
    });
    files
}

fn is_suite(os_release: &str, suite: &str) -> bool {
    os_release.lines().any(|line| line == format!("VERSION_CODENAME={suite}"))
}

fn names_suite(text: &str, suite: &str) -> bool {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
    lines.flat_map(str::split_whitespace).any(|word| word == suite)
}

/// Copies the files that the root needs in addition to its packages. Runs after their installation, because packages own
/// some of these files.
pub(super) fn settle_in(root: &Path) -> Result<(), Failure> {
    // Debian's installer writes this file; nothing else resolves `localhost`.
    write(&root.join("etc/hosts"), "127.0.0.1 localhost\n::1 localhost\n")?;
    copy(Path::new("/etc/resolv.conf"), &root.join("etc/resolv.conf"))?;
    for file in entries(Path::new("/etc/apt/apt.conf.d")) {
        let is_about_fetching = fs::read_to_string(&file).is_ok_and(|text| text.contains("Acquire::"));
        if let Some(name) = file.file_name().filter(|_| is_about_fetching) {
            copy(&file, &root.join("etc/apt/apt.conf.d").join(name))?;
        }
    }
    for path in CERTIFICATES {
        copy(&Path::new("/").join(path), &root.join(path))?;
    }
    let config = ["config.toml", "config"].map(|name| cargo_home().map(|home| home.join(name)));
    for file in config {
        if let Ok(text) = fs::read_to_string(file?) {
            write(&root.join("root/.cargo/config.toml"), &about_registries(&text))?;
            break;
        }
    }
    Ok(())
}

/// Returns the variables to pass on, in shell syntax.
pub(super) fn variables() -> String {
    let set = VARIABLES.iter().filter_map(|name| Some((name, env::var(name).ok()?)));
    set.map(|(name, value)| format!(" {name}={}", quoted(&value))).collect()
}

pub(super) fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Returns the registry tables of a cargo configuration.
fn about_registries(text: &str) -> String {
    let mut kept = String::new();
    let mut is_kept = false;
    for line in text.lines() {
        if let Some(header) = line.trim_start().strip_prefix('[') {
            let first = header.trim_start_matches('[').split(['.', ']']).next().unwrap_or_default().trim();
            is_kept = TABLES.contains(&first.trim_matches(['"', '\'']));
        }
        if is_kept {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    kept
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> =
        fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    files.sort();
    files
}

/// Copies a file, or the files of a folder. A file that does not exist on this machine is skipped.
fn copy(from: &Path, to: &Path) -> Result<(), Failure> {
    if from.is_dir() {
        for file in entries(from) {
            if let Some(name) = file.file_name() {
                copy(&file, &to.join(name))?;
            }
        }
    } else if from.is_file() {
        if let Some(folder) = to.parent() {
            make_folder(folder)?;
        }
        // It may be a symlink to a path outside of the root.
        let _ = fs::remove_file(to);
        fs::copy(from, to).map_err(|error| Failure::io(&from.display().to_string(), &error))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{about_registries, is_suite, names_suite, quoted};

    #[test]
    fn only_the_lists_of_the_same_debian() {
        let release = "NAME=\"Debian GNU/Linux\"\nVERSION_CODENAME=bookworm\n";
        assert!(is_suite(release, "bookworm") && !is_suite(release, "trixie") && !is_suite("", "bookworm"));
        assert!(names_suite("deb http://mirror.example/debian bookworm main\n", "bookworm"));
        assert!(names_suite("Types: deb\nSuites: bookworm bookworm-updates\n", "bookworm"));
        assert!(!names_suite("# bookworm\ndeb http://mirror.example nodistro main\n", "bookworm"));
        assert!(!names_suite("deb http://mirror.example cloud-bookworm main\n", "bookworm"));
    }

    #[test]
    fn habits_of_a_machine_stay_there() {
        let config = "[build]\nrustc-wrapper = \"x\"\n\n[source.crates-io]\nreplace-with = \"m\"\n\
                      [source.m]\nregistry = \"sparse+https://mirror.example/\"\n[alias]\nb = \"build\"\n\
                      [http]\ncainfo = \"a\"\n[target.'cfg(unix)']\nlinker = \"y\"\n";
        let expect = "[source.crates-io]\nreplace-with = \"m\"\n[source.m]\n\
                      registry = \"sparse+https://mirror.example/\"\n[http]\ncainfo = \"a\"\n";
        assert_eq!(about_registries(config), expect);
    }

    #[test]
    fn a_shell_reads_a_value_as_it_is() {
        assert_eq!(quoted("a b"), "'a b'");
        assert_eq!(quoted("it's $HOME"), r"'it'\''s $HOME'");
    }
}
