use super::complaint::Complaint;
use super::listing::TextFile;
use super::manifest::{self, Entry};

/// Folders that exist only on the author's machine.
const FOLDERS: &[Folder] = &[
    Folder { name: "work", needs_a_name: false },
    Folder { name: "root", needs_a_name: false },
    // Prose may mention the folder itself; a user's home directory in it is specific to a machine.
    Folder { name: "home", needs_a_name: true },
];

struct Folder {
    name: &'static str,
    needs_a_name: bool,
}

/// The public registry, as in Cargo.lock.
const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

pub(super) fn check(file: &TextFile) -> Vec<Complaint> {
    let mut complaints = machine_paths(file);
    complaints.extend(foreign_sources(file));
    complaints
}

fn machine_paths(file: &TextFile) -> Vec<Complaint> {
    // Recordings of real programs contain real paths.
    if file.path.split('/').any(|part| part == "tests" || part == "fixtures") {
        return Vec::new();
    }
    let lines = (1..).zip(file.text.lines());
    let bad = lines.filter(|(_, line)| FOLDERS.iter().any(|folder| names(line, folder)));
    bad.map(|(number, _)| Complaint::new(&file.path, number, "a path that exists on one machine only"))
        .collect()
}

fn names(line: &str, folder: &Folder) -> bool {
    let needle = format!("/{}/", folder.name);
    line.match_indices(&needle).any(|(at, _)| {
        let next = line[at + needle.len()..].chars().next();
        let names_a_user = next.is_some_and(|c| c.is_alphanumeric() || c == '_');
        starts_a_path(&line[..at]) && (names_a_user || !folder.needs_a_name)
    })
}

/// Returns true if a slash after `before` starts an absolute path. A slash in a relative path or after a variable does
/// not, nor does the second one of `https://`; the third one of `file:///` does.
fn starts_a_path(before: &str) -> bool {
    let Some(last) = before.chars().next_back() else { return true };
    match last {
        '/' => before.ends_with("//"),
        '_' | '-' | '.' | '~' | '*' | '}' | ')' | '>' => false,
        _ => !last.is_alphanumeric(),
    }
}

/// Finds crate sources other than the public registry, which work on one machine only.
fn foreign_sources(file: &TextFile) -> Vec<Complaint> {
    let is_foreign = match file.path.rsplit('/').next() {
        Some("Cargo.lock") => {
            |entry: &Entry| entry.ends_with("source") && manifest::unquoted(&entry.value) != REGISTRY
        }
        Some("Cargo.toml") => {
            |entry: &Entry| entry.ends_with("registry") || entry.ends_with("registry-index")
        }
        Some("config.toml") if file.path.contains(".cargo/") => |entry: &Entry| {
            entry.starts_with("source") || entry.starts_with("registries") || entry.starts_with("registry")
        },
        _ => return Vec::new(),
    };
    let entries = manifest::entries(&file.text).into_iter().filter(is_foreign);
    entries.map(|entry| Complaint::new(&file.path, entry.line, "not the public registry")).collect()
}

#[cfg(test)]
mod tests {
    use crate::tidy::complaint::check_lines;

    fn check(path: &str, text: &str, expect: &[usize]) {
        check_lines(super::check, path, text, expect);
    }

    /// The path below, put together here, so that this file keeps its own rule.
    fn below(folder: &str, rest: &str) -> String {
        format!("/{folder}/{rest}")
    }

    #[test]
    fn paths_of_a_machine_are_named() {
        for path in
            [below("home", "ada/ringer"), below("root", ".cargo"), below("work", "main"), below("work", "")]
        {
            check("README.md", &format!("fine\n{path}\n"), &[2]);
            check("crates/term/src/env.rs", &format!("let a = \"{path}\";"), &[1]);
            check("docs/links.md", &format!("file://{path}"), &[1]);
            check("a.sh", &format!("PATH=/bin:{path}"), &[1]);
        }
    }

    #[test]
    fn other_paths_are_not() {
        check("README.md", &below("home", " and "), &[]);
        check("README.md", &below("home", "<you>/"), &[]);
        for before in ["target", "$HOME", "~", "{folder}", "<where>", "https:/", "**", ".."] {
            check("README.md", &format!("{before}{}", below("work", "main")), &[]);
        }
    }

    #[test]
    fn recordings_may_contain_paths() {
        check("crates/term/tests/captures/claude.txt", &below("home", "ada"), &[]);
        check("crates/agents/fixtures/hook.json", &below("home", "ada"), &[]);
    }

    #[test]
    fn only_the_public_registry() {
        let public = "[[package]]\nsource = \"registry+https://github.com/rust-lang/crates.io-index\"\n";
        check("Cargo.lock", public, &[]);
        check("Cargo.lock", "[[package]]\nsource = \"registry+https://mirror.example/index\"\n", &[2]);
        check("Cargo.lock", "[[package]]\nsource = \"git+https://example.org/a#1\"\n", &[2]);
        check(
            "crates/term/Cargo.toml",
            "[dependencies]\na = { version = \"1\", registry = \"inner\" }\n",
            &[2],
        );
        check(".cargo/config.toml", "[alias]\nxtask = \"run\"\n", &[]);
        check(".cargo/config.toml", "[source.crates-io]\nreplace-with = \"mirror\"\n", &[2]);
        check(".cargo/config.toml", "[registries.inner]\nindex = \"sparse+https://mirror.example/\"\n", &[2]);
    }
}
