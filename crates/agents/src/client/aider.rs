//! aider, which has no hooks.

use super::adapter::Adapter;
use super::input::Input;
use super::reply::Reply;
use super::report::HookReport;

/// aider. It has no hooks: it runs one command when it waits, and that command is `ringer notify`.
#[derive(Debug)]
pub(super) struct Aider;

impl Adapter for Aider {
    fn name(&self) -> &'static str {
        "aider"
    }

    fn programs(&self) -> &'static [&'static str] {
        &["aider"]
    }

    fn is_tested(&self) -> bool {
        false
    }

    fn read(&self, _event: &str, _input: &Input) -> HookReport {
        HookReport::default()
    }

    fn answer(&self, _event: &str, _reply: &Reply) -> Option<String> {
        None
    }

    fn push_refusal(&self) -> Option<&'static str> {
        Some("aider takes no messages")
    }
}
