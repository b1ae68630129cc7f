use std::collections::BTreeMap;

use super::complaint::Complaint;
use super::listing::TextFile;
use super::manifest::{self, Entry};

/// The allowed dependencies between crates. They point one way only: no crate knows the crates above it. ARCHITECTURE.md
/// draws the levels; a new dependency is added here with its reason.
const ARROWS: &[(&str, &[&str])] = &[
    ("platform", &[]),
    ("term", &[]),
    ("core", &[]),
    ("journal", &["core", "platform"]),
    ("guard", &["core", "journal"]),
    ("deliver", &["core", "term", "platform"]),
    ("hosts", &["core", "term", "ipc", "platform"]),
    ("config", &["core", "term", "platform"]),
    ("ipc", &["core", "journal", "config", "term", "platform"]),
    ("hub", &["core", "term", "journal", "config", "ipc", "deliver", "platform"]),
    ("tmux", &["core", "term", "journal", "config", "ipc", "platform"]),
    ("windows", &["core", "term", "journal", "config", "ipc", "platform"]),
    ("panes", &["core", "term", "journal", "ipc", "platform", "ui"]),
    ("ui", &["core", "term", "platform"]),
    ("agents", &["core", "term", "journal", "platform"]),
    ("mcp", &["core", "term", "journal", "config", "ipc", "platform"]),
    ("relay", &["core", "journal", "config", "ipc", "platform", "term"]),
    (TESTS_ONLY, &[]),
];

/// The crate that the tests of all crates use.
const TESTS_ONLY: &str = "test-support";

/// The crate of the program. It is at the top and may use all others.
const TOP: &str = "cli";

pub(super) fn check(file: &TextFile) -> Vec<Complaint> {
    if file.path.rsplit('/').next() != Some("Cargo.toml") {
        return Vec::new();
    }
    let dependencies = dependencies(&manifest::entries(&file.text));
    let mut complaints: Vec<Complaint> = Vec::new();
    if let Some(crate_name) = crate_name(&file.path) {
        complaints.extend(wrong_arrows(&file.path, crate_name, &dependencies));
    }
    for ((_, name), dependency) in &dependencies {
        if dependency.kind == Kind::Shipped && dependency.package(name) == TESTS_ONLY {
            let message = format!("`{TESTS_ONLY}` is for tests: it belongs into `[dev-dependencies]`");
            complaints.push(Complaint::new(&file.path, dependency.line, message));
        }
        if dependency.has("git") {
            complaints.push(Complaint::new(
                &file.path,
                dependency.line,
                format!("`{name}` comes from git: only released versions can be built again"),
            ));
        }
        if is_member(&file.path)
            && dependency.kind != Kind::Root
            && !dependency.is_ours(name)
            && !dependency.is("workspace", "true")
        {
            complaints.push(Complaint::new(
                &file.path,
                dependency.line,
                format!(
                    "`{name}` needs `workspace = true`: one version for the workspace, in the root's Cargo.toml"
                ),
            ));
        }
    }
    complaints
}

fn wrong_arrows(path: &str, crate_name: &str, dependencies: &Dependencies) -> Vec<Complaint> {
    if crate_name == TOP {
        return Vec::new();
    }
    let Some((_, allowed)) = ARROWS.iter().find(|(name, _)| *name == crate_name) else {
        return vec![Complaint::new(
            path,
            1,
            format!("`{crate_name}` is not in the table of arrows: say what it may use"),
        )];
    };
    let used = dependencies.iter().filter(|(_, dependency)| dependency.kind == Kind::Shipped);
    used.filter_map(|((_, name), dependency)| {
        let package = dependency.package(name);
        let target = if package == "ringer" { TOP } else { package.strip_prefix("ringer-")? };
        (!allowed.contains(&target)).then(|| {
            let message = format!("`{crate_name}` may not use `{package}`; it may use: {}", listed(allowed));
            Complaint::new(path, dependency.line, message)
        })
    })
    .collect()
}

fn listed(allowed: &[&str]) -> String {
    if allowed.is_empty() { "none of ours".to_owned() } else { allowed.join(", ") }
}

/// Returns `term` for `crates/term/Cargo.toml`.
fn crate_name(path: &str) -> Option<&str> {
    let parts: Vec<&str> = path.split('/').collect();
    if let ["crates", crate_name, "Cargo.toml"] = parts[..] { Some(crate_name) } else { None }
}

fn is_member(path: &str) -> bool {
    crate_name(path).is_some() || path == "xtask/Cargo.toml"
}

/// Dependencies by table and name, because a name may be in two tables of a manifest.
type Dependencies = BTreeMap<(Vec<String>, String), Dependency>;

struct Dependency {
    line: usize,
    kind: Kind,
    settings: Vec<(String, String)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Compiled into the crate, or run to compile it.
    Shipped,
    /// For tests, where any dependency is allowed.
    Tests,
    /// The root's table, which others refer to, and its patches.
    Root,
}

impl Dependency {
    fn has(&self, setting: &str) -> bool {
        self.settings.iter().any(|(key, _)| key == setting)
    }

    fn is(&self, setting: &str, value: &str) -> bool {
        self.settings.iter().any(|(key, found)| key == setting && found == value)
    }

    /// Returns the package, because a dependency may have another name.
    fn package<'a>(&'a self, name: &'a str) -> &'a str {
        let renamed = self.settings.iter().find(|(key, _)| key == "package");
        renamed.map_or(name, |(_, package)| manifest::unquoted(package))
    }

    fn is_ours(&self, name: &str) -> bool {
        let package = self.package(name);
        package == "ringer" || package.starts_with("ringer-")
    }
}

fn dependencies(entries: &[Entry]) -> Dependencies {
    let mut dependencies = Dependencies::new();
    for entry in entries {
        let Some((kind, depth)) = dependency_table(&entry.key) else { continue };
        let (table, rest) = entry.key.split_at(depth);
        let Some((name, setting)) = rest.split_first() else { continue };
        // `a = "1"` is short for `a = { version = "1" }`.
        let setting = setting.first().map_or("version", String::as_str);
        dependencies
            .entry((table.to_vec(), name.clone()))
            .or_insert_with(|| Dependency { line: entry.line, kind, settings: Vec::new() })
            .settings
            .push((setting.to_owned(), entry.value.clone()));
    }
    dependencies
}

/// Returns the kind of the table that contains a key, and the number of parts in the table's name.
fn dependency_table(key: &[String]) -> Option<(Kind, usize)> {
    let parts: Vec<&str> = key.iter().map(String::as_str).collect();
    match parts[..] {
        ["dependencies" | "build-dependencies", ..] => Some((Kind::Shipped, 1)),
        ["dev-dependencies", ..] => Some((Kind::Tests, 1)),
        ["target", _, "dependencies" | "build-dependencies", ..] => Some((Kind::Shipped, 3)),
        ["target", _, "dev-dependencies", ..] => Some((Kind::Tests, 3)),
        ["workspace", "dependencies", ..] | ["patch", _, ..] => Some((Kind::Root, 2)),
        ["replace", ..] => Some((Kind::Root, 1)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::tidy::complaint::check_lines;

    fn check(path: &str, text: &str, expect: &[usize]) {
        check_lines(super::check, path, text, expect);
    }

    #[test]
    fn arrows_point_one_way() {
        let uses = |package: &str| format!("[dependencies]\n{package} = {{ workspace = true }}\n");
        check("crates/hub/Cargo.toml", &uses("ringer-journal"), &[]);
        check("crates/journal/Cargo.toml", &uses("ringer-hub"), &[2]);
        check("crates/term/Cargo.toml", &uses("ringer-core"), &[2]);
        check("crates/guard/Cargo.toml", &uses("ringer-core"), &[]);
        check("crates/guard/Cargo.toml", &uses("ringer-term"), &[2]);
        check("crates/hub/Cargo.toml", &uses("ringer"), &[2]);
        check("crates/cli/Cargo.toml", &uses("ringer-panes"), &[]);
    }

    #[test]
    fn arrows_hide_nowhere() {
        check("crates/term/Cargo.toml", "[dependencies]\nringer-core.workspace = true\n", &[2]);
        check("crates/term/Cargo.toml", "[dependencies.ringer-core]\nworkspace = true\n", &[2]);
        check("crates/term/Cargo.toml", "[build-dependencies]\nringer-core.workspace = true\n", &[2]);
        check(
            "crates/term/Cargo.toml",
            "[target.'cfg(unix)'.dependencies]\nringer-core.workspace = true\n",
            &[2],
        );
        check(
            "crates/term/Cargo.toml",
            "[dependencies]\na = { package = \"ringer-core\", path = \"../core\" }\n",
            &[2],
        );
        check("crates/term/Cargo.toml", "[dev-dependencies]\nringer-core.workspace = true\n", &[]);
    }

    #[test]
    fn a_new_crate_says_what_it_may_use() {
        check("crates/attic/Cargo.toml", "[package]\nname = \"ringer-attic\"\n", &[1]);
        check("crates/term/fuzz/Cargo.toml", "[package]\nname = \"fuzz\"\n", &[]);
    }

    #[test]
    fn what_tests_share_is_shipped_nowhere() {
        for path in ["crates/term/Cargo.toml", "crates/cli/Cargo.toml", "xtask/Cargo.toml"] {
            check(path, "[dependencies]\ntest-support.workspace = true\n", &[2]);
            check(path, "[build-dependencies]\ntest-support.workspace = true\n", &[2]);
            check(path, "[dev-dependencies]\ntest-support.workspace = true\n", &[]);
        }
        check(
            "Cargo.toml",
            "[workspace.dependencies]\ntest-support = { path = \"crates/test-support\" }\n",
            &[],
        );
    }

    #[test]
    fn nothing_comes_from_git() {
        check("Cargo.toml", "[workspace.dependencies]\na = { git = \"https://a.b\" }\n", &[2]);
        check("Cargo.toml", "[patch.crates-io]\na = { git = \"https://a.b\" }\n", &[2]);
        check("fuzz/Cargo.toml", "[dependencies.a]\ngit = \"https://a.b\"\n", &[2]);
        check("Cargo.toml", "[workspace.dependencies]\ngit = \"1\"\n[package.metadata]\ngit = \"x\"\n", &[]);
    }

    #[test]
    fn versions_are_chosen_once() {
        check("crates/term/Cargo.toml", "[dependencies]\nmemchr = \"2\"\n", &[2]);
        check("crates/term/Cargo.toml", "[dependencies]\nmemchr = { version = \"2\" }\n", &[2]);
        check("crates/term/Cargo.toml", "[dev-dependencies]\nvte = \"0.15\"\n", &[2]);
        check("xtask/Cargo.toml", "[dependencies]\nmemchr = \"2\"\n", &[2]);
        check("crates/term/Cargo.toml", "[dependencies]\nmemchr.workspace = true\n", &[]);
        check("crates/term/Cargo.toml", "[dependencies.memchr]\nfeatures = []\nworkspace = true\n", &[]);
        check("Cargo.toml", "[workspace.dependencies]\nmemchr = \"2\"\n", &[]);
        check("fuzz/Cargo.toml", "[dependencies]\nmemchr = \"2\"\n", &[]);
    }
}
