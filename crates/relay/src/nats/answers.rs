//! Answers to agents on other machines of the team. They are requests to the agent's machine, outside the stream.

use std::future::pending;
use std::time::Duration;

use async_nats::client::RequestErrorKind;
use async_nats::{Client, Message, Request, Subscriber};
use ringer_journal::{Home, Journal};
use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;

use crate::error::Error;
use crate::frame::AnswerOutput;
use crate::local_journal::{self, AnswerHandler};
use crate::team_setup::TeamSetup;

use super::connection::{Connection, words as in_words};
use super::next::next;
use super::subject::{answers_for, answers_from};

/// Time limit for the other machine: the server, and the 2 s that an agent has to take the answer.
const REPLY_TIMEOUT: Duration = Duration::from_secs(15);
/// The most bytes of an answer, and of the reply, which contains the whole prompt. A server accepts 1 MiB unless its operator
/// configures another limit.
const MAX_BYTES: usize = 256 * 1024;
const MAX_REPLY: usize = 960 * 1024;
/// The most answers that run at the same time. Each is a process.
const MAX_RUNNING: usize = 8;
/// Exit codes: not allowed, and try again.
const NO_PERMISSION: u8 = 77;
const TRY_AGAIN: u8 = 75;

/// An answer, as typed after `ringer answer`.
#[derive(Debug, Serialize, Deserialize)]
struct TeamAnswer {
    message: String,
    words: Vec<String>,
    /// Requests the prompt as JSON.
    #[serde(default)]
    as_json: bool,
}

/// Executes the answers of other machines to agents here. The server identifies the machine that answers.
pub(crate) struct AnswerService {
    client: Client,
    home: Home,
    /// `None` if no machine may answer.
    requests: Option<(Subscriber, AnswerHandler)>,
    running: JoinSet<()>,
}

impl AnswerService {
    pub(crate) async fn begin(setup: &TeamSetup, client: &Client) -> Result<Self, Error> {
        let requests = match setup.give_answer.filter(|_| setup.may_answer) {
            None => None,
            Some(give) => {
                let subscribed = client.subscribe(answers_for(&setup.team, &setup.machine)).await;
                Some((subscribed.map_err(|error| Error::Team(in_words(&error.to_string())))?, give))
            }
        };
        let home = setup.home.clone();
        Ok(Self { client: client.clone(), home, requests, running: JoinSet::new() })
    }

    /// Returns the next request, with the function that executes it.
    pub(crate) async fn next(&mut self) -> (Message, AnswerHandler) {
        match &mut self.requests {
            Some((requests, give)) => match next(requests).await {
                Some(request) => (request, *give),
                None => pending().await,
            },
            None => pending().await,
        }
    }

    /// Executes an answer, and replies with the outcome.
    pub(crate) fn give(&mut self, request: &Message, give: AnswerHandler) {
        let Some(reply) = request.reply.clone() else { return };
        while self.running.try_join_next().is_some() {}
        let client = self.client.clone();
        let read = serde_json::from_slice::<TeamAnswer>(&request.payload).ok();
        let read = read.filter(|_| request.payload.len() <= MAX_BYTES);
        let is_busy = self.running.len() >= MAX_RUNNING;
        let home = self.home.clone();
        self.running.spawn(async move {
            let refused =
                |exit, error: &str| AnswerOutput { exit, error: error.to_owned(), ..AnswerOutput::default() };
            let answered = match read {
                None => refused(NO_PERMISSION, "that is no answer"),
                Some(_) if is_busy => refused(TRY_AGAIN, "too many answers are given there; try again"),
                Some(TeamAnswer { message, words, as_json }) => {
                    let given = move || {
                        let mut journal = Journal::open(&home)?;
                        local_journal::answer(Some(give), &mut journal, &message, words, as_json)
                    };
                    let given = tokio::task::spawn_blocking(given).await;
                    // Errors of this machine are hidden from the one that answers.
                    let given = given.ok().and_then(Result::ok);
                    given.unwrap_or_else(|| refused(TRY_AGAIN, "the answer was not given; try again"))
                }
            };
            // Plain data cannot fail to encode. If the reply is lost, the asking side reports a timeout.
            let _ = client.publish(reply, serde_json::to_vec(&answered).unwrap_or_default().into()).await;
        });
    }
}

/// Answers what a message of another machine asks. Returns the outcome there.
pub(crate) async fn answer(
    setup: &TeamSetup,
    machine: &str,
    message: &str,
    words: &[String],
    as_json: bool,
) -> Result<AnswerOutput, Error> {
    let connection = Connection::open(setup).await?;
    let payload = TeamAnswer { message: message.to_owned(), words: words.to_vec(), as_json };
    let payload = serde_json::to_vec(&payload).unwrap_or_default();
    let request = Request::new().payload(payload.into()).timeout(Some(REPLY_TIMEOUT));
    let subject = answers_from(&setup.team, machine, &setup.machine);
    let reply =
        connection.client.send_request(subject, request).await.map_err(|error| match error.kind() {
            RequestErrorKind::NoResponders => Error::Team(
                "it is not connected to the team now, or its person does not allow answers (may_answer)"
                    .to_owned(),
            ),
            _ => Error::Team(in_words(&error.to_string())),
        })?;
    let answered = serde_json::from_slice::<AnswerOutput>(&reply.payload).ok();
    let answered = answered.filter(|_| reply.payload.len() <= MAX_REPLY);
    answered.map(clean).ok_or_else(|| Error::Team("it said nothing that can be read".to_owned()))
}

/// Removes control characters except newlines, because text from another person's machine is printed here.
fn clean(answered: AnswerOutput) -> AnswerOutput {
    let clean = |text: String| text.chars().filter(|c| *c == '\n' || !c.is_control()).collect();
    AnswerOutput { text: clean(answered.text), error: clean(answered.error), ..answered }
}
