//! The current problems of Ringer itself, such as broken settings, or hooks that fail or are not trusted. `hub.status` lists
//! them.

use std::collections::BTreeMap;

use ringer_core::toast::{Priority, Toast};

/// The most problems. Nobody would read more.
const MAX_PROBLEMS: usize = 100;

/// A problem, and a command that helps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Problem {
    pub(super) text: String,
    /// A command that shows or repairs the problem.
    pub(super) hint: &'static str,
}

/// The current problems by key.
#[derive(Debug, Default)]
pub(super) struct Problems {
    by_key: BTreeMap<String, Problem>,
}

impl Problems {
    /// Sets a problem. Returns true if it is new or changed.
    pub(super) fn set(&mut self, key: &str, problem: Problem) -> bool {
        let known = self.by_key.get(key);
        if known == Some(&problem) || (known.is_none() && self.by_key.len() >= MAX_PROBLEMS) {
            return false;
        }
        self.by_key.insert(key.to_owned(), problem);
        true
    }

    /// Removes a problem, and returns it if it existed.
    pub(super) fn clear(&mut self, key: &str) -> Option<Problem> {
        self.by_key.remove(key)
    }

    /// Returns the keys of problems with this prefix.
    pub(super) fn keys(&self, beginning: &str) -> Vec<String> {
        self.by_key.keys().filter(|key| key.starts_with(beginning)).cloned().collect()
    }

    /// Returns a toast with the first problem, its command and the number of other problems.
    pub(super) fn toast(&self) -> Option<Toast> {
        let Problem { text, hint } = self.by_key.values().next()?;
        let line = match self.by_key.len() - 1 {
            0 => format!("{text} ({hint})"),
            1 => format!("{text}, and 1 more problem (ringer status)"),
            more => format!("{text}, and {more} more problems (ringer status)"),
        };
        Some(Toast::new("problems", Priority::Low, line))
    }

    /// Returns all problems, ordered by key.
    pub(super) fn list(&self) -> impl Iterator<Item = (&String, &Problem)> {
        self.by_key.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(text: &str) -> Problem {
        Problem { text: text.to_owned(), hint: "ringer doctor" }
    }

    #[test]
    fn a_problem_is_news_once_and_there_until_it_is_gone() {
        let mut problems = Problems::default();
        assert!(problems.set("settings", problem("line 1")) && !problems.set("settings", problem("line 1")));
        assert!(problems.set("settings", problem("line 2")), "another text");
        assert_eq!(problems.list().count(), 1);
        assert_eq!(problems.clear("settings"), Some(problem("line 2")));
        assert_eq!(problems.clear("settings"), None);
        assert!(problems.set("settings", problem("line 2")), "it is back");
    }

    #[test]
    fn one_line_says_what_is_wrong_and_how_much_more() {
        let mut problems = Problems::default();
        let line = |problems: &Problems| problems.toast().map(|toast| toast.text());
        assert_eq!(line(&problems), None);
        problems.set("b", problem("two"));
        assert_eq!(line(&problems).as_deref(), Some("two (ringer doctor)"));
        problems.set("a", problem("one"));
        assert_eq!(line(&problems).as_deref(), Some("one, and 1 more problem (ringer status)"));
        problems.set("c", problem("three"));
        assert_eq!(line(&problems).as_deref(), Some("one, and 2 more problems (ringer status)"));
    }

    #[test]
    fn problems_are_bounded() {
        let mut problems = Problems::default();
        for number in 0..1000 {
            problems.set(&format!("hook-failed-{number}"), problem("x"));
        }
        assert_eq!(problems.keys("hook-failed-").len(), MAX_PROBLEMS);
        assert!(problems.keys("settings").is_empty());
    }
}
