//! `notify`, `ask` and `listen` in an agent's sandbox: they leave claims in the drop box and read the outbox.

use std::io::{self, ErrorKind};
use std::time::{Duration, Instant};

use ringer_core::Message;
use ringer_core::message::QuestionId;
use ringer_ipc::drop_box::{
    Claim, ClaimError, ClaimRequest, DropBox, QuestionState, SandboxWait, SandboxWatch,
};
use ringer_journal::{Consumer, IdSource};

use crate::context;
use crate::failure::{Exit, Failure};

/// How long a command that does not wait gives a hub to apply a claim before it reports that none does.
const HUB_WITHIN: Duration = Duration::from_secs(2);
/// How often a waiting listener renews its request: the hub deletes the file of a listener after a day without one.
const ASK_AGAIN_AFTER: Duration = Duration::from_hours(6);

/// The message of a command after it has queued a message in the drop box.
pub(crate) const QUEUED: &str = "queued: the hub shows it as from an unverified process in this directory";

/// Returns the drop box if this process can reach Ringer only through it.
pub(crate) fn drop_box() -> Result<Option<DropBox>, Failure> {
    Ok(DropBox::if_sandboxed(&context::home()?))
}

/// Leaves a claim in the drop box. Returns `None` if the sandbox forbids even that.
pub(crate) fn leave(drop_box: &DropBox, request: ClaimRequest) -> Result<Option<Claim>, Failure> {
    let directory = std::env::current_dir().unwrap_or_default().to_string_lossy().into_owned();
    let scope = context::scope(context::repository().as_ref());
    let claim = Claim::new(IdSource::now(), directory, scope, request);
    claim.action().map_err(|error| match error {
        ClaimError::Invalid(name) => name.into(),
        error => Failure::new(Exit::Data, error.to_string()),
    })?;
    match drop_box.leave(&claim) {
        Ok(()) => Ok(Some(claim)),
        Err(error) if is_forbidden(&error) => Ok(None),
        Err(error) => Err(cannot_leave(drop_box, error)),
    }
}

fn is_forbidden(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem | ErrorKind::NotFound)
}

fn cannot_leave(drop_box: &DropBox, error: io::Error) -> Failure {
    let path = drop_box.directory().display();
    match error.kind() {
        ErrorKind::QuotaExceeded => Failure::new(
            Exit::TryAgain,
            format!("the drop box is full: {} messages wait in {path}", drop_box.waiting()),
        )
        .hint("ringer hub start   # outside the sandbox, then send it again: it was not stored"),
        ErrorKind::FileTooLarge => Failure::new(Exit::Data, "in a sandbox a message has at most 64 KiB")
            .hint("write it to a file and send the path: ringer notify \"see FILE\""),
        _ => Failure::new(Exit::CannotCreate, format!("cannot write to the drop box {path}"))
            .because(error)
            .hint(format!("df -h {path}   # free some space, then send it again: it was not stored")),
    }
}

/// Waits for the answer to a question. Returns `None` if the deadline passes or the parent process ends.
pub(crate) fn wait_for_answer(
    drop_box: &DropBox,
    id: &QuestionId,
    deadline: Option<Instant>,
) -> Result<Option<QuestionState>, Failure> {
    let watch = watch(drop_box)?;
    loop {
        match drop_box.outbox().question(id) {
            Some(QuestionState::Refused) => {
                return Err(
                    Failure::new(Exit::TryAgain, "another question has the same id").hint("ask it again")
                );
            }
            None | Some(QuestionState::Open) => {}
            closed => return Ok(closed),
        }
        match watch.wait(deadline).map_err(cannot_watch)? {
            SandboxWait::Look => {}
            SandboxWait::TimedOut | SandboxWait::Orphaned => return Ok(None),
        }
    }
}

/// A listener in a sandbox.
pub(crate) struct SandboxListener {
    drop_box: DropBox,
    consumer: Consumer,
    watch: SandboxWatch,
    claim: Claim,
    begun: Instant,
    asked: Instant,
    /// Messages up to now are skipped, once the hub has reported which these are.
    skips: bool,
}

impl SandboxListener {
    /// Asks the hub for the messages. Returns `None` if the sandbox forbids even that.
    pub(crate) fn begin(
        drop_box: DropBox,
        consumer: Consumer,
        from_now: bool,
    ) -> Result<Option<Self>, Failure> {
        let watch = watch(&drop_box)?;
        let now = Instant::now();
        let listener = leave(&drop_box, request(&consumer))?.map(|claim| Self {
            drop_box,
            consumer,
            watch,
            claim,
            begun: now,
            asked: now,
            skips: from_now,
        });
        Ok(listener)
    }

    /// Waits for messages and passes on at most `most`. `consume` returns how many it has printed. Returns false if none arrived
    /// before the deadline or the end of the parent.
    pub(crate) fn next(
        &mut self,
        deadline: Option<Instant>,
        most: usize,
        follows: bool,
        mut consume: impl FnMut(&[Message]) -> Result<usize, Failure>,
    ) -> Result<bool, Failure> {
        loop {
            let is_applied = self.drop_box.is_applied(&self.claim);
            let messages = self.unread(is_applied)?;
            if !messages.is_empty() {
                let taken = consume(&messages[..messages.len().min(most)])?;
                if let Some(last) = taken.checked_sub(1).and_then(|last| messages.get(last)) {
                    self.set_position(last.seq)?;
                }
                return Ok(true);
            }
            // The hub always gets a moment, even from a listener that does not wait.
            let until = deadline
                .map(|deadline| if is_applied { deadline } else { deadline.max(self.begun + HUB_WITHIN) });
            match self.watch.wait(until).map_err(cannot_watch)? {
                SandboxWait::Orphaned if !follows => return Ok(false),
                SandboxWait::TimedOut if !self.drop_box.is_applied(&self.claim) => return Err(no_hub()),
                SandboxWait::TimedOut => return Ok(false),
                SandboxWait::Look | SandboxWait::Orphaned => self.ask_again()?,
            }
        }
    }

    /// Returns the messages that this listener has not read, as far as the hub has written them.
    fn unread(&mut self, is_applied: bool) -> Result<Vec<Message>, Failure> {
        if self.skips && !is_applied {
            return Ok(Vec::new());
        }
        let Some(file) = self.drop_box.outbox().listener(&self.consumer) else { return Ok(Vec::new()) };
        if std::mem::take(&mut self.skips) {
            let last = file.messages.last().map_or(0, |message| message.seq);
            self.set_position(file.newest.max(last))?;
            return Ok(Vec::new());
        }
        // A replaced journal starts counting from the beginning.
        let position =
            Some(self.drop_box.position(&self.consumer)).filter(|position| *position <= file.newest);
        let now = IdSource::now().unix_ms;
        let is_unread = |message: &Message| message.seq > position.unwrap_or(0) && message.is_current(now);
        Ok(file.messages.into_iter().filter(is_unread).collect())
    }

    fn set_position(&self, seq: i64) -> Result<(), Failure> {
        self.drop_box.set_position(&self.consumer, seq).map_err(|error| cannot_leave(&self.drop_box, error))
    }

    fn ask_again(&mut self) -> Result<(), Failure> {
        if self.asked.elapsed() < ASK_AGAIN_AFTER {
            return Ok(());
        }
        self.asked = Instant::now();
        if let Some(claim) = leave(&self.drop_box, request(&self.consumer))? {
            self.claim = claim;
        }
        Ok(())
    }
}

fn request(consumer: &Consumer) -> ClaimRequest {
    ClaimRequest::Listen { name: consumer.name().to_owned() }
}

fn watch(drop_box: &DropBox) -> Result<SandboxWatch, Failure> {
    SandboxWatch::begin(drop_box).map_err(cannot_watch)
}

fn cannot_watch(error: io::Error) -> Failure {
    Failure::new(Exit::InputOutput, "cannot watch the drop box").because(error)
}

fn no_hub() -> Failure {
    Failure::new(Exit::TryAgain, "no hub takes what is in the drop box")
        .hint("ringer hub start   # outside the sandbox")
}

/// Returns the answer of a closed question.
pub(crate) fn answer_of(state: QuestionState) -> Option<String> {
    match state {
        QuestionState::Answered(answer) => Some(answer),
        QuestionState::Open | QuestionState::Closed | QuestionState::Refused => None,
    }
}
