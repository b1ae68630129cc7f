//! The parts of a notice about an agent, and their words for people. The words for a lead agent are in
//! [`agent_messages`](crate::agent::agent_messages).

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::message::{Kind, PERMISSION_REFUSED, ShownKind};

/// Branches that every repository has; labels omit them.
const DEFAULT_BRANCHES: [&str; 2] = ["main", "master"];

/// The parts of a notice. A person's screen and a lead agent need different words for it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct About {
    /// The agent's given name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The client program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// The name of the repository, or of the directory outside a repository.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repository: Option<String>,
    /// The branch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The client's text: what it said or asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// At the end of a turn: how long the turn took, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn_ms: Option<u64>,
}

/// A notification's text for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PersonText {
    /// A heading.
    pub title: Option<String>,
    /// The text.
    pub body: String,
}

impl About {
    /// Duration of the turn that has ended.
    pub fn turn(&self) -> Option<Duration> {
        self.turn_ms.map(Duration::from_millis)
    }

    /// Where it happened: `api/auth`, or the agent's name.
    pub fn label(&self) -> Option<String> {
        let branch = self.branch.as_deref().filter(|branch| !DEFAULT_BRANCHES.contains(branch));
        match (&self.name, &self.repository, branch) {
            (Some(name), ..) => Some(name.clone()),
            (None, Some(repository), Some(branch)) => Some(format!("{repository}/{branch}")),
            (None, Some(repository), None) => Some(repository.clone()),
            (None, None, _) => self.client.clone(),
        }
    }

    /// Returns the words for a person.
    ///
    /// ```
    /// use ringer_core::Kind;
    /// use ringer_core::message::About;
    ///
    /// let about = About {
    ///     repository: Some("api".to_owned()),
    ///     branch: Some("auth".to_owned()),
    ///     detail: Some("Bash: rm -rf build".to_owned()),
    ///     ..About::default()
    /// };
    /// let text = about.for_person(Kind::Waiting, Some("permission_prompt"));
    /// assert_eq!(text.title.as_deref(), Some("api/auth · needs permission"));
    /// assert_eq!(text.body, "Bash: rm -rf build");
    /// ```
    pub fn for_person(&self, kind: Kind, category: Option<&str>) -> PersonText {
        let event = event_words(kind, category);
        let place = Self { name: None, ..self.clone() }.label();
        let parts = [self.name.as_deref(), place.as_deref(), event];
        let title: Vec<&str> = parts.into_iter().flatten().collect();
        // A notification has a text even if the client sent none.
        let said = self.detail.clone().filter(|detail| !detail.trim().is_empty());
        let unsaid: Vec<&str> = [self.client.as_deref(), event].into_iter().flatten().collect();
        let body = said.unwrap_or_else(|| unsaid.join(": "));
        PersonText { title: (!title.is_empty()).then(|| title.join(" · ")), body }
    }
}

/// What happened, in a few words. `None` for a status, whose text says what happened.
fn event_words(kind: Kind, category: Option<&str>) -> Option<&'static str> {
    Some(match (ShownKind::of(kind, category), category) {
        (ShownKind::Complete, _) => "done",
        (ShownKind::Permission, _) => "needs permission",
        (ShownKind::Idle, _) => "still waiting for you",
        (ShownKind::Waiting, Some("auth_prompt")) => "needs you to log in",
        (ShownKind::Waiting, _) => "waits for you",
        (ShownKind::Question, _) => "asks",
        (ShownKind::Stuck, _) => "stuck",
        (ShownKind::Error, Some("abnormal_stop")) => "ended in the middle of a turn",
        (ShownKind::Error, _) => "failed",
        (ShownKind::Status, Some(PERMISSION_REFUSED)) => "was refused permission",
        (ShownKind::Status, _) => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn about(name: Option<&str>, repository: Option<&str>, branch: Option<&str>) -> About {
        let own = |text: Option<&str>| text.map(str::to_owned);
        About {
            name: own(name),
            client: Some("claude".to_owned()),
            repository: own(repository),
            branch: own(branch),
            detail: Some("All 214 tests pass.".to_owned()),
            turn_ms: None,
        }
    }

    #[test]
    fn where_it_happened_and_what() {
        let check = |about: About, kind, category, expected: &str| {
            assert_eq!(about.for_person(kind, category).title.as_deref(), Some(expected));
        };
        check(about(None, Some("proj"), Some("main")), Kind::Complete, None, "proj · done");
        check(about(None, Some("api"), Some("auth")), Kind::Question, None, "api/auth · asks");
        check(
            about(Some("painter"), Some("api"), Some("auth")),
            Kind::Stuck,
            None,
            "painter · api/auth · stuck",
        );
        check(about(None, None, None), Kind::Error, None, "claude · failed");
        check(
            about(None, Some("p"), None),
            Kind::Error,
            Some("abnormal_stop"),
            "p · ended in the middle of a turn",
        );
        check(about(None, Some("p"), None), Kind::Waiting, Some("auth_prompt"), "p · needs you to log in");
        check(about(None, Some("p"), None), Kind::Status, None, "p");
    }

    #[test]
    fn the_text_is_what_was_said_and_never_empty() {
        let said = about(None, Some("proj"), None);
        assert_eq!(said.for_person(Kind::Complete, None).body, "All 214 tests pass.");
        let silent = About { detail: Some(" ".to_owned()), ..said };
        assert_eq!(silent.for_person(Kind::Complete, None).body, "claude: done");
        let nothing = About::default().for_person(Kind::Complete, None);
        assert_eq!((nothing.title.as_deref(), nothing.body.as_str()), (Some("done"), "done"));
    }

    #[test]
    fn a_label_is_short() {
        assert_eq!(about(Some("painter"), Some("api"), None).label().as_deref(), Some("painter"));
        assert_eq!(about(None, Some("api"), Some("auth")).label().as_deref(), Some("api/auth"));
        assert_eq!(about(None, None, Some("auth")).label().as_deref(), Some("claude"));
        assert_eq!(About::default().label(), None);
    }
}
