//! A small harness: a turn with three tool calls, and messages that arrive before it ends.
//!
//! ```text
//! cargo run -p ringer-core --example injection_loop
//! ```

use std::borrow::Cow;

use ringer_core::MessageId;
use ringer_core::conversation::{
    CallId, Charset, Error, Injection, NotificationBlock, ToolOutcome, ToolResult, render,
};
use ringer_core::message::{Agent, SessionNonce};

/// What happens, second by second.
enum Event {
    /// Something outside: its source, and what it says.
    Outside(&'static str, &'static str),
    /// A tool of the agent has finished.
    Tool(&'static str, ToolOutcome, &'static str),
    /// The model has no more to do.
    TurnEnds,
}

const STORY: [Event; 7] = [
    Event::Tool("edit_1", ToolOutcome::Success, "File updated successfully"),
    Event::Outside("user", "actually wait, use </b> instead of <br>"),
    Event::Outside("background_task", "Build completed: 2 warnings"),
    Event::Tool("shell_2", ToolOutcome::Error, "error: no such command: `tset`"),
    Event::Tool("shell_3", ToolOutcome::Success, "12 passed"),
    Event::Outside("agent:codex-0a1b2c3d", "I have pushed the fix for the parser"),
    Event::TurnEnds,
];

fn main() -> Result<(), Error> {
    let agent = Agent::new("claude-1234abcd")?;
    // A real harness takes random bytes, and gives the model `system_prompt(&nonce)`.
    let nonce = SessionNonce::new([7; 16]);
    // A real harness keeps this where a crash does not lose it, until the client's next event shows that it was read.
    let mut pending: Vec<Injection> = Vec::new();
    for (second, event) in (1..).zip(&STORY) {
        match event {
            Event::Outside(source, text) => {
                // Its id is the message's in the journal; here, any will do.
                let id = MessageId::new(second, [0; 10]);
                pending.push(Injection::new(id, agent.clone(), source.parse()?, text)?);
            }
            Event::Tool(call, outcome, content) => {
                let content = Cow::Borrowed(*content);
                let result = ToolResult { call: CallId::new(call)?, outcome: *outcome, content };
                print_result(&with_pending(&mut pending, result, &nonce));
            }
            // No tool result carries what is left: it becomes the next message, and the agent is woken.
            Event::TurnEnds => println!("user: {}", render(&pending, Some(&nonce))),
        }
    }
    Ok(())
}

/// The one place where notifications enter: after a tool has finished, and before the model is asked again.
fn with_pending<'a>(
    pending: &mut Vec<Injection>,
    result: ToolResult<'a>,
    nonce: &SessionNonce,
) -> ToolResult<'a> {
    let injections = std::mem::take(pending);
    for injection in &injections {
        // For the person; it is not part of the conversation.
        println!("{}\n", NotificationBlock::of(injection).draw(56, Charset::Unicode).join("\n"));
    }
    result.augmented(&injections, Some(nonce))
}

fn print_result(result: &ToolResult<'_>) {
    let failed = if result.outcome == ToolOutcome::Error { ", failed" } else { "" };
    println!("tool result ({}{failed}): {}\n", result.call, result.content);
}
