//! Asking before something is done that is not easily undone.

use std::io::{self, BufRead, IsTerminal, Write};

use crate::exit::Exit;
use crate::failure::Failure;

/// Asks at the terminal. Without a terminal it fails with the command that skips the question.
pub(crate) fn confirm(question: &str, without_asking: &str) -> Result<bool, Failure> {
    if !io::stdin().is_terminal() {
        return Err(Failure::usage("cannot ask for confirmation: standard input is not a terminal")
            .hint(without_asking));
    }
    eprint!("{question} [y/N] ");
    let mut answer = String::new();
    io::stderr()
        .flush()
        .and_then(|()| io::stdin().lock().read_line(&mut answer))
        .map_err(|error| Failure::new(Exit::InputOutput, "cannot ask for confirmation").because(error))?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
