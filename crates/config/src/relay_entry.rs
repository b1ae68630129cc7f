//! Other machines: `[[relay]]` links to a machine or a team, and `[[repository]]` gives a repository the same name on all
//! machines.

use std::net::IpAddr;
use std::path::PathBuf;

use ringer_platform::shell_word;
use serde_json::json;

use crate::reader::{Field, Section};
use crate::table::settings;
use crate::types::{name, name_up_to, optional, path, program, switch, text};

/// Each link needs a process and a thread of the hub.
pub(crate) const MAX_RELAYS: usize = 32;
/// The longest name of a machine or a repository, in bytes.
const MAX_NAME: usize = 64;

/// The ssh command: it must not prompt, because nobody could answer, and must detect a dead connection.
const SSH: [&str; 10] = [
    "ssh",
    "-T",
    "-o",
    "BatchMode=yes",
    "-o",
    "ConnectTimeout=15",
    "-o",
    "ServerAliveInterval=15",
    "-o",
    "ServerAliveCountMax=3",
];

settings! {
    /// A machine whose messages come here, and that gets the messages of this one; or a team of machines.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct RelayEntry("Relay"): Default {
        /// What the machine is called in lists and after `@` in `worker-1@box` [default: the host of `ssh`]. With `nats`: what
        /// this machine is called in the team [default: its host name].
        #[example("box", "devcontainer", "laptop")]
        pub name: Option<String> = None => optional(name_up_to(MAX_NAME, "name")),
        /// Host to connect to, as `ssh` takes it: a name of your `~/.ssh/config`, or `me@box.lan`.
        #[example("me@box.lan")]
        pub ssh: Option<String> = None => optional(text(host, || json!({ "minLength": 1 }))),
        /// Path of `ringer` on that host [default: `ringer`]. A non-interactive ssh often has a short `PATH`.
        #[example("~/.cargo/bin/ringer")]
        pub program: Option<String> = None => optional(name("program")),
        /// Instead of `ssh`: a program and its arguments that run `ringer relay serve --stdio` on the machine.
        #[example(_, ["docker", "exec", "-i", "devcontainer", "ringer", "relay", "serve", "--stdio"])]
        pub command: Vec<String> = Vec::new() => program(),
        /// Instead of `ssh`: the address of the NATS server of a team, such as `tls://nats.example.org:4222`; those of a cluster
        /// with commas between them. `nats://` on loopback only.
        #[example(_, _, "tls://nats.example.org:4222")]
        pub nats: Option<String> = None => optional(text(|field| field.text().map(str::to_owned), || json!({ "minLength": 1 }))),
        /// With `nats`: the `domain` in the `jetstream` settings of the server that has the stream, where the address is that of
        /// a leaf node.
        #[example(_, _, "hub")]
        pub domain: Option<String> = None => optional(name_up_to(MAX_DOMAIN, "domain")),
        /// The name of the team. The machine `box` of the team `platform` is listed as `box.platform`.
        #[example(_, _, "platform")]
        pub team: Option<String> = None => optional(name_up_to(MAX_TEAM, "team")),
        /// File with the JWT or nkey of this machine for the NATS server; only you may be able to read it.
        #[example(_, _, "~/.config/ringer/platform.creds")]
        pub credentials: Option<PathBuf> = None => optional(path()),
        /// File with the certificate that the NATS server's one is signed with [default: those that the system trusts].
        #[example(_, _, "~/.config/ringer/ca.pem")]
        pub ca: Option<PathBuf> = None => optional(path()),
        /// Whether this machine may answer what agents on the machine ask, and write to them, the lead agent included. With
        /// `nats`: whether other machines of the team may answer what agents ask here, and write to them.
        pub may_answer: bool = false => switch(),
        /// Whether messages of agents on the machine reach the lead agent of the same repository here. With `nats`: those of
        /// agents on all machines of the team.
        pub may_reach_lead: bool = false => switch(),
        /// With `nats`: whether what you read, clear or snooze here counts on the other machines of the team, and the other way
        /// round.
        #[example(_, _, false)]
        pub share_marks: bool = false => switch(),
    }
}

impl RelayEntry {
    /// Returns the name of the machine: `name`, or the host of `ssh` without a user. For a team, returns the team's name.
    pub fn machine(&self) -> &str {
        if let (Some(_), Some(team)) = (&self.nats, &self.team) {
            return team;
        }
        let host = || self.ssh.as_deref().map(|host| host.rsplit('@').next().unwrap_or(host));
        self.name.as_deref().or_else(host).unwrap_or_default()
    }

    /// Returns true if the link leads to a machine: to the one it names, or to a member of its team, such as `box.platform`.
    pub fn reaches(&self, machine: &str) -> bool {
        match &self.nats {
            None => self.machine() == machine,
            Some(_) => machine.split_once('.').is_some_and(|(_, team)| team == self.machine()),
        }
    }

    /// Returns the program that connects to the machine, and its arguments.
    pub fn argv(&self) -> Vec<String> {
        let Some(host) = &self.ssh else { return self.command.clone() };
        let remote = format!("{} relay serve --stdio", remote_program(self.program.as_deref()));
        let fixed = SSH.iter().map(|word| (*word).to_owned());
        fixed.chain(["--".to_owned(), host.clone(), remote]).collect()
    }

    /// Checks the fields together: they belong to one kind of link, and no earlier link leads to the same machine.
    pub(crate) fn check(&self, section: &Section<'_, '_>, earlier: &[Self]) -> bool {
        if let Some((what, hint)) = self.wrong_fields(section) {
            section.wrong(what, hint);
            return false;
        }
        if self.nats.is_none() && self.ssh.is_none() && self.command.is_empty() {
            // The problem of the field is recorded.
            return false;
        }
        if earlier.iter().any(|other| other.machine() == self.machine()) {
            let what = format!("has two machines named {:?}; each name must be unique", self.machine());
            section.wrong(what, Some("give one of them another `name`"));
        }
        true
    }

    /// Returns the first problem with the fields that `section` has, and a line that would fix it.
    fn wrong_fields(&self, section: &Section<'_, '_>) -> Option<(String, Option<&'static str>)> {
        let has = |key: &str| section.has(key);
        if has("nats") {
            if has("ssh") || has("program") || has("command") {
                return Some(("has `nats` and what belongs to a link of another kind".to_owned(), None));
            }
            return self.wrong_team().map(|(what, example)| (what, Some(example)));
        }
        if has("ssh") == has("command") {
            return Some(("needs either `ssh`, `command` or `nats`".to_owned(), Some("ssh = \"box\"")));
        }
        let of_team = ["team", "credentials", "ca", "domain"].into_iter().filter(|key| has(key));
        if let Some(key) = of_team.chain(self.share_marks.then_some("share_marks")).next() {
            return Some((format!("has `{key}`, which belongs to `nats`"), None));
        }
        if has("program") && has("command") {
            return Some(("has `program`, which belongs to `ssh`".to_owned(), None));
        }
        let is_link = self.ssh.is_some() || !self.command.is_empty();
        if is_link && !is_name(self.machine()) {
            let machine = self.machine();
            let what = format!("has the name {machine:?}; expected letters, digits, `-`, `_` and `.`");
            return Some((what, Some("name = \"box\"")));
        }
        None
    }

    /// Checks an entry with `nats`. Returns the problem and a line that would fix it.
    pub fn wrong_team(&self) -> Option<(String, &'static str)> {
        let urls = addresses(self.nats.as_deref()?);
        if urls.len() > MAX_ADDRESSES {
            let what = format!("has {} addresses; {MAX_ADDRESSES} are possible", urls.len());
            return Some((what, EXAMPLE));
        }
        for url in &urls {
            let host = match host_of(url) {
                Ok(host) => host,
                Err(why) => return Some((format!("has the address {url:?}, {why}"), EXAMPLE)),
            };
            let is_loopback = is_loopback(host);
            if !is_loopback && !url.starts_with("tls://") {
                let what = format!("has the address {url:?}, over which messages would go unencrypted");
                return Some((what, EXAMPLE));
            }
            if !is_loopback && self.credentials.is_none() {
                // Without credentials the server cannot tell one machine from another.
                let example = "credentials = \"~/.config/ringer/platform.creds\"";
                return Some(("needs `credentials`".to_owned(), example));
            }
        }
        let no_team = || self.team.is_none().then(|| ("needs `team`".to_owned(), "team = \"platform\""));
        wrong_word("domain", self.domain.as_deref(), MAX_DOMAIN, "domain = \"hub\"")
            .or_else(no_team)
            .or_else(|| wrong_word("team", self.team.as_deref(), MAX_TEAM, "team = \"platform\""))
            .or_else(|| wrong_word("name", self.name.as_deref(), MAX_MACHINE, "name = \"laptop\""))
    }

    /// Returns the link as the program that connects needs it.
    pub fn link(&self) -> RelayLink {
        RelayLink {
            name: self.machine().to_owned(),
            command: self.argv(),
            ssh: self.ssh.clone(),
            may_answer: self.may_answer,
            may_reach_lead: self.may_reach_lead,
            team: self.nats.as_deref().map(|urls| TeamLink {
                urls: addresses(urls).into_iter().map(str::to_owned).collect(),
                domain: self.domain.clone(),
                machine: self.name.clone(),
                credentials: self.credentials.clone(),
                ca: self.ca.clone(),
                share_marks: self.share_marks,
            }),
        }
    }
}

/// A link to one machine, or to a team.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelayLink {
    /// The local name of the machine or team.
    pub name: String,
    /// The command that connects to `ringer relay serve --stdio` there. Empty for a team.
    pub command: Vec<String>,
    /// The host, if the program is ssh.
    pub ssh: Option<String>,
    /// True if prompts of agents there may be answered from here. For a team: true if its other machines may answer prompts of
    /// agents here, and write to them.
    pub may_answer: bool,
    /// True if messages of agents there reach the lead agent of the same repository here.
    pub may_reach_lead: bool,
    /// The server of a team.
    pub team: Option<TeamLink>,
}

/// Membership in a team, whose machines exchange messages over a NATS server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TeamLink {
    /// The addresses of the server, or of a cluster's servers. One that answers is used.
    pub urls: Vec<String>,
    /// The `JetStream` domain of the stream, if the server is a leaf node.
    pub domain: Option<String>,
    /// This machine's name in the team. The default is its host name.
    pub machine: Option<String>,
    /// The file with this machine's credentials.
    pub credentials: Option<PathBuf>,
    /// The CA certificate of the server, if the system does not trust it.
    pub ca: Option<PathBuf>,
    /// True if what the person reads, clears or snoozes here applies to the other machines, too.
    pub share_marks: bool,
}

/// Quotes a program for the shell on the other machine. `~/` stays unquoted, so that this shell expands it.
fn remote_program(program: Option<&str>) -> String {
    match program {
        None => "ringer".to_owned(),
        Some(program) => match program.strip_prefix("~/") {
            Some(rest) => format!("~/{}", shell_word(rest)),
            None => shell_word(program),
        },
    }
}

/// Returns true if this is a valid name of a machine or a repository.
pub(crate) fn is_name(name: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let begins_well = name.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
    begins_well && name.len() <= MAX_NAME && name.bytes().all(is_allowed)
}

/// Reads a host. A leading `-` is refused, because ssh would take it as an option.
fn host(field: &Field<'_, '_>) -> Option<String> {
    let text = field.name_text("host")?;
    if text.starts_with('-') || text.contains(char::is_whitespace) {
        return field.wrong(format!("is {text:?}, which is no host"), None);
    }
    Some(text)
}

/// The longest name of a team. `machine.team` must fit into [`MAX_NAME`].
const MAX_TEAM: usize = 20;
const MAX_MACHINE: usize = 40;
/// The longest name of a `jetstream` domain.
const MAX_DOMAIN: usize = 40;
/// The most addresses. Connecting to one that does not answer can take ten seconds.
const MAX_ADDRESSES: usize = 16;
/// The longest host and port: a DNS name has up to 253 bytes.
const MAX_HOST: usize = 260;

/// Returns true if this is a valid name of a team or of a machine in a team. It becomes a token of a NATS subject, so dots
/// are not allowed.
fn is_word(text: &str, most: usize) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    let begins_well = text.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
    begins_well && text.len() <= most && text.bytes().all(is_allowed)
}

/// Checks that a value is a word, as [`is_word`] does. Returns the problem and `example`.
fn wrong_word(
    key: &str,
    value: Option<&str>,
    most: usize,
    example: &'static str,
) -> Option<(String, &'static str)> {
    let value = value.filter(|value| !is_word(value, most))?;
    Some((format!("has the {key} {value:?}; expected at most {most} letters, digits, `-` and `_`"), example))
}

const EXAMPLE: &str = "nats = \"tls://nats.example.org:4222\"";

/// Splits a comma-separated list of addresses.
pub(crate) fn addresses(text: &str) -> Vec<&str> {
    text.split(',').map(str::trim).collect()
}

/// Returns the host of an address, or why the address is invalid.
fn host_of(url: &str) -> Result<&str, &'static str> {
    let rest = url.strip_prefix("tls://").or_else(|| url.strip_prefix("nats://"));
    let rest = rest.ok_or("which begins with neither tls:// nor nats://")?;
    if rest.contains('@') {
        return Err("in which a secret would be; it belongs into the file `credentials`");
    }
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || ".-:[]".contains(c);
    if rest.is_empty() || rest.len() > MAX_HOST || !rest.chars().all(is_allowed) {
        return Err("which is not one host and a port");
    }
    match rest.strip_prefix('[') {
        Some(rest) => rest.split(']').next().ok_or("which is not one host and a port"),
        None => Ok(rest.split(':').next().unwrap_or(rest)),
    }
}

fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Every message to another machine is compared with all of them.
pub(crate) const MAX_REPOSITORIES: usize = 64;

settings! {
    /// A name for a repository. One of the same name on another machine is the same repository, whatever their remotes are.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct RepositoryEntry("Repository") {
        /// The root of the repository, or of one of its worktrees.
        #[example("~/src/api")]
        pub path: PathBuf => path(),
        /// What it is called on all machines: letters, digits, `-`, `_` and `.`, at most 64. It counts instead of the remote
        /// `origin`.
        #[example("api")]
        pub name: String => text(repository_name, || json!({ "minLength": 1, "maxLength": MAX_NAME, "pattern": "^[A-Za-z0-9][A-Za-z0-9._-]*$" })),
    }
}

impl RepositoryEntry {
    /// Checks that no earlier entry has the path. Several clones on one machine may have the same name.
    pub(crate) fn check(&self, section: &Section<'_, '_>, earlier: &[Self]) -> bool {
        let is_new = earlier.iter().all(|known| known.path != self.path);
        if let Some(path) = section.get("path").filter(|_| !is_new) {
            path.wrong::<()>("has a name already; each path must be unique", None);
        }
        is_new
    }
}

fn repository_name(field: &Field<'_, '_>) -> Option<String> {
    let text = field.text()?;
    if is_name(text) {
        return Some(text.to_owned());
    }
    let expected = "expected letters, digits, `-`, `_` and `.`, at most 64";
    field.wrong(format!("is {text:?}; {expected}"), Some("name = \"api\"".to_owned()))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::{Rules, parse, parse_repository};

    fn read(text: &str) -> Result<Vec<RelayEntry>, String> {
        let config = parse(
            Path::new("/people/ada/config.toml"),
            Some(Path::new("/people/ada")),
            text,
            &Rules::default(),
        );
        config.map(|config| config.relays).map_err(|errors| errors.to_string())
    }

    #[test]
    fn a_host_becomes_a_call_of_ssh() {
        let relays = read("[[relay]]\nssh = \"me@box.lan\"\nprogram = \"~/my bin/ringer\"").unwrap();
        assert_eq!(relays[0].machine(), "box.lan");
        let argv = relays[0].argv();
        assert_eq!(argv[argv.len() - 3..], ["--", "me@box.lan", "~/'my bin/ringer' relay serve --stdio"]);
        assert!(!relays[0].may_answer);
        let relays = read("[[relay]]\nname = \"vm\"\ncommand = [\"docker\", \"exec\"]").unwrap();
        assert_eq!((relays[0].machine(), relays[0].argv().join(" ")), ("vm", "docker exec".to_owned()));
    }

    #[test]
    fn what_cannot_be_a_link_is_told() {
        let check = |text: &str, part: &str| {
            let error = read(text).unwrap_err();
            assert!(error.contains(part), "{error}");
        };
        check("[[relay]]\nssh = \"-oProxyCommand=x\"", "which is no host");
        check("[[relay]]\nname = \"a\"", "needs either `ssh`, `command` or `nats`");
        check("[[relay]]\nssh = \"a\"\ncommand = [\"x\"]", "needs either `ssh`, `command` or `nats`");
        check("[[relay]]\ncommand = [\"x\"]", "expected letters");
        check("[[relay]]\nname = \"a@b\"\nssh = \"a\"", "expected letters");
        check("[[relay]]\nssh = \"a\"\n[[relay]]\nssh = \"me@a\"", "two machines named");
        check("[[relay]]\nssh = \"a\"\nhost = \"b\"", "unknown key");
        check("[relay]\nssh = \"a\"", "[[relay]]");
    }

    #[test]
    fn a_team_is_reached_over_an_encrypted_connection() {
        let relays = read(
            "[[relay]]\nnats = \"tls://nats.lan:4222\"\nteam = \"platform\"\ncredentials = \"~/a.creds\"\nname = \"laptop\"",
        )
        .unwrap();
        assert_eq!(relays[0].machine(), "platform");
        assert!(relays[0].reaches("box.platform") && !relays[0].reaches("platform"));
        let team = relays[0].link().team.unwrap();
        assert_eq!(team.credentials.as_deref(), Some(Path::new("/people/ada/a.creds")));
        assert_eq!(team.machine.as_deref(), Some("laptop"));
        assert!(!team.share_marks);
        assert_eq!((team.urls, team.domain), (vec!["tls://nats.lan:4222".to_owned()], None));
        let relays = read(
            "[[relay]]\nnats = \"nats://127.0.0.1:1, nats://localhost:2\"\nteam = \"a\"\ndomain = \"hub\"",
        )
        .unwrap();
        let team = relays[0].link().team.unwrap();
        assert_eq!(team.urls, ["nats://127.0.0.1:1", "nats://localhost:2"]);
        assert_eq!(team.domain.as_deref(), Some("hub"));
        for host in ["127.0.0.1:4222", "localhost", "[::1]:4222"] {
            let text = format!("[[relay]]\nnats = \"nats://{host}\"\nteam = \"a\"");
            assert_eq!(read(&text).map(|relays| relays.len()), Ok(1), "{host}");
        }
    }

    #[test]
    fn what_cannot_be_a_team_is_told() {
        let check = |text: &str, part: &str| {
            let error = read(&format!("[[relay]]\n{text}")).unwrap_err();
            assert!(error.contains(part), "{error}");
        };
        let tls = "nats = \"tls://a\"\ncredentials = \"/c\"";
        check("nats = \"nats://a.lan\"\nteam = \"t\"\ncredentials = \"/c\"", "unencrypted");
        check("nats = \"nats://localhost.evil.org\"\nteam = \"t\"", "unencrypted");
        check("nats = \"tls://a.lan\"\nteam = \"t\"", "needs `credentials`");
        check("nats = \"tls://me:secret@a\"\nteam = \"t\"", "in which a secret would be");
        check("nats = \"http://a\"\nteam = \"t\"", "neither tls:// nor nats://");
        check("nats = \"tls://a,b\"\nteam = \"t\"\ncredentials = \"/c\"", "has the address \"b\"");
        check("nats = \"tls://a/b\"\nteam = \"t\"", "not one host and a port");
        check("nats = \"nats://localhost,nats://a.lan\"\nteam = \"t\"", "unencrypted");
        check("nats = \"nats://localhost,\"\nteam = \"t\"", "has the address \"\"");
        let many = vec!["nats://localhost"; 17].join(",");
        check(&format!("nats = \"{many}\"\nteam = \"t\""), "has 17 addresses");
        check(&format!("{tls}\nteam = \"a\"\ndomain = \"a.b\""), "has the domain");
        check(tls, "needs `team`");
        check(&format!("{tls}\nteam = \"a.b\""), "has the team");
        check(&format!("{tls}\nteam = \"a>\""), "has the team");
        check(&format!("{tls}\nteam = \"a\"\nname = \"box.lan\""), "has the name");
        check(&format!("{tls}\nteam = \"a\"\nssh = \"b\""), "another kind");
        check("ssh = \"a\"\nteam = \"b\"", "belongs to `nats`");
        check("ssh = \"a\"\ndomain = \"b\"", "belongs to `nats`");
        check(&format!("nats = \"tls://{}\"\nteam = \"t\"", "a".repeat(300)), "not one host and a port");
    }

    fn read_repositories(text: &str) -> Result<Vec<(String, String)>, String> {
        let config = parse(
            Path::new("/people/ada/config.toml"),
            Some(Path::new("/people/ada")),
            text,
            &Rules::default(),
        );
        let texts = |entry: RepositoryEntry| (entry.path.display().to_string(), entry.name);
        let config = config.map_err(|errors| errors.to_string())?;
        Ok(config.repositories.into_iter().map(texts).collect())
    }

    #[test]
    fn a_path_has_a_name() {
        let text = "[[repository]]\npath = \"~/src/api\"\nname = \"api\"\n[[repository]]\npath = \"/b\"\nname = \"api\"";
        let expected = [("/people/ada/src/api", "api"), ("/b", "api")];
        assert_eq!(
            read_repositories(text).unwrap(),
            expected.map(|(path, name)| (path.to_owned(), name.to_owned()))
        );
    }

    #[test]
    fn what_names_no_repository_is_told_with_its_place() {
        let check = |text: &str, expected: &str| {
            let error = read_repositories(&format!("[[repository]]\n{text}")).unwrap_err();
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
        assert_eq!(read_repositories(&format!("[[repository]]\n{twice}")).map(|read| read.len()), Ok(2));
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
