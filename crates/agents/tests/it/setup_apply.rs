//! Setup and removal on real files.

#![expect(clippy::unwrap_used, reason = "helpers of tests, outside any test function")]

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use ringer_agents::setup::{
    ApplyResult, BackupTime, Client, ClientPaths, Entries, FileChange, MAX_BACKUPS, Plan, RingerProgram,
    SetupAction, SetupError, SetupRecords, SetupScope, Step, apply, apply_with_observer, find, plan,
    read_files, removals_elsewhere,
};

/// A home in a temporary directory.
pub(crate) struct Home {
    directory: tempfile::TempDir,
    pub(crate) places: ClientPaths,
}

impl Home {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let places = ClientPaths::new(directory.path().join("home"));
        fs::create_dir(&places.home).unwrap();
        Self { directory, places }
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.directory.path().join("state")
    }

    pub(crate) fn write(&self, path: &str, text: &str) -> PathBuf {
        let path = self.places.home.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    pub(crate) fn plan(&self, client: Client, action: &SetupAction) -> Result<Plan, SetupError> {
        plan(
            client,
            action,
            read_files(client, action, SetupScope::User, &self.places, &SetupRecords::load(&self.state())?)?,
        )
    }

    pub(crate) fn run(
        &self,
        client: Client,
        action: &SetupAction,
        time: &str,
    ) -> Result<ApplyResult, SetupError> {
        apply(&self.plan(client, action)?, &self.state(), &BackupTime::new(time).unwrap())
    }

    /// Every file below the home, by name.
    pub(crate) fn files(&self) -> Vec<String> {
        fn walk(directory: &Path, found: &mut Vec<PathBuf>) {
            for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
                found.push(entry.path());
                if entry.file_type().unwrap().is_dir() {
                    walk(&entry.path(), found);
                }
            }
        }
        let mut found = Vec::new();
        walk(&self.places.home, &mut found);
        let name = |path: &PathBuf| path.strip_prefix(&self.places.home).unwrap().display().to_string();
        let mut names: Vec<String> = found.iter().map(name).collect();
        names.sort();
        names
    }
}

pub(crate) fn setup(program: &str) -> SetupAction {
    SetupAction::Setup(RingerProgram::new(Path::new(program)).unwrap(), Entries::Hooks)
}

const T1: &str = "20261115-060000";
const T2: &str = "20261115-070000";

#[test]
fn in_an_empty_home_nothing_is_left_after_removal() {
    for client in Client::ALL.into_iter().filter(|client| client.takes(Entries::Hooks)) {
        let home = Home::new();
        let applied = home.run(client, &setup("/bin/ringer"), T1).unwrap();
        assert_eq!(applied.backups, Vec::<PathBuf>::new());
        assert!(applied.written.iter().all(|path| path.is_file()) && !applied.written.is_empty());
        let applied = home.run(client, &SetupAction::Remove(Entries::All), T2).unwrap();
        assert!(!applied.deleted.is_empty());
        assert_eq!(home.files(), Vec::<String>::new(), "{client}");
        assert!(home.plan(client, &SetupAction::Remove(Entries::All)).unwrap().is_empty());
    }
}

#[test]
fn a_hundred_runs_are_one_and_removal_restores_the_bytes() {
    let home = Home::new();
    let settings = "\u{feff}{\r\n\t// mine\r\n\t\"hooks\": { \"Stop\": [ ] },\r\n}";
    let settings_path = home.write(".claude/settings.json", settings);
    let config = "model = \"x\" # mine\r\n[tui]\r\na = 1";
    let config_path = home.write(".codex/config.toml", config);
    for client in [Client::Claude, Client::Codex] {
        for run in 0..100 {
            let applied = home.run(client, &setup("/bin/ringer"), T1).unwrap();
            assert_eq!(applied.written.is_empty(), run > 0);
        }
    }
    let backup = settings_path.with_file_name("settings.json.ringer-backup-20261115-060000");
    assert_eq!(fs::read_to_string(backup).unwrap(), settings);
    assert_eq!(home.files().iter().filter(|name| name.contains("backup")).count(), 2);
    assert!(
        fs::read_to_string(&config_path)
            .unwrap()
            .contains("notify = [\"/bin/ringer\", \"hook\", \"codex\", \"notify\"]\r\n")
    );
    for client in [Client::Claude, Client::Codex] {
        home.run(client, &SetupAction::Remove(Entries::All), T2).unwrap();
    }
    assert_eq!(fs::read_to_string(settings_path).unwrap(), settings);
    assert_eq!(fs::read_to_string(config_path).unwrap(), config);
    assert!(!home.places.home.join(".codex/hooks.json").exists());
}

#[test]
fn what_was_edited_since_keeps_the_edit() {
    let home = Home::new();
    home.run(Client::Gemini, &setup("ringer"), T1).unwrap();
    let path = home.places.home.join(".gemini/settings.json");
    let edited = fs::read_to_string(&path).unwrap().replacen('{', "{\n  \"theme\": \"dark\", // new", 1);
    fs::write(&path, &edited).unwrap();
    let applied = home.run(Client::Gemini, &SetupAction::Remove(Entries::All), T2).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "{\n  \"theme\": \"dark\" // new\n}\n");
    assert_eq!(fs::read_to_string(&applied.backups[0]).unwrap(), edited);

    // Written by setup, reformatted by a person, nothing else in it: removed.
    let home = Home::new();
    home.run(Client::Gemini, &setup("ringer"), T1).unwrap();
    let path = home.places.home.join(".gemini/settings.json");
    fs::write(&path, format!("{}\n\n", fs::read_to_string(&path).unwrap())).unwrap();
    home.run(Client::Gemini, &SetupAction::Remove(Entries::All), T2).unwrap();
    assert!(!path.exists());
}

fn backup_names(home: &Home) -> Vec<String> {
    home.files().into_iter().filter(|name| name.contains("backup")).collect()
}

#[test]
fn backups_are_few_and_the_first_one_stays() {
    let home = Home::new();
    let path = home.write(".claude/settings.json", "{}");
    for run in 0..12 {
        home.run(Client::Claude, &setup(&format!("/opt/{run}/ringer")), &format!("20261115-0600{run:02}"))
            .unwrap();
    }
    let backups = backup_names(&home);
    assert!(backups.len() == 1 && backups[0].ends_with("-060000"), "{backups:?}");
    home.run(Client::Claude, &SetupAction::Remove(Entries::All), T2).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "{}");
    assert!(!SetupRecords::load(&home.state()).unwrap().contains(&path));
    assert_eq!(backup_names(&home), Vec::<String>::new(), "the file is as it was");

    for run in 0..12 {
        fs::write(&path, format!("{{}}{}", " ".repeat(run))).unwrap();
        home.run(Client::Claude, &setup("ringer"), &format!("20261115-0600{run:02}")).unwrap();
    }
    let edited = backup_names(&home);
    assert_eq!(edited.len(), MAX_BACKUPS, "{edited:?}");
    assert!(edited[0].ends_with("-060007"), "{edited:?}");
}

#[test]
fn what_was_set_up_elsewhere_is_found_by_its_record() {
    let home = Home::new();
    let project = home.write("project/.claude/settings.json", "{}\n").parent().unwrap().to_owned();
    let claude = ClientPaths { claude_dir: Some(project.clone()), ..home.places.clone() };
    let codex = ClientPaths { project: Some(project.parent().unwrap().to_owned()), ..home.places.clone() };
    let (state, time) = (home.state(), BackupTime::new(T1).unwrap());
    for (client, scope, places) in
        [(Client::Claude, SetupScope::User, &claude), (Client::Codex, SetupScope::Project, &codex)]
    {
        let files = read_files(client, &setup("ringer"), scope, places, &SetupRecords::load(&state).unwrap())
            .unwrap();
        apply(&plan(client, &setup("ringer"), files).unwrap(), &state, &time).unwrap();
    }
    home.run(Client::Gemini, &setup("ringer"), T1).unwrap();
    let known = home.places.targets(Client::Gemini, SetupScope::User).unwrap();
    let records = SetupRecords::load(&state).unwrap();
    let plans = removals_elsewhere(&records, &known).unwrap();
    for plan in &plans {
        apply(plan, &state, &time).unwrap();
    }
    let found: Vec<&Path> = plans.iter().flat_map(|plan| &plan.changes).map(FileChange::path).collect();
    assert_eq!(found, [project.join("settings.json"), codex.project.unwrap().join(".codex/hooks.json")]);
    assert_eq!(
        home.files(),
        [".gemini", ".gemini/settings.json", "project", "project/.claude", "project/.claude/settings.json"]
    );
    assert_eq!(fs::read_to_string(project.join("settings.json")).unwrap(), "{}\n");
    assert!(removals_elsewhere(&SetupRecords::load(&state).unwrap(), &known).unwrap().is_empty());
}

#[test]
fn mode_and_link_are_kept() {
    let home = Home::new();
    let real = home.write("dotfiles/claude.json", "{}\n");
    fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
    fs::create_dir(home.places.home.join(".claude")).unwrap();
    let link = home.places.home.join(".claude/settings.json");
    symlink("../dotfiles/claude.json", &link).unwrap();
    let applied = home.run(Client::Claude, &setup("ringer"), T1).unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert!(fs::read_to_string(&real).unwrap().contains("ringer-hook"));
    for path in [&real, &applied.backups[0]] {
        assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o7777, 0o640, "{}", path.display());
    }
    home.run(Client::Claude, &SetupAction::Remove(Entries::All), T2).unwrap();
    assert_eq!(fs::read_to_string(&link).unwrap(), "{}\n");
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());

    fs::remove_file(&real).unwrap();
    home.run(Client::Claude, &setup("ringer"), T2).unwrap();
    assert!(
        real.is_file() && fs::symlink_metadata(&link).unwrap().is_symlink(),
        "a dangling link is followed"
    );
}

#[test]
fn a_file_that_changed_after_the_plan_is_left_alone() {
    let home = Home::new();
    let path = home.write(".claude/settings.json", "{}\n");
    let plan = home.plan(Client::Claude, &setup("ringer")).unwrap();
    fs::write(&path, "{\"new\": 1}\n").unwrap();
    let error = apply(&plan, &home.state(), &BackupTime::new(T1).unwrap()).unwrap_err();
    assert!(matches!(error, SetupError::ChangedMeanwhile(_)), "{error}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "{\"new\": 1}\n");
    assert!(!home.files().iter().any(|name| name.contains("ringer-new")));
    home.run(Client::Claude, &setup("ringer"), T2).unwrap();
    home.run(Client::Claude, &SetupAction::Remove(Entries::All), T2).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "{\"new\": 1}\n");
}

#[test]
fn a_broken_file_is_refused_and_nothing_is_touched() {
    for (client, name, text) in [
        (Client::Claude, ".claude/settings.json", "{\n  \"a\": 1\n  \"b\": 2\n}"),
        (Client::Claude, ".claude/settings.json", "{\"hooks\": {\"Stop\": {}}}"),
        (Client::Gemini, ".gemini/settings.json", "{\"hooks\": \"no\"}"),
        (Client::Codex, ".codex/config.toml", "a = \n[b"),
        (Client::Codex, ".codex/hooks.json", "not json"),
        (Client::Opencode, ".config/opencode/plugins/ringer.js", "export const Mine = 1\n"),
        (Client::Copilot, ".copilot/hooks/ringer.json", "{\"version\": 2, \"hooks\": {}}"),
        (Client::Copilot, ".copilot/hooks/ringer.json", "{\"hooks\": {\"agentStop\": {}}}"),
    ] {
        let home = Home::new();
        let path = home.write(name, text);
        let before = home.files();
        let error = home.run(client, &setup("ringer"), T1).unwrap_err();
        assert!(error.to_string().contains(&path.display().to_string()), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
        assert_eq!(home.files(), before);
    }
    let home = Home::new();
    home.write(".claude/settings.json", "{\n  \"a\": 1\n  \"b\": 2\n}");
    let error = home.plan(Client::Claude, &SetupAction::Remove(Entries::All)).unwrap_err().to_string();
    assert!(error.ends_with("line 3, column 3: a comma or the closing bracket was expected"), "{error}");
}

#[test]
fn somebody_elses_notify_stays_with_a_note() {
    let home = Home::new();
    let path = home.write(".codex/config.toml", "notify = [\"mine\"]\n");
    let plan = home.plan(Client::Codex, &setup("ringer")).unwrap();
    let config = plan.changes.iter().find(|change| change.path() == path).unwrap();
    assert!(!config.is_change() && config.notes[0].what.contains("[\"mine\"]"));
    assert!(plan.changes[0].is_change() && plan.changes[0].notes[0].hint.contains("/hooks"));
}

#[test]
fn the_diff_is_unified() {
    let home = Home::new();
    home.write(".codex/config.toml", "a = 1\n");
    let plan = home.plan(Client::Codex, &setup("ringer")).unwrap();
    let path = home.places.home.join(".codex/config.toml").display().to_string();
    let expect = format!(
        "--- {path}\n+++ {path}\n@@ -1 +1,2 @@\n a = 1\n+notify = [\"ringer\", \"hook\", \"codex\", \"notify\"]\n"
    );
    assert_eq!(plan.changes[1].diff(), expect);
    assert!(plan.changes[0].diff().starts_with("--- /dev/null\n+++ /"));
}

#[test]
fn a_failing_step_leaves_the_old_file_or_the_new_one() {
    for step in Step::ALL {
        let home = Home::new();
        let old = "{\n  \"mine\": 1\n}\n";
        let path = home.write(".claude/settings.json", old);
        let time = BackupTime::new(T1).unwrap();
        let mut watch = |at| if at == step { Err(io::Error::other("no space left")) } else { Ok(()) };

        let plan = home.plan(Client::Claude, &setup("ringer")).unwrap();
        let new = String::from_utf8(plan.changes[0].after.clone().unwrap()).unwrap();
        let failed = apply_with_observer(&plan, &home.state(), &time, &mut watch).is_err();
        assert_eq!(failed, step != Step::RemoveRecord, "{step:?}");
        let now = fs::read_to_string(&path).unwrap();
        assert!(now == old || now == new, "{step:?}: {now}");
        home.run(Client::Claude, &setup("ringer"), T2).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), new, "{step:?}");

        let plan = home.plan(Client::Claude, &SetupAction::Remove(Entries::All)).unwrap();
        let failed = apply_with_observer(&plan, &home.state(), &time, &mut watch).is_err();
        let is_taken = !matches!(step, Step::MakeDirectory | Step::WriteBackup | Step::WriteRecord);
        assert_eq!(failed, is_taken, "{step:?}");
        let now = fs::read_to_string(&path).unwrap();
        assert!(now == old || now == new, "{step:?}: {now}");
        home.run(Client::Claude, &SetupAction::Remove(Entries::All), T2).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), old, "{step:?}");
        assert!(!home.files().iter().any(|name| name.contains("ringer-new")));
    }
}

#[test]
fn a_project_has_its_own_files() {
    let mut home = Home::new();
    assert!(matches!(home.places.targets(Client::Claude, SetupScope::Project), Err(SetupError::NoProject)));
    home.places.project = Some(PathBuf::from("/p"));
    for (client, expect) in [
        (Client::Claude, "/p/.claude/settings.json"),
        (Client::Codex, "/p/.codex/hooks.json"),
        (Client::Gemini, "/p/.gemini/settings.json"),
        (Client::Opencode, "/p/.opencode/plugins/ringer.js"),
        (Client::Copilot, "/p/.github/hooks/ringer.json"),
    ] {
        let targets = home.places.targets(client, SetupScope::Project).unwrap();
        assert_eq!(
            targets.iter().map(|target| target.path.as_path()).collect::<Vec<_>>(),
            [Path::new(expect)]
        );
    }
}

#[test]
fn what_is_installed_is_found() {
    let home = Home::new();
    let codex = home.write("bin/codex", "#!/bin/sh\n");
    fs::set_permissions(&codex, fs::Permissions::from_mode(0o755)).unwrap();
    home.write("bin/gemini", "not executable");
    home.write(".copilot/config.json", "{}");
    home.write(".claude/settings.json", "{}");
    let search = OsString::from(format!("relative:/nowhere:{}", codex.parent().unwrap().display()));
    let found = find(&search, &home.places);
    let short: Vec<_> = found
        .iter()
        .map(|one| (one.client, one.program.clone(), one.has_directory, one.is_installed()))
        .collect();
    let expect = [
        (Client::Claude, None, true, true),
        (Client::Codex, Some(codex), false, true),
        (Client::Gemini, None, false, false),
        (Client::Opencode, None, false, false),
        (Client::Copilot, None, true, true),
    ];
    assert_eq!(short, expect);
}

#[test]
fn popups_of_the_client_are_turned_off_and_on_again() {
    let action =
        SetupAction::Setup(RingerProgram::new(Path::new("/usr/bin/ringer")).unwrap(), Entries::Hooks);
    let set_up = |home: &Home| {
        let mut plan = home.plan(Client::Claude, &action).unwrap();
        plan.turn_off_client_popups().unwrap();
        apply(&plan, &home.state(), &BackupTime::new("20261115-060000").unwrap()).unwrap();
    };
    let read = |path: &Path| fs::read_to_string(path).unwrap();
    let key = "\"preferredNotifChannel\": \"notifications_disabled\"";
    let original = "{\n    \"model\": \"opus\"\n}\n";
    let home = Home::new();
    let path = home.write(".claude/settings.json", original);
    set_up(&home);
    assert!(read(&path).contains(key));
    // A setup without the wish leaves it, and an edit of the person's survives its removal.
    assert!(home.plan(Client::Claude, &action).unwrap().is_empty());
    fs::write(&path, read(&path).replace("opus", "haiku")).unwrap();
    home.run(Client::Claude, &SetupAction::Remove(Entries::All), "20261115-060001").unwrap();
    assert_eq!(read(&path), original.replace("opus", "haiku"));
    // Byte for byte where the file was not edited, also where there was none.
    fs::write(&path, original).unwrap();
    set_up(&home);
    home.run(Client::Claude, &SetupAction::Remove(Entries::All), "20261115-060002").unwrap();
    assert_eq!(read(&path), original);
    let home = Home::new();
    set_up(&home);
    home.run(Client::Claude, &SetupAction::Remove(Entries::All), "20261115-060003").unwrap();
    assert!(!home.places.home.join(".claude/settings.json").exists());
}
