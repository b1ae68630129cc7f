//! Whether the signs of Unicode can be printed.

use ringer_platform::variable;

/// Whether this process's locale has UTF-8. One that is not named counts as UTF-8, as almost every terminal has it.
pub(crate) fn has_unicode() -> bool {
    let named = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(variable);
    named.is_none_or(|locale| is_utf8(&locale.to_string_lossy()))
}

fn is_utf8(locale: &str) -> bool {
    let encoding =
        locale.split('@').next().unwrap_or_default().rsplit_once('.').map(|(_, encoding)| encoding);
    encoding.is_some_and(|encoding| encoding.to_ascii_lowercase().replace('-', "") == "utf8")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_encoding_of_a_locale() {
        for locale in ["en_GB.UTF-8", "C.utf8", "de_DE.UTF-8@euro"] {
            assert!(is_utf8(locale), "{locale}");
        }
        for locale in ["C", "POSIX", "de_DE.ISO-8859-1", "de_DE@euro"] {
            assert!(!is_utf8(locale), "{locale}");
        }
    }
}
