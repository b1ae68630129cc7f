//! Toasts: short-lived lines in the footer, one at a time, the most urgent first. Never stored.

use std::collections::VecDeque;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The default of [`Toast::timeout`].
pub(crate) const DEFAULT_TOAST_TIMEOUT: Duration = Duration::from_secs(8);
/// The most queued toasts. At the limit the newest of the least urgent is dropped.
const MAX_QUEUED_TOASTS: usize = 64;

/// The urgency of a toast. Toasts are shown in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Priority {
    /// Shown at once, in place of the current toast.
    Immediate,
    /// Before the others.
    High,
    /// In between.
    Medium,
    /// When nothing else waits.
    Low,
}

/// The colour of a toast, by meaning; the theme defines the actual colour.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Colour {
    /// The colour of other text.
    #[default]
    Plain,
    /// Something to know.
    Warning,
    /// Something failed.
    Error,
    /// Something worked.
    Success,
}

/// A piece of a toast's text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToastSpan {
    /// The text.
    pub text: String,
    /// The colour.
    pub colour: Colour,
}

/// Merges a toast into the earlier one of the same key.
pub type Fold = fn(accumulator: &Toast, incoming: &Toast) -> Toast;

/// A toast.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Toast {
    /// Identifies its topic. At most one toast with the same key is shown or queued.
    pub key: String,
    /// How urgent it is.
    pub priority: Priority,
    /// Its text.
    pub spans: Vec<ToastSpan>,
    /// How long it stays.
    pub timeout: Duration,
    /// Keys of toasts that this one removes.
    pub invalidates: Vec<String>,
    /// Merges it with a toast of the same key; without it, the newer one is dropped. A function is not data: it is neither
    /// saved nor compared.
    #[serde(skip)]
    pub fold: Option<Fold>,
}

impl PartialEq for Toast {
    fn eq(&self, other: &Self) -> bool {
        let Self { key, priority, spans, timeout, invalidates, fold: _ } = self;
        (key, priority, spans, timeout, invalidates)
            == (&other.key, &other.priority, &other.spans, &other.timeout, &other.invalidates)
    }
}

impl Eq for Toast {}

impl Toast {
    /// A plain toast with the usual timeout.
    pub fn new(key: impl Into<String>, priority: Priority, text: impl Into<String>) -> Self {
        Self {
            key: key.into(),
            priority,
            spans: vec![ToastSpan { text: text.into(), colour: Colour::Plain }],
            timeout: DEFAULT_TOAST_TIMEOUT,
            invalidates: Vec::new(),
            fold: None,
        }
    }

    /// The text without colours.
    pub fn text(&self) -> String {
        self.spans.iter().map(|span| span.text.as_str()).collect()
    }
}

#[derive(Debug, Clone)]
struct ShownToast {
    toast: Toast,
    until: Duration,
}

/// The queue: one toast is shown, the others wait. It has no timer: call [`ToastQueue::tick`] at
/// [`ToastQueue::next_deadline`].
///
/// ```
/// use std::time::Duration;
/// use ringer_core::toast::{Priority, Toast, ToastQueue};
///
/// let mut toasts = ToastQueue::default();
/// toasts.add(Duration::ZERO, Toast::new("update", Priority::Low, "updated"));
/// toasts.add(Duration::ZERO, Toast::new("limit", Priority::Immediate, "limit reached"));
/// assert_eq!(toasts.current().map(|toast| toast.key.as_str()), Some("limit"));
///
/// let deadline = toasts.next_deadline().unwrap();
/// toasts.tick(deadline);
/// assert_eq!(toasts.current().map(|toast| toast.key.as_str()), Some("update"));
/// ```
#[derive(Debug, Clone, Default)]
pub struct ToastQueue {
    current: Option<ShownToast>,
    queue: VecDeque<Toast>,
}

impl ToastQueue {
    /// The shown toast.
    pub fn current(&self) -> Option<&Toast> {
        self.current.as_ref().map(|showing| &showing.toast)
    }

    /// The queued toasts, in the order of arrival.
    pub fn waiting(&self) -> impl Iterator<Item = &Toast> {
        self.queue.iter()
    }

    /// When the shown toast times out.
    pub fn next_deadline(&self) -> Option<Duration> {
        self.current.as_ref().map(|showing| showing.until)
    }

    /// Adds a toast.
    pub fn add(&mut self, now: Duration, toast: Toast) {
        if toast.priority == Priority::Immediate {
            self.show_at_once(now, toast);
        } else if !self.merge(now, &toast) && !self.has(&toast.key) {
            self.append(toast);
        }
        self.show_next(now);
    }

    /// Removes a shown or queued toast.
    pub fn remove(&mut self, now: Duration, key: &str) {
        self.current = self.current.take().filter(|showing| showing.toast.key != key);
        self.queue.retain(|toast| toast.key != key);
        self.show_next(now);
    }

    /// Removes the shown toast if its time is over, and shows the next one.
    pub fn tick(&mut self, now: Duration) {
        self.current = self.current.take().filter(|showing| showing.until > now);
        self.show_next(now);
    }

    /// Shows an immediate toast. The toast it interrupts is queued again with its full time, unless that one is immediate,
    /// too: two immediate toasts would interrupt each other for ever.
    fn show_at_once(&mut self, now: Duration, toast: Toast) {
        if let Some(bumped) = self.current.take() {
            self.queue.push_front(bumped.toast);
        }
        self.queue.retain(|waiting| {
            waiting.priority != Priority::Immediate
                && waiting.key != toast.key
                && !toast.invalidates.contains(&waiting.key)
        });
        self.limit_queue();
        self.show(now, toast);
    }

    /// Merges a toast into the earlier one with its key, if there is one and the new toast has a merge function. The result
    /// keeps the key.
    fn merge(&mut self, now: Duration, incoming: &Toast) -> bool {
        let Some(fold) = incoming.fold else { return false };
        let join = |accumulator: &Toast| Toast { key: incoming.key.clone(), ..fold(accumulator, incoming) };
        if let Some(showing) = self.current.as_mut().filter(|showing| showing.toast.key == incoming.key) {
            showing.toast = join(&showing.toast);
            showing.until = now + showing.toast.timeout;
            return true;
        }
        match self.queue.iter_mut().find(|waiting| waiting.key == incoming.key) {
            Some(waiting) => {
                *waiting = join(waiting);
                // A merged toast is not shown at once, and no immediate toast may wait.
                waiting.priority = waiting.priority.max(Priority::High);
                true
            }
            None => false,
        }
    }

    fn has(&self, key: &str) -> bool {
        self.current().is_some_and(|toast| toast.key == key)
            || self.queue.iter().any(|toast| toast.key == key)
    }

    fn append(&mut self, toast: Toast) {
        self.current = self.current.take().filter(|showing| !toast.invalidates.contains(&showing.toast.key));
        self.queue.retain(|waiting| !toast.invalidates.contains(&waiting.key));
        self.queue.push_back(toast);
        self.limit_queue();
    }

    fn limit_queue(&mut self) {
        while self.queue.len() > MAX_QUEUED_TOASTS {
            // The last of the least urgent ones.
            let least = (0..self.queue.len()).max_by_key(|index| (self.queue[*index].priority, *index));
            self.queue.remove(least.unwrap_or_default());
        }
    }

    /// Shows the next toast if none is shown: the highest priority, the earliest among equals.
    fn show_next(&mut self, now: Duration) {
        if self.current.is_some() {
            return;
        }
        let best = (0..self.queue.len()).min_by_key(|index| (self.queue[*index].priority, *index));
        if let Some(toast) = best.and_then(|index| self.queue.remove(index)) {
            self.show(now, toast);
        }
    }

    fn show(&mut self, now: Duration, toast: Toast) {
        self.current = Some(ShownToast { until: now + toast.timeout, toast });
    }
}

const FOLDS: [(&str, Fold); 2] = [("replace", replace), ("append", append)];

/// Separates two appended texts.
const BETWEEN: &str = " · ";
/// The most pieces of an appended toast. A footer shows fewer.
const MAX_SPANS: usize = 32;

/// Returns the fold with this name.
///
/// ```
/// use ringer_core::toast::{Priority, Toast, fold_named};
///
/// let append = fold_named("append").unwrap();
/// let toast = |text: &str| Toast::new("build", Priority::Low, text);
/// assert_eq!(append(&toast("api is green"), &toast("web is red")).text(), "api is green · web is red");
/// assert!(fold_named("sum").is_none());
/// ```
pub fn fold_named(name: &str) -> Option<Fold> {
    FOLDS.iter().find(|(known, _)| *known == name).map(|(_, fold)| *fold)
}

/// The names of the folds.
pub fn fold_names() -> impl Iterator<Item = &'static str> {
    FOLDS.iter().map(|(name, _)| *name)
}

fn replace(_: &Toast, incoming: &Toast) -> Toast {
    incoming.clone()
}

fn append(accumulator: &Toast, incoming: &Toast) -> Toast {
    let mut spans = accumulator.spans.clone();
    spans.push(ToastSpan { text: BETWEEN.to_owned(), colour: Colour::Plain });
    spans.extend(incoming.spans.iter().cloned());
    spans.truncate(MAX_SPANS);
    Toast { spans, ..incoming.clone() }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const fn at(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn toast(key: &str, priority: Priority) -> Toast {
        Toast::new(key, priority, key)
    }

    fn joined(accumulator: &Toast, incoming: &Toast) -> Toast {
        Toast::new("ignored", accumulator.priority, format!("{}+{}", accumulator.text(), incoming.text()))
    }

    fn folding(key: &str, priority: Priority) -> Toast {
        Toast { fold: Some(joined), ..toast(key, priority) }
    }

    fn queue(toasts: &[Toast]) -> ToastQueue {
        let mut queue = ToastQueue::default();
        for toast in toasts {
            queue.add(at(0), toast.clone());
        }
        queue
    }

    #[track_caller]
    fn check(queue: &ToastQueue, current: Option<&str>, waiting: &[&str]) {
        assert_eq!(queue.current().map(|toast| toast.key.as_str()), current);
        assert_eq!(queue.waiting().map(|toast| toast.key.as_str()).collect::<Vec<_>>(), waiting);
    }

    #[test]
    fn the_first_is_shown_and_the_others_wait() {
        use Priority::{High, Low};
        check(&queue(&[toast("a", Low), toast("b", High), toast("c", Low)]), Some("a"), &["b", "c"]);
    }

    #[test]
    fn the_pump_takes_the_best_priority_and_the_earliest_among_equals() {
        use Priority::{High, Low, Medium};
        let mut queue = queue(&[toast("a", Low), toast("b", Medium), toast("c", High), toast("d", High)]);
        for expected in ["c", "d", "b"] {
            queue.tick(queue.next_deadline().unwrap());
            assert_eq!(queue.current().unwrap().key, expected);
        }
        queue.tick(queue.next_deadline().unwrap());
        check(&queue, None, &[]);
        assert_eq!(queue.next_deadline(), None);
    }

    #[test]
    fn an_immediate_one_bumps_the_shown_one_to_the_front_with_its_full_time() {
        use Priority::{High, Immediate, Low};
        let mut queue = queue(&[toast("a", Low), toast("b", Low)]);
        queue.add(at(7999), toast("now", Immediate));
        check(&queue, Some("now"), &["a", "b"]);
        assert_eq!(queue.next_deadline(), Some(at(15_999)), "its own timeout, from now");
        queue.tick(at(15_999));
        check(&queue, Some("a"), &["b"]);
        assert_eq!(queue.next_deadline(), Some(at(23_999)), "the bumped one has its full time");
        queue.add(at(16_000), toast("c", High));
        check(&queue, Some("a"), &["b", "c"]);
    }

    #[test]
    fn an_immediate_one_drops_what_is_immediate_of_its_key_or_invalidated() {
        use Priority::{Immediate, Low};
        let mut queue =
            queue(&[toast("a", Low), toast("b", Low), toast("c", Low), toast("first", Immediate)]);
        check(&queue, Some("first"), &["a", "b", "c"]);
        queue.add(at(0), Toast { invalidates: vec!["a".into()], ..toast("b", Immediate) });
        check(&queue, Some("b"), &["c"]);
        // The bumped one included.
        let mut queue = self::queue(&[toast("a", Low)]);
        queue.add(at(0), Toast { invalidates: vec!["a".into()], ..toast("x", Immediate) });
        check(&queue, Some("x"), &[]);
    }

    #[test]
    fn a_fold_joins_in_place_and_restarts_the_timeout() {
        use Priority::Low;
        let mut queue = queue(&[toast("a", Low), toast("b", Low)]);
        queue.add(at(5000), folding("a", Low));
        check(&queue, Some("a"), &["b"]);
        assert_eq!(queue.current().unwrap().text(), "a+a");
        assert_eq!(queue.next_deadline(), Some(at(13_000)));
        queue.add(at(5000), folding("b", Low));
        assert_eq!(queue.waiting().next().unwrap().text(), "b+b");
        queue.add(at(5000), folding("new", Low));
        check(&queue, Some("a"), &["b", "new"]);
    }

    #[test]
    fn the_same_key_without_a_fold_changes_nothing() {
        use Priority::{High, Low};
        let mut queue = queue(&[toast("a", Low), toast("b", Low)]);
        queue.add(at(5000), Toast { invalidates: vec!["b".into()], ..toast("a", High) });
        queue.add(at(5000), toast("b", High));
        check(&queue, Some("a"), &["b"]);
        assert_eq!(queue.next_deadline(), Some(at(8000)));
        // The incoming toast's fold is used.
        let mut queue = self::queue(&[folding("a", Low)]);
        queue.add(at(1), toast("a", Low));
        assert_eq!(queue.current().unwrap().text(), "a");
    }

    #[test]
    fn invalidating_what_is_shown_empties_the_slot() {
        use Priority::{High, Low};
        let mut queue = queue(&[toast("a", Low), toast("b", Low), toast("c", High)]);
        queue.add(at(100), Toast { invalidates: vec!["a".into(), "b".into()], ..toast("d", Low) });
        check(&queue, Some("c"), &["d"]);
        assert_eq!(queue.next_deadline(), Some(at(8100)));
    }

    #[test]
    fn removing_from_either_place_pumps() {
        use Priority::Low;
        let mut queue = queue(&[toast("a", Low), toast("b", Low), toast("c", Low)]);
        queue.remove(at(10), "b");
        check(&queue, Some("a"), &["c"]);
        queue.remove(at(10), "a");
        check(&queue, Some("c"), &[]);
        queue.remove(at(10), "nobody");
        check(&queue, Some("c"), &[]);
    }

    #[test]
    fn a_stale_timeout_changes_nothing() {
        use Priority::{Immediate, Low};
        let mut queue = queue(&[toast("a", Low)]);
        let stale = queue.next_deadline().unwrap();
        queue.add(at(7000), toast("now", Immediate));
        queue.tick(stale);
        check(&queue, Some("now"), &["a"]);
    }

    #[test]
    fn the_queue_is_bounded_and_drops_the_least_urgent() {
        let mut queue = queue(&[toast("shown", Priority::Low), toast("urgent", Priority::High)]);
        for number in 0..1000 {
            queue.add(at(0), toast(&format!("{number}"), Priority::Low));
        }
        assert_eq!(queue.waiting().count(), MAX_QUEUED_TOASTS);
        assert!(queue.has("urgent") && queue.has("0") && !queue.has("999"));
    }

    proptest! {
        #[test]
        fn at_most_one_is_shown_none_waits_immediate_and_no_key_twice(
            steps in prop::collection::vec((0u8..4, 0u8..6, 0u8..6, 0u64..5000, any::<bool>()), 0..80)
        ) {
            let priorities = [Priority::Immediate, Priority::High, Priority::Medium, Priority::Low];
            let (mut queue, mut now) = (ToastQueue::default(), 0);
            for (priority, key, other, step, folds) in steps {
                now += step;
                let key = key.to_string();
                match step % 4 {
                    0 => queue.remove(at(now), &key),
                    1 => queue.tick(at(now)),
                    _ => queue.add(at(now), Toast {
                        invalidates: vec![other.to_string()],
                        fold: folds.then_some(joined as Fold),
                        ..toast(&key, priorities[usize::from(priority)])
                    }),
                }
                prop_assert!(queue.waiting().all(|toast| toast.priority != Priority::Immediate));
                let mut keys: Vec<&str> = queue.waiting().chain(queue.current()).map(|t| t.key.as_str()).collect();
                let all = keys.len();
                keys.sort_unstable();
                keys.dedup();
                prop_assert_eq!(keys.len(), all);
                prop_assert!(queue.current().is_some() || queue.waiting().next().is_none(), "nothing waits for nothing");
            }
        }
    }
}
