//! What Ringer answers to a client, before each client takes what it can.

/// Ringer's answer to a hook. Each client gets the parts that it accepts; the rest is left out, never refused, so
/// nothing that does not fit may be counted as delivered: ask [`HookReport::hook_point`](super::HookReport::hook_point)
/// first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HookReply {
    /// What enters the turn, with a prompt or a tool's result. It is not cut: blocks must not lose their ends, and
    /// who chose them knows [`Client::context_limit`](super::Client::context_limit).
    pub context: Option<String>,
    /// The reason to keep working instead of stopping.
    pub stop_reason: Option<String>,
    /// What to show on the terminal. See [`is_allowed_sequence`](super::is_allowed_sequence).
    pub terminal_sequence: Option<String>,
    /// Instructions for a session that begins.
    pub session_context: Option<String>,
}

impl HookReply {
    /// Nothing but context.
    pub fn with_context(context: impl Into<String>) -> Self {
        Self { context: Some(context.into()), ..Self::default() }
    }

    /// Nothing but a reason to go on.
    pub fn with_stop_reason(reason: impl Into<String>) -> Self {
        Self { stop_reason: Some(reason.into()), ..Self::default() }
    }

    /// The context of a prompt or a tool's result.
    pub(super) fn turn_context(&self) -> Option<String> {
        non_empty(self.context.as_deref()).map(str::to_owned)
    }

    /// The context of a session that begins: the instructions, then what waits.
    pub(super) fn start_context(&self) -> Option<String> {
        let parts: Vec<&str> = [&self.session_context, &self.context]
            .into_iter()
            .filter_map(|part| non_empty(part.as_deref()))
            .collect();
        (!parts.is_empty()).then(|| parts.join("\n\n"))
    }

    /// The reason to go on. Codex refuses an empty one.
    pub(super) fn reason(&self) -> Option<String> {
        non_empty(self.stop_reason.as_deref()).map(str::to_owned)
    }
}

fn non_empty(text: Option<&str>) -> Option<&str> {
    text.filter(|text| !text.trim().is_empty())
}
