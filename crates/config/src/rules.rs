//! The parts of the settings that other crates define: services of webhooks, keys and colours.

/// What other crates define.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    /// The services of webhooks.
    pub webhooks: WebhookRule,
    /// Tables of strings. Tables without a rule are not checked.
    pub tables: Vec<TableRule>,
}

/// The services that `[[webhook]]` can name. The default has none.
#[derive(Debug, Clone)]
pub struct WebhookRule {
    /// The words for `kind`, in the order of the documentation.
    pub names: Vec<&'static str>,
    /// Checks an address, with or without a secret file. An error says what is missing, and does not repeat the address.
    pub check: fn(kind: &str, url: &str, has_secret: bool) -> Result<(), &'static str>,
}

impl Default for WebhookRule {
    fn default() -> Self {
        Self { names: Vec::new(), check: |_, _, _| Ok(()) }
    }
}

/// Checks a table of strings. The inbox defines the keys and values of `[keys]` and `[theme]`.
#[derive(Debug, Clone)]
pub struct TableRule {
    /// The name of the table.
    pub table: &'static str,
    /// The allowed keys.
    pub keys: Vec<&'static str>,
    /// Checks a value. An error continues the sentence that starts with the key: `is "x"; expected a or b`.
    pub check: fn(key: &str, value: &str) -> Result<(), String>,
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{Rules, TableRule};
    use crate::parse;

    #[test]
    fn a_table_is_checked_by_the_rule_for_it() {
        fn check(text: &str, expect: &[&str]) {
            let is_short = |_: &str, value: &str| match value {
                "a" | "b" => Ok(()),
                other => Err(format!("is {other:?}; expected a or b")),
            };
            let rule = TableRule { table: "keys", keys: vec!["quit", "answer"], check: is_short };
            let rules = Rules { tables: vec![rule], ..Rules::default() };
            let errors = parse(Path::new("f"), None, text, &rules).err();
            let errors = errors.map_or_else(Vec::new, |errors| errors.0);
            let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
            assert_eq!(errors, expect, "{text}");
        }
        check("", &[]);
        check("[keys]\nquit = \"a\"\n[theme]\nname = \"?\"", &[]);
        check("[keys]\nquit = \"abc\"\n", &["f:2:8: keys.quit is \"abc\"; expected a or b"]);
        check("[keys]\nqiut = \"abc\"\n", &["f:2:1: unknown key keys.qiut"]);
        check("[keys]\nquit = 3\n", &["f:2:8: keys.quit is a number; expected a string"]);
        check("keys = 3", &["f:1:8: keys is a number; expected a table of strings"]);
    }
}
