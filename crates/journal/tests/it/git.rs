//! Repositories created by git: which worktrees belong to one repository, and which git directories to a worktree.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use ringer_journal::Repository;
use tempfile::TempDir;

/// A directory for repositories. Its path is canonical, like the paths that git prints.
struct Projects {
    _directory: TempDir,
    path: PathBuf,
}

impl Projects {
    /// Contains a repository, `main`, with a commit.
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().canonicalize().expect("a path");
        let projects = Self { _directory: directory, path };
        projects.git(".", &["init", "--quiet", "main"]);
        projects.git("main", &["commit", "--quiet", "--allow-empty", "-m", "first"]);
        projects
    }

    #[track_caller]
    fn git(&self, within: &str, arguments: &[&str]) {
        let mut command = Command::new("git");
        for (name, value) in [("user.name", "t"), ("user.email", "t@t"), ("protocol.file.allow", "always")] {
            command.args(["-c", &format!("{name}={value}")]);
        }
        command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
        let output = command.current_dir(self.at(within)).args(arguments).output().expect("git runs");
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    fn at(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    #[track_caller]
    fn repository(&self, name: &str) -> Repository {
        Repository::around(&self.at(name)).expect(name)
    }

    /// The scope of a worktree whose git directory belongs to it.
    #[track_caller]
    fn scope(&self, name: &str) -> String {
        let repository = self.repository(name);
        assert!(repository.is_proven(), "{name}: {repository:?}");
        repository.scope(random()).to_string()
    }

    /// Asserts that a worktree has its own scope, and that determining it writes nothing.
    #[track_caller]
    fn check_unproven(&self, name: &str) {
        let repository = self.repository(name);
        assert!(!repository.is_proven(), "{name}: {repository:?}");
        let before = names(&self.path);
        let scope = repository.scope(random());
        assert_eq!(self.repository(name).scope(random()), scope, "{name}: always the same");
        assert_eq!(names(&self.path), before, "{name}: nothing is written");
        assert_ne!(scope, self.repository("main").scope(random()), "{name} is not main");
    }
}

/// A different number each time.
fn random() -> u32 {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Every path below a directory.
pub(crate) fn names(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).expect("a directory").flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            found.extend(names(&entry.path()));
        }
        found.push(entry.path());
    }
    found.sort();
    found
}

#[test]
fn linked_worktrees_are_one_repository() {
    let projects = Projects::new();
    projects.git("main", &["worktree", "add", "--quiet", "../side"]);
    fs::create_dir_all(projects.at("side/deep/er")).expect("a directory");
    let main = projects.scope("main");
    assert_eq!(projects.scope("side/deep/er"), main);
    assert_eq!(projects.repository("side/deep").worktree, projects.at("side"));
    // git 2.48 writes this with worktree.useRelativePaths; older versions can only read it.
    let private = projects.at("main/.git/worktrees/side");
    fs::write(projects.at("side/.git"), "gitdir: ../main/.git/worktrees/side\n").expect("a file");
    fs::write(private.join("gitdir"), "../../../../side/.git\n").expect("a file");
    assert_eq!(projects.scope("side"), main);
}

#[test]
fn a_worktree_that_was_moved_is_its_own_until_git_repairs_it() {
    let projects = Projects::new();
    projects.git("main", &["worktree", "add", "--quiet", "../side"]);
    let main = projects.scope("main");
    projects.git("main", &["worktree", "move", "../side", "../by-git"]);
    assert_eq!(projects.scope("by-git"), main, "git writes both ends");
    fs::rename(projects.at("by-git"), projects.at("by-hand")).expect("moved");
    projects.check_unproven("by-hand");
    projects.git("by-hand", &["worktree", "repair"]);
    assert_eq!(projects.scope("by-hand"), main);
    // The main worktree moves with its git directory; the linked ones lose theirs.
    fs::rename(projects.at("main"), projects.at("moved")).expect("moved");
    assert_eq!(projects.scope("moved"), main);
    assert_eq!(Repository::around(&projects.at("by-hand")), None);
    projects.git("moved", &["worktree", "repair"]);
    assert_eq!(projects.scope("by-hand"), main);
}

#[test]
fn submodules_are_repositories_of_their_own() {
    let projects = Projects::new();
    projects.git(".", &["clone", "--quiet", "main", "library"]);
    projects.git("main", &["submodule", "--quiet", "add", "../library", "deep/library"]);
    projects.git("main", &["commit", "--quiet", "-m", "a submodule"]);
    let (main, submodule) = (projects.scope("main"), projects.scope("main/deep/library"));
    assert_ne!(submodule, main);
    assert!(projects.at("main/.git/modules/deep/library/ringer/id").is_file());
    projects.git("main/deep/library", &["worktree", "add", "--quiet", "../../../of-submodule"]);
    assert_eq!(projects.scope("of-submodule"), submodule);
    projects.git("main", &["worktree", "add", "--quiet", "../side"]);
    projects.git("side", &["submodule", "--quiet", "update", "--init"]);
    assert_eq!(projects.scope("side"), main);
    assert_ne!(projects.scope("side/deep/library"), submodule, "git keeps another copy of it there");
    // With a configuration per worktree, git moves core.worktree into another file.
    projects.git("main/deep/library", &["config", "extensions.worktreeConfig", "true"]);
    let moved = "git config --worktree core.worktree \"$(git config core.worktree)\" &&
        git config --local --unset core.worktree";
    let output =
        Command::new("sh").args(["-ec", moved]).current_dir(projects.at("main/deep/library")).output();
    assert!(output.expect("sh runs").status.success());
    assert_eq!(projects.scope("main/deep/library"), submodule);
}

#[test]
fn a_bare_repository_belongs_to_its_worktrees_and_to_the_directory_it_lies_in() {
    let projects = Projects::new();
    projects.git(".", &["clone", "--quiet", "--bare", "main", "bare.git"]);
    projects.git("bare.git", &["worktree", "add", "--quiet", "../one"]);
    projects.git("bare.git", &["worktree", "add", "--quiet", "inside"]);
    assert_eq!(projects.scope("one"), projects.scope("bare.git/inside"));
    assert_eq!(Repository::around(&projects.at("bare.git")), None, "it has no worktree");
    fs::create_dir(projects.at("project")).expect("a directory");
    projects.git("project", &["clone", "--quiet", "--bare", "../main", ".bare"]);
    fs::write(projects.at("project/.git"), "gitdir: ./.bare\n").expect("a file");
    projects.git("project", &["worktree", "add", "--quiet", "topic"]);
    assert_eq!(projects.scope("project"), projects.scope("project/topic"));
    fs::remove_file(projects.at("project/.git")).expect("removed");
    std::os::unix::fs::symlink(".bare", projects.at("project/.git")).expect("a link");
    assert_eq!(projects.scope("project"), projects.scope("project/topic"));
}

#[test]
fn a_git_directory_elsewhere_is_used_only_if_it_names_the_worktree() {
    let projects = Projects::new();
    fs::create_dir(projects.at("data")).expect("a directory");
    projects.git(".", &["init", "--quiet", "--separate-git-dir", "data/separate.git", "separate"]);
    projects.check_unproven("separate");
    projects.git("separate", &["commit", "--quiet", "--allow-empty", "-m", "first"]);
    projects.git("separate", &["worktree", "add", "--quiet", "../of-separate"]);
    let linked = projects.scope("of-separate");
    projects.check_unproven("separate");
    projects.git("separate", &["config", "core.worktree", projects.at("separate").to_str().expect("text")]);
    assert_eq!(projects.scope("separate"), linked);
    // A file that others wrote there is no proof.
    fs::create_dir_all(projects.at("hostile")).expect("a directory");
    for named in ["../data/separate.git", "../main/.git", "../data/separate.git/worktrees/of-separate"] {
        fs::write(projects.at("hostile/.git"), format!("gitdir: {named}\n")).expect("a file");
        projects.check_unproven("hostile");
        assert_ne!(projects.repository("hostile").scope(1).to_string(), linked, "{named}");
    }
    fs::remove_file(projects.at("hostile/.git")).expect("removed");
    std::os::unix::fs::symlink("../main/.git", projects.at("hostile/.git")).expect("a link");
    projects.check_unproven("hostile");
}

#[test]
fn new_forms_of_references_are_a_repository_too() {
    let projects = Projects::new();
    // git 2.45 can store references in tables; `refs` stays for old versions.
    projects.git(".", &["init", "--quiet", "tables"]);
    fs::remove_dir_all(projects.at("tables/.git/refs")).expect("removed");
    fs::create_dir_all(projects.at("tables/.git/reftable")).expect("a directory");
    assert_eq!(Repository::around(&projects.at("tables")), None, "without refs git does not take it either");
    fs::create_dir(projects.at("tables/.git/refs")).expect("a directory");
    fs::write(projects.at("tables/.git/refs/heads"), "this repository uses the reftable format\n")
        .expect("a file");
    projects.scope("tables");
}

#[test]
fn people_call_a_worktree_by_its_repository_and_its_branch() {
    let projects = Projects::new();
    projects.git("main", &["checkout", "--quiet", "-b", "trunk"]);
    projects.git("main", &["worktree", "add", "--quiet", "-b", "feature/login", "../elsewhere"]);
    let called = |name: &str| {
        let repository = projects.repository(name);
        (repository.name().unwrap_or_default(), repository.branch())
    };
    assert_eq!(called("main"), ("main".to_owned(), Some("trunk".to_owned())));
    assert_eq!(called("elsewhere"), ("main".to_owned(), Some("feature/login".to_owned())));
    projects.git("main", &["checkout", "--quiet", "--detach"]);
    assert_eq!(called("main").1, None, "a commit is no branch");
    fs::write(projects.at("main/.git/HEAD"), vec![b'x'; 10_000]).expect("a file");
    assert_eq!(called("main").1, None);
}
