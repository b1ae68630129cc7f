//! aider, which has no hooks.

use super::adapter::Adapter;
use super::push_method::PushMethod;
use super::report::HookReport;
use super::settings::{ClientSettings, Format, SettingsFile};

/// aider. It has no hooks: it runs one command when it waits, and that command is `ringer notify`.
pub(super) const ADAPTER: Adapter = Adapter {
    name: "aider",
    display_name: "aider",
    programs: &["aider"],
    is_tested: false,
    context_limit: None,
    session_id_begins_randomly: false,
    read: |_, _| HookReport::default(),
    answer: |_, _| None,
    reports_events: false,
    sessions: None,
    prompts: None,
    push: PushMethod::Refused("aider takes no messages"),
    settings: ClientSettings {
        // What it keeps for itself; its settings are beside it.
        user_directory: |paths| paths.home.join(".aider"),
        project_directory: ".aider",
        files: &[SettingsFile { is_beside: true, ..SettingsFile::new(".aider.conf.yml", Format::AiderConf) }],
        hooks: None,
        own_popups: None,
    },
};
