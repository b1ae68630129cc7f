//! What a `[[relay]]` with `nats` has to be like: a team.

use std::net::IpAddr;

/// The longest name of a team, and of a machine in one. Both together, with a dot between them, are the name of a machine.
const MAX_TEAM: usize = 20;
const MAX_MACHINE: usize = 40;
/// The longest name of a `jetstream` domain.
const MAX_DOMAIN: usize = 40;
/// The most addresses. Each one that does not answer may take ten seconds.
const MAX_ADDRESSES: usize = 16;
/// The longest host and port: a name of the DNS has 253 bytes.
const MAX_HOST: usize = 260;

/// Whether a team or a machine of one can be called so: it is a part of subjects, which dots separate.
fn is_word(text: &str, most: usize) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    let begins_well = text.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
    begins_well && text.len() <= most && text.bytes().all(is_allowed)
}

/// What an entry says of a team.
pub(crate) struct TeamParts<'a> {
    /// The addresses, with commas between them.
    pub(crate) urls: &'a str,
    pub(crate) domain: Option<&'a str>,
    pub(crate) team: Option<&'a str>,
    /// The machine in it.
    pub(crate) name: Option<&'a str>,
    pub(crate) has_credentials: bool,
}

/// Why this is no team, and what to write instead. `None` if it is one.
pub(crate) fn wrong_team(parts: &TeamParts<'_>) -> Option<(String, &'static str)> {
    let urls = addresses(parts.urls);
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
        if !is_loopback && !parts.has_credentials {
            // Without them the server cannot tell one machine from another.
            let example = "credentials = \"~/.config/ringer/platform.creds\"";
            return Some(("needs `credentials`".to_owned(), example));
        }
    }
    if let Some(domain) = parts.domain.filter(|domain| !is_word(domain, MAX_DOMAIN)) {
        let what =
            format!("has the domain {domain:?}; expected at most {MAX_DOMAIN} letters, digits, `-` and `_`");
        return Some((what, "domain = \"hub\""));
    }
    let Some(team) = parts.team else { return Some(("needs `team`".to_owned(), "team = \"platform\"")) };
    if !is_word(team, MAX_TEAM) {
        let what = format!("has the team {team:?}; expected at most {MAX_TEAM} letters, digits, `-` and `_`");
        return Some((what, "team = \"platform\""));
    }
    let name = parts.name.filter(|name| !is_word(name, MAX_MACHINE));
    name.map(|name| {
        let what =
            format!("has the name {name:?}; expected at most {MAX_MACHINE} letters, digits, `-` and `_`");
        (what, "name = \"laptop\"")
    })
}

const EXAMPLE: &str = "nats = \"tls://nats.example.org:4222\"";

/// The addresses of a text with commas between them.
pub(crate) fn addresses(text: &str) -> Vec<&str> {
    text.split(',').map(str::trim).collect()
}

/// The host of an address.
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
