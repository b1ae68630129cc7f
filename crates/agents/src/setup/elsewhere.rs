//! Files that a setup wrote and that are not among those of the person's settings now: those of a project, and those of a
//! directory that a variable named then.

use std::path::Path;

use super::error::SetupError;
use super::find::{SetupScope, Target};
use super::plan::{Plan, SetupAction, plan, read_targets};
use super::record::SetupRecords;
use crate::client::Client;

/// What removes Ringer from the recorded files besides `known`. A record has no client, but a file of one name has entries of
/// one client only: its lines name it.
pub fn removals_elsewhere(records: &SetupRecords, known: &[Target]) -> Result<Vec<Plan>, SetupError> {
    let mut plans = Vec::new();
    let is_known = |path: &Path| known.iter().any(|target| target.path == path);
    for path in records.paths().filter(|path| !is_known(path)) {
        for client in Client::ALL {
            let mut files = client.adapter().settings.files.iter();
            let Some(file) = files.find(|file| path.ends_with(file.name)) else { continue };
            let target =
                Target { client, scope: SetupScope::Project, format: file.format, path: path.to_owned() };
            let files = read_targets(vec![target], records)?;
            let plan = plan(client, &SetupAction::Remove, files)?;
            if !plan.is_empty() {
                plans.push(plan);
                break;
            }
        }
    }
    Ok(plans)
}
