//! Checks the programs that the settings name: hooks and watches.

use std::path::{Path, PathBuf};
use std::time::Duration;

use ringer_config::{HookEntry, Watch};
use ringer_platform::{find_program, is_program};

use super::hub::search_path;
use super::row::{Check, Row, Verdict};
use super::send;
use super::settings::Named;

/// Starts a check of each program. With `send`, hooks that may run get a sample.
pub(super) fn begin(programs: Vec<Named>, send: bool, patience: Duration) -> Vec<Check> {
    let begin = |named| match named {
        Named::Hook { entry, trusted } => {
            let part = format!("hook {}", entry.id);
            Check::begin(part.clone(), patience, move || vec![hook(part, &entry, trusted, send)])
        }
        Named::Watch { entry, trusted } => {
            Check::begin("watch", patience, move || vec![watch(&entry, trusted)])
        }
    };
    programs.into_iter().map(begin).collect()
}

fn hook(part: String, entry: &HookEntry, trusted: bool, send: bool) -> Row {
    if !entry.enabled {
        return Row::ok(part, "disabled");
    }
    let row = look(part.clone(), &entry.command, trusted, entry.source.directory());
    if send && row.verdict == Verdict::Ok { send::hook(part, entry) } else { row }
}

fn watch(entry: &Watch, trusted: bool) -> Row {
    let row = look("watch".to_owned(), &entry.command, trusted, entry.source.directory());
    let lost = entry.paths.iter().find(|path| path.parent().is_none_or(|parent| !parent.is_dir()));
    match lost {
        Some(path) if row.verdict == Verdict::Ok => {
            Row::warn("watch", format!("cannot watch {}: its directory does not exist", path.display()))
                .fix("create the directory, then save the config file again")
        }
        _ => row,
    }
}

fn look(part: String, command: &[String], trusted: bool, directory: &Path) -> Row {
    match find(command) {
        Err(why) => Row::broken(part, why).fix("install it, chmod +x it, or correct its command"),
        Ok(_) if !trusted => Row::warn(part, format!("{command:?} does not run: it is not trusted"))
            .fix(format!("ringer trust {}", directory.display())),
        Ok(program) => Row::ok(part, format!("runs {}", program.display())),
    }
}

/// Finds the program of a command. Returns the reason in words if there is none.
pub(super) fn find(command: &[String]) -> Result<PathBuf, String> {
    let name = command.first().map_or("", String::as_str);
    if name.contains('/') {
        let file = PathBuf::from(name);
        return if is_program(&file) {
            Ok(file)
        } else if file.exists() {
            Err(format!("{name:?} cannot be executed"))
        } else {
            Err(format!("{name:?} does not exist"))
        };
    }
    find_program(&search_path(), name).ok_or_else(|| format!("{name:?} is not on PATH"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_as_they_would_be_run() {
        let words = |name: &str| find(&[name.to_owned()]);
        assert_eq!(words("/bin/sh"), Ok(PathBuf::from("/bin/sh")));
        assert_eq!(words("/bin"), Err("\"/bin\" cannot be executed".to_owned()));
        assert_eq!(words("/nowhere/x"), Err("\"/nowhere/x\" does not exist".to_owned()));
        assert!(words("no-such-program-anywhere").is_err() && find(&[]).is_err());
    }
}
