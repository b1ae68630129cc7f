//! `ringer answer`.

mod prompt;
mod remote;

use ringer_agents::answering::{AnswerResult, add_details, give_answer};
use ringer_agents::client::ClientPaths;
use ringer_core::Sender;
use ringer_core::agent::{Answer, AnswerError, AnswerMethod, PromptContent};
use ringer_core::attention::AnsweredWith;
use ringer_core::message::EVIDENCE;
use ringer_hub::monotonic;
use ringer_journal::{
    Decision, Error as JournalError, IdSource, Journal, Question, SenderClaim, StoredPrompt,
};
use ringer_platform::path_variable;
use ringer_term::{escape_hidden, sanitise_line};
use ringer_ui::{PromptDetails, age};
use serde_json::json;

use self::prompt::{NamedPrompt, PromptKind, no_answer, prompt_json, prompt_text, question_to_person};
use self::remote::{DIALOG_ONLY, NOT_TOLD, OVER, RemotePrompt};
use crate::client_setup::client_paths;
use crate::confirm::{ask_for_line, can_ask, confirm_by_enter};
use crate::failure::{Exit, Failure, Outcome};
use crate::output::{eprint_line, print_bytes, print_json, print_line};
use crate::popup_answerer::not_taken;
use crate::{context, guard, hub_client, origin};

pub(crate) use remote::answer_of_popup;

/// Answer a question, or allow or deny what an agent wants to do
///
/// Without an answer it shows all that is asked, and asks you if it runs in a
/// terminal. Exits with 0 when the agent has taken the answer, with 75 when that
/// was not seen within 2 seconds, and with 69 when it can only be answered in the
/// agent's own terminal.
///
/// Examples:
///   ringer answer infra                    # show it, and ask
///   ringer answer api/auth allow
///   ringer answer k3fx deny "not on main"
///   ringer answer k3fx always              # `ringer answer k3fx` shows what that allows
///   ringer answer 9qdw Postgres            # or 1, its number
///   ringer answer Postgres                 # if only one thing is open
///   ringer answer infra --text "neither, ask me on Monday"
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Who asks, or an id, as `ringer list` shows them, or `last` [default: the only one that is open]
    who: Option<String>,
    /// allow, deny REASON, always, an option, its number, or text; one answer for each question
    answer: Vec<String>,
    /// Answer with this text, even if it is nearly an option
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["answer", "close"])]
    text: Option<String>,
    /// Close a question of `ringer ask` without an answer
    #[arg(long)]
    close: bool,
    /// Sender of an answer to `ringer ask`; below an agent, one of its workers [default: you, the agent, or `system`]
    #[arg(long, value_name = "ID")]
    from: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Args) -> Outcome {
    answer(arguments, false)
}

/// `ringer acknowledge`: like `ringer answer`, but closes a question when no answer is given.
pub(crate) fn acknowledge(arguments: &Args) -> Outcome {
    answer(arguments, true)
}

fn answer(arguments: &Args, close: bool) -> Outcome {
    let mut journal = context::journal()?;
    context::settle_spool(&mut journal);
    let words = arguments.who.iter().chain(&arguments.answer);
    let words: Vec<&str> = words.map(String::as_str).collect();
    let (mut named, words) = if let Some(text) = &arguments.text {
        (NamedPrompt::read(arguments.who.as_deref(), &mut journal)?, vec![text.as_str()])
    } else {
        let (named, words) = NamedPrompt::of_words(&words, &mut journal)?;
        (named, words.to_vec())
    };
    if let Some(remote) = RemotePrompt::of(named.record.as_ref(), &mut journal)? {
        if arguments.close || (close && words.is_empty()) {
            return Err(remote.cannot_close());
        }
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        return remote.answer(&words, arguments.json, &mut journal);
    }
    if let PromptKind::Dialog(prompt) = &mut named.kind {
        add_details(&mut journal, &paths(), prompt)?;
    }
    let close =
        arguments.close || (close && words.is_empty() && matches!(named.kind, PromptKind::Question(_)));
    if close && !words.is_empty() {
        return Err(Failure::usage("an answer and --close exclude each other"));
    }
    let mut words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    if words.is_empty() && !close {
        show(&named, arguments.json)?;
        if arguments.json || !named.is_open() {
            return Ok(());
        }
        if !can_ask() {
            return Err(no_answer(&named.id()));
        }
        let Some(line) = ask_for_line(&question_to_person(&named))? else { return Ok(()) };
        words = typed_words(&named, &line);
        if words.is_empty() {
            eprint_line("Not answered.");
            return Ok(());
        }
    }
    if arguments.text.is_none()
        && let Some(option) = named.nearest_option(&words.join(" "))
    {
        words = vec![confirmed_option(&named, option, &words.join(" "))?];
    }
    match &named.kind {
        PromptKind::Question(question) => answer_question(&named, question, &words, arguments, journal),
        PromptKind::Dialog(prompt) => answer_prompt(&named, prompt, &words, arguments, journal),
        PromptKind::Notification => Err(dialog_only(&named, NOT_TOLD)),
    }
}

/// Reads everything that a notification asks, for the UI.
pub(crate) fn prompt_details(id: &str) -> Result<PromptDetails, Failure> {
    let mut journal = context::journal()?;
    context::settle_spool(&mut journal);
    let mut named = NamedPrompt::read(Some(id), &mut journal)?;
    if let PromptKind::Dialog(prompt) = &mut named.kind {
        add_details(&mut journal, &paths(), prompt)?;
    }
    let record = named.record.as_ref();
    let remote = RemotePrompt::of(record, &mut journal)?;
    let body = || record.map(|record| record.body.to_string()).unwrap_or_default();
    let title = record.map(|record| record.title.as_deref().unwrap_or(&record.sender).to_owned());
    let title = title.unwrap_or_default();
    if let Some(remote) = remote {
        let (content, only_there) = match remote.details(&mut journal) {
            Ok((content, only_there)) => (content, only_there.map(str::to_owned)),
            Err(failure) => (
                PromptContent::Plan { text: body(), whole: true },
                Some(sanitise_line(&failure.first_line())),
            ),
        };
        return Ok(PromptDetails { id: id.to_owned(), title, content, unanswerable_here: only_there });
    }
    let (content, only_there) = match &named.kind {
        PromptKind::Question(question) => (PromptContent::Questions(vec![question.as_prompt()]), None),
        PromptKind::Dialog(prompt) => {
            let only_there = (prompt.prompt.method == AnswerMethod::DialogOnly).then_some(DIALOG_ONLY);
            (prompt.prompt.content.clone(), only_there)
        }
        PromptKind::Notification => (PromptContent::Plan { text: body(), whole: true }, Some(NOT_TOLD)),
    };
    let is_over = !named.is_open() && !matches!(named.kind, PromptKind::Notification);
    let only_there = if is_over { Some(OVER) } else { only_there }.map(str::to_owned);
    Ok(PromptDetails { id: id.to_owned(), title, content, unanswerable_here: only_there })
}

/// Answers as the person at the UI. Returns the outcome in words.
pub(crate) fn answer_from_screen(id: &str, words: &[String]) -> Result<String, Failure> {
    let mut journal = context::journal()?;
    let named = NamedPrompt::read(Some(id), &mut journal)?;
    if let Some(remote) = RemotePrompt::of(named.record.as_ref(), &mut journal)? {
        return remote.give(words, &mut journal).map(|answered| answered.text);
    }
    match &named.kind {
        PromptKind::Question(question) => {
            let choice = question.as_prompt().read_choice(&words.join(" "));
            let choice = choice.map_err(|error| invalid(&named, &error))?;
            journal.answer(
                &question.id,
                choice.first().map(String::as_str),
                &Sender::person(),
                &IdSource::now(),
            )?;
            hub_client::start_if_not_woken(&journal);
            Ok(answered_text(question))
        }
        PromptKind::Dialog(prompt) => {
            let (decision, result) = decide(&named, prompt, words, AnsweredWith::Screen, &mut journal)?;
            match result {
                AnswerResult::Taken => Ok(taken_text(prompt, &decision.answer)),
                result => Err(Failure::new(Exit::Data, not_taken(&result))),
            }
        }
        PromptKind::Notification => Err(dialog_only(&named, NOT_TOLD)),
    }
}

/// Answers a question of `ringer ask` as an agent. A client's own dialog is refused: only a person may answer that.
pub(crate) fn answer_of_agent(id: &str, text: &str) -> Result<String, Failure> {
    let mut journal = context::journal()?;
    context::settle_spool(&mut journal);
    let named = NamedPrompt::read(Some(id), &mut journal)?;
    let question = match &named.kind {
        PromptKind::Question(question) => question,
        PromptKind::Dialog(prompt) => {
            let what = format!("answer what {} asks", prompt.agent.as_str());
            guard::only_a_person(&mut journal, &prompt.scope, &what)?;
            return Err(Failure::new(Exit::NoPermission, format!("an agent must not {what}"))
                .hint("only a person may do that, in a terminal of their own"));
        }
        PromptKind::Notification => {
            return Err(Failure::new(Exit::Data, format!("{} is no question of `ask`", named.id()))
                .hint("ringer list --open"));
        }
    };
    let claim = context::claim_of_program(None);
    let question = store_answer(&named, question, &[text.to_owned()], &claim, &mut journal)?;
    Ok(answered_text(&question))
}

/// Returns the words that a person typed. A question takes the whole line as its answer, so it is not split.
fn typed_words(named: &NamedPrompt, line: &str) -> Vec<String> {
    let line = line.trim();
    if line.is_empty() {
        return Vec::new();
    }
    match &named.kind {
        PromptKind::Dialog(prompt) => match &prompt.prompt.content {
            PromptContent::Questions(questions) if questions.len() > 1 => {
                line.split(';').map(|answer| answer.trim().to_owned()).collect()
            }
            PromptContent::Questions(_) => vec![line.to_owned()],
            _ => line.split_whitespace().map(str::to_owned).collect(),
        },
        _ => vec![line.to_owned()],
    }
}

/// Asks whether an option was meant by an answer that is nearly one.
fn confirmed_option(named: &NamedPrompt, option: &str, answer: &str) -> Result<String, Failure> {
    let (option_shown, answer_shown) = (sanitise_line(option), sanitise_line(answer));
    let hint = format!(
        "ringer answer {0} {option_shown:?}, or: ringer answer {0} --text {answer_shown:?}",
        named.id()
    );
    if !can_ask() {
        let what = format!("{answer_shown:?} is not an option; did you mean {option_shown:?}?");
        return Err(Failure::usage(what).hint(hint));
    }
    let question = format!("{answer_shown:?} is not an option. Answer {option_shown:?}?");
    if confirm_by_enter(&question, &hint)? {
        Ok(option.to_owned())
    } else {
        Err(Failure::usage("not answered").hint(hint))
    }
}

fn show(named: &NamedPrompt, as_json: bool) -> Outcome {
    if as_json {
        return print_json(&prompt_json(named));
    }
    // The text escapes everything that is not plain.
    print_bytes(prompt_text(named).as_bytes())
}

fn paths() -> ClientPaths {
    client_paths(path_variable("HOME").unwrap_or_default(), None)
}

fn answer_question(
    named: &NamedPrompt,
    question: &Question,
    words: &[String],
    arguments: &Args,
    mut journal: Journal,
) -> Outcome {
    let claim = context::claim(arguments.from.as_deref());
    let question = store_answer(named, question, words, &claim, &mut journal)?;
    if arguments.json {
        return print_json(&json!({
            "question_id": question.id.as_str(),
            "asked_by": question.asker.as_str(),
            "answer": question.answer,
        }));
    }
    print_line(&match &question.answer {
        Some(answer) => format!("{}: answered {:?}", named.who(), sanitise_line(answer)),
        None => format!("{}: closed without an answer", named.who()),
    })
}

fn answered_text(question: &Question) -> String {
    match question.asker.reply_to() {
        Some(agent) => format!("Answered. {} reads it.", agent.as_str()),
        None => "Answered.".to_owned(),
    }
}

fn store_answer(
    named: &NamedPrompt,
    question: &Question,
    words: &[String],
    claim: &SenderClaim,
    journal: &mut Journal,
) -> Result<Question, Failure> {
    let text = (!words.is_empty()).then(|| question.as_prompt().read_choice(&words.join(" ")));
    let text = text.transpose().map_err(|error| invalid(named, &error))?.map(|mut chosen| chosen.remove(0));
    let sender = context::sender(claim, journal)?;
    let answered = journal.answer(&question.id, text.as_deref(), &sender, &IdSource::now());
    if let Err(JournalError::Answered { .. }) = &answered
        && let Some(first) = journal.question(&question.id)?
    {
        return Err(already_answered(named, &first));
    }
    let question = answered?;
    hub_client::start_if_not_woken(journal);
    context::warn_if_repaired(journal);
    Ok(question)
}

/// Says who was first, when, and with what.
fn already_answered(named: &NamedPrompt, first: &Question) -> Failure {
    let what = match &first.answer {
        Some(answer) => format!("answered {:?}", sanitise_line(answer)),
        None => "closed without an answer".to_owned(),
    };
    let by = match first.answerer.as_ref().map(Sender::as_str) {
        Some("person") => " by you".to_owned(),
        Some(sender) => format!(" by {}", sanitise_line(sender)),
        None => String::new(),
    };
    let ago = first.answered_ms.map(|at_ms| age(IdSource::now().unix_ms - at_ms)).unwrap_or_default();
    Failure::new(Exit::Data, format!("{} was already {what}{by}, {ago} ago", named.who()))
        .hint("ringer list --open")
}

fn answer_prompt(
    named: &NamedPrompt,
    prompt: &StoredPrompt,
    words: &[String],
    arguments: &Args,
    mut journal: Journal,
) -> Outcome {
    let (decision, result) = decide(named, prompt, words, AnsweredWith::Command, &mut journal)?;
    if arguments.json && matches!(result, AnswerResult::Taken | AnswerResult::NotConfirmed) {
        print_json(&json!({
            "id": named.record.as_ref().map(|record| record.id.as_str()),
            "agent": prompt.agent.as_str(),
            "answer": decision.answer.text(),
            "taken": result == AnswerResult::Taken,
        }))?;
    }
    match result {
        AnswerResult::Taken if arguments.json => Ok(()),
        AnswerResult::Taken => print_line(&taken_text(prompt, &decision.answer)),
        AnswerResult::DialogOnly(why) => Err(dialog_only(named, &why)),
        result => {
            let exit = if result == AnswerResult::NotConfirmed { Exit::TryAgain } else { Exit::Data };
            Err(Failure::new(exit, not_taken(&result)).hint(format!("ringer why {}", named.id())))
        }
    }
}

/// Decides a prompt, and waits until the agent has taken the decision.
fn decide(
    named: &NamedPrompt,
    prompt: &StoredPrompt,
    words: &[String],
    with: AnsweredWith,
    journal: &mut Journal,
) -> Result<(Decision, AnswerResult), Failure> {
    let guard::Decider { by, evidence } = guard::decider(journal, prompt)?;
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let answer = prompt.prompt.content.read_answer(&words).map_err(|error| invalid(named, &error))?;
    let decision = Decision { answer, by, with, at_ms: IdSource::now().unix_ms };
    let mut origin = origin::message_origin();
    origin.meta.extend(evidence.map(|evidence| (EVIDENCE.to_owned(), evidence)));
    let result = give_answer(journal, &paths(), prompt, &decision, &origin, &monotonic)?;
    hub_client::start_if_not_woken(journal);
    Ok((decision, result))
}

fn taken_text(prompt: &StoredPrompt, answer: &Answer) -> String {
    let agent = prompt.agent.as_str();
    match answer {
        Answer::Allow => format!("Allowed. {agent} goes on."),
        Answer::AllowAlways => {
            let allowed = match &prompt.prompt.content {
                PromptContent::Permission(request) => request.always.as_slice(),
                _ => &[],
            };
            let lines: String = allowed.iter().map(|what| format!("\n  {}", escape_hidden(what))).collect();
            format!("Allowed. {agent} goes on. From now on it need not ask for:{lines}")
        }
        Answer::Deny { reason: None } => format!("Denied. {agent} goes on without it."),
        Answer::Deny { reason: Some(_) } => format!("Denied. {agent} reads why."),
        _ => format!("Answered. {agent} goes on."),
    }
}

fn dialog_only(named: &NamedPrompt, why: &str) -> Failure {
    let what = format!("cannot be answered from here: {why}");
    Failure::new(Exit::Unavailable, what).hint(format!("ringer jump {}", named.id()))
}

fn invalid(named: &NamedPrompt, error: &AnswerError) -> Failure {
    let exit = if *error == AnswerError::NotWhole { Exit::Unavailable } else { Exit::Usage };
    let next = if *error == AnswerError::NotWhole { "jump" } else { "answer" };
    Failure::new(exit, sanitise_line(&error.to_string())).hint(format!("ringer {next} {}", named.id()))
}
