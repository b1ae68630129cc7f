//! The proof that a person asked for a change of access.

/// A token that stands for the person at the keyboard. Functions that change access require it.
///
/// Create one only where a command that a person typed is executed. It cannot be cloned, saved or deserialised, so nothing
/// that came over a channel, a socket or a tool can become one.
///
/// ```compile_fail,E0277
/// # use ringer_turn::Operator;
/// let forged: Operator = serde_json::from_str("null").unwrap();
/// ```
/// ```compile_fail,E0423
/// # use ringer_turn::Operator;
/// let forged = Operator(());
/// ```
/// ```compile_fail,E0599
/// # use ringer_turn::Operator;
/// let two = Operator::at_the_keyboard().clone();
/// ```
///
/// An agent that runs the command because a message asked for it is no operator. The program that has the command checks
/// this (it has a terminal, and no agent runs it) before it creates one.
#[derive(Debug)]
pub struct Operator(());

impl Operator {
    /// Creates the token. The caller asserts that a person typed the command.
    pub fn at_the_keyboard() -> Self {
        Self(())
    }
}
