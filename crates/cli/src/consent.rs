//! Asking before something is done that is not easily undone.

use std::io::{self, BufRead, IsTerminal, Write};

use crate::exit::Exit;
use crate::failure::Failure;

/// Asks at the terminal. Where there is nobody to ask, says how to do without.
pub(crate) fn agrees(question: &str, without_asking: &str) -> Result<bool, Failure> {
    if !io::stdin().is_terminal() {
        return Err(Failure::usage("there is nobody to ask").hint(without_asking));
    }
    eprint!("{question} [y/N] ");
    let mut answer = String::new();
    io::stderr()
        .flush()
        .and_then(|()| io::stdin().lock().read_line(&mut answer))
        .map_err(|error| Failure::new(Exit::InputOutput, "cannot ask").because(error))?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
