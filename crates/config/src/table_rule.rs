//! What may stand in a table whose meaning another crate knows.

use toml::de::DeValue;

use crate::page::Section;

/// Checks a table of texts. `[keys]` and `[theme]` belong to the inbox, and only it knows their words.
#[derive(Debug, Clone)]
pub struct TableRule {
    /// The name of the table.
    pub table: &'static str,
    /// The keys that it may have.
    pub keys: Vec<&'static str>,
    /// Says what is wrong with the value of a key, in words that go on from the key's name: `is "x"; expected a or b`.
    pub check: fn(key: &str, value: &str) -> Result<(), String>,
}

impl TableRule {
    /// Notes what is wrong with the table in this file. Values that are no texts have been noted before.
    pub(crate) fn apply(&self, root: &Section<'_, '_>) {
        let table = root.get(self.table).filter(|item| matches!(item.value(), DeValue::Table(_)));
        let Some(section) = table.and_then(|item| item.section("a table")) else { return };
        let section = section.with_keys(&self.keys, |_| None);
        for (key, item) in section.items().filter(|(key, _)| self.keys.contains(key)) {
            if let DeValue::String(value) = item.value()
                && let Err(what) = (self.check)(key, value)
            {
                item.wrong::<()>(what, None);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::TableRule;
    use crate::parse_with_rules;

    #[test]
    fn a_table_is_checked_by_the_rule_for_it() {
        fn check(text: &str, expect: &[&str]) {
            let is_short = |_: &str, value: &str| match value {
                "a" | "b" => Ok(()),
                other => Err(format!("is {other:?}; expected a or b")),
            };
            let rule = TableRule { table: "keys", keys: vec!["quit", "answer"], check: is_short };
            let errors = parse_with_rules(Path::new("f"), None, text, &[rule]).err();
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
