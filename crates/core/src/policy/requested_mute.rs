//! Mutes that the person sets with a command: of an agent, of a workspace, or of everything, until a moment or until the
//! person ends them. The mutes in the settings are rules ([`crate::policy::Mute`]).

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::message::{Place, ShownKind, WorkspaceId};

/// The most mutes that are kept. A further one is refused; a person has a handful of agents.
pub const MAX_REQUESTED_MUTES: usize = 256;

/// The target of a mute. There is at most one mute for each target.
///
/// ```
/// use ringer_core::policy::MuteTarget;
///
/// let target = MuteTarget::Agent("ci".to_owned());
/// assert_eq!(target.to_string(), "agent:ci");
/// assert_eq!(MuteTarget::parse("agent:ci"), Some(target));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MuteTarget {
    /// Everything.
    All,
    /// Messages of an agent, or of a script with this name.
    Agent(String),
    /// Messages of a workspace, by their place or their repository.
    Workspace(WorkspaceId),
}

impl MuteTarget {
    /// Parses the key of a mark.
    pub fn parse(key: &str) -> Option<Self> {
        if key == "all" {
            return Some(Self::All);
        }
        let (what, name) = key.split_once(':').filter(|(_, name)| !name.is_empty())?;
        match what {
            "agent" => Some(Self::Agent(name.to_owned())),
            "workspace" => Some(Self::Workspace(WorkspaceId::new(name))),
            _ => None,
        }
    }

    /// The target, in words.
    pub fn name(&self) -> &str {
        match self {
            Self::All => "everything",
            Self::Agent(agent) => agent,
            Self::Workspace(workspace) => workspace.as_str(),
        }
    }

    fn matches(&self, sender: &str, place: &Place, scope: &str) -> bool {
        match self {
            Self::All => true,
            Self::Agent(agent) => agent == sender,
            Self::Workspace(workspace) => {
                *workspace == place.workspace || *workspace == Place::own_workspace(scope).workspace
            }
        }
    }
}

impl fmt::Display for MuteTarget {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => formatter.write_str("all"),
            Self::Agent(agent) => write!(formatter, "agent:{agent}"),
            Self::Workspace(workspace) => write!(formatter, "workspace:{workspace}"),
        }
    }
}

/// A mute.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestedMute {
    /// What is muted.
    pub target: MuteTarget,
    /// The end, in milliseconds since 1970; `None` if it lasts until the person ends it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_unix_ms: Option<i64>,
    /// The kinds that are not muted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<ShownKind>,
}

impl RequestedMute {
    /// Returns true if the mute is in force at this time.
    pub fn holds(&self, unix_ms: i64) -> bool {
        self.until_unix_ms.is_none_or(|until| unix_ms < until)
    }

    /// The text of the mark that sets it: the id of the person's command, and the options of the mute, as in
    /// `01997a3e-… until=1771338605000 allow=question,permission`. The target is the key of the mark.
    pub fn mark_text(&self, command: &str) -> String {
        let until = self.until_unix_ms.map(|until| format!("until={until}"));
        let kinds: Vec<&str> = self.allow.iter().map(|kind| kind.as_str()).collect();
        let allow = (!kinds.is_empty()).then(|| format!("allow={}", kinds.join(",")));
        [Some(command.to_owned()), until, allow].into_iter().flatten().collect::<Vec<_>>().join(" ")
    }

    /// Parses the key and the text of a mark into the mute and the command. Unknown words of a newer version are skipped. A
    /// time or a kind that cannot be parsed makes no mute, because it would last too long or mute too much.
    pub(crate) fn of_mark(key: &str, text: &str) -> Option<(Self, Arc<str>)> {
        let mut mute = Self { target: MuteTarget::parse(key)?, until_unix_ms: None, allow: Vec::new() };
        let mut words = text.split(' ');
        let command = words.next().unwrap_or_default().into();
        for word in words {
            match word.split_once('=') {
                Some(("until", until)) => mute.until_unix_ms = Some(until.parse().ok()?),
                Some(("allow", kinds)) => {
                    mute.allow = kinds.split(',').map(str::parse).collect::<Result<_, _>>().ok()?;
                }
                _ => {}
            }
        }
        Some((mute, command))
    }
}

/// The mutes that the person set. Expired ones stay until they are replaced or removed: nothing happens when they expire.
#[derive(Debug, Clone, Default)]
pub struct RequestedMutes {
    by_target: BTreeMap<MuteTarget, RequestedMute>,
}

impl RequestedMutes {
    /// The mutes that are in force at this time.
    pub fn holding(&self, unix_ms: i64) -> impl Iterator<Item = &RequestedMute> {
        self.by_target.values().filter(move |mute| mute.holds(unix_ms))
    }

    /// All mutes, including expired ones.
    pub fn all(&self) -> impl Iterator<Item = &RequestedMute> {
        self.by_target.values()
    }

    /// Returns true if a mute of this target may be set.
    pub fn has_room_for(&self, target: &MuteTarget) -> bool {
        self.by_target.len() < MAX_REQUESTED_MUTES || self.by_target.contains_key(target)
    }

    /// Adds saved mutes.
    pub fn restore(&mut self, mutes: impl IntoIterator<Item = RequestedMute>) {
        self.by_target.extend(mutes.into_iter().map(|mute| (mute.target.clone(), mute)));
    }

    /// The mutes that the key of a mark names: one, or all for [`EVERY_MUTE`].
    pub(crate) fn named(&self, key: &str) -> Vec<MuteTarget> {
        if key == EVERY_MUTE {
            return self.by_target.keys().cloned().collect();
        }
        MuteTarget::parse(key).into_iter().filter(|target| self.by_target.contains_key(target)).collect()
    }

    /// Sets a mute. Returns the previous one.
    pub(crate) fn set(&mut self, mute: RequestedMute) -> Option<RequestedMute> {
        self.by_target.insert(mute.target.clone(), mute)
    }

    /// Removes a mute and returns it.
    pub(crate) fn remove(&mut self, target: &MuteTarget) -> Option<RequestedMute> {
        self.by_target.remove(target)
    }

    /// Removes expired mutes. Returns their targets.
    pub(crate) fn remove_ended(&mut self, unix_ms: i64) -> Vec<MuteTarget> {
        self.by_target.extract_if(.., |_, mute| !mute.holds(unix_ms)).map(|(target, _)| target).collect()
    }

    /// Returns the mute that silences a notification at this time, if there is one.
    pub(crate) fn muting(
        &self,
        unix_ms: i64,
        (sender, place, scope): (&str, &Place, &str),
        kind: ShownKind,
    ) -> Option<&RequestedMute> {
        self.holding(unix_ms)
            .find(|mute| mute.target.matches(sender, place, scope) && !mute.allow.contains(&kind))
    }
}

/// The key of the mark that ends every mute.
pub const EVERY_MUTE: &str = "every";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::SurfaceId;

    fn mute(target: &str, until_unix_ms: Option<i64>, allow: &[ShownKind]) -> RequestedMute {
        RequestedMute { target: MuteTarget::parse(target).unwrap(), until_unix_ms, allow: allow.to_vec() }
    }

    #[test]
    fn a_mute_is_of_an_agent_a_workspace_or_everything() {
        let place = Place::surface(WorkspaceId::new("w"), SurfaceId::new("s"));
        let check = |target: &str, expected: bool| {
            let mut mutes = RequestedMutes::default();
            mutes.set(mute(target, None, &[]));
            let muting = mutes.muting(0, ("ci", &place, "0a1b"), ShownKind::Error);
            assert_eq!(muting.is_some(), expected, "{target}");
        };
        check("all", true);
        check("agent:ci", true);
        check("agent:c", false);
        check("workspace:w", true);
        check("workspace:repo:0a1b", true);
        check("workspace:repo:0a1c", false);
    }

    #[test]
    fn it_ends_by_itself_and_lets_the_allowed_kinds_through() {
        let place = Place::workspace(WorkspaceId::new("w"));
        let mut mutes = RequestedMutes::default();
        mutes.set(mute("all", Some(1000), &[ShownKind::Question]));
        let is_muted =
            |mutes: &RequestedMutes, unix_ms, kind| mutes.muting(unix_ms, ("ci", &place, ""), kind).is_some();
        assert!(is_muted(&mutes, 999, ShownKind::Error) && !is_muted(&mutes, 1000, ShownKind::Error));
        assert!(!is_muted(&mutes, 0, ShownKind::Question), "it is allowed");
        mutes.set(mute("agent:ci", None, &[]));
        assert!(is_muted(&mutes, 0, ShownKind::Question), "another mute does not allow it");
        assert_eq!(mutes.remove_ended(1000), [MuteTarget::All]);
        assert_eq!(mutes.all().count(), 1);
    }

    #[test]
    fn targets_and_marks_are_read_as_they_were_written() {
        for key in ["all", "agent:ci", "agent:a:b", "workspace:repo:0a1b"] {
            assert_eq!(MuteTarget::parse(key).map(|target| target.to_string()).as_deref(), Some(key));
        }
        for wrong in ["", "agent:", "agent", "every", "place:1:w"] {
            assert_eq!(MuteTarget::parse(wrong), None, "{wrong}");
        }
        let one = mute("agent:ci", Some(7), &[ShownKind::Permission]);
        let (read, command) = RequestedMute::of_mark("agent:ci", &one.mark_text("c")).unwrap();
        assert_eq!((read, &*command), (one.clone(), "c"));
        let endless = mute("all", None, &[]);
        assert_eq!(RequestedMute::of_mark("all", &endless.mark_text("c")).unwrap().0, endless);
        for wrong in ["c until=soon", "c allow=shouting", "c until="] {
            assert_eq!(RequestedMute::of_mark("all", wrong), None, "{wrong}");
        }
    }
}
