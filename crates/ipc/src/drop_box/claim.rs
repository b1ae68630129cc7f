//! A claim: what a process in a sandbox asks of the hub, as one JSON file in the drop box.
//!
//! Nothing in it is believed. It can show a notification and ask a question, both in the name of an unverified process, and ask
//! for the messages of a listener. It has no field for anything else.

use std::time::Duration;

use ringer_core::message::{InvalidName, ShownKind, validate_text};
use ringer_core::{Draft, Kind, MessageId, Recipient, Scope, Sender};
use ringer_journal::{Consumer, IdSource};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The format of the file. There is no other.
const VERSION: u32 = 1;

/// The part of a directory's path that a title has room for. Its end says more than its beginning.
const SHOWN_DIRECTORY: usize = 80;

/// Options that one question may have.
const MAX_OPTIONS: usize = 32;

/// A claim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    version: u32,
    /// When it was made, and the random bytes of its ids.
    pub stamp: IdSource,
    /// The directory in which the command was run.
    pub directory: String,
    /// The repository around that directory.
    pub scope: Scope,
    /// What is asked.
    pub request: ClaimRequest,
}

/// What a claim asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ClaimRequest {
    /// Show a notification.
    Notify(ClaimedNotice),
    /// Ask a question. [`IdSource::question_id`] of the stamp is its id.
    Ask {
        /// The question.
        question: String,
        /// Answers to choose from.
        #[serde(default)]
        options: Vec<String>,
    },
    /// Keep a file in the outbox with what this listener has not read.
    Listen {
        /// The listener's name.
        name: String,
    },
}

/// A notification to show.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClaimedNotice {
    /// The text.
    pub body: String,
    /// The kind, by its name.
    pub kind: String,
    /// Whom it is for.
    #[serde(default)]
    pub to: Recipient,
    /// A heading.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// A second heading.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subtitle: Option<String>,
    /// Replaces the notification of another unverified process with this key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// How long it is worth showing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u64>,
}

/// Why bytes are not a claim.
#[derive(Debug, Error)]
pub enum ClaimError {
    /// They are not JSON of this form.
    #[error("it is not a claim: {0}")]
    Form(#[from] serde_json::Error),
    /// Another version of Ringer wrote them.
    #[error("it has version {0}, and this is version {VERSION}")]
    Version(u32),
    /// A text or name is not valid.
    #[error(transparent)]
    Invalid(#[from] InvalidName),
    /// A question has too many options.
    #[error("it has {0} options, more than {MAX_OPTIONS}")]
    Options(usize),
}

/// What the hub does with a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClaimedAction {
    /// Append this message.
    Append(Box<Draft>),
    /// Ask this question.
    Ask {
        /// The notification that asks it.
        draft: Box<Draft>,
        /// The question.
        question: String,
        /// Answers to choose from.
        options: Vec<String>,
    },
    /// Keep a file for this listener.
    Listen(Consumer),
}

impl Claim {
    /// A claim of this process.
    pub fn new(stamp: IdSource, directory: String, scope: Scope, request: ClaimRequest) -> Self {
        Self { version: VERSION, stamp, directory, scope, request }
    }

    /// The id of its message, which is also the name of its file.
    pub fn id(&self) -> MessageId {
        self.stamp.message_id()
    }

    /// The file's content.
    pub fn to_bytes(&self) -> Vec<u8> {
        // Plain data: it cannot fail to be written.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Reads a file's content and checks everything in it.
    pub fn parse(bytes: &[u8]) -> Result<(Self, ClaimedAction), ClaimError> {
        let claim: Self = serde_json::from_slice(bytes)?;
        if claim.version != VERSION {
            return Err(ClaimError::Version(claim.version));
        }
        let action = claim.action()?;
        Ok((claim, action))
    }

    /// What it comes to; an error if a text or name is not valid.
    pub fn action(&self) -> Result<ClaimedAction, ClaimError> {
        let scope = Scope::new(self.scope.as_str())?;
        match &self.request {
            ClaimRequest::Notify(notice) => Ok(ClaimedAction::Append(Box::new(self.notice(scope, notice)?))),
            ClaimRequest::Ask { question, options } => {
                if options.len() > MAX_OPTIONS {
                    return Err(ClaimError::Options(options.len()));
                }
                for option in options {
                    validate_text("option", option, 1024)?;
                }
                let mut draft = Draft::new(scope, Sender::unverified(), Kind::Question, question)?;
                draft.title = Some(self.title());
                draft.question_id = Some(self.stamp.question_id());
                draft.check()?;
                let (question, options) = (question.clone(), options.clone());
                Ok(ClaimedAction::Ask { draft: Box::new(draft), question, options })
            }
            ClaimRequest::Listen { name } => Ok(ClaimedAction::Listen(Consumer::new(name, scope)?)),
        }
    }

    /// The message of a notice. It says nothing of a terminal, a pane or a repository: those would be believed.
    fn notice(&self, scope: Scope, notice: &ClaimedNotice) -> Result<Draft, InvalidName> {
        let kind: ShownKind = notice.kind.parse()?;
        let (kind, category) = kind.stored();
        let mut draft = Draft::new(scope, Sender::unverified(), kind, &notice.body)?;
        draft.category = category.map(str::to_owned);
        draft.recipient = Recipient::parse(&notice.to.to_string())?;
        draft.title = Some(self.title());
        let headings: Vec<&str> =
            [&notice.title, &notice.subtitle].into_iter().flatten().map(String::as_str).collect();
        draft.subtitle = (!headings.is_empty()).then(|| headings.join(": "));
        draft.key.clone_from(&notice.key);
        draft.ttl = notice.ttl_ms.map(Duration::from_millis);
        draft.check()?;
        Ok(draft)
    }

    /// The title of everything that it shows.
    fn title(&self) -> String {
        let length = self.directory.chars().count();
        let shown: String = self.directory.chars().skip(length.saturating_sub(SHOWN_DIRECTORY)).collect();
        let cut = if length > SHOWN_DIRECTORY { "…" } else { "" };
        format!("an unverified process in {cut}{shown}").replace('\0', "")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use ringer_core::message::MessageOrigin;

    use super::*;

    fn claim(request: ClaimRequest) -> Claim {
        Claim::new(IdSource::now(), "/src/api".to_owned(), Scope::new("0badcafe").unwrap(), request)
    }

    fn notice(body: &str) -> ClaimedNotice {
        ClaimedNotice {
            body: body.to_owned(),
            kind: "status".to_owned(),
            to: Recipient::Default,
            title: None,
            subtitle: None,
            key: None,
            ttl_ms: None,
        }
    }

    fn appended(claim: &Claim) -> Draft {
        match Claim::parse(&claim.to_bytes()).unwrap() {
            (_, ClaimedAction::Append(draft)) => *draft,
            (_, other) => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_notice_is_shown_as_that_of_an_unverified_process() {
        let request = ClaimRequest::Notify(ClaimedNotice {
            kind: "permission".to_owned(),
            to: Recipient::parse("worker-1").unwrap(),
            title: Some("Claude Code".to_owned()),
            subtitle: Some("api".to_owned()),
            key: Some("build".to_owned()),
            ttl_ms: Some(90_500),
            ..notice("the build is green")
        });
        let draft = appended(&claim(request));
        assert_eq!(draft.sender, Sender::unverified());
        assert_eq!(draft.sender.agent(), None, "no agent of that name is meant");
        assert_eq!(draft.title.as_deref(), Some("an unverified process in /src/api"));
        assert_eq!(draft.subtitle.as_deref(), Some("Claude Code: api"));
        assert_eq!(draft.recipient.to_string(), "agent:worker-1");
        assert_eq!((draft.ttl, draft.key.as_deref()), (Some(Duration::from_millis(90_500)), Some("build")));
        assert_eq!((draft.origin, draft.about, draft.question_id), (MessageOrigin::default(), None, None));
    }

    #[test]
    fn a_question_has_the_id_that_its_asker_knows() {
        let (question, options) = ("Which branch?".to_owned(), vec!["main".to_owned()]);
        let claim = claim(ClaimRequest::Ask { question: question.clone(), options: options.clone() });
        let (_, action) = Claim::parse(&claim.to_bytes()).unwrap();
        let ClaimedAction::Ask { draft, question: asked, options: offered } = action else {
            panic!("{action:?}")
        };
        assert_eq!((asked, offered), (question, options));
        assert_eq!(draft.question_id, Some(claim.stamp.question_id()));
        assert_eq!(draft.sender, Sender::unverified());
    }

    #[test]
    fn what_is_not_a_claim_is_refused_with_the_reason() {
        let refused = |bytes: &[u8]| Claim::parse(bytes).unwrap_err().to_string();
        let with = |change: &dyn Fn(&mut serde_json::Value)| {
            let mut value = serde_json::to_value(claim(ClaimRequest::Notify(notice("hello")))).unwrap();
            change(&mut value);
            refused(&serde_json::to_vec(&value).unwrap())
        };
        assert!(refused(b"").starts_with("it is not a claim"));
        assert_eq!(with(&|value| value["version"] = 2.into()), "it has version 2, and this is version 1");
        assert!(with(&|value| value["scope"] = "../../x".into()).contains("scope"));
        assert!(with(&|value| value["request"]["notify"]["kind"] = "mark-read".into()).contains("kind"));
        assert!(with(&|value| value["request"]["notify"]["key"] = "episode:1".into()).contains("episode:"));
        assert!(with(&|value| value["request"]["notify"]["sender"] = "person".into()).contains("sender"));
        assert!(with(&|value| value["request"] = serde_json::json!({ "answer": {} })).contains("answer"));
        let body = "x".repeat(ringer_core::message::MAX_BODY + 1);
        assert!(with(&|value| value["request"]["notify"]["body"] = body.as_str().into()).contains("message"));
        assert!(
            with(&|value| value["request"] = serde_json::json!({ "listen": { "name": "../x" } }))
                .contains("consumer")
        );
        let options = vec!["x"; MAX_OPTIONS + 1];
        let many = serde_json::json!({ "ask": { "question": "?", "options": options } });
        assert!(with(&|value| value["request"] = many.clone()).contains("options"));
    }

    proptest! {
        #[test]
        fn a_directory_of_any_length_leaves_a_valid_title(directory in ".{0,300}") {
            let claim = Claim { directory, ..claim(ClaimRequest::Notify(notice("hello"))) };
            let title = appended(&claim).title.unwrap();
            prop_assert!(title.starts_with("an unverified process in "));
            prop_assert!(title.chars().count() <= SHOWN_DIRECTORY + 30);
        }

        #[test]
        fn any_bytes_are_a_claim_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(Claim::parse(&bytes).is_err());
        }
    }
}
