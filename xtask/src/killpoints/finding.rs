use std::fmt;

use serde_json::Value;

/// The consequences of one kill.
#[derive(Default, PartialEq, Eq, Debug)]
pub(super) struct Finding {
    pub(super) lost: u32,
    /// Lines that are not JSON, messages with a wrong text, and messages that one listener received twice.
    pub(super) torn: u32,
    /// Later processes that failed or timed out.
    pub(super) wedged: u32,
    /// Stale doorbells that the next listener did not remove, and databases that were set aside as damaged.
    pub(super) leftovers: u32,
    /// Messages that the killed listener delivered and the next one delivered again. Allowed.
    pub(super) again: u32,
    /// Messages of a killed `notify` that are in the journal. Allowed.
    pub(super) stored: u32,
    /// Processes that exited before they reached the boundary.
    pub(super) missed: u32,
}

impl Finding {
    pub(super) fn is_clean(&self) -> bool {
        self.lost + self.torn + self.wedged + self.leftovers == 0
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.lost += other.lost;
        self.torn += other.torn;
        self.wedged += other.wedged;
        self.leftovers += other.leftovers;
        self.again += other.again;
        self.stored += other.stored;
        self.missed += other.missed;
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { lost, torn, wedged, leftovers, .. } = self;
        write!(f, "{lost} lost, {torn} torn, {wedged} wedged, {leftovers} left behind")
    }
}

/// Parses the complete lines of the output as messages. `Err` is the number of lines that are not messages.
pub(super) fn messages(printed: &[u8]) -> Result<Vec<String>, u32> {
    let whole = printed.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let mut torn = 0;
    let mut found = Vec::new();
    for line in printed[..whole].split_inclusive(|byte| *byte == b'\n') {
        let value = serde_json::from_slice::<Value>(line).ok();
        match value.as_ref().and_then(|value| value["msg"].as_str()) {
            Some(text) => found.push(text.to_owned()),
            None => torn += 1,
        }
    }
    if torn == 0 { Ok(found) } else { Err(torn) }
}

/// How often a message may arrive after the kill.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Expectation {
    /// It was acknowledged and is unread: it must arrive once.
    Come,
    /// Its `notify` was killed: it may arrive once.
    MayCome,
    /// The killed listener printed it, perhaps without recording that in the journal: it may arrive again.
    MayComeAgain,
    /// A listener that finished printed it: it must not arrive again.
    Stay,
}

/// Compares the messages that arrived after the kill with the expectations.
pub(super) fn compare(came: &[String], expectations: &[(&str, Expectation)]) -> Finding {
    let mut finding = Finding::default();
    for (text, expectation) in expectations {
        let times = u32::try_from(came.iter().filter(|came| came == text).count()).unwrap_or(u32::MAX);
        match expectation {
            Expectation::Come => finding.lost += u32::from(times == 0),
            Expectation::MayCome => finding.stored += u32::from(times > 0),
            Expectation::MayComeAgain => finding.again += u32::from(times > 0),
            Expectation::Stay => finding.torn += times.min(1),
        }
        finding.torn += times.saturating_sub(1);
    }
    let strangers = came.iter().filter(|came| !expectations.iter().any(|(text, _)| came == text)).count();
    finding.torn += u32::try_from(strangers).unwrap_or(u32::MAX);
    finding
}

#[cfg(test)]
mod tests {
    use super::{Expectation, Finding, compare, messages};

    #[test]
    fn only_whole_lines_were_printed() {
        fn check(printed: &str, expect: Result<&[&str], u32>) {
            let found = messages(printed.as_bytes());
            let found = found.as_ref().map(|texts| texts.iter().map(String::as_str).collect::<Vec<_>>());
            assert_eq!(found.as_deref().map_err(|torn| **torn), expect, "{printed}");
        }
        check("", Ok(&[]));
        check("{\"msg\":\"a\"}\n{\"msg\":\"b\"}\n", Ok(&["a", "b"]));
        check("{\"msg\":\"a\"}\n{\"msg\":\"b\"}", Ok(&["a"]));
        check("{\"msg\":\"a\"}\n{\"msg\":\n{}\n", Err(2));
    }

    #[test]
    fn expectations() {
        fn check(came: &[&str], expectations: &[(&str, Expectation)], expect: &Finding) {
            let came: Vec<String> = came.iter().map(ToString::to_string).collect();
            assert_eq!(compare(&came, expectations), *expect, "{came:?} {expectations:?}");
        }
        let fine = Finding::default;
        check(&["a"], &[("a", Expectation::Come)], &fine());
        check(&[], &[("a", Expectation::Come)], &Finding { lost: 1, ..fine() });
        check(&["a", "a"], &[("a", Expectation::Come)], &Finding { torn: 1, ..fine() });
        check(&[], &[("a", Expectation::MayCome)], &fine());
        check(&["a"], &[("a", Expectation::MayCome)], &Finding { stored: 1, ..fine() });
        check(&["a"], &[("a", Expectation::MayComeAgain)], &Finding { again: 1, ..fine() });
        check(&["a"], &[("a", Expectation::Stay)], &Finding { torn: 1, ..fine() });
        check(&["b"], &[("a", Expectation::MayCome)], &Finding { torn: 1, ..fine() });
    }

    #[test]
    fn what_is_allowed_is_clean() {
        assert!(Finding { again: 1, stored: 1, missed: 1, ..Finding::default() }.is_clean());
        let mut sum = Finding { lost: 1, ..Finding::default() };
        sum.add(&Finding { wedged: 2, ..Finding::default() });
        assert_eq!(sum.to_string(), "1 lost, 0 torn, 2 wedged, 0 left behind");
        assert!(!sum.is_clean());
    }
}
