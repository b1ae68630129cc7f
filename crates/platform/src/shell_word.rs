//! Words of a shell's command line.

/// A text as one word, as a shell reads it back.
///
/// ```
/// assert_eq!(ringer_platform::shell_word("/usr/bin/ringer"), "/usr/bin/ringer");
/// assert_eq!(ringer_platform::shell_word("it's"), r"'it'\''s'");
/// ```
pub fn shell_word(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+:@,".contains(&byte);
    if !text.is_empty() && text.bytes().all(is_plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}
