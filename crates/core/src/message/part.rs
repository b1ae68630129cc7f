//! Splits long messages into parts, because an agent's client limits the length of a text.

use std::ops::Range;

use crate::message::{Draft, Message, Recipient, Tag};

/// The longest part, in bytes after escaping: Claude Code accepts 10,000 characters, including the element around the part and
/// perhaps a heading of the client.
///
/// Parts of stored messages are identified by number, so the rule that cuts them must not change.
pub const MAX_PART: usize = 8_000;

/// A message for an agent, or one part of it if it is long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessagePart {
    /// The message.
    pub message: Message,
    /// Which part, counted from 0.
    pub number: usize,
    /// The number of parts.
    pub of: usize,
}

impl MessagePart {
    /// Creates the only part of a message.
    pub fn whole(message: Message) -> Self {
        Self { message, number: 0, of: 1 }
    }

    /// The text that the agent reads.
    pub fn text(&self) -> String {
        let text = agent_text(&self.message.draft);
        let (number, of) = (self.number + 1, self.of);
        let range = cut(&text).nth(self.number).filter(|_| of > 1);
        range.map_or_else(|| text.clone(), |range| format!("(part {number} of {of})\n{}", &text[range]))
    }
}

/// The number of parts in which an agent gets a message.
pub fn part_count(draft: &Draft) -> usize {
    cut(&agent_text(draft)).count().max(1)
}

/// The text of a message for an agent: with its headings if it is for this agent, with its kind in front if it is for the
/// lead.
fn agent_text(draft: &Draft) -> String {
    if matches!(draft.recipient, Recipient::Agent(_)) {
        let headings = [&draft.title, &draft.subtitle].into_iter().flatten();
        let lines: Vec<&str> = headings.map(String::as_str).chain([draft.body.as_str()]).collect();
        return lines.join("\n");
    }
    let kind = match draft.tag {
        Tag::Notice(_) => format!("{}: ", draft.tag.as_str()),
        Tag::Mark(_) => String::new(),
    };
    let question = draft.question_id.as_ref().map(|id| format!(" [question {id}]")).unwrap_or_default();
    format!("{kind}{}{question}", draft.body)
}

/// Cuts a text into parts of maximal length, after a line break if there is one in the second half.
fn cut(text: &str) -> impl Iterator<Item = Range<usize>> {
    let mut start = 0;
    std::iter::from_fn(move || {
        let rest = &text[start..];
        let mut cost = 0;
        let fits = rest.char_indices().find(|(_, character)| {
            cost += escaped_length(*character);
            cost > MAX_PART
        });
        let length = fits.map_or(rest.len(), |(longest, _)| {
            let line_end = rest[..longest].rfind('\n').map(|at| at + 1);
            line_end.filter(|end| *end > longest / 2).unwrap_or(longest)
        });
        let range = start..start + length;
        start = range.end;
        (!range.is_empty()).then_some(range)
    })
}

/// The length of a character after escaping it for markup.
fn escaped_length(character: char) -> usize {
    match character {
        '"' | '\'' => 6,
        '&' => 5,
        '<' | '>' => 4,
        character => character.len_utf8(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kind;
    use crate::message::{MessageId, QuestionId, Scope, Sender};
    use proptest::prelude::*;

    fn message(recipient: &str, body: &str) -> Message {
        let mut draft =
            Draft::tagged(Scope::global(), Sender::new("w1").unwrap(), Tag::Notice(Kind::Complete), body);
        draft.recipient = Recipient::parse(recipient).unwrap();
        Message { seq: 1, id: MessageId::parse("m1").unwrap(), unix_ms: 0, draft, machine: None }
    }

    #[test]
    fn what_is_for_the_agent_has_its_headings_and_what_is_for_the_lead_its_kind() {
        let mut own = message("agent:a1", "look");
        own.draft.title = Some("Build".to_owned());
        assert_eq!(MessagePart::whole(own).text(), "Build\nlook");
        let mut asked = message("default", "Which?");
        asked.draft.question_id = Some(QuestionId::parse("q1").unwrap());
        assert_eq!(MessagePart::whole(asked).text(), "complete: Which? [question q1]");
    }

    #[test]
    fn a_long_message_has_parts_that_end_with_lines() {
        let line = "0123456789".repeat(10);
        let long = message("agent:a1", &vec![line.as_str(); 200].join("\n"));
        let of = part_count(&long.draft);
        assert_eq!(of, 3);
        let parts: Vec<String> =
            (0..of).map(|number| MessagePart { message: long.clone(), number, of }.text()).collect();
        assert!(parts[0].starts_with("(part 1 of 3)\n0123") && parts[0].ends_with("789\n"));
        assert!(parts[2].starts_with("(part 3 of 3)\n0123"));
        let joined: String = parts.iter().filter_map(|part| Some(part.split_once('\n')?.1)).collect();
        assert_eq!(joined, long.draft.body);
    }

    proptest! {
        #[test]
        fn parts_are_the_text_and_each_is_short(
            pieces in prop::collection::vec(prop::sample::select(vec!["word ", "\"<&>'", "\u{1f600}", "\n", "ääää"]), 0..4000),
        ) {
            let text = pieces.concat();
            let ranges: Vec<Range<usize>> = cut(&text).collect();
            prop_assert_eq!(ranges.iter().map(|range| &text[range.clone()]).collect::<String>(), text.clone());
            for range in ranges {
                prop_assert!(text[range].chars().map(escaped_length).sum::<usize>() <= MAX_PART);
            }
        }
    }
}
