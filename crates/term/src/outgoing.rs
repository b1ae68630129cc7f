//! A notification for the person at the terminal, as bytes ready to be written.

use crate::channel::Method;
use crate::encode::{BEL, osc9, osc777};
use crate::id::NotificationId;
use crate::multiplexer::{Multiplexer, wrap};
use crate::osc::Terminator;
use crate::osc99::{Osc99Message, Urgency};

/// A notification to be shown by the terminal.
#[derive(Debug, Clone, Copy)]
pub struct OutgoingNotification<'a> {
    /// Used by OSC 99: the same id again updates the notification.
    pub id: &'a NotificationId,
    /// The sender, or the subject.
    pub title: Option<&'a str>,
    /// The text.
    pub body: &'a str,
    /// Used by OSC 99.
    pub urgency: Urgency,
}

impl OutgoingNotification<'_> {
    /// The bytes for one method, wrapped for the multiplexers in between (nearest first). To be written at once.
    ///
    /// Empty for the methods that send nothing.
    pub fn encode(&self, method: Method, layers: &[Multiplexer]) -> Vec<u8> {
        let end = Terminator::inside(layers);
        let wrapped = |sequence: String| wrap(sequence.as_bytes(), layers);
        match method {
            Method::Iterm2 => wrapped(osc9(self.title, self.body, end)),
            Method::Iterm2WithBell => {
                [wrapped(osc9(self.title, self.body, end)).as_slice(), BEL.as_bytes()].concat()
            }
            Method::Kitty => wrapped(self.message99().encode(end)),
            Method::Ghostty => wrapped(osc777(self.title, self.body, end)),
            Method::TerminalBell => BEL.into(),
            Method::Disabled | Method::NoMethodAvailable => Vec::new(),
        }
    }

    fn message99(&self) -> Osc99Message<'_> {
        let title = self.title.unwrap_or_default();
        Osc99Message { title, body: self.body, urgency: self.urgency, ..Osc99Message::new(self.id) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_sequence_each_and_the_bell_never_wrapped() {
        let id = NotificationId::new("1").unwrap();
        let notice = OutgoingNotification { id: &id, title: Some("T"), body: "B", urgency: Urgency::Normal };
        let check = |method, layers: &[Multiplexer], expected: &str| {
            let encoded = notice.encode(method, layers);
            assert_eq!(encoded.escape_ascii().to_string(), expected.as_bytes().escape_ascii().to_string());
        };
        let tmux = [Multiplexer::Tmux];
        check(Method::Iterm2, &[], "\x1b]9;T: B\x1b\\");
        check(Method::Iterm2WithBell, &tmux, "\x1bPtmux;\x1b\x1b]9;T: B\x1b\x1b\\\x1b\\\x07");
        check(Method::Ghostty, &[], "\x1b]777;notify;T;B\x1b\\");
        check(Method::Ghostty, &[Multiplexer::Screen], "\x1bP\x1b]777;notify;T;B\x07\x1b\\");
        check(Method::TerminalBell, &tmux, "\x07");
        check(Method::Disabled, &tmux, "");
        check(Method::NoMethodAvailable, &[], "");
        check(
            Method::Kitty,
            &[],
            "\x1b]99;i=1:d=0:p=title;T\x1b\\\x1b]99;i=1:d=0:p=body;B\x1b\\\x1b]99;i=1:d=1:a=focus;\x1b\\",
        );
    }
}
