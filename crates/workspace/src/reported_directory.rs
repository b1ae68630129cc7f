//! The directory that a program reports.

use std::path::PathBuf;

use ringer_term::file_path;

/// The directory of OSC 7, which is a URL or a path. One on another machine is none here.
pub(crate) fn reported_directory(reported: &str) -> Option<PathBuf> {
    path_of(reported, &host_name())
}

fn path_of(directory: &str, host: &str) -> Option<PathBuf> {
    let path = match directory.strip_prefix("file:") {
        Some(rest) => file_path(rest, host)?,
        None => directory.to_owned(),
    };
    let path = PathBuf::from(path);
    path.is_absolute().then_some(path)
}

/// The name of this machine, as shells put it into that URL.
pub(crate) fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
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
