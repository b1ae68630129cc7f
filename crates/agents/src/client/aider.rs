//! aider, which has no hooks.

use super::adapter::Adapter;
use super::report::HookReport;

/// aider. It has no hooks: it runs one command when it waits, and that command is `ringer notify`.
pub(super) const ADAPTER: Adapter = Adapter {
    name: "aider",
    programs: &["aider"],
    is_tested: false,
    context_limit: None,
    session_id_begins_randomly: false,
    read: |_, _| HookReport::default(),
    answer: |_, _| None,
    push_refusal: Some("aider takes no messages"),
};
