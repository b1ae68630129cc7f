//! The one who may change access.

/// The person at the keyboard, as a value: whoever holds one may change access.
///
/// Make one where a command that a person typed is carried out, and nowhere else. It cannot be copied, kept in a file,
/// or read out of anything that came over a channel, a socket or a tool: there is no text that turns into one.
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
/// An agent that types the command because a message asked it to is no operator. The program that has the command says
/// so (it has a terminal, and no agent around it) before it makes one.
#[derive(Debug)]
pub struct Operator(());

impl Operator {
    /// Vouches that a person, and not a text, asks for what follows.
    pub fn at_the_keyboard() -> Self {
        Self(())
    }
}
