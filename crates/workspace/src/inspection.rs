//! What there is of panes, for a person who asks whether all is well.

use std::io;

use crate::address::Places;
use crate::program_version::is_newer;
use crate::saved_session::SavedSession;

/// Whether a server is of this program's version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerAge {
    /// `attach` takes over from it.
    Older,
    /// Of the same.
    Same,
    /// This program takes nothing over from it.
    Newer,
}

/// A server that runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunningServer {
    /// The version of its program.
    pub version: String,
    /// How that is to this program's.
    pub age: ServerAge,
    /// How many panes it has; `None` if it speaks another version of the protocol and cannot be asked.
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

/// How many panes were saved. Without a server and a keeper, the first window brings them back.
pub fn saved_panes(places: &Places) -> io::Result<usize> {
    Ok(SavedSession::read(&places.session())?.map_or(0, |saved| saved.panes.len()))
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
}
