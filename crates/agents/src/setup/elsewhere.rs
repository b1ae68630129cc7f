//! Files that a setup wrote and that are not among those of the person's settings now: those of a project, and those of a
//! directory that a variable named then.

use std::path::Path;

use super::entries::Entries;
use super::error::SetupError;
use super::find::{SetupScope, Target};
use super::plan::{Plan, SetupAction, plan, read_targets};
use super::record::SetupRecords;
use super::replace::beside;
use crate::client::{Client, SettingsFile};

/// What removes Ringer from the recorded files besides `known`. A record has no client, but a file of one name has entries of
/// one client only: its lines name it.
pub fn removals_elsewhere(records: &SetupRecords, known: &[Target]) -> Result<Vec<Plan>, SetupError> {
    let mut plans = Vec::new();
    let is_known = |path: &Path| known.iter().any(|target| target.path == path);
    for path in records.paths().filter(|path| !is_known(path)) {
        for client in Client::ALL {
            let mut files = client.adapter().settings.files.iter();
            let is_named = |name: &&str| path.ends_with(name);
            let is_it =
                |file: &&SettingsFile| is_named(&file.name) || file.other_name.as_ref().is_some_and(is_named);
            let Some(file) = files.find(is_it) else { continue };
            let (scope, path) = (SetupScope::Project, path.to_owned());
            let lock = file.lock.map(|end| beside(&path, "", end));
            let target = Target { client, scope, format: file.format, mcp: file.mcp, path, lock };
            let files = read_targets(vec![target], records)?;
            let plan = plan(client, &SetupAction::Remove(Entries::All), files)?;
            if !plan.is_empty() {
                plans.push(plan);
                break;
            }
        }
    }
    Ok(plans)
}
