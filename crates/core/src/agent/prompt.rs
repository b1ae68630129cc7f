//! What a client asks in a dialog, and the answers it accepts from elsewhere.

use std::borrow::Borrow;

use serde::{Deserialize, Serialize};

/// A dialog of a client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prompt {
    /// The question.
    pub content: PromptContent,
    /// How an answer reaches the client.
    pub method: AnswerMethod,
    /// The file in which the client records the outcome, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transcript: Option<String>,
}

/// How an answer from outside the dialog reaches the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum AnswerMethod {
    /// A hook of the client waits for it.
    WaitingHook,
    /// Ringer connects to the client's server.
    ClientServer,
    /// It does not: only the dialog itself can be answered.
    DialogOnly,
}

/// The question of a client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum PromptContent {
    /// Permission to use a tool.
    Permission(PermissionRequest),
    /// Questions, each with its own answer.
    Questions(Vec<PromptQuestion>),
    /// Approval of a plan.
    Plan {
        /// The plan.
        text: String,
        /// True if the text is complete. An incomplete one cannot be allowed from elsewhere.
        whole: bool,
    },
}

/// What a client wants to do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PermissionRequest {
    /// The tool.
    pub tool: String,
    /// The command, or the whole input of the tool.
    pub request: String,
    /// True if the text is complete. An incomplete one cannot be allowed from elsewhere.
    pub whole: bool,
    /// What `always` would allow, in words; empty if the client does not offer it.
    pub always: Vec<String>,
}

/// One question of a client.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptQuestion {
    /// The question.
    pub text: String,
    /// The options.
    pub options: Vec<String>,
    /// The meaning of each option, in the same order; empty if the client gives none.
    #[serde(default)]
    pub descriptions: Vec<String>,
    /// True if several options can be chosen.
    pub multiple: bool,
    /// True if any other text is an answer, too.
    pub free_text: bool,
}

/// An answer to a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Answer {
    /// Yes, this once.
    Allow,
    /// Yes, and always allow what the client offers to allow.
    AllowAlways,
    /// No.
    Deny {
        /// Why, for the model to read.
        reason: Option<String>,
    },
    /// One answer for each question: the chosen options, or another text.
    Choices(Vec<Vec<String>>),
}

impl Answer {
    /// Returns true if both answers decide the same. The reason for a refusal makes no difference.
    pub fn decides_like(&self, other: &Self) -> bool {
        matches!((self, other), (Self::Deny { .. }, Self::Deny { .. })) || self == other
    }

    /// The texts that a client repeats only if it has taken this answer.
    pub fn own_texts(&self) -> Vec<&str> {
        match self {
            Self::Deny { reason } => reason.as_deref().into_iter().collect(),
            Self::Choices(choices) => choices.iter().flatten().map(String::as_str).collect(),
            _ => Vec::new(),
        }
    }

    /// The answer, for people.
    pub fn text(&self) -> String {
        match self {
            Self::Allow => "allow".to_owned(),
            Self::AllowAlways => "always".to_owned(),
            Self::Deny { reason: None } => "deny".to_owned(),
            Self::Deny { reason: Some(reason) } => format!("deny: {reason}"),
            Self::Choices(choices) => {
                choices.iter().map(|choice| choice.join(", ")).collect::<Vec<_>>().join("; ")
            }
        }
    }
}

/// Why the given words are not an answer to a prompt. The error text names the valid answers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AnswerError {
    /// No answer was given.
    #[error("no answer was given")]
    Missing,
    /// The answer is not a valid word for a permission or a plan.
    #[error("{answer:?} is no answer here: {}", if *always { "allow, always or deny" } else { "allow or deny" })]
    NotADecision {
        /// The given answer.
        answer: String,
        /// True if the client offers to allow it always.
        always: bool,
    },
    /// The client does not offer to allow it always.
    #[error("there is no `always` for this: allow or deny")]
    NoAlways,
    /// The request is longer than the stored part.
    #[error("it is too long to be shown in full here, so it can only be allowed in its own terminal")]
    NotWhole,
    /// The answer is not one of the options.
    #[error("{answer:?} is none of the options: {}", options.join(" / "))]
    NotAnOption {
        /// The given answer.
        answer: String,
        /// The options.
        options: Vec<String>,
    },
    /// The number of answers differs from the number of questions.
    #[error("{questions} questions need {questions} answers, in their order; {answers} given")]
    Count {
        /// Number of questions.
        questions: usize,
        /// Number of answers.
        answers: usize,
    },
}

impl PromptContent {
    /// Parses the words of an answer.
    ///
    /// ```
    /// use ringer_core::agent::{Answer, PermissionRequest, PromptContent};
    ///
    /// let request = PermissionRequest { tool: "Bash".to_owned(), request: "make".to_owned(), whole: true, always: vec![] };
    /// let prompt = PromptContent::Permission(request);
    /// let answer = prompt.read_answer(&["deny", "not", "today"])?;
    /// assert_eq!(answer, Answer::Deny { reason: Some("not today".to_owned()) });
    /// # Ok::<(), ringer_core::agent::AnswerError>(())
    /// ```
    pub fn read_answer(&self, words: &[&str]) -> Result<Answer, AnswerError> {
        let Some((first, rest)) = words.split_first() else { return Err(AnswerError::Missing) };
        let (whole, always) = match self {
            Self::Questions(questions) => return read_choices(questions, words).map(Answer::Choices),
            Self::Permission(request) => (request.whole, !request.always.is_empty()),
            Self::Plan { whole, .. } => (*whole, false),
        };
        let no_decision = || Err(AnswerError::NotADecision { answer: words.join(" "), always });
        let reason = || Some(rest.join(" ")).filter(|reason| !reason.trim().is_empty());
        match *first {
            "deny" => Ok(Answer::Deny { reason: reason() }),
            "allow" | "always" if !rest.is_empty() => no_decision(),
            "allow" | "always" if !whole => Err(AnswerError::NotWhole),
            "allow" => Ok(Answer::Allow),
            "always" if always => Ok(Answer::AllowAlways),
            "always" => Err(AnswerError::NoAlways),
            _ => no_decision(),
        }
    }

    /// The whole prompt, for people, with line breaks as the client sent them.
    pub fn full_text(&self) -> String {
        match self {
            Self::Permission(request) if request.tool.is_empty() => request.request.clone(),
            Self::Permission(request) => format!("{}: {}", request.tool, request.request),
            Self::Questions(questions) => {
                questions.iter().map(|question| question.text.as_str()).collect::<Vec<_>>().join("\n")
            }
            Self::Plan { text, .. } => text.clone(),
        }
    }
}

/// A question with its options: `Which database? (Postgres / SQLite)`.
pub fn question_with_options(question: &str, options: &[impl Borrow<str>]) -> String {
    if options.is_empty() { question.to_owned() } else { format!("{question} ({})", options.join(" / ")) }
}

fn read_choices(questions: &[PromptQuestion], words: &[&str]) -> Result<Vec<Vec<String>>, AnswerError> {
    match questions {
        // The answer to a single question need not be quoted.
        [question] => Ok(vec![question.read_choice(&words.join(" "))?]),
        _ if questions.len() == words.len() => {
            questions.iter().zip(words).map(|(question, word)| question.read_choice(word)).collect()
        }
        _ => Err(AnswerError::Count { questions: questions.len(), answers: words.len() }),
    }
}

impl PromptQuestion {
    /// Parses an answer: an option, its number, several of these separated by commas, or another text if that is allowed.
    pub fn read_choice(&self, answer: &str) -> Result<Vec<String>, AnswerError> {
        let answer = answer.trim();
        if answer.is_empty() {
            return Err(AnswerError::Missing);
        }
        if let Some(option) = self.option(answer) {
            return Ok(vec![option]);
        }
        if self.multiple {
            let chosen: Option<Vec<String>> =
                answer.split(',').map(|part| self.option(part.trim())).collect();
            if let Some(mut chosen) = chosen {
                let mut seen = Vec::new();
                chosen.retain(|option| {
                    !seen.contains(option) && {
                        seen.push(option.clone());
                        true
                    }
                });
                return Ok(chosen);
            }
        }
        // A number that matches no option is a slip, not a text.
        if self.options.is_empty() || (self.free_text && answer.parse::<u64>().is_err()) {
            return Ok(vec![answer.to_owned()]);
        }
        Err(AnswerError::NotAnOption { answer: answer.to_owned(), options: self.options.clone() })
    }

    /// Finds an option by its text, or else by its number.
    fn option(&self, word: &str) -> Option<String> {
        let same = |option: &&String| option.trim().eq_ignore_ascii_case(word);
        let by_number = || self.options.get(word.parse::<usize>().ok()?.checked_sub(1)?);
        self.options.iter().find(same).or_else(by_number).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn permission(whole: bool, always: &[&str]) -> PromptContent {
        PromptContent::Permission(PermissionRequest {
            tool: "Bash".into(),
            request: "make deploy".into(),
            whole,
            always: always.iter().map(ToString::to_string).collect(),
        })
    }

    fn question(options: &[&str], multiple: bool, free_text: bool) -> PromptQuestion {
        let options = options.iter().map(ToString::to_string).collect();
        PromptQuestion { text: "Which?".into(), options, multiple, free_text, ..PromptQuestion::default() }
    }

    #[test]
    fn a_permission_is_decided_with_three_words() {
        let prompt = permission(true, &["Bash(make:*)"]);
        let deny = |reason: Option<&str>| Answer::Deny { reason: reason.map(str::to_owned) };
        assert_eq!(prompt.read_answer(&["allow"]), Ok(Answer::Allow));
        assert_eq!(prompt.read_answer(&["always"]), Ok(Answer::AllowAlways));
        assert_eq!(prompt.read_answer(&["deny"]), Ok(deny(None)));
        assert_eq!(prompt.read_answer(&["deny", "on", "main?"]), Ok(deny(Some("on main?"))));
        for words in [&["yes"][..], &["1"], &["allow", "it"], &["Allow"], &["denied"]] {
            let error = AnswerError::NotADecision { answer: words.join(" "), always: true };
            assert_eq!(prompt.read_answer(words), Err(error));
        }
        let words = |prompt: &PromptContent| prompt.read_answer(&["maybe"]).unwrap_err().to_string();
        assert_eq!(words(&prompt), r#""maybe" is no answer here: allow, always or deny"#);
        assert_eq!(words(&permission(true, &[])), r#""maybe" is no answer here: allow or deny"#);
        assert_eq!(prompt.read_answer(&[]), Err(AnswerError::Missing));
        assert_eq!(permission(true, &[]).read_answer(&["always"]), Err(AnswerError::NoAlways));
    }

    #[test]
    fn what_cannot_be_read_in_full_can_only_be_refused() {
        let prompt = permission(false, &["all"]);
        assert_eq!(prompt.read_answer(&["allow"]), Err(AnswerError::NotWhole));
        assert_eq!(prompt.read_answer(&["always"]), Err(AnswerError::NotWhole));
        assert!(prompt.read_answer(&["deny"]).is_ok());
        let plan = PromptContent::Plan { text: "1. all".into(), whole: false };
        assert_eq!(plan.read_answer(&["allow"]), Err(AnswerError::NotWhole));
    }

    #[test]
    fn an_option_by_its_words_or_its_number() {
        let ports = question(&["8080", "2", "Other one"], false, false);
        let read = |answer: &str| ports.read_choice(answer).map(|mut choice| choice.remove(0));
        assert_eq!(read("8080").as_deref(), Ok("8080"));
        assert_eq!(read("2").as_deref(), Ok("2"), "the words before the number");
        assert_eq!(read("3").as_deref(), Ok("Other one"));
        assert_eq!(read("other ONE").as_deref(), Ok("Other one"));
        assert!(read("4").is_err() && read("0").is_err() && read("other").is_err() && read(" ").is_err());
    }

    #[test]
    fn several_options_and_other_texts() {
        let colours = question(&["Red", "Blue", "Green"], true, true);
        let read = |answer: &str| colours.read_choice(answer);
        assert_eq!(read("1,3").unwrap(), ["Red", "Green"]);
        assert_eq!(read("blue, 2, Red").unwrap(), ["Blue", "Red"]);
        assert_eq!(read("no colour, please").unwrap(), ["no colour, please"]);
        assert!(read("9").is_err(), "a slip");
        assert_eq!(question(&[], false, false).read_choice("12").unwrap(), ["12"]);
    }

    #[test]
    fn each_question_needs_its_answer() {
        let one = PromptContent::Questions(vec![question(&[], false, true)]);
        assert_eq!(one.read_answer(&["keep", "it"]), Ok(Answer::Choices(vec![vec!["keep it".into()]])));
        let two = PromptContent::Questions(vec![
            question(&["A", "B"], false, true),
            question(&["C", "D"], true, false),
        ]);
        let answer = two.read_answer(&["2", "1,2"]).unwrap();
        assert_eq!(answer.text(), "B; C, D");
        assert_eq!(two.read_answer(&["2"]), Err(AnswerError::Count { questions: 2, answers: 1 }));
    }

    proptest! {
        #[test]
        fn an_enforced_choice_is_one_of_the_options(
            options in prop::collection::vec("[a-c0-4 ,]{1,3}", 1..5), multiple: bool, answer in "[a-c0-5 ,]{0,6}"
        ) {
            let question = PromptQuestion { options, multiple, ..PromptQuestion::default() };
            if let Ok(choice) = question.read_choice(&answer) {
                prop_assert!(!choice.is_empty() && (multiple || choice.len() == 1));
                prop_assert!(choice.iter().all(|option| question.options.contains(option)));
            }
        }

        #[test]
        fn nothing_but_the_exact_word_allows(words in prop::collection::vec("\\PC{0,8}", 0..3)) {
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let allows = matches!(permission(true, &["x"]).read_answer(&words), Ok(Answer::Allow | Answer::AllowAlways));
            prop_assert_eq!(allows, words == ["allow"] || words == ["always"]);
        }
    }
}
