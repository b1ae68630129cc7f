//! The version of a running server, compared with this program.

/// The version of a server, compared with this program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerAge {
    /// The server is older, and `attach` replaces it.
    Older,
    /// The versions are equal.
    Same,
    /// The server is newer, and this program does not replace it.
    Newer,
}

/// A running server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunningServer {
    /// The version of its program.
    pub version: String,
    /// That version, compared with this program.
    pub age: ServerAge,
    /// The number of its panes; `None` if it speaks another version of the protocol.
    pub panes: Option<usize>,
}

impl RunningServer {
    pub(crate) fn new(version: String, panes: Option<usize>) -> Self {
        let own = env!("CARGO_PKG_VERSION");
        let age = match (is_newer(own, &version), is_newer(&version, own)) {
            (true, _) => ServerAge::Older,
            (_, true) => ServerAge::Newer,
            _ => ServerAge::Same,
        };
        Self { version, age, panes }
    }
}

/// A semantic version. Build metadata is ignored.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct ProgramVersion<'a> {
    numbers: Vec<u64>,
    stage: Stage<'a>,
}

/// A release or a pre-release.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Stage<'a> {
    PreRelease(Vec<Part<'a>>),
    Release,
}

/// An identifier of a pre-release. Numbers are lower than words.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Part<'a> {
    Number(u64),
    Word(&'a str),
}

impl<'a> ProgramVersion<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let version = text.split_once('+').map_or(text, |(version, _build)| version);
        let (numbers, stage) = match version.split_once('-') {
            Some((numbers, name)) => {
                let part = |part: &'a str| part.parse().map_or(Part::Word(part), Part::Number);
                (numbers, Stage::PreRelease(name.split('.').map(part).collect()))
            }
            None => (version, Stage::Release),
        };
        let numbers = numbers.split('.').map(str::parse).collect::<Result<Vec<u64>, _>>().ok()?;
        Some(Self { numbers, stage })
    }
}

/// Returns true if a version is newer than another one, and false if either is not valid.
pub(crate) fn is_newer(version: &str, than: &str) -> bool {
    let both = ProgramVersion::parse(version).zip(ProgramVersion::parse(than));
    both.is_some_and(|(version, than)| version > than)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_older_or_newer_than_this_program() {
        let age = |version: &str| RunningServer::new(version.to_owned(), None).age;
        assert_eq!(age(env!("CARGO_PKG_VERSION")), ServerAge::Same);
        assert_eq!(
            (age("0.0.1"), age("99.0.0"), age("?")),
            (ServerAge::Older, ServerAge::Newer, ServerAge::Same)
        );
    }

    #[test]
    fn versions_are_compared_by_their_numbers_and_pre_releases_come_before_releases() {
        let ordered = [
            "0.1.0",
            "0.2.0-alpha",
            "0.2.0-alpha.2",
            "0.2.0-alpha.10",
            "0.2.0-beta",
            "0.2.0-rc.1",
            "0.2.0",
            "0.2.9",
            "0.2.10",
            "0.10.0",
            "1.0.0-0",
            "1.0.0",
        ];
        for (at, version) in ordered.iter().enumerate() {
            for (other_at, other) in ordered.iter().enumerate() {
                assert_eq!(is_newer(version, other), at > other_at, "{version} and {other}");
            }
        }
        assert!(!is_newer("0.2.0+b", "0.2.0+a") && !is_newer("0.2.0+a", "0.2.0+b"));
        for unreadable in ["", "x", "1.x", "1..2", "-1", "99999999999999999999.0.0"] {
            assert!(!is_newer(unreadable, "0.1.0") && !is_newer("0.1.0", unreadable), "{unreadable}");
        }
    }
}
