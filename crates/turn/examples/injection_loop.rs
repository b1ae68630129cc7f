//! A small harness: a turn with three tool calls, and the world that does not wait for its end.
//!
//! ```text
//! cargo run -p ringer-turn --example injection_loop
//! ```

use std::borrow::Cow;
use std::time::Duration;

use ringer_core::MessageId;
use ringer_core::message::Agent;
use ringer_turn::{
    Activity, CallId, Carrier, Charset, EntryPoint, Error, Inbox, InboxSettings, Injection,
    NotificationBlock, ToolOutcome, ToolResult, TurnEvent, TurnNumber, render,
};

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
    let mut inbox = Inbox::new(agent.clone(), InboxSettings::default());
    let turn = TurnNumber(1);
    inbox.set_activity(Duration::ZERO, Activity::Working);

    for (second, event) in (1..).zip(&STORY) {
        let now = Duration::from_secs(second);
        match event {
            Event::Outside(source, text) => {
                // Its id is the message's in the journal; here, any will do.
                let id = MessageId::new(second, [0; 10]);
                inbox.accept(now, Injection::new(id, agent.clone(), source.parse()?, text)?)?;
            }
            Event::Tool(call, outcome, content) => {
                let call = CallId::new(call)?;
                // This call shows that the model went on: it has read what the result before it carried.
                for id in inbox.observe(now, &TurnEvent::about(turn, call.clone())) {
                    println!("    ({id} was read)\n");
                }
                let result = ToolResult { call, outcome: *outcome, content: Cow::Borrowed(*content) };
                print_result(&with_pending(&mut inbox, now, turn, result)?);
            }
            Event::TurnEnds => {
                inbox.observe(now, &TurnEvent::of(turn));
                // Nothing more carries what is left: it becomes the next message, and the agent is woken.
                if inbox.set_activity(now, Activity::Idle).is_some_and(EntryPoint::needs_wake) {
                    let carrier = Carrier::Message { id: CallId::new("prompt_2")?, after: turn };
                    if let Some(claim) = inbox.claim(now, &carrier) {
                        println!("user: {}", render(&claim.injections));
                        inbox.hand_over(now, claim.lease)?;
                    }
                }
            }
        }
    }
    Ok(())
}

/// The one place where notifications enter: after a tool has finished, and before the model is asked again.
fn with_pending<'a>(
    inbox: &mut Inbox,
    now: Duration,
    turn: TurnNumber,
    result: ToolResult<'a>,
) -> Result<ToolResult<'a>, Error> {
    let carrier = Carrier::ToolResult { call: result.call.clone(), turn };
    let Some(claim) = inbox.claim(now, &carrier) else { return Ok(result) };
    for injection in &claim.injections {
        // For the person; it is not part of the conversation.
        println!("{}\n", NotificationBlock::of(injection).draw(56, Charset::Unicode).join("\n"));
    }
    let augmented = result.augmented(&claim.injections);
    // A real harness appends the result to its saved conversation here, and only then says so.
    inbox.hand_over(now, claim.lease)?;
    Ok(augmented)
}

fn print_result(result: &ToolResult<'_>) {
    let failed = if result.outcome == ToolOutcome::Error { ", failed" } else { "" };
    println!("tool result ({}{failed}): {}\n", result.call, result.content);
}
