//! Asks for confirmation at the terminal.

use std::io::{self, BufRead, IsTerminal, Write};

use crate::failure::{Exit, Failure};
use crate::output::eprint_line;

/// Returns true if standard input is a terminal.
pub(crate) fn can_ask() -> bool {
    io::stdin().is_terminal()
}

/// Asks a yes/no question. Only an explicit yes counts. Without a terminal it fails and names the command that skips the
/// question.
pub(crate) fn confirm(question: &str, without_asking: &str) -> Result<bool, Failure> {
    let answer = ask(&format!("{question} [y/N] "), without_asking)?;
    Ok(answer.is_some_and(|answer| is_yes(&answer)))
}

/// Asks a yes/no question, and takes Enter for a yes. Anything else, and the end of the input, is a no.
pub(crate) fn confirm_by_enter(question: &str, without_asking: &str) -> Result<bool, Failure> {
    let answer = ask(&format!("{question} [Y/n] "), without_asking)?;
    Ok(answer.is_some_and(|answer| answer.is_empty() || is_yes(&answer)))
}

/// Asks a question that also offers to show more first.
pub(crate) fn confirm_or_show(
    question: &str,
    without_asking: &str,
    mut show: impl FnMut() -> Result<(), Failure>,
) -> Result<bool, Failure> {
    loop {
        let answer = ask(&format!("{question} [Y/n/d = show the changes] "), without_asking)?;
        match answer.as_deref() {
            Some("d" | "D" | "diff") => show()?,
            Some(answer) => return Ok(answer.is_empty() || is_yes(answer)),
            None => return Ok(false),
        }
    }
}

/// Asks for a line. Returns `None` at the end of the input.
pub(crate) fn ask_for_line(question: &str) -> Result<Option<String>, Failure> {
    ask(question, "give the answer on the command line")
}

fn is_yes(answer: &str) -> bool {
    matches!(answer, "y" | "Y" | "yes")
}

/// Returns the typed line; `None` at the end of the input.
fn ask(prompt: &str, without_asking: &str) -> Result<Option<String>, Failure> {
    if !can_ask() {
        return Err(Failure::usage("cannot ask for confirmation: standard input is not a terminal")
            .hint(without_asking));
    }
    eprint!("{prompt}");
    let mut answer = String::new();
    let read = io::stderr()
        .flush()
        .and_then(|()| io::stdin().lock().read_line(&mut answer))
        .map_err(|error| Failure::new(Exit::InputOutput, "cannot ask for confirmation").because(error))?;
    if read == 0 {
        // Later output starts on a new line.
        eprint_line("");
        return Ok(None);
    }
    Ok(Some(answer.trim().to_owned()))
}
