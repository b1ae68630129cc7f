//! Whether a client shows a prompt. Claude Code calls its hook for permissions also where another hook allows the call, and
//! beside the dialog, so the agent does not wait for what is looked at here.

use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::client::{Client, ClientPaths, SessionActivity};
use crate::sessions::find_session;

/// How long the client may take to say that it shows a prompt. Seen: a tenth of a second. If it has not said so by then, it
/// has not asked; where it was only slow, its own notification tells some seconds later.
const LONGEST_WAIT: Duration = Duration::from_secs(1);
/// How long a prompt must stand before it is told: another hook may take a moment to allow the call.
const SETTLED_AFTER: Duration = Duration::from_millis(500);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Whether the client shows a prompt in a session. True where it does not say what its sessions do.
pub(crate) fn shows_prompt(client: Client, paths: &ClientPaths, session_id: &str) -> bool {
    let start = Instant::now();
    loop {
        let session = find_session(client, paths, session_id);
        let Some(status) = session.and_then(|session| session.status) else { return true };
        let is_shown = status.activity != SessionActivity::Busy;
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
        let asks = thread::spawn(move || shows_prompt(Client::Claude, &paths, SESSION));
        write(&directory, "waiting");
        assert!(asks.join().unwrap());
    }
}
