//! The directory that a program reports.

use std::path::PathBuf;

/// The directory of OSC 7, which is a URL or a path. One on another machine is none here.
pub(crate) fn reported_directory(reported: &str) -> Option<PathBuf> {
    path_of(reported, &host_name())
}

fn path_of(directory: &str, host: &str) -> Option<PathBuf> {
    let path = match directory.strip_prefix("file://") {
        Some(rest) => {
            let (named, path) = rest.split_at(rest.find('/')?);
            let is_own = named.is_empty() || named.eq_ignore_ascii_case("localhost") || named == host;
            is_own.then(|| decoded(path))??
        }
        None => directory.to_owned(),
    };
    let path = PathBuf::from(path);
    path.is_absolute().then_some(path)
}

/// The name of this machine, as shells put it into that URL.
fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// A text with `%20` as a space. Nothing if that is no text.
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
    use super::*;

    #[test]
    fn a_directory_may_come_as_a_url() {
        let check =
            |said: &str, path: Option<&str>| assert_eq!(path_of(said, "box"), path.map(PathBuf::from));
        check("file://box/src/api", Some("/src/api"));
        check("file:///src", Some("/src"));
        check("file://localhost/a%20b/%c3%A4%", Some("/a b/ä%"));
        check("file://box/%zz%+1", Some("/%zz%+1"));
        check("file://elsewhere/src", None);
        check("file://box/%ff", None);
        check("file://box/a%00b", None);
        check("file://box", None);
        check("/src%20", Some("/src%20"));
        check("src", None);
    }
}
