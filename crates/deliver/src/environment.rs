//! What a program learns through its environment.
//!
//! An environment value can hold no NUL, and Linux refuses to start a program with one above 128 KiB. So values are
//! shortened here; the standard input always has the whole.

/// The longest value put into the environment, in bytes.
pub(crate) const MAX_VALUE: usize = 100 * 1024;

/// Every hook that people already wrote reads the second one.
const PREFIXES: [&str; 2] = ["RINGER_NOTIFICATION_", "CMUX_NOTIFICATION_"];

/// Environment variables for a program, under both prefixes.
#[derive(Debug, Default)]
pub(crate) struct Variables(Vec<(String, String)>);

impl Variables {
    /// A text: without NUL, and cut at [`MAX_VALUE`].
    pub(crate) fn text(mut self, name: &str, value: &str) -> Self {
        let mut value: String = value.chars().filter(|character| *character != '\0').collect();
        value.truncate(value.floor_char_boundary(MAX_VALUE));
        self.push(name, &value);
        self
    }

    /// A document, which half of would be worse than none of: left out above [`MAX_VALUE`].
    pub(crate) fn document(mut self, name: &str, value: &str) -> Self {
        if value.len() <= MAX_VALUE {
            self.push(name, value);
        }
        self
    }

    fn push(&mut self, name: &str, value: &str) {
        self.0.extend(PREFIXES.iter().map(|prefix| (format!("{prefix}{name}"), value.to_owned())));
    }

    /// The pairs.
    pub(crate) fn into_pairs(self) -> Vec<(String, String)> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_prefixes_without_nul_and_bounded() {
        let pairs = Variables::default()
            .text("TITLE", "a\0b")
            .text("BODY", &"é".repeat(MAX_VALUE))
            .document("POLICY_JSON", &"x".repeat(MAX_VALUE + 1))
            .into_pairs();
        let names: Vec<&str> = pairs.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(
            names,
            [
                "RINGER_NOTIFICATION_TITLE",
                "CMUX_NOTIFICATION_TITLE",
                "RINGER_NOTIFICATION_BODY",
                "CMUX_NOTIFICATION_BODY"
            ]
        );
        assert_eq!(pairs[0].1, "ab");
        assert_eq!(pairs[2].1.len(), MAX_VALUE);
    }
}
