//! Why an answer was not taken, in words.

use ringer_agents::answering::AnswerResult;
use ringer_core::Sender;
use ringer_term::sanitise_line;

/// Why an agent has not taken an answer.
pub(crate) fn not_taken(result: &AnswerResult) -> String {
    match result {
        AnswerResult::NotConfirmed => "sent, not confirmed: the agent has not gone on within 2 s".to_owned(),
        AnswerResult::AnsweredBefore(before) => {
            format!("already answered by {}: {}", person(&before.by), sanitise_line(&before.answer.text()))
        }
        AnswerResult::DialogOnly(why) => format!("cannot be answered from here: {why}"),
        _ => "it is over: it was answered in its own terminal, or the agent no longer asks".to_owned(),
    }
}

/// The person as they are called in output.
fn person(sender: &Sender) -> String {
    if *sender == Sender::person() { "you".to_owned() } else { sanitise_line(sender.as_str()) }
}
