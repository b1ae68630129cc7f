//! Checks the links of programs (OSC 8). A terminal opens any target: a link whose scheme runs something, or to a file that
//! somebody else has put there, is shown as plain text.

use crate::hidden::is_hidden;

/// The target of a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkTarget {
    /// A web page or an e-mail address.
    Address,
    /// A file of this machine, by its path. The caller must check its owner.
    File(String),
}

/// Parses the address of a link: `http`, `https`, `mailto`, or `file` on this machine. `None` for every other scheme, for
/// files of other machines, and for an address with invisible characters.
///
/// ```
/// use ringer_term::{LinkTarget, link_target};
///
/// assert_eq!(link_target("https://example.org/", "box"), Some(LinkTarget::Address));
/// assert_eq!(link_target("file://box/src/a%20b#L3", "box"), Some(LinkTarget::File("/src/a b".to_owned())));
/// assert_eq!(link_target("javascript:alert(1)", "box"), None);
/// ```
pub fn link_target(uri: &str, own_host: &str) -> Option<LinkTarget> {
    if uri.chars().any(is_hidden) {
        return None;
    }
    let (scheme, rest) = uri.split_once(':')?;
    let is = |name: &str| scheme.eq_ignore_ascii_case(name);
    if is("http") || is("https") {
        let host = rest.strip_prefix("//")?;
        return (!host.is_empty() && !host.starts_with(['/', '?', '#'])).then_some(LinkTarget::Address);
    }
    if is("mailto") {
        return (!rest.is_empty()).then_some(LinkTarget::Address);
    }
    let path = rest.find(['?', '#']).map_or(rest, |end| &rest[..end]);
    if is("file") { file_path(path, own_host).map(LinkTarget::File) } else { None }
}

/// Returns the decoded path of a `file:` URL, given without its scheme, if the file is on this machine.
pub fn file_path(rest: &str, own_host: &str) -> Option<String> {
    let path = match rest.strip_prefix("//") {
        Some(rest) => {
            let (host, path) = rest.split_at(rest.find('/')?);
            let is_own = host.is_empty()
                || host.eq_ignore_ascii_case("localhost")
                || (!own_host.is_empty() && host.eq_ignore_ascii_case(own_host));
            is_own.then_some(path)?
        }
        None => rest,
    };
    decoded(path).filter(|path| path.starts_with('/'))
}

/// Decodes `%20` and the like. `None` if the result is not UTF-8.
fn decoded(path: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        let code = after.get(..2).filter(|_| *byte == b'%').and_then(|digits| str::from_utf8(digits).ok());
        let code = code.filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        if let Some(code) = code.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            bytes.push(code);
            rest = &after[2..];
        } else {
            bytes.push(*byte);
            rest = after;
        }
    }
    String::from_utf8(bytes).ok().filter(|path| !path.contains('\0'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn file(path: &str) -> LinkTarget {
        LinkTarget::File(path.to_owned())
    }

    #[test]
    fn only_web_mail_and_local_file_addresses_are_links() {
        let check =
            |uri: &str, expected: Option<LinkTarget>| assert_eq!(link_target(uri, "box"), expected, "{uri}");
        for uri in ["https://example.org/a?b#c", "HTTP://example.org", "mailto:a@example.org"] {
            check(uri, Some(LinkTarget::Address));
        }
        for uri in [
            "javascript:alert(1)",
            "data:text/html,x",
            "vscode://file/etc/passwd",
            "ssh://box",
            "x-man-page:ls",
            "smb://box/share",
            "view-source:http://x",
            "http:example.org",
            "http://",
            "https:///x",
            "mailto:",
            "example.org",
            "",
            ":",
            " http://x/",
            "java\tscript:alert(1)",
            "http://x/\u{202e}moc.elgoog",
            "file://elsewhere/etc/passwd",
            "file://BOX.example.org/x",
            "file:relative",
            "file://box",
            "file:",
            "file:///a%00b",
            "file:///%ff",
            "\u{200b}https://x/",
        ] {
            check(uri, None);
        }
        check("file:///src/a", Some(file("/src/a")));
        check("file:/src/a", Some(file("/src/a")));
        check("FILE://LocalHost/a%20b/%c3%A4%", Some(file("/a b/ä%")));
        check("file://box/src?x#L10", Some(file("/src")));
        assert_eq!(link_target("file:////share/x", ""), Some(file("//share/x")));
        assert_eq!(link_target("file://x/y", ""), None);
    }

    proptest! {
        #[test]
        fn other_schemes_are_not_links(scheme in "[a-zA-Z][a-zA-Z0-9+.-]{0,12}", rest in ".{0,30}") {
            let known = ["http", "https", "mailto", "file"].iter().any(|own| scheme.eq_ignore_ascii_case(own));
            let target = link_target(&format!("{scheme}:{rest}"), "box");
            prop_assert!(known || target.is_none());
        }
    }
}
