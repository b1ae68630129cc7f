//! Masks secrets in texts that leave this machine, or are shown where others may see them: API keys, tokens, passwords,
//! private keys.
//!
//! A secret is recognised by its form only: by the prefix that an issuer gives it, or by a name before it. Long numbers,
//! hashes and UUIDs are ordinary text.

use std::borrow::Cow;

use crate::sanitise::sanitise_text;

/// Replaces a secret.
const MASK: &str = "[masked]";
/// The longest part of a variable's name that is examined.
const MAX_NAME: usize = 64;
/// The shortest value of a variable that counts as a secret.
const MIN_VALUE: usize = 6;

/// The endings of names of secret variables.
const NAMES: [&[u8]; 11] = [
    b"password",
    b"passwd",
    b"passphrase",
    b"secret",
    b"token",
    b"api_key",
    b"api-key",
    b"apikey",
    b"access_key",
    b"secret_key",
    b"private_key",
];

/// The format of an issued key: the characters after the prefix, and their minimum number.
struct Format {
    prefix: &'static str,
    /// Allowed characters other than letters and digits.
    others: &'static str,
    at_least: usize,
}

const fn format(prefix: &'static str, others: &'static str, at_least: usize) -> Format {
    Format { prefix, others, at_least }
}

/// The formats that issuers document.
const FORMATS: [Format; 27] = [
    format("ghp_", "", 30),
    format("gho_", "", 30),
    format("ghu_", "", 30),
    format("ghs_", "", 30),
    format("ghr_", "", 30),
    format("github_pat_", "_", 22),
    format("glpat-", "-_", 20),
    format("glptt-", "-_", 20),
    format("gldt-", "-_", 20),
    format("xoxb-", "-", 20),
    format("xoxp-", "-", 20),
    format("xoxa-", "-", 20),
    format("xoxr-", "-", 20),
    format("xoxs-", "-", 20),
    format("xoxe-", "-", 20),
    format("xapp-", "-", 20),
    format("AIza", "-_", 35),
    format("npm_", "", 36),
    format("pypi-AgE", "-_", 50),
    format("hf_", "", 30),
    format("sk_live_", "", 16),
    format("sk_test_", "", 16),
    format("rk_live_", "", 16),
    format("whsec_", "+/=", 24),
    format("SG.", "-_.", 60),
    format("dop_v1_", "", 60),
    format("ya29.", "-_", 30),
];

/// Returns the text with its secrets masked. Invisible characters cannot hide a secret: if something is masked, they are
/// removed from the text. Runs in linear time.
///
/// ```
/// use ringer_term::mask_secrets;
///
/// assert_eq!(mask_secrets("export GITHUB_TOKEN=12345678 && make"), "export GITHUB_TOKEN=[masked] && make");
/// assert_eq!(mask_secrets("fixed in 3f786850e387550fdab836ed7e6dc881de23001b"), "fixed in 3f786850e387550fdab836ed7e6dc881de23001b");
/// ```
pub fn mask_secrets(text: &str) -> Cow<'_, str> {
    let seen = sanitise_text(text);
    masked(&seen).map_or(Cow::Borrowed(text), Cow::Owned)
}

/// Returns the masked text; `None` if it has no secret.
fn masked(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let (mut out, mut copied, mut at) = (String::new(), 0, 0);
    while at < bytes.len() {
        match secret_at(text, at) {
            Some((begin, end)) => {
                out.push_str(&text[copied..begin]);
                out.push_str(MASK);
                (copied, at) = (end, end);
            }
            None => at += 1,
        }
    }
    (copied > 0).then(|| out + &text[copied..])
}

/// Returns the range of a secret that is recognised at this position: by its prefix, by a name, or by its context.
fn secret_at(text: &str, at: usize) -> Option<(usize, usize)> {
    let bytes = text.as_bytes();
    // Nothing begins inside a word with hyphens: otherwise each of its parts would be searched to the end of the word.
    let is_boundary = at == 0 || !(is_word(bytes[at - 1]) || bytes[at - 1] == b'-');
    match bytes[at] {
        b'=' => assigned(bytes, at),
        b':' if bytes[at..].starts_with(b"://") => password_in_address(bytes, at + 3),
        b'-' if bytes[at..].starts_with(b"-----BEGIN ") => private_key(text, at),
        b'b' | b'B' if is_boundary => bearer(bytes, at),
        b'a' | b'A' if is_boundary => authorization(bytes, at).or_else(|| issued(bytes, at)),
        b'e' if is_boundary => web_token(bytes, at),
        byte if is_boundary && byte.is_ascii_alphabetic() => issued(bytes, at),
        _ => None,
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Counts the bytes from here on that are letters, digits or one of `others`.
fn run(bytes: &[u8], at: usize, others: &str) -> usize {
    let rest = bytes.get(at..).unwrap_or_default();
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || others.as_bytes().contains(byte);
    rest.iter().position(|byte| !is_part(byte)).unwrap_or(rest.len())
}

/// Finds a key by its prefix. The prefix stays, so that the kind of key remains visible.
fn issued(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let rest = &bytes[at..];
    for Format { prefix, others, at_least } in &FORMATS {
        if rest.starts_with(prefix.as_bytes()) {
            let begin = at + prefix.len();
            let length = run(bytes, begin, others);
            return (length >= *at_least).then_some((begin, begin + length));
        }
    }
    if rest.starts_with(b"sk-") {
        let begin = at + 3;
        let length = run(bytes, begin, "-_");
        return looks_random(&bytes[begin..begin + length]).then_some((begin, begin + length));
    }
    // An AWS key id has exactly 20 characters.
    if rest.starts_with(b"AKIA") || rest.starts_with(b"ASIA") {
        let key = rest.get(4..20)?;
        let is_key = key.iter().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit());
        let ends = rest.get(20).is_none_or(|byte| !is_word(*byte));
        return (is_key && ends).then_some((at + 4, at + 20));
    }
    None
}

/// Words with hyphens, as in the name of a branch, are not a key: a key has a long piece with digits among its letters.
fn looks_random(key: &[u8]) -> bool {
    let is_mixed =
        |piece: &[u8]| piece.iter().any(u8::is_ascii_digit) && piece.iter().any(u8::is_ascii_alphabetic);
    let has_both_cases = key.iter().any(u8::is_ascii_lowercase) && key.iter().any(u8::is_ascii_uppercase);
    let has_long_piece =
        key.split(|byte| matches!(byte, b'-' | b'_')).any(|piece| piece.len() >= 16 && is_mixed(piece));
    has_long_piece || (key.len() >= 40 && has_both_cases && is_mixed(key))
}

/// A JSON Web Token: three parts, of which the first two are objects.
fn web_token(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let part = |at: usize, begin: &[u8]| {
        let length = run(bytes, at, "-_");
        (length >= 10 && bytes[at..].starts_with(begin)).then_some(at + length)
    };
    let first = part(at, b"eyJ").filter(|end| bytes.get(*end) == Some(&b'.'))?;
    let second = part(first + 1, b"eyJ").filter(|end| bytes.get(*end) == Some(&b'.'))?;
    Some((at, second + 1 + run(bytes, second + 1, "-_")))
}

fn starts_with_ignoring_case(bytes: &[u8], word: &[u8]) -> bool {
    bytes.get(..word.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(word))
}

/// `Bearer TOKEN`.
fn bearer(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    if !starts_with_ignoring_case(&bytes[at..], b"bearer ") {
        return None;
    }
    let begin = at + 7;
    let length = run(bytes, begin, "-._~+/=");
    let token = &bytes[begin..begin + length];
    let is_token = length >= 16 && token.iter().any(u8::is_ascii_digit);
    is_token.then_some((begin, begin + length))
}

/// `Authorization: SCHEME CREDENTIALS`, to the end of the line or of the quotes.
fn authorization(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    const NAME: &[u8] = b"authorization:";
    if !starts_with_ignoring_case(&bytes[at..], NAME) {
        return None;
    }
    let skip_spaces = |mut at: usize| {
        while bytes.get(at) == Some(&b' ') {
            at += 1;
        }
        at
    };
    let begin = skip_spaces(at + NAME.len());
    let scheme = ["bearer", "basic", "token", "digest", "apikey"];
    let scheme = scheme.iter().find(|scheme| {
        starts_with_ignoring_case(&bytes[begin..], scheme.as_bytes())
            && bytes.get(begin + scheme.len()) == Some(&b' ')
    })?;
    let begin = skip_spaces(begin + scheme.len());
    let end = value_end(bytes, begin);
    is_value(&bytes[begin..end]).then_some((begin, end))
}

/// `-----BEGIN … PRIVATE KEY-----` to its end marker, or to the end of the text.
fn private_key(text: &str, at: usize) -> Option<(usize, usize)> {
    const BEGIN: usize = "-----BEGIN ".len();
    let rest = &text[at + BEGIN..];
    let name = &rest[..run(rest.as_bytes(), 0, " ")];
    let is_key = name.ends_with("PRIVATE KEY") || name.ends_with("PRIVATE KEY BLOCK");
    if !is_key || !rest[name.len()..].starts_with("-----") {
        return None;
    }
    let begin = at + BEGIN + name.len() + 5;
    let end = text[begin..].find("-----END ").map_or(text.len(), |end| begin + end);
    // A key that is already masked is left alone.
    (text[begin..end].trim() != MASK && begin < end).then_some((begin, end))
}

/// The password of `scheme://user:password@host`.
fn password_in_address(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let rest = &bytes[at..];
    let ends_user = |byte: &u8| {
        matches!(byte, b'/' | b'?' | b'#' | b'"' | b'\'' | b'<' | b'>') || byte.is_ascii_whitespace()
    };
    let rest = &rest[..rest.iter().position(ends_user).unwrap_or(rest.len())];
    let end = rest.iter().rposition(|byte| *byte == b'@')?;
    let begin = rest[..end].iter().position(|byte| *byte == b':')? + 1;
    let password = &rest[begin..end];
    let is_secret = !password.is_empty() && password != MASK.as_bytes() && !password.starts_with(b"$");
    is_secret.then_some((at + begin, at + end))
}

/// The value of a variable or parameter with a secret's name: `GITHUB_TOKEN=…`, `--password=…`, `&api_key=…`.
fn assigned(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let name = &bytes[at.saturating_sub(MAX_NAME)..at];
    let begin =
        name.iter().rposition(|byte| !(is_word(*byte) || *byte == b'-')).map_or(0, |before| before + 1);
    let name = name[begin..].to_ascii_lowercase();
    if !NAMES.iter().any(|secret| name.ends_with(secret)) {
        return None;
    }
    let quote = bytes.get(at + 1).filter(|byte| matches!(byte, b'"' | b'\''));
    let begin = at + 1 + usize::from(quote.is_some());
    let end = match quote {
        Some(quote) => {
            let rest = bytes.get(begin..).unwrap_or_default();
            let is_end = |byte: &u8| byte == quote || *byte == b'\n';
            begin + rest.iter().position(is_end).unwrap_or(rest.len())
        }
        None => value_end(bytes, begin),
    };
    (end - begin >= MIN_VALUE && is_value(&bytes[begin..end])).then_some((begin, end))
}

/// The end of a value without quotes.
fn value_end(bytes: &[u8], begin: usize) -> usize {
    let ends = |byte: &u8| {
        byte.is_ascii_whitespace()
            || matches!(byte, b'"' | b'\'' | b'`' | b'&' | b';' | b'|' | b')' | b'<' | b'>' | b',')
    };
    let rest = bytes.get(begin..).unwrap_or_default();
    begin + rest.iter().position(ends).unwrap_or(rest.len())
}

/// Returns true for a value, and false for the name of one (`$TOKEN`, `{token}`), a comparison, or a masked value.
fn is_value(value: &[u8]) -> bool {
    value.first().is_some_and(|first| !matches!(first, b'$' | b'{' | b'[' | b'(' | b'=' | b'*' | b'%'))
        && !value.starts_with(MASK.as_bytes())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn known_secrets_are_masked() {
        let letters = "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hI6kL9nO2qR5tU8wX1z";
        let check = |text: &str, expected: &str| assert_eq!(mask_secrets(text), expected, "{text}");
        for prefix in [
            "ghp_",
            "gho_",
            "github_pat_",
            "glpat-",
            "xoxb-",
            "xoxp-",
            "AIza",
            "npm_",
            "hf_",
            "sk-",
            "sk-ant-api03-",
            "sk_live_",
        ] {
            let shown = if prefix.starts_with("sk-") { "sk-" } else { prefix };
            check(&format!("key {prefix}{letters}, then"), &format!("key {shown}[masked], then"));
            check(&format!("KEY={prefix}{letters}"), &format!("KEY={shown}[masked]"));
        }
        check("AKIAIOSFODNN7EXAMPLE!", "AKIA[masked]!");
        check(
            "t=eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P",
            "t=[masked]",
        );
        check(
            "curl -H \"Authorization: Bearer abcdef\" -H 'authorization:Basic dXNlcg=='",
            "curl -H \"Authorization: Bearer [masked]\" -H 'authorization:Basic [masked]'",
        );
        check("with bearer 0123456789abcdef.x", "with bearer [masked]");
        check(
            "-----BEGIN OPENSSH PRIVATE KEY-----\nb3Blbn\nNzaC1\n-----END OPENSSH PRIVATE KEY-----\nrest",
            "-----BEGIN OPENSSH PRIVATE KEY-----[masked]-----END OPENSSH PRIVATE KEY-----\nrest",
        );
        check("-----BEGIN PRIVATE KEY-----\nMIIEvQ\ncut", "-----BEGIN PRIVATE KEY-----[masked]");
        check("psql postgres://me:hunter2@db/x", "psql postgres://me:[masked]@db/x");
        check("PGPASSWORD=hunter22 psql", "PGPASSWORD=[masked] psql");
        check("x --password=\"a long one\" y", "x --password=\"[masked]\" y");
        check("http://h/?api_key=0123456&q=1", "http://h/?api_key=[masked]&q=1");
        // Invisible characters do not hide a secret.
        check(&format!("ghp_\u{200b}{letters}"), "ghp_[masked]");
    }

    #[test]
    fn ordinary_text_is_unchanged() {
        for text in [
            "3f786850e387550fdab836ed7e6dc881de23001b",
            "01890000-0000-7000-8000-000000000001",
            "sk-learn sk-some-long-branch-name-of-2026 task-1234567890abcdefgh12",
            "the bearer of bad news, Bearer authentication",
            "if password == other { token = next }",
            "TOKEN=$GITHUB_TOKEN password={password} SECRET=[masked]",
            "npm_config_registry=https://registry.npmjs.org/",
            "AKIATHISISATOOLONGWORDFORAKEY",
            "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
            "ssh://git@example.org:22/x https://example.org/a:b@c",
            "eyJhbGci.notjson.x",
            "Authorization: none needed",
            "max_tokens=4096 tokens=123456",
        ] {
            assert_eq!(mask_secrets(text), text);
        }
    }

    proptest! {
        #[test]
        fn masking_again_changes_nothing(
            text in "((ghp_|sk-|xoxb-|AKIA|eyJ|Bearer |Authorization: |PASSWORD=|token='|://a:|@|-----BEGIN PRIVATE KEY-----|-----END |[A-Za-z0-9]{1,40}|[ .\"'&\n]|\\PC)){0,12}",
        ) {
            let once = mask_secrets(&text).into_owned();
            prop_assert_eq!(mask_secrets(&once), once.as_str());
        }

        #[test]
        fn hashes_numbers_and_words_are_not_secrets(
            text in "([0-9a-f]{40}|[0-9a-f]{64}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[a-z]{1,12}|[0-9]{1,20}|[ ,.:/()\n-]){0,20}",
        ) {
            // Adjacent letters may spell the name of a secret, but nothing is assigned to it.
            prop_assert_eq!(mask_secrets(&text), text.as_str());
        }

        #[test]
        fn a_token_is_masked_anywhere_in_a_text(before in "[ \"'=(:/]?", after in "[ \"')&,;]?", token in "[A-Za-z0-9]{36}") {
            let text = format!("{before}ghp_{token}{after}");
            let masked = mask_secrets(&text).into_owned();
            prop_assert!(!masked.contains(&token), "{masked}");
        }
    }

    /// A text that starts the longest searches again and again.
    #[test]
    fn masking_hostile_texts_takes_bounded_time() {
        for piece in [
            "://",
            "://a:",
            "-----BEGIN ",
            "eyJ",
            "eyJaaaaaaaaaa.",
            "password=",
            "=",
            "Authorization: ",
            "sk-",
            "bearer ",
        ] {
            let text = piece.repeat(200_000 / piece.len());
            let began = std::time::Instant::now();
            let _ = mask_secrets(&text);
            assert!(began.elapsed() < std::time::Duration::from_secs(5), "{piece}");
        }
    }
}
