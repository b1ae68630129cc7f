//! Checks the desktop's record: one popup for each message, one popup for each surface, and no popup left open.
//!
//! A hub that dies between the server's reply and its commit loses the id of the popup, and no later hub can learn it.
//! Faults that follow from this are counted separately, as *unknown*. The delivery trail is written in the same transaction
//! as the id, so it tells the two cases apart.

use std::collections::{BTreeMap, HashMap};

use super::desktop::{Event, PopupChange};
use crate::failure::Failure;

/// The parts of a message that matter for popups.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) id: String,
    /// The surface that it came from. Messages of one surface share one popup.
    pub(super) surface: Option<String>,
}

/// Counts faults, divided by whether the hub could have known the popup's number.
#[derive(Default, Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct FaultCount {
    /// The number of the popup that should have been replaced or closed was never committed.
    pub(super) unknown: u64,
    /// The number was committed.
    pub(super) known: u64,
}

/// The results of a record.
#[derive(Default, PartialEq, Eq, Debug)]
pub(super) struct Popups {
    pub(super) opened: u64,
    /// Popups that replaced an older one.
    pub(super) replaced: u64,
    /// Those of them that show the same message again.
    pub(super) again: u64,
    pub(super) closed: u64,
    /// Messages that were shown in a second popup.
    pub(super) twice: FaultCount,
    /// Popups that were opened beside an open one of the same surface.
    pub(super) beside: FaultCount,
    /// Popups that were still open at the end, when everything was read.
    pub(super) left: FaultCount,
    /// Popups that replaced one of another surface.
    pub(super) replaced_foreign: u64,
    /// Popups of messages that were never sent.
    pub(super) never_sent: u64,
    /// The faults that the hub could have avoided, as text.
    pub(super) details: Vec<String>,
}

/// The state while a record is read.
pub(super) struct PopupAnalysis<'a> {
    messages: &'a HashMap<String, Message>,
    popups: Popups,
    /// The text of each open popup.
    open: BTreeMap<u32, &'a str>,
    /// All texts that were ever shown under a number.
    under: HashMap<u32, Vec<&'a str>>,
    /// The numbers under which each text was shown.
    numbers: HashMap<&'a str, Vec<u32>>,
}

/// Returns the steps of the delivery trail of a message id.
pub(super) type Trails<'a> = dyn FnMut(&str) -> Result<Vec<String>, Failure> + 'a;

impl<'a> PopupAnalysis<'a> {
    /// Analyses a record. Messages are identified by their texts, which are unique.
    pub(super) fn of(
        messages: &'a HashMap<String, Message>,
        events: &'a [Event],
        trails: &mut Trails<'_>,
    ) -> Result<Popups, Failure> {
        let mut reading = Self {
            messages,
            popups: Popups::default(),
            open: BTreeMap::new(),
            under: HashMap::new(),
            numbers: HashMap::new(),
        };
        for event in events {
            match &event.change {
                PopupChange::Shown { instead, body } => reading.shown(event, *instead, body, trails)?,
                PopupChange::Closed => {
                    reading.popups.closed += 1;
                    reading.open.remove(&event.number);
                }
            }
        }
        for (number, body) in reading.open.clone() {
            let is_known = reading.is_known(number, trails)?;
            reading.popups.left.count(is_known);
            if is_known {
                reading.popups.details.push(format!("left over: number {number}, {body}"));
            }
        }
        Ok(reading.popups)
    }

    fn shown(
        &mut self,
        event: &Event,
        instead: Option<u32>,
        body: &'a str,
        trails: &mut Trails<'_>,
    ) -> Result<(), Failure> {
        if !self.messages.contains_key(body) {
            self.popups.never_sent += 1;
        }
        match instead.and_then(|number| self.open.remove(&number)) {
            Some(before) => {
                self.popups.replaced += 1;
                self.popups.again += u64::from(before == body);
                if self.key(before) != self.key(body) {
                    self.popups.replaced_foreign += 1;
                    self.tell(event, body, &format!("took the place of {before}"));
                }
            }
            None => self.opened(event, body, trails)?,
        }
        self.open.insert(event.number, body);
        self.under.entry(event.number).or_default().push(body);
        self.numbers.entry(body).or_default().push(event.number);
        Ok(())
    }

    fn opened(&mut self, event: &Event, body: &'a str, trails: &mut Trails<'_>) -> Result<(), Failure> {
        self.popups.opened += 1;
        if let Some(number) = self.numbers.get(body).and_then(|numbers| numbers.last().copied()) {
            let is_known = self.is_known(number, trails)?;
            self.popups.twice.count(is_known);
            if is_known {
                self.tell(event, body, &format!("shown before as number {number}"));
            }
            return Ok(());
        }
        let key = self.key(body);
        // Only the newest counts: older ones beside it were counted when it appeared.
        let newest = self.open.iter().rev().find(|(_, other)| self.key(other) == key);
        if let Some((number, other)) = newest.map(|(number, other)| (*number, *other)) {
            let is_known = self.is_known(number, trails)?;
            self.popups.beside.count(is_known);
            if is_known {
                self.tell(event, body, &format!("beside {other}, number {number}"));
            }
        }
        Ok(())
    }

    /// Returns the key of the popup for a text: its surface, or the text itself.
    fn key<'b>(&'b self, body: &'b str) -> &'b str {
        self.messages.get(body).and_then(|message| message.surface.as_deref()).unwrap_or(body)
    }

    /// Returns true if a popup number was ever committed.
    fn is_known(&self, number: u32, trails: &mut Trails<'_>) -> Result<bool, Failure> {
        let step = format!("desktop: shown (popup {number})");
        for body in self.under.get(&number).into_iter().flatten() {
            let Some(message) = self.messages.get(*body) else { continue };
            if trails(&message.id)?.contains(&step) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn tell(&mut self, event: &Event, body: &str, what: &str) {
        let Event { at, by, number, .. } = event;
        self.popups
            .details
            .push(format!("{:.3} s: {by} showed {body} as {number}: {what}", at.as_secs_f64()));
    }
}

impl FaultCount {
    fn count(&mut self, is_known: bool) {
        *(if is_known { &mut self.known } else { &mut self.unknown }) += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::{FaultCount, Message, PopupAnalysis, Popups};
    use crate::hubstress::desktop::{Event, PopupChange};
    use std::collections::HashMap;
    use std::time::Duration;

    /// `3:a` shows a in popup 3, `3/2:a` in the place of 2, `3x` closes it. Texts that begin alike are of one surface,
    /// those of `z` of none. The trail of a message knows the numbers that are given.
    fn read(record: &str, known: &[(&str, u32)]) -> Popups {
        let events: Vec<Event> = record.split_whitespace().map(event).collect();
        let texts = ["a1", "a2", "a3", "b1", "z1", "z2"];
        let message = |text: &&str| {
            let surface = Some(text[..1].to_owned()).filter(|surface| surface != "z");
            ((*text).to_owned(), Message { id: format!("id-{text}"), surface })
        };
        let messages: HashMap<String, Message> = texts.iter().map(message).collect();
        let mut trails = |id: &str| {
            let own = known.iter().filter(|(text, _)| id == format!("id-{text}"));
            Ok(own.map(|(_, number)| format!("desktop: shown (popup {number})")).collect())
        };
        let popups = PopupAnalysis::of(&messages, &events, &mut trails).expect("nothing can fail here");
        Popups { details: Vec::new(), ..popups }
    }

    fn event(word: &str) -> Event {
        let number = |text: &str| text.parse::<u32>().expect("a number");
        let (number, change) = match word.split_once(':') {
            None => (number(word.trim_end_matches('x')), PopupChange::Closed),
            Some((numbers, body)) => {
                let (own, instead) = numbers.split_once('/').unzip();
                let change = PopupChange::Shown { instead: instead.map(number), body: body.to_owned() };
                (number(own.unwrap_or(numbers)), change)
            }
        };
        Event { at: Duration::ZERO, by: ":1.1".to_owned(), number, change }
    }

    #[test]
    fn one_popup_for_each_surface_and_all_closed_is_well() {
        let expect = Popups { opened: 4, replaced: 2, again: 1, closed: 4, ..Popups::default() };
        assert_eq!(read("1:a1 1/1:a2 2:b1 2/2:b1 3:z1 4:z2 1x 2x 3x 4x", &[]), expect);
    }

    #[test]
    fn twice_is_told_apart_by_what_was_written_down() {
        let expect = Popups { opened: 2, closed: 2, ..Popups::default() };
        let unknown = FaultCount { unknown: 1, known: 0 };
        assert_eq!(read("1:z1 2:z1 1x 2x", &[("z1", 2)]), Popups { twice: unknown, ..expect });
        let expect = Popups { opened: 2, closed: 2, ..Popups::default() };
        let known = FaultCount { unknown: 0, known: 1 };
        assert_eq!(read("1:z1 1x 2:z1 2x", &[("z1", 1)]), Popups { twice: known, ..expect });
    }

    #[test]
    fn beside_another_of_its_surface_is_wrong() {
        let found = read("1:a1 2:a2 1x 2x", &[]);
        assert_eq!((found.beside, found.twice), (FaultCount { unknown: 1, known: 0 }, FaultCount::default()));
        // The number was written down for the one before.
        let found = read("1:a1 1/1:a2 2:a3 1x 2x", &[("a1", 1)]);
        assert_eq!(found.beside, FaultCount { unknown: 0, known: 1 });
        assert_eq!(read("1:a1 1x 2:a2 2x", &[]).beside, FaultCount::default());
        assert_eq!(read("1:z1 2:z2 1x 2x", &[]).beside, FaultCount::default());
    }

    #[test]
    fn what_is_open_at_the_end_is_left_over() {
        let found = read("1:a1 2:b1 3:z1 3x", &[("b1", 2)]);
        assert_eq!(found.left, FaultCount { unknown: 1, known: 1 });
    }

    #[test]
    fn no_popup_takes_a_strangers_place() {
        let found = read("1:a1 1/1:b1 2:q 1x 2x", &[]);
        assert_eq!((found.replaced_foreign, found.never_sent), (1, 1));
    }
}
