//! A saved session: what was unread and what was shown, to be restored after a restart.

use serde::{Deserialize, Serialize};

use crate::attention::{Attention, Record, UnreadReason};
use crate::message::{Place, WorkspaceId};

/// The version that is written. Older ones are read; newer ones are refused.
const VERSION: u32 = 1;

/// A session in the form in which it is saved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    version: u32,
    workspaces: Vec<Workspace>,
    manual: Vec<Place>,
    panel: Vec<Place>,
    restored: Vec<Place>,
}

/// One workspace of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Workspace {
    id: WorkspaceId,
    /// How many were unread. The notifications themselves may be fewer: only the newest are saved.
    unread: usize,
    notifications: Vec<Record>,
}

/// Why a session cannot be restored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the session was written by a newer version ({found}, this one knows {VERSION})")]
pub struct NewerSession {
    /// The version that was found.
    pub found: u32,
}

impl Session {
    /// The session to save, with at most `most` notifications of each workspace.
    pub fn of(attention: &Attention, most: usize) -> Self {
        let mut ids: Vec<WorkspaceId> =
            attention.store().newest().map(|record| record.place.workspace.clone()).collect();
        ids.sort();
        ids.dedup();
        let workspaces = ids
            .into_iter()
            .map(|id| {
                let place = Place::workspace(id.clone());
                let mut notifications: Vec<Record> =
                    attention.store().newest_of(&place).take(most).cloned().collect();
                notifications.reverse();
                Workspace { unread: attention.store().unread_of(&id), id, notifications }
            })
            .collect();
        Self {
            version: VERSION,
            workspaces,
            manual: attention.places(UnreadReason::Manual),
            panel: attention.places(UnreadReason::Panel),
            restored: attention.places(UnreadReason::Restored),
        }
    }

    /// Restores a session. Each of its workspaces has its notifications replaced; one that was unread and whose unread
    /// notifications were not saved is unread as *restored*. Nothing is counted twice.
    pub fn restore(self, attention: &mut Attention) -> Result<(), NewerSession> {
        if self.version > VERSION {
            return Err(NewerSession { found: self.version });
        }
        for workspace in self.workspaces {
            let place = Place::workspace(workspace.id);
            attention.clear(&place);
            let survived = workspace.notifications.iter().any(|record| !record.is_read);
            for record in workspace.notifications {
                attention.store_mut().restore(record);
            }
            if workspace.unread > 0 && !survived {
                attention.set(UnreadReason::Restored, place);
            }
        }
        for (reason, places) in [
            (UnreadReason::Manual, self.manual),
            (UnreadReason::Panel, self.panel),
            (UnreadReason::Restored, self.restored),
        ] {
            for place in places {
                attention.set(reason, place);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Kind, MessageId, SurfaceId};

    fn attention(count: u64) -> Attention {
        let mut attention = Attention::default();
        for number in 0..count {
            let place = Place::surface(WorkspaceId::new("w"), SurfaceId::new(&number.to_string()));
            attention.add(Record::new(MessageId::new(number, [0; 10]), place, Kind::Error, "x", 0), 0);
        }
        attention
    }

    fn again(session: &Session) -> Attention {
        let text = serde_json::to_string(session).unwrap();
        let mut restored = Attention::default();
        serde_json::from_str::<Session>(&text).unwrap().restore(&mut restored).unwrap();
        restored
    }

    #[test]
    fn what_was_unread_is_unread_again() {
        let mut before = attention(3);
        before.set(UnreadReason::Manual, Place::workspace(WorkspaceId::new("v")));
        let after = again(&Session::of(&before, 100));
        for workspace in ["w", "v"].map(WorkspaceId::new) {
            assert_eq!(after.badge(&workspace), before.badge(&workspace));
        }
        let ids =
            |attention: &Attention| attention.store().newest().map(|r| r.id.clone()).collect::<Vec<_>>();
        assert_eq!(ids(&after), ids(&before));
        assert_eq!(Session::of(&after, 100), Session::of(&before, 100));
    }

    #[test]
    fn restored_only_when_the_unread_ones_did_not_survive() {
        let workspace = WorkspaceId::new("w");
        let after = again(&Session::of(&attention(3), 0));
        assert!(after.store().is_empty() && after.holds(UnreadReason::Restored, &workspace));
        assert_eq!(after.badge(&workspace).0, 1);
        let after = again(&Session::of(&attention(3), 2));
        assert!(!after.holds(UnreadReason::Restored, &workspace), "two of them survived");
        assert_eq!(after.badge(&workspace).0, 2);
    }

    #[test]
    fn a_newer_session_is_refused_and_an_older_reader_meets_new_fields() {
        let newer = r#"{"version":2,"workspaces":[],"manual":[],"panel":[],"restored":[]}"#;
        let session: Session = serde_json::from_str(newer).unwrap();
        assert_eq!(session.restore(&mut Attention::default()), Err(NewerSession { found: 2 }));
        let extended = r#"{"version":1,"workspaces":[],"manual":[],"panel":[],"restored":[],"later":true}"#;
        assert!(serde_json::from_str::<Session>(extended).is_ok());
    }
}
