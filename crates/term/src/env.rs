//! The environment of a process, as a value.

use std::collections::BTreeMap;

/// The environment variables of a process and whether its standard output is a terminal.
///
/// Detection takes this instead of reading the process environment, so a table can show each of its rows, and a hub can detect
/// the terminal of another process.
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
    /// The variables of tmux are inherited from another terminal.
    outside_tmux: bool,
    leader_parent: Option<u32>,
}

impl Env {
    /// Creates an environment with these variables. Standard output is not a terminal.
    pub fn new<K: Into<String>, V: Into<String>>(variables: impl IntoIterator<Item = (K, V)>) -> Self {
        let variables = variables.into_iter().map(|(k, v)| (k.into(), v.into())).collect();
        Self { variables, stdout_is_tty: false, outside_tmux: false, leader_parent: None }
    }

    /// Sets whether standard output is a terminal.
    pub fn tty(mut self, stdout_is_tty: bool) -> Self {
        self.stdout_is_tty = stdout_is_tty;
        self
    }

    /// Sets the parent process of the session leader. It tells whether the variables of tmux apply: a terminal that is started
    /// from a tmux pane inherits `TMUX` and `TMUX_PANE`, but is not that pane. In a pane tmux itself starts the leader; behind
    /// a PTY inside a pane (`script`, `sudo`) `TERM` is still the one that tmux set.
    ///
    /// ```
    /// use ringer_term::{Env, Multiplexer, detect};
    ///
    /// let variables = [("TMUX", "/tmp/tmux-1000/default,4711,0"), ("TERM", "xterm-kitty")];
    /// let env = Env::new(variables).led_by_child_of(815);
    /// assert!(detect(&env).multiplexers.is_empty(), "a kitty that was started from a pane");
    /// let env = Env::new(variables).led_by_child_of(4711);
    /// assert_eq!(detect(&env).multiplexers, [Multiplexer::Tmux]);
    /// ```
    pub fn led_by_child_of(mut self, parent: u32) -> Self {
        let server = self.get("TMUX").and_then(|tmux| tmux.rsplit(',').nth(1)?.parse::<u32>().ok());
        let term_of_tmux =
            self.get("TERM").is_some_and(|term| ["tmux", "screen"].iter().any(|own| term.starts_with(own)));
        self.outside_tmux = server.is_some_and(|server| server != parent) && !term_of_tmux;
        self.leader_parent = Some(parent);
        self
    }

    /// The parent process of the terminal's session leader: usually the program that draws the terminal.
    pub fn leader_parent(&self) -> Option<u32> {
        self.leader_parent
    }

    /// Returns true if the process runs in a tmux pane.
    pub fn is_in_tmux(&self) -> bool {
        self.get("TMUX").is_some() && !self.outside_tmux
    }

    /// The value of a variable that is set and not empty. Clients treat an empty variable as unset.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Returns true if standard output is a terminal.
    pub fn stdout_is_tty(&self) -> bool {
        self.stdout_is_tty
    }

    /// All variables, sorted by name.
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
