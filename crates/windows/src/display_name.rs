//! Parses `DISPLAY`, and reads the cookie of a display from the Xauthority file.

use std::fmt;
use std::path::{Path, PathBuf};

use ringer_platform::owned;

/// The directory of the sockets of X servers.
const SOCKETS: &str = "/tmp/.X11-unix";
/// The authorization protocol that local servers use.
const COOKIE: &[u8] = b"MIT-MAGIC-COOKIE-1";
/// The family of an entry for a local host, and of one for any host.
const LOCAL: u16 = 256;
const ANY: u16 = 65535;
/// How much of an Xauthority file is read; an entry has about a hundred bytes.
const MAX_FILE: u64 = 1024 * 1024;

/// A display of this machine.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct DisplayName {
    number: u32,
    screen: usize,
    /// The Xauthority file.
    authority: Option<PathBuf>,
}

/// An authorization: protocol name and data.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Cookie {
    pub(crate) kind: Vec<u8>,
    pub(crate) data: Vec<u8>,
}

impl DisplayName {
    /// Parses `DISPLAY`: `:0`, `:0.1`, `unix:0`. `None` for a display of another machine.
    pub(crate) fn parse(display: &str, authority: Option<PathBuf>) -> Option<Self> {
        let (host, rest) = display.rsplit_once(':')?;
        if !["", "unix"].contains(&host) {
            return None;
        }
        let (number, screen) = rest.split_once('.').unwrap_or((rest, "0"));
        Some(Self { number: number.parse().ok()?, screen: screen.parse().ok()?, authority })
    }

    pub(crate) fn socket(&self) -> PathBuf {
        Path::new(SOCKETS).join(format!("X{}", self.number))
    }

    pub(crate) fn screen(&self) -> usize {
        self.screen
    }

    /// The cookie of the display. Empty if there is none; some servers need none.
    pub(crate) fn cookie(&self) -> Cookie {
        // Without a readable file, the server decides.
        let file = self.authority.as_deref().and_then(|path| owned::read(path, MAX_FILE).ok());
        let file = file.unwrap_or_default();
        let host = rustix::system::uname();
        let number = self.number.to_string();
        cookie_in(&file, host.nodename().to_bytes(), number.as_bytes()).unwrap_or_default()
    }
}

impl fmt::Display for DisplayName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, ":{}", self.number)?;
        if self.screen > 0 { write!(formatter, ".{}", self.screen) } else { Ok(()) }
    }
}

/// Finds the cookie of a local display in an Xauthority file. An entry is a family and four texts, each with its length.
fn cookie_in(mut file: &[u8], host: &[u8], number: &[u8]) -> Option<Cookie> {
    while !file.is_empty() {
        let family = take_number(&mut file)?;
        let address = take_text(&mut file)?;
        let display = take_text(&mut file)?;
        let kind = take_text(&mut file)?;
        let data = take_text(&mut file)?;
        let is_here = family == ANY || (family == LOCAL && address == host);
        if is_here && (display.is_empty() || display == number) && kind == COOKIE {
            return Some(Cookie { kind: kind.to_vec(), data: data.to_vec() });
        }
    }
    None
}

fn take_number(file: &mut &[u8]) -> Option<u16> {
    let (number, rest) = file.split_first_chunk::<2>()?;
    *file = rest;
    Some(u16::from_be_bytes(*number))
}

fn take_text<'a>(file: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::from(take_number(file)?);
    let (text, rest) = file.split_at_checked(length)?;
    *file = rest;
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn entry(family: u16, texts: [&[u8]; 4]) -> Vec<u8> {
        let mut bytes = family.to_be_bytes().to_vec();
        for text in texts {
            bytes.extend(u16::try_from(text.len()).unwrap().to_be_bytes());
            bytes.extend(text);
        }
        bytes
    }

    #[test]
    fn only_displays_of_this_machine_are_used() {
        let name = |display: &str| DisplayName::parse(display, None).map(|name| name.to_string());
        assert_eq!(name(":0").as_deref(), Some(":0"));
        assert_eq!(name("unix:12.1").as_deref(), Some(":12.1"));
        for elsewhere in ["", "0", "localhost:10.0", "host:0", ":", ":a", ":1.x", ":-1"] {
            assert_eq!(name(elsewhere), None, "{elsewhere}");
        }
        let socket = DisplayName::parse(":7", None).unwrap().socket();
        assert_eq!(socket, Path::new("/tmp/.X11-unix/X7"));
    }

    #[test]
    fn the_cookie_is_that_of_the_display_on_this_machine() {
        let file = [
            entry(0, [b"\x7f\0\0\x01", b"0", COOKIE, b"tcp"]),
            entry(LOCAL, [b"elsewhere", b"0", COOKIE, b"other"]),
            entry(LOCAL, [b"here", b"1", COOKIE, b"one"]),
            entry(LOCAL, [b"here", b"0", b"XDM-AUTHORIZATION-1", b"unknown"]),
            entry(LOCAL, [b"here", b"0", COOKIE, b"null"]),
            entry(ANY, [b"", b"", COOKIE, b"any"]),
        ]
        .concat();
        let cookie = |number: &[u8]| cookie_in(&file, b"here", number).map(|cookie| cookie.data);
        assert_eq!(cookie(b"0"), Some(b"null".to_vec()));
        assert_eq!(cookie(b"1"), Some(b"one".to_vec()));
        assert_eq!(cookie(b"2"), Some(b"any".to_vec()));
        assert_eq!(cookie_in(&file[..20], b"here", b"0"), None);
    }

    proptest! {
        #[test]
        fn any_file_is_read_to_its_end(file: Vec<u8>) {
            let _ = cookie_in(&file, b"here", b"0");
        }
    }
}
