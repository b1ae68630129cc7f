//! Names of repositories: `[[repository]]`.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Serialize;

use crate::page::{Item, Section};
use crate::relay_entry::is_name;

pub(crate) const REPOSITORY: [&str; 2] = ["path", "name"];
/// All are compared with the repository of each message that goes to another machine.
const MAX_REPOSITORIES: usize = 64;

/// A name for a repository. One of the same name on another machine is the same repository, whatever their remotes are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Repository", deny_unknown_fields)]
pub struct RepositoryEntry {
    /// The root of the repository, or of one of its worktrees.
    #[schemars(with = "String", length(min = 1))]
    pub path: PathBuf,
    /// What it is called on all machines: letters, digits, `-`, `_` and `.`.
    #[schemars(length(min = 1, max = 64), regex(pattern = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"))]
    pub name: String,
}

/// Reads every `[[repository]]`. Several clones on one machine may have the same name.
pub(crate) fn repositories(root: &Section<'_, '_>) -> Vec<RepositoryEntry> {
    let Some(item) = root.get("repository") else { return Vec::new() };
    let expected = "tables that begin with [[repository]]";
    let items = item.list(expected).unwrap_or_default();
    if items.len() > MAX_REPOSITORIES {
        let what = format!("has {} tables; {MAX_REPOSITORIES} are possible", items.len());
        return item.wrong(what, None).unwrap_or_default();
    }
    let mut repositories: Vec<RepositoryEntry> = Vec::new();
    for section in items.iter().filter_map(|item| item.section(expected)) {
        let section = section.with_keys(&REPOSITORY, |_| None);
        let path = section.require("path").and_then(|item| {
            let path = item.path()?;
            let is_known = repositories.iter().any(|known| known.path == path);
            if is_known {
                item.wrong("has a name already; each path must be unique", None)
            } else {
                Some(path)
            }
        });
        let name = section.require("name").and_then(|item| name(&item));
        repositories.extend(path.zip(name).map(|(path, name)| RepositoryEntry { path, name }));
    }
    repositories
}

fn name(item: &Item<'_, '_>) -> Option<String> {
    let text = item.text()?;
    if is_name(text) {
        return Some(text.to_owned());
    }
    let expected = "expected letters, digits, `-`, `_` and `.`, at most 64";
    item.wrong(format!("is {text:?}; {expected}"), Some("name = \"api\"".to_owned()))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::parse::{parse, parse_repository};

    fn read(text: &str) -> Result<Vec<(String, String)>, String> {
        let config = parse(Path::new("/people/ada/config.toml"), Some(Path::new("/people/ada")), text);
        let texts = |entry: RepositoryEntry| (entry.path.display().to_string(), entry.name);
        let config = config.map_err(|errors| errors.to_string())?;
        Ok(config.repositories.into_iter().map(texts).collect())
    }

    #[test]
    fn a_path_has_a_name() {
        let text = "[[repository]]\npath = \"~/src/api\"\nname = \"api\"\n[[repository]]\npath = \"/b\"\nname = \"api\"";
        let expected = [("/people/ada/src/api", "api"), ("/b", "api")];
        assert_eq!(read(text).unwrap(), expected.map(|(path, name)| (path.to_owned(), name.to_owned())));
    }

    #[test]
    fn what_names_no_repository_is_told_with_its_place() {
        let check = |text: &str, expected: &str| {
            let error = read(&format!("[[repository]]\n{text}")).unwrap_err();
            assert_eq!(error, format!("/people/ada/config.toml:{expected}"), "{text}");
        };
        check("path = \"/a\"", "1:1: repository has no name");
        check("name = \"a\"", "1:1: repository has no path");
        check("path = \"\"\nname = \"a\"", "2:8: repository.path is empty; expected a path");
        let expected = "expected letters, digits, `-`, `_` and `.`, at most 64";
        // A `/` would make it look like a remote.
        for name in ["", "a/b", "a b", "-a", "ä"] {
            let expected = format!("3:8: repository.name is {name:?}; {expected}");
            check(&format!("path = \"/a\"\nname = \"{name}\""), &expected);
        }
        let twice = "path = \"/a\"\nname = \"a\"\n[[repository]]\npath = \"/people/../a\"\nname = \"b\"";
        assert_eq!(read(&format!("[[repository]]\n{twice}")).map(|read| read.len()), Ok(2));
        let twice = twice.replace("/people/../a", "/a/");
        check(&twice, "5:8: repository.path has a name already; each path must be unique");
        check("path = \"/a\"\nname = \"a\"\nremote = \"b\"", "4:1: unknown key repository.remote");
    }

    #[test]
    fn a_repository_cannot_name_itself() {
        let text = "[[repository]]\npath = \".\"\nname = \"api\"\n";
        let errors = parse_repository(Path::new("/src/evil/.ringer.toml"), None, text).unwrap_err();
        assert!(errors.to_string().contains("repository cannot be set by a repository"), "{errors}");
    }
}
