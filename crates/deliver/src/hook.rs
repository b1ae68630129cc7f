//! A policy hook: a program of the user that may change a notification before it is shown.

use std::path::PathBuf;
use std::time::Duration;

use ringer_core::policy::{HookAnswer, HookInput, HookPatch};
use ringer_term::escape_json;

use crate::program::{Output, Program, Variables};

/// The longest answer of a hook. A hook that writes more is killed, and its patch is lost.
pub const MAX_ANSWER: usize = 1024 * 1024;

/// The timeout of a hook whose configuration sets none: long enough for a script that queries a service.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(20);

/// A hook program and how to run it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookProgram {
    /// The name of the hook in the settings.
    pub id: String,
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// The working directory.
    pub directory: PathBuf,
    /// When the hook is killed.
    pub timeout: Duration,
}

impl HookProgram {
    /// Runs the hook for a notification. Whatever the program does, this returns an answer within the timeout.
    pub async fn run(&self, hook_input: &HookInput) -> HookAnswer {
        let input = match serde_json::to_string(hook_input) {
            Ok(json) => escape_json(&json).into_owned(),
            Err(error) => return HookAnswer::Failed(format!("cannot be asked: {error}")),
        };
        let program = Program {
            argv: self.argv.clone(),
            directory: self.directory.clone(),
            environment: variables(hook_input, &input),
            input: input.into_bytes(),
            output: Output::Captured { limit: MAX_ANSWER },
            timeout: self.timeout,
        };
        match program.run().await.into_result(self.timeout) {
            Ok(stdout) => read_answer(&stdout),
            Err(why) => HookAnswer::Failed(why),
        }
    }
}

fn variables(hook_input: &HookInput, json: &str) -> Vec<(String, String)> {
    let text = &hook_input.notification;
    Variables::default()
        .text("TITLE", &text.title)
        .text("SUBTITLE", &text.subtitle)
        .text("BODY", &text.body)
        .text("WORKSPACE_ID", &text.workspace_id)
        .text("SURFACE_ID", text.surface_id.as_deref().unwrap_or_default())
        .document("POLICY_JSON", json)
        .into_pairs()
}

/// An empty answer changes nothing; anything else is a patch or a failure.
fn read_answer(stdout: &[u8]) -> HookAnswer {
    let answer = stdout.trim_ascii();
    if answer.is_empty() {
        return HookAnswer::Patched(HookPatch::default());
    }
    if !answer.starts_with(b"{") {
        // An array would be read as the fields in turn.
        return HookAnswer::Failed("its answer is no patch: it is not a JSON object".to_owned());
    }
    match serde_json::from_slice(answer) {
        Ok(patch) => HookAnswer::Patched(patch),
        Err(error) => {
            HookAnswer::Failed(ringer_term::sanitise_line(&format!("its answer is no patch: {error}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringer_core::policy::{AgentContext, HookInputContext, HookInputText};

    #[test]
    fn answers() {
        for empty in ["", " \n\t", "{}"] {
            assert_eq!(read_answer(empty.as_bytes()), HookAnswer::Patched(HookPatch::default()), "{empty:?}");
        }
        assert!(matches!(read_answer(b"{\"stop\":true}\n"), HookAnswer::Patched(patch) if patch.stop));
        for bad in ["[]", "yes", "{} {}", "{\"stop\":1}", "\u{0}"] {
            assert!(
                matches!(read_answer(bad.as_bytes()), HookAnswer::Failed(why) if why.contains("no patch")),
                "{bad:?}"
            );
        }
        assert!(matches!(read_answer(b"\xff"), HookAnswer::Failed(_)));
    }

    #[test]
    fn the_environment_has_the_names_that_hooks_know() {
        let text =
            HookInputText { title: "t\0".into(), surface_id: Some("s".into()), ..HookInputText::default() };
        let hook_input = HookInput::new(text, HookInputContext::default(), AgentContext::default());
        let pairs = variables(&hook_input, "{}");
        for prefix in ["RINGER", "CMUX"] {
            for (name, value) in [("TITLE", "t"), ("SURFACE_ID", "s"), ("BODY", ""), ("POLICY_JSON", "{}")] {
                let name = format!("{prefix}_NOTIFICATION_{name}");
                assert!(pairs.contains(&(name.clone(), value.to_owned())), "{name}");
            }
        }
        assert_eq!(pairs.len(), 12);
    }
}
