//! What a setup or removal would change, computed without changing anything.
//!
//! [`plan`] is a pure function of the bytes on disk, which [`read_files`] reads. A plan for a client is complete or fails: if one
//! of its files cannot be understood, none is changed.

use std::path::Path;

use similar::TextDiff;

use super::codex_toml::{self, NotifyOutcome};
use super::entries::{Entries, RingerProgram, is_ringer_plugin, plugin_source};
use super::error::{SetupError, SetupNote};
use super::files::{OriginalContent, read, sibling_path};
use super::find::{SetupScope, Target};
use super::hooks::{self, ExistingParts};
use super::mcp;
use super::record::{OriginalFile, SetupRecords, fingerprint};
use crate::client::{Client, ClientPaths, Format, SettingsFile};

/// Setup or removal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SetupAction {
    /// Make the client call this program through these entries.
    Setup(RingerProgram, Entries),
    /// Remove these entries.
    Remove(Entries),
}

impl SetupAction {
    /// The entries that it concerns.
    pub fn entries(&self) -> Entries {
        match self {
            Self::Setup(_, entries) | Self::Remove(entries) => *entries,
        }
    }
}

/// The current content of a file, with its history.
#[derive(Debug, Clone)]
pub struct CurrentFile {
    /// The file.
    pub target: Target,
    /// Its content, if it exists.
    pub bytes: Option<Vec<u8>>,
    /// What the record says about it.
    pub history: FileHistory,
}

/// What the record says about a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileHistory {
    /// The file was not edited since Ringer wrote it.
    pub untouched: bool,
    /// The content before the first setup.
    pub original: OriginalContent,
}

/// A planned change of one file.
#[derive(Debug, Clone)]
pub struct FileChange {
    /// The file.
    pub target: Target,
    /// The current content; `None` if the file does not exist.
    pub before: Option<Vec<u8>>,
    /// The new content; `None` if the file will not exist.
    pub after: Option<Vec<u8>>,
    /// Notes for the person.
    pub notes: Vec<SetupNote>,
    /// The file is as setup left it, so replacing it loses nothing of the person's.
    pub(crate) untouched: bool,
    /// A removal leaves other entries of Ringer in it.
    pub(crate) keeps_entries: bool,
}

impl FileChange {
    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.target.path
    }

    /// Returns true if the content changes.
    pub fn is_change(&self) -> bool {
        self.before != self.after
    }

    /// A unified diff, empty if nothing changes. It contains raw text of the file: a caller that shows it must sanitise it.
    pub fn diff(&self) -> String {
        let text = |bytes: &Option<Vec<u8>>| {
            String::from_utf8_lossy(bytes.as_deref().unwrap_or_default()).into_owned()
        };
        let (before, after) = (text(&self.before), text(&self.after));
        let name = self.path().display().to_string();
        let header =
            |bytes: &Option<Vec<u8>>| bytes.as_ref().map_or_else(|| "/dev/null".to_owned(), |_| name.clone());
        let diff = TextDiff::from_lines(&before, &after);
        diff.unified_diff().context_radius(3).header(&header(&self.before), &header(&self.after)).to_string()
    }
}

/// The changes for one client.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The client.
    pub client: Client,
    /// Setup or removal.
    pub action: SetupAction,
    /// One per file, including unchanged files.
    pub changes: Vec<FileChange>,
}

impl Plan {
    /// Also turns off the client's own popups, if it has such a setting.
    pub fn turn_off_client_popups(&mut self) -> Result<(), SetupError> {
        let Some(setting) = &self.client.adapter().settings.own_popups else { return Ok(()) };
        let is_setup = matches!(self.action, SetupAction::Setup(..));
        let hook_files = self.changes.iter_mut().filter(|change| change.target.format == Format::Hooks);
        for change in hook_files.filter(|_| is_setup) {
            let text = as_text(&change.target.path, change.after.as_deref())?;
            let off = hooks::turn_off_popups(setting, text)
                .map_err(|source| SetupError::jsonc(&change.target.path, source))?;
            change.after = Some(off.into_bytes());
        }
        Ok(())
    }

    /// The terminals in which the client will show its own popups next to Ringer's, because its settings do not turn them off.
    pub fn client_popups(&self) -> Option<&'static str> {
        let setting = self.client.adapter().settings.own_popups.as_ref()?;
        let change = self.changes.iter().find(|change| change.target.format == Format::Hooks)?;
        let after = str::from_utf8(change.after.as_deref()?).ok()?;
        (!hooks::has_popup_setting(setting, after)).then_some(setting.terminals)
    }

    /// Returns true if nothing changes.
    pub fn is_empty(&self) -> bool {
        !self.changes.iter().any(FileChange::is_change)
    }
}

/// Reads the files that an action concerns, and what the record says about them.
pub fn read_files(
    client: Client,
    action: &SetupAction,
    scope: SetupScope,
    paths: &ClientPaths,
    records: &SetupRecords,
) -> Result<Vec<CurrentFile>, SetupError> {
    let mut targets = paths.targets(client, scope)?;
    targets.retain(|target| target.has(action.entries()));
    if *action == SetupAction::Remove(Entries::All) {
        // Otherwise a client's private file, which may be large or broken, would stop a removal.
        let is_known = |target: &Target| records.contains(&target.path) || mcp::contains_server(target);
        targets.retain(|target| !target.is_for_mcp_only() || is_known(target));
    }
    read_targets(targets, records)
}

pub(crate) fn read_targets(
    targets: Vec<Target>,
    records: &SetupRecords,
) -> Result<Vec<CurrentFile>, SetupError> {
    let files = targets.into_iter().map(|target| {
        let bytes = read(&target.path)?;
        let history = history(&target.path, bytes.as_deref(), records);
        Ok(CurrentFile { target, bytes, history })
    });
    files.collect()
}

/// Plans an action for a client, from the result of [`read_files`].
pub fn plan(client: Client, action: &SetupAction, files: Vec<CurrentFile>) -> Result<Plan, SetupError> {
    let changes = files.into_iter().map(|file| match action {
        SetupAction::Setup(program, entries) => plan_setup(file, program, *entries),
        SetupAction::Remove(entries) => plan_removal(file, *entries),
    });
    Ok(Plan { client, action: action.clone(), changes: changes.collect::<Result<_, _>>()? })
}

fn history(path: &Path, bytes: Option<&[u8]>, records: &SetupRecords) -> FileHistory {
    let Some(record) = records.get(path) else { return FileHistory::default() };
    let original = match &record.original {
        OriginalFile::Absent => OriginalContent::Absent,
        // A backup that was deleted or changed is useless.
        OriginalFile::Backup { path, fingerprint: expected } => match read(path) {
            Ok(Some(bytes)) if fingerprint(&bytes) == *expected => OriginalContent::Bytes(bytes),
            _ => OriginalContent::Unknown,
        },
    };
    FileHistory { untouched: bytes.is_some_and(|bytes| record.left.contains(&fingerprint(bytes))), original }
}

fn plan_setup(
    file: CurrentFile,
    program: &RingerProgram,
    entries: Entries,
) -> Result<FileChange, SetupError> {
    let CurrentFile { target, bytes: before, history } = file;
    let mut notes = Vec::new();
    let mut after = as_text(&target.path, before.as_deref())?.to_owned();
    if entries.has_hooks() {
        after = with_hooks(&target, program, before.as_ref().map(|_| after.as_str()), &mut notes)?;
    }
    if let Some(form) = target.mcp.filter(|_| entries.has_mcp_server()) {
        match mcp::install(&target, form, program, &after)? {
            Some(text) => after = text,
            None => notes.push(foreign_server(&target)),
        }
    }
    let after = Some(after.into_bytes()).filter(|after| before.is_some() || !after.is_empty());
    let settings = &target.client.adapter().settings;
    let next_step = settings.hooks.as_ref().and_then(|hooks| hooks.after_change.as_ref());
    let has_new_hooks = entries.has_hooks() && target.format == Format::Hooks && before != after;
    if let Some(step) = next_step.filter(|_| has_new_hooks) {
        notes.push(SetupNote { what: step.what.to_owned(), hint: step.hint.to_owned() });
    }
    Ok(FileChange { target, before, after, notes, untouched: history.untouched, keeps_entries: false })
}

/// Installs the entries that make the client report its events.
fn with_hooks(
    target: &Target,
    program: &RingerProgram,
    before: Option<&str>,
    notes: &mut Vec<SetupNote>,
) -> Result<String, SetupError> {
    let text = before.unwrap_or_default();
    Ok(match target.format {
        Format::Hooks => hooks::install(target.client, program, text)
            .map_err(|source| SetupError::jsonc(&target.path, source))?,
        Format::CodexConfig => {
            match codex_toml::install_notify(program, text)
                .map_err(|error| toml_error(&target.path, &error))?
            {
                NotifyOutcome::Text(text) => text,
                NotifyOutcome::Foreign(value) => {
                    notes.push(foreign_notify(&value));
                    text.to_owned()
                }
            }
        }
        Format::OpencodePlugin if before.is_some() && !is_ringer_plugin(text) => {
            return Err(SetupError::Foreign(target.path.clone()));
        }
        Format::OpencodePlugin => plugin_source(program),
        Format::McpServers => text.to_owned(),
    })
}

fn plan_removal(file: CurrentFile, entries: Entries) -> Result<FileChange, SetupError> {
    let CurrentFile { target, bytes: before, history } = file;
    if let Some(bytes) = before.as_deref().filter(|_| entries != Entries::All) {
        let left = without_entries(&target, bytes, Some(&history.original), entries)?;
        let all = |left: &[u8]| without_entries(&target, left, Some(&history.original), Entries::All);
        // With other entries of Ringer in it, the file is not restored yet.
        if left.as_deref().map(all).transpose()?.flatten() != left {
            let untouched = history.untouched;
            return Ok(FileChange {
                target,
                before,
                after: left,
                notes: Vec::new(),
                untouched,
                keeps_entries: true,
            });
        }
    }
    let after = match (&before, history.untouched, &history.original) {
        (None, _, _) | (Some(_), true, OriginalContent::Absent) => None,
        (Some(_), true, OriginalContent::Bytes(original)) => {
            without_entries(&target, original, None, Entries::All)?
        }
        (Some(bytes), _, original) => without_entries(&target, bytes, Some(original), Entries::All)?,
    };
    let untouched = history.untouched;
    Ok(FileChange { target, before, after, notes: Vec::new(), untouched, keeps_entries: false })
}

/// Removes Ringer's entries; `None` if nothing is left.
fn without_entries(
    target: &Target,
    bytes: &[u8],
    original: Option<&OriginalContent>,
    entries: Entries,
) -> Result<Option<Vec<u8>>, SetupError> {
    let text = as_text(&target.path, Some(bytes))?;
    let before = match original {
        Some(OriginalContent::Bytes(bytes)) => Some(String::from_utf8_lossy(bytes)),
        _ => None,
    };
    let mut left = text.to_owned();
    if entries.has_hooks() {
        if target.format == Format::OpencodePlugin {
            return Ok((!is_ringer_plugin(text)).then(|| left.into_bytes()));
        }
        left = without_hooks(target, text, original, before.as_deref())?;
    }
    if let Some(form) = target.mcp.filter(|_| entries.has_mcp_server()) {
        left = mcp::strip(target, form, &left, before.as_deref())?;
    }
    let is_empty = match target.format {
        Format::Hooks | Format::McpServers => hooks::has_no_hooks(target.client, &left),
        _ => left.trim().is_empty(),
    };
    let created_by_us = original == Some(&OriginalContent::Absent);
    Ok((!(created_by_us && is_empty)).then(|| left.into_bytes()))
}

/// Removes the entries that make the client report its events. `before` is the text from before setup.
fn without_hooks(
    target: &Target,
    text: &str,
    original: Option<&OriginalContent>,
    before: Option<&str>,
) -> Result<String, SetupError> {
    match target.format {
        Format::Hooks => {
            let existing = before.map(|before| ExistingParts::of(target.client, before)).unwrap_or_default();
            let left = hooks::strip(target.client, text, &existing);
            let left = match (original, &target.client.adapter().settings.own_popups) {
                (Some(original), Some(setting)) => {
                    left.and_then(|left| hooks::strip_popup_setting(setting, &left, original))
                }
                _ => left,
            };
            left.map_err(|source| SetupError::jsonc(&target.path, source))
        }
        Format::CodexConfig => {
            codex_toml::strip_notify(text).map_err(|error| toml_error(&target.path, &error))
        }
        Format::OpencodePlugin | Format::McpServers => Ok(text.to_owned()),
    }
}

fn as_text<'a>(path: &Path, bytes: Option<&'a [u8]>) -> Result<&'a str, SetupError> {
    str::from_utf8(bytes.unwrap_or_default()).map_err(|_| SetupError::NotText(path.to_path_buf()))
}

fn toml_error(path: &Path, error: &toml_edit::TomlError) -> SetupError {
    SetupError::Toml { path: path.to_path_buf(), message: error.to_string().trim_end().to_owned() }
}

fn foreign_server(target: &Target) -> SetupNote {
    SetupNote {
        what: format!(
            "{} has an MCP server \"ringer\" that is not Ringer's, which stays",
            target.path.display()
        ),
        hint: format!("give it another name, then run: ringer setup {} --mcp", target.client),
    }
}

fn foreign_notify(value: &str) -> SetupNote {
    SetupNote {
        what: format!("config.toml has a notify of its own, which stays: {value}"),
        hint: "turn ends still arrive by the Stop hook; to use both, let that program run \
               `ringer hook codex notify \"$1\"`"
            .to_owned(),
    }
}

/// Plans the removal of Ringer from recorded files other than `known`: those of projects, and of directories that a variable
/// named at the time. A record has no client, but a file name belongs to the entries of one client only, whose lines name it.
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
            let lock = file.lock.map(|end| sibling_path(&path, "", end));
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
