//! The name that a person gave another machine.

use ringer_journal::NameSource;

use crate::machine::MachineName;

/// What a person called the other machine, in a link of the settings or with `ringer relay serve --name`.
#[derive(Debug, Clone)]
pub struct GivenName {
    pub(crate) name: MachineName,
    pub(crate) source: NameSource,
    /// The names of all links of the settings.
    links: Vec<String>,
}

impl GivenName {
    /// The name of a link with this command. `links` are the names of all links of the settings.
    pub fn of_link(name: MachineName, command: &[String], links: Vec<String>) -> Self {
        Self { name, source: NameSource::Link { command: command.join(" ") }, links }
    }

    /// The only name that a far end serves.
    pub fn of_far_end(name: MachineName) -> Self {
        Self { name, source: NameSource::Serve, links: Vec::new() }
    }

    /// Whether the name that a machine has gives way to this one: the machine chose it itself, or this link had it before. A name
    /// of another link, or of `serve --name`, stays, or a machine could take over the id of another one.
    pub(crate) fn replaces(&self, known: &str, source: &NameSource) -> bool {
        let is_of_link = self.links.iter().any(|link| link == known);
        match (&self.source, source) {
            (NameSource::Link { .. }, NameSource::Machine) => !is_of_link,
            (NameSource::Link { command }, NameSource::Link { command: before }) => {
                !is_of_link && command == before
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_gives_way_to_that_of_the_settings_unless_a_person_gave_it_elsewhere() {
        let link = |command: &str| NameSource::Link { command: command.to_owned() };
        let command = ["ssh", "box"].map(str::to_owned);
        let name = MachineName::parse("build").unwrap();
        let links = ["build", "vm"].map(str::to_owned).to_vec();
        let given = GivenName::of_link(name.clone(), &command, links);
        assert!(given.replaces("box", &NameSource::Machine), "the machine chose it");
        assert!(given.replaces("box", &link("ssh box")), "the link was called so");
        assert!(!given.replaces("box", &link("ssh vm")), "another link was called so");
        assert!(!given.replaces("box", &NameSource::Serve));
        for source in [NameSource::Machine, link("ssh box")] {
            assert!(!given.replaces("vm", &source), "another link is called so");
            assert!(!GivenName::of_far_end(name.clone()).replaces("box", &source));
        }
    }
}
