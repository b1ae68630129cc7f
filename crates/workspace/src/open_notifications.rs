//! The notifications of one program that the person has not seen yet, and what the program asked to be told of them (OSC 99).

use ringer_term::{Notification, NotificationId, Terminator, close99};

/// The most of one program. The oldest goes when another one comes.
const MAX_OPEN: usize = 64;

/// Those that the program gave an id, oldest first.
#[derive(Debug, Default)]
pub(crate) struct OpenNotifications {
    open: Vec<OpenNotification>,
}

#[derive(Debug)]
struct OpenNotification {
    id: NotificationId,
    reports_click: bool,
    reports_close: bool,
}

impl OpenNotifications {
    /// The program notified the person. One with the same id is replaced.
    pub(crate) fn add(&mut self, notification: &Notification) {
        let Some(id) = &notification.id else { return };
        self.remove(id);
        if self.open.len() == MAX_OPEN {
            self.open.remove(0);
        }
        let metadata = &notification.metadata;
        let (reports_click, reports_close) = (metadata.actions.report, metadata.report_close);
        self.open.push(OpenNotification { id: id.clone(), reports_click, reports_close });
    }

    /// The program takes one away.
    pub(crate) fn remove(&mut self, id: &NotificationId) {
        self.open.retain(|open| open.id != *id);
    }

    pub(crate) fn ids(&self) -> Vec<NotificationId> {
        self.open.iter().map(|open| open.id.clone()).collect()
    }

    /// The person followed a notification to the program's pane: the newest one. Gives what the program is told.
    pub(crate) fn click(&mut self) -> Option<String> {
        let newest = self.open.iter_mut().rev().find(|open| open.reports_click)?;
        newest.reports_click = false;
        Some(click99(&newest.id))
    }

    /// The person has seen all of them. Gives what the program is told.
    pub(crate) fn see_all(&mut self) -> Option<String> {
        let seen = std::mem::take(&mut self.open);
        let told: String = seen
            .iter()
            .filter(|open| open.reports_close)
            .map(|open| close99(&open.id, Terminator::St))
            .collect();
        (!told.is_empty()).then_some(told)
    }
}

/// What a terminal writes to the program when its notification is clicked.
fn click99(id: &NotificationId) -> String {
    format!("\x1b]99;i={id};\x1b\\")
}

#[cfg(test)]
mod tests {
    use ringer_term::{Scanner, TerminalEventKind};

    use super::*;

    fn open(sequences: &[&str]) -> OpenNotifications {
        let (mut scanner, mut open) = (Scanner::new(), OpenNotifications::default());
        for sequence in sequences {
            scanner.feed(format!("\x1b]99;{sequence}\x1b\\").as_bytes(), |event| match &event.kind {
                TerminalEventKind::Notification(notification) => open.add(notification),
                TerminalEventKind::Close { id } => open.remove(id),
                _ => {}
            });
        }
        open
    }

    #[test]
    fn the_newest_that_asked_for_it_hears_of_a_click_once() {
        let mut open = open(&["i=1:a=report;one", "i=2:a=focus,report;two", "i=3;three", "a=report;no id"]);
        assert_eq!(open.click().as_deref(), Some("\x1b]99;i=2;\x1b\\"));
        assert_eq!(open.click().as_deref(), Some("\x1b]99;i=1;\x1b\\"));
        assert_eq!(open.click(), None);
    }

    #[test]
    fn those_that_asked_for_it_hear_that_they_are_closed() {
        let mut open = open(&["i=1:c=1;one", "i=2;two", "i=3:c=1;three", "i=1:c=1;again", "i=3:p=close;"]);
        assert_eq!(open.ids().iter().map(NotificationId::as_str).collect::<Vec<_>>(), ["2", "1"]);
        assert_eq!(open.see_all().as_deref(), Some("\x1b]99;i=1:p=close;\x1b\\"));
        assert_eq!((open.see_all(), open.ids()), (None, Vec::new()));
    }

    #[test]
    fn a_program_that_notifies_without_end_takes_no_memory() {
        let sequences: Vec<String> = (0..200).map(|number| format!("i={number};x")).collect();
        let sequences: Vec<&str> = sequences.iter().map(String::as_str).collect();
        let ids = open(&sequences).ids();
        assert_eq!((ids.len(), ids[0].as_str()), (MAX_OPEN, "136"));
    }
}
