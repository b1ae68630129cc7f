//! Whether a client shows a prompt. Claude Code calls its hook for permissions also where another hook allows the call, and
//! beside the dialog, so the agent does not wait for what is looked at here.

use std::thread::sleep;
use std::time::{Duration, Instant};

use ringer_core::agent::{AnswerMethod, SignalContent};
use ringer_core::time::parse_span;

use crate::client::{Client, ClientPaths, HookReport, SessionActivity};
use crate::hook_context::HookContext;
use crate::sessions::find_session;

/// The variable that makes the hooks of a run that no person attends wait for a permission, and for how long.
const WAIT_PERMISSION: &str = "RINGER_WAIT_PERMISSION";

/// How long the client may take to say that it shows a prompt. Seen: a tenth of a second. If it has not said so by then, it
/// has not asked; where it was only slow, its own notification tells some seconds later.
const LONGEST_WAIT: Duration = Duration::from_secs(1);
/// How long a prompt must stand before it is told: another hook may take a moment to allow the call.
const SETTLED_AFTER: Duration = Duration::from_millis(500);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Finds out whether a person is asked at all. Gives when a hook that waits for their answer gives up.
pub(crate) fn check_prompt(
    client: Client,
    event: &str,
    report: &mut HookReport,
    at: &HookContext<'_>,
) -> Option<Instant> {
    let prompts = client.adapter().prompts.as_ref()?;
    if !prompts.waiting_events.contains(&event) {
        return None;
    }
    if let Some((name, value)) = prompts.unattended
        && (at.variable)(name).as_deref() == Some(value)
    {
        let wait = (at.variable)(WAIT_PERMISSION).and_then(|span| parse_span(&span));
        if wait.is_none() {
            report.replace_permission_prompt(&SignalContent::UnattendedPermission);
            report.prompt = None;
        }
        return wait.and_then(|wait| Instant::now().checked_add(wait));
    }
    // In a subagent the prompt comes after the hook, and so does every one that a hook does not wait beside.
    if !report.subagent
        && prompts.method == AnswerMethod::WaitingHook
        && let Some(session) = &report.session_id
        && !shows_prompt(client, &(at.paths)(), session)
    {
        report.replace_permission_prompt(&SignalContent::Alive);
        report.prompt = None;
    }
    None
}

/// Whether the client shows a prompt in a session. True where it does not say what its sessions do.
fn shows_prompt(client: Client, paths: &ClientPaths, session_id: &str) -> bool {
    let start = Instant::now();
    loop {
        let session = find_session(client, paths, session_id);
        let Some(status) = session.and_then(|session| session.status) else { return true };
        // A session that is idle by now has ended the turn in which it was to ask.
        let is_shown = !matches!(status.activity, SessionActivity::Busy | SessionActivity::Idle);
        if start.elapsed() >= if is_shown { SETTLED_AFTER } else { LONGEST_WAIT } {
            return is_shown;
        }
        sleep(LOOK_EVERY);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::thread;

    const SESSION: &str = "6be1e699-d2b2";

    fn write(directory: &std::path::Path, status: &str) {
        let session = serde_json::json!({ "sessionId": SESSION, "status": status, "statusUpdatedAt": 1 });
        let temporary = directory.join("1.tmp");
        fs::write(&temporary, session.to_string()).unwrap();
        fs::rename(temporary, directory.join("1.json")).unwrap();
    }

    #[test]
    fn a_prompt_is_shown_when_the_client_says_so() {
        let home = tempfile::tempdir().unwrap();
        let (paths, directory) = (ClientPaths::new(home.path()), home.path().join(".claude/sessions"));
        assert!(shows_prompt(Client::Claude, &paths, SESSION), "it says nothing");
        fs::create_dir_all(&directory).unwrap();
        write(&directory, "waiting");
        assert!(shows_prompt(Client::Claude, &paths, SESSION));
        write(&directory, "busy");
        assert!(!shows_prompt(Client::Claude, &paths, SESSION), "another hook allowed it");
        write(&directory, "idle");
        assert!(
            !shows_prompt(Client::Claude, &paths, SESSION),
            "another hook allowed it, and the turn has ended"
        );
        let asks = thread::spawn(move || shows_prompt(Client::Claude, &paths, SESSION));
        write(&directory, "waiting");
        assert!(asks.join().unwrap());
    }
}
