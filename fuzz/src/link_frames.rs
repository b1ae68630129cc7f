//! What another machine sends over a link: any bytes, in any pieces. Nothing panics, and nothing that is stored names
//! something of this machine.

use std::time::Duration;

use ringer_relay::{
    AnswerOutput, FrameReader, Hello, ImportRules, Input, Link, MachineId, MachineName, Output, PROTOCOL,
    Position, Purpose, WireMessage,
};

pub fn run(data: &[u8]) {
    let Some((cut, bytes)) = data.split_first() else { return };
    let cut = usize::from(*cut).min(bytes.len());
    let whole = FrameReader::before_hello().feed(bytes).ok();
    let mut reader = FrameReader::before_hello();
    let pieces = reader.feed(&bytes[..cut]).and_then(|mut first| {
        first.extend(reader.feed(&bytes[cut..])?);
        Ok(first)
    });
    assert_eq!(whole, pieces.ok());
    let (mut link, _) = Link::begin(Duration::ZERO, hello());
    for frame in whole.unwrap_or_default() {
        if give(&mut link, Input::Frame(frame)).is_none() {
            return;
        }
    }
}

/// Gives a link what happened, and does what it says. `None` once the connection is over.
fn give(link: &mut Link, input: Input) -> Option<()> {
    for output in link.handle(Duration::ZERO, input).ok()? {
        match output {
            Output::Greet(_) => give(link, Input::Greeted { stored: None })?,
            Output::Locate { .. } => {
                give(link, Input::Located { at: Position::default(), repeats_until: 0 })?;
            }
            Output::Store { messages, end, .. } => {
                messages.into_iter().for_each(import);
                give(link, Input::Stored(end))?;
            }
            Output::Answer { .. } => give(link, Input::Answered(AnswerOutput::default()))?,
            // There is nothing to read, so nothing more happens.
            Output::Send(_) | Output::Read { .. } | Output::Advance(_) | Output::Agents(_) => {}
        }
    }
    Some(())
}

fn import(wire: WireMessage) {
    let Some(machine) = MachineName::parse("box") else { return };
    let Ok(imported) = ImportRules::new(machine, false, 0, 0).import(wire) else { return };
    let draft = imported.draft;
    assert!(draft.sender.as_str().ends_with("@box"), "{:?}", draft.sender);
    assert!(draft.scope.as_str().starts_with("box_"), "{:?}", draft.scope);
    assert!(draft.recipient.agent().is_none(), "{:?}", draft.recipient);
    assert!(draft.question_id.is_none_or(|id| id.as_str().ends_with("@box")));
}

fn hello() -> Hello {
    Hello {
        protocol: (PROTOCOL, PROTOCOL),
        machine: MachineId::parse(&"0".repeat(32)).unwrap_or_else(|| unreachable!("32 digits are an id")),
        name: String::new(),
        program: String::new(),
        unix_ms: 0,
        purpose: Purpose::Exchange,
        may_answer: false,
    }
}
