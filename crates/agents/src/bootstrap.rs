//! Instructions that a lead agent gets when its session starts.

use ringer_core::message::Agent;

/// Tells the lead to keep one listener running, and what to do for each kind of message.
pub fn instructions(agent: &Agent) -> String {
    format!(
        "You are the lead agent of this repository in Ringer, as {agent}. Other agents that work here report to you.\n\
         \n\
         Start `ringer listen --timeout 300` in the background now, and keep exactly one running. It waits without using \
         anything, prints what arrives as JSON lines (ts, from, type, msg, question_id, id) and exits. When it exits, deal \
         with what it printed, then start it again; also after an empty timeout.\n\
         \n\
         What to do for each type:\n\
         - complete: review the work, then merge it or send it back with what is missing.\n\
         - waiting: look at what the agent needs and instruct it: `ringer notify --to AGENT \"…\"`.\n\
         - question: answer it, `ringer acknowledge QUESTION_ID \"the answer\"`; ask the person if you cannot.\n\
         - stuck: investigate why it has shown no sign of life.\n\
         - error: find out what failed and restart the agent if that helps.\n\
         - status: take note.\n\
         \n\
         `ringer status` shows the agents and their states. Nothing is lost while you are not listening.",
        agent = agent.as_str()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_its_line() {
        let text = instructions(&Agent::new("claude-1").unwrap());
        for kind in ringer_core::Kind::all() {
            assert!(text.contains(&format!("- {kind}: ")), "{kind}");
        }
        assert!(text.contains("ringer listen --timeout 300") && text.contains("exactly one"));
    }
}
