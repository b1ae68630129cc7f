//! The drop box: how a process in an agent's sandbox reaches the hub through two directories.
//!
//! A sandbox that could write the whole home could change what Ringer trusts, answer for the person and type into panes. So it
//! may only write `drop`, where it leaves claims, and read `outbox`, where the hub leaves answers and messages. The hub applies
//! a claim and removes its file, and trusts nothing in it.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ringer_core::message::{InvalidName, QuestionId, ShownKind, validate_text};
use ringer_core::{Draft, Kind, Message, MessageId, Recipient, Scope, Sender};
use ringer_journal::{Consumer, Home, IdSource};
use ringer_platform::{Durability, owned, replace_file};
use rustix::fs::{Access, OFlags};
use rustix::process::getppid;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The largest claim, in bytes.
pub const MAX_CLAIM: u64 = 64 * 1024;
/// The most pending claims. The command that would leave another fails.
pub const MAX_CLAIMS: usize = 1_000;
/// The extension of a claim's file.
const CLAIM_SUFFIX: &str = ".json";

/// How often a waiting command checks that its parent is alive, and for changes that the system did not announce.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The two directories of a home.
#[derive(Debug, Clone)]
pub struct DropBox {
    drop: PathBuf,
    outbox: Outbox,
}

/// The read position of a listener in a sandbox.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
struct ListenerPosition {
    seq: i64,
}

/// Why waiting for a file ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SandboxWait {
    /// Something may have changed.
    Look,
    /// The deadline passed.
    TimedOut,
    /// The parent process has ended.
    Orphaned,
}

impl DropBox {
    /// The drop box of a home, which need not exist.
    pub fn of(home: &Home) -> Self {
        Self { drop: home.path().join("drop"), outbox: Outbox::new(home.path().join("outbox")) }
    }

    /// Returns the drop box if this process is in a sandbox and has no other way to the hub: the drop box exists, and the journal
    /// cannot be opened for writing.
    ///
    /// This opens the write lock, since Landlock's rules show only when a file is opened. In a container with only the two
    /// directories of the home, there is no lock: there a read-only outbox indicates the sandbox.
    pub fn if_sandboxed(home: &Home) -> Option<Self> {
        let own = Self::of(home);
        if !own.drop.is_dir() {
            return None;
        }
        let flags = (OFlags::NONBLOCK | OFlags::NOFOLLOW).bits().cast_signed();
        let opened = OpenOptions::new().write(true).custom_flags(flags).open(home.path().join("write.lock"));
        let is_sandboxed = match opened {
            Ok(_) => false,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                rustix::fs::access(own.outbox.directory(), Access::WRITE_OK).is_err()
            }
            Err(error) => matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem),
        };
        is_sandboxed.then_some(own)
    }

    /// The directory that a sandbox may write.
    pub fn directory(&self) -> &Path {
        &self.drop
    }

    /// The directory that a sandbox may read.
    pub fn outbox(&self) -> &Outbox {
        &self.outbox
    }

    /// Leaves a claim and syncs it to disk.
    pub fn leave(&self, claim: &Claim) -> io::Result<()> {
        let bytes = claim.to_bytes();
        if bytes.len() as u64 > MAX_CLAIM {
            return Err(ErrorKind::FileTooLarge.into());
        }
        if self.waiting() >= MAX_CLAIMS {
            return Err(ErrorKind::QuotaExceeded.into());
        }
        replace_file(&self.path_of(claim), &bytes, Durability::Synced)
    }

    /// Returns true once the hub has applied a claim, or refused it.
    pub fn is_applied(&self, claim: &Claim) -> bool {
        fs::symlink_metadata(self.path_of(claim)).is_err_and(|error| error.kind() == ErrorKind::NotFound)
    }

    /// Returns the number of pending claims.
    pub fn waiting(&self) -> usize {
        let entries = fs::read_dir(&self.drop).into_iter().flatten().flatten();
        entries.filter(|entry| is_claim(&entry.file_name())).count()
    }

    /// Returns the sequence number of the last message that this listener has read. The listener stores it in the drop box.
    pub fn position(&self, listener: &Consumer) -> i64 {
        let bytes = owned::read(&self.position_path(listener), MAX_CLAIM).ok();
        let position = bytes.and_then(|bytes| serde_json::from_slice::<ListenerPosition>(&bytes).ok());
        position.unwrap_or_default().seq
    }

    /// Stores the sequence number of the last message that this listener has read.
    pub fn set_position(&self, listener: &Consumer, seq: i64) -> io::Result<()> {
        let bytes = serde_json::to_vec(&ListenerPosition { seq })?;
        replace_file(&self.position_path(listener), &bytes, Durability::Unsynced)
    }

    fn position_path(&self, listener: &Consumer) -> PathBuf {
        self.drop.join(format!("{}.position", listener_name(listener)))
    }

    fn path_of(&self, claim: &Claim) -> PathBuf {
        self.drop.join(format!("{}{CLAIM_SUFFIX}", claim.id()))
    }
}

/// Returns true if this is the file name of a claim.
pub fn is_claim(name: &std::ffi::OsStr) -> bool {
    name.to_str().is_some_and(|name| !name.starts_with('.') && name.ends_with(CLAIM_SUFFIX))
}

/// Waits for changes of the two directories.
#[derive(Debug)]
pub struct SandboxWatch {
    #[cfg(target_os = "linux")]
    changes: ringer_platform::DirectoryChanges,
    parent: Option<rustix::process::Pid>,
}

impl SandboxWatch {
    /// Starts watching. No change after this is missed.
    pub fn begin(drop_box: &DropBox) -> io::Result<Self> {
        let directories = [drop_box.directory(), drop_box.outbox().directory()];
        Ok(Self {
            #[cfg(target_os = "linux")]
            changes: ringer_platform::DirectoryChanges::begin(directories.into_iter())?,
            parent: getppid(),
        })
    }

    /// Waits until something changes, at most one second or until the deadline.
    pub fn wait(&self, deadline: Option<Instant>) -> io::Result<SandboxWait> {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        if left == Some(Duration::ZERO) {
            return Ok(SandboxWait::TimedOut);
        }
        self.pause(left.map_or(LOOK_EVERY, |left| left.min(LOOK_EVERY)))?;
        Ok(if getppid() == self.parent { SandboxWait::Look } else { SandboxWait::Orphaned })
    }

    #[cfg(target_os = "linux")]
    fn pause(&self, most: Duration) -> io::Result<()> {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let timeout = Timespec::try_from(most).map_err(io::Error::other)?;
        match poll(&mut [PollFd::new(&self.changes, PollFlags::IN)], Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        self.changes.read();
        Ok(())
    }

    /// Other systems are polled.
    #[cfg(not(target_os = "linux"))]
    fn pause(&self, most: Duration) -> io::Result<()> {
        std::thread::sleep(most.min(Duration::from_millis(200)));
        Ok(())
    }
}

/// The longest file of a listener, in bytes. If it is full, the oldest messages are dropped.
pub const MAX_LISTENER_FILE: usize = 256 * 1024;

/// The longest file that is read, in bytes.
const MAX_OUTBOX_FILE: u64 = 2 * 1024 * 1024;

/// The state of a question that a sandbox asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QuestionState {
    /// The question is in the inbox.
    Open,
    /// The question was answered.
    Answered(String),
    /// The question was closed without an answer.
    Closed,
    /// Another question of the same second has the same id.
    Refused,
}

/// The messages that a listener has not read, as far as the hub knows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListenerFile {
    /// The sequence number of the newest message in the journal when this was written.
    pub newest: i64,
    /// The messages, in order.
    pub messages: Vec<Message>,
}

/// The directory where the hub leaves a file for each question and each listener in a sandbox.
#[derive(Debug, Clone)]
pub struct Outbox {
    directory: PathBuf,
}

impl Outbox {
    /// The outbox at this path.
    pub fn new(directory: PathBuf) -> Self {
        Self { directory }
    }

    /// The path of the directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The file of a question.
    pub fn question_path(&self, id: &QuestionId) -> PathBuf {
        self.directory.join(format!("answer-{id}.json"))
    }

    /// The file of a listener.
    pub fn listener_path(&self, listener: &Consumer) -> PathBuf {
        self.directory.join(format!("{}.json", listener_name(listener)))
    }

    /// Reads the file of a question.
    pub fn question(&self, id: &QuestionId) -> Option<QuestionState> {
        read_json(&self.question_path(id))
    }

    /// Reads the file of a listener.
    pub fn listener(&self, listener: &Consumer) -> Option<ListenerFile> {
        read_json(&self.listener_path(listener))
    }

    /// Returns the questions and the listeners that have a file.
    pub fn entries(&self) -> (Vec<QuestionId>, Vec<Consumer>) {
        let (mut questions, mut listeners) = (Vec::new(), Vec::new());
        for entry in fs::read_dir(&self.directory).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let Some(stem) = name.to_str().and_then(|name| name.strip_suffix(".json")) else { continue };
            if let Some(id) = stem.strip_prefix("answer-") {
                questions.extend(QuestionId::parse(id));
            } else if let Some((name, scope)) =
                stem.strip_prefix("listen-").and_then(|rest| rest.rsplit_once('@'))
            {
                listeners.extend(Scope::new(scope).and_then(|scope| Consumer::new(name, scope)));
            }
        }
        (questions, listeners)
    }
}

/// Returns the file name of a listener without its extension, which differs between the outbox and the drop box.
fn listener_name(listener: &Consumer) -> String {
    format!("listen-{}@{}", listener.name(), listener.scope())
}

fn read_json<T: for<'a> Deserialize<'a>>(path: &Path) -> Option<T> {
    serde_json::from_slice(&owned::read(path, MAX_OUTBOX_FILE).ok()?).ok()
}

/// The only version of the file format.
const CLAIM_VERSION: u32 = 1;

/// How many characters of a directory's path a title shows. The end of a path says more than its beginning.
const SHOWN_DIRECTORY: usize = 80;

/// The most options of a question.
const MAX_OPTIONS: usize = 32;
/// The longest name of a listener's file, without its ending: file names have at most 255 bytes.
const MAX_LISTENER_NAME: usize = 200;

/// A request of a process in a sandbox to the hub, as a JSON file in the drop box.
///
/// It can show a notification and ask a question, both in the name of an unverified process, and request the messages of a
/// listener. It has no field for anything else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    version: u32,
    /// The time of creation, and random bytes for the ids.
    pub stamp: IdSource,
    /// The working directory of the command.
    pub directory: String,
    /// The repository around that directory.
    pub scope: Scope,
    /// The request.
    pub request: ClaimRequest,
}

/// The request of a claim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ClaimRequest {
    /// Show a notification.
    Notify(ClaimedNotice),
    /// Ask a question. Its id is [`IdSource::question_id`] of the stamp.
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
    /// The name of the kind.
    pub kind: String,
    /// The recipient.
    #[serde(default)]
    pub to: Recipient,
    /// The first heading.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The second heading.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subtitle: Option<String>,
    /// Replaces the notification of another unverified process with this key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The time to live, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u64>,
}

/// Why bytes are not a claim.
#[derive(Debug, Error)]
pub enum ClaimError {
    /// They are not JSON in the form of a claim.
    #[error("it is not a claim: {0}")]
    Form(#[from] serde_json::Error),
    /// Another version of Ringer wrote them.
    #[error("it has version {0}, and this is version {CLAIM_VERSION}")]
    Version(u32),
    /// A text or name is not valid.
    #[error(transparent)]
    Invalid(#[from] InvalidName),
    /// The name and scope of a listener do not fit into a file name.
    #[error("the name of its listener is too long")]
    ListenerName,
    /// A question has too many options.
    #[error("it has {0} options, more than {MAX_OPTIONS}")]
    Options(usize),
}

/// The hub's action for a claim.
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
    /// Creates a claim of this process.
    pub fn new(stamp: IdSource, directory: String, scope: Scope, request: ClaimRequest) -> Self {
        Self { version: CLAIM_VERSION, stamp, directory, scope, request }
    }

    /// Returns the id of the message, which is also the name of the claim's file.
    pub fn id(&self) -> MessageId {
        self.stamp.message_id()
    }

    /// Returns the content of the file.
    pub fn to_bytes(&self) -> Vec<u8> {
        // Serializing plain data cannot fail.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Parses the content of a file and validates all of it.
    pub fn parse(bytes: &[u8]) -> Result<(Self, ClaimedAction), ClaimError> {
        let claim: Self = serde_json::from_slice(bytes)?;
        if claim.version != CLAIM_VERSION {
            return Err(ClaimError::Version(claim.version));
        }
        let action = claim.action()?;
        Ok((claim, action))
    }

    /// Returns the action for this claim. Fails if a text or name is invalid.
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
            ClaimRequest::Listen { name } => {
                let listener = Consumer::new(name, scope)?;
                if listener_name(&listener).len() > MAX_LISTENER_NAME {
                    return Err(ClaimError::ListenerName);
                }
                Ok(ClaimedAction::Listen(listener))
            }
        }
    }

    /// Returns the message of a notice. It contains no terminal and no pane, since those would be trusted.
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

    /// Returns the title of every message from this claim.
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
