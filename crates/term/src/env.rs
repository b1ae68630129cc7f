//! What a process can see of its surroundings, as a value.

use std::collections::BTreeMap;

/// The environment variables of a process and whether its standard output is a terminal.
///
/// Detection takes this instead of reading the process environment, so each of its rows can be shown in a table and a
/// hub can detect for another process.
///
/// ```
/// use ringer_term::Env;
///
/// let env = Env::new([("TERM", "xterm-kitty"), ("TMUX", "")]).tty(true);
/// assert_eq!(env.get("TERM"), Some("xterm-kitty"));
/// assert_eq!(env.get("TMUX"), None, "an empty variable is as good as none");
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Env {
    variables: BTreeMap<String, String>,
    stdout_is_tty: bool,
}

impl Env {
    /// An environment with these variables, whose standard output is no terminal.
    pub fn new<K: Into<String>, V: Into<String>>(variables: impl IntoIterator<Item = (K, V)>) -> Self {
        let variables = variables.into_iter().map(|(k, v)| (k.into(), v.into())).collect();
        Self { variables, stdout_is_tty: false }
    }

    /// The same environment, with standard output being a terminal or not.
    pub fn tty(mut self, stdout_is_tty: bool) -> Self {
        self.stdout_is_tty = stdout_is_tty;
        self
    }

    /// The value of a variable that is set and not empty. Clients test variables for truth, so empty means unset.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Whether standard output is a terminal.
    pub fn stdout_is_tty(&self) -> bool {
        self.stdout_is_tty
    }

    /// All variables, in the order of their names.
    pub fn variables(&self) -> impl Iterator<Item = (&str, &str)> {
        self.variables.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.variables.insert(name.to_owned(), value.to_owned());
    }

    pub(crate) fn remove(&mut self, name: &str) {
        self.variables.remove(name);
    }
}
