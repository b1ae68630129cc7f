//! Clock jumps affect neither the order of messages nor their delivery.

use std::time::Duration;

use ringer_journal::IdSource;

use crate::home::{TestHome, at, bodies, draft, heard, lead};

const TEN_YEARS: i64 = 10 * 365 * 24 * 60 * 60 * 1000;

#[test]
fn order_and_delivery_do_not_depend_on_the_clock() {
    let test = TestHome::new();
    let mut journal = test.open();
    let now = IdSource::now().unix_ms;
    let moments = [now, now - TEN_YEARS, now + TEN_YEARS, 0, -1, now, i64::MAX, i64::MIN];
    for (number, moment) in moments.into_iter().enumerate() {
        journal.append(&draft(&number.to_string()), &at(moment)).unwrap();
        // Read one by one and all together: positions are numbers, not times.
        assert_eq!(heard(&mut journal, lead(), 100), [number.to_string()], "sent at {moment}");
    }
    let sent: Vec<String> = (0..moments.len()).map(|number| number.to_string()).collect();
    assert_eq!(bodies(&mut journal), sent);
}

#[test]
fn a_message_from_the_future_with_a_span_is_still_shown() {
    let test = TestHome::new();
    let mut journal = test.open();
    let mut draft = draft("an hour");
    draft.ttl = Some(Duration::from_hours(1));
    let now = IdSource::now().unix_ms;
    for (moment, shown) in [(now + TEN_YEARS, 1), (now - TEN_YEARS, 0), (i64::MAX, 1), (now, 1)] {
        journal.append(&draft, &at(moment)).unwrap();
        assert_eq!(heard(&mut journal, lead(), 100).len(), shown, "sent at {moment}");
    }
}
