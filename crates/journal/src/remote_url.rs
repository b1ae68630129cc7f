//! Where a repository comes from, in a form that is the same in every clone of it.

/// A longer one is none.
const MAX_URL: usize = 512;
/// The digits of a port.
const MAX_PORT: usize = 5;

/// The host and the path of a remote: `git@github.com:org/repo.git`, `ssh://git@github.com:22/org/repo` and
/// `https://ada:token@github.com/org/repo.git/` are all `github.com/org/repo`. Users, passwords and the usual ports are left out;
/// another port is another server, and stays.
///
/// `None` for what is no URL, and for what means something else on another machine or for another user: a path, a path from
/// the home of a user, `localhost`.
pub(crate) fn normalised_remote(url: &str) -> Option<String> {
    let url = url.trim();
    let (scheme, authority, path) = if let Some((scheme, rest)) = url.split_once("://") {
        let (authority, path) = rest.split_once('/')?;
        (scheme.to_ascii_lowercase(), authority, path)
    } else {
        // The form of scp: `host:path`. A `/` before the colon makes it a path.
        let (authority, path) = url.split_once(':').filter(|(host, _)| !host.contains('/'))?;
        // The path begins in the home of the user. On a server for repositories that user is `git`, or set in ssh's settings.
        let user = authority.rsplit_once('@').map(|(user, _)| user);
        if !path.starts_with(['/', '~']) && user.is_some_and(|user| user != "git") {
            return None;
        }
        (SCP.to_owned(), authority, path)
    };
    let usual_port = usual_port(&scheme)?;
    let host = authority.rsplit('@').next().unwrap_or(authority).to_ascii_lowercase();
    let (host, port) = host.split_once(':').unwrap_or((host.as_str(), ""));
    // What follows `?` or `#` may be a secret, and names no repository.
    let path = path.split(['?', '#']).next().unwrap_or(path).trim_matches('/');
    let path = path.strip_suffix(".git").unwrap_or(path).trim_end_matches('/');
    let is_host = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let is_path = |character: char| !character.is_control() && !character.is_whitespace();
    let is_whole = !host.is_empty() && !path.is_empty() && host.len() + path.len() < MAX_URL;
    // One letter before the colon is a drive.
    let is_drive = scheme == SCP && host.len() == 1;
    let is_allowed = host.bytes().all(is_host) && path.chars().all(is_path) && !is_drive;
    let is_local = host == "localhost" || host.ends_with(".localhost") || host.starts_with("127.");
    let is_of_user = path == "~" || path.starts_with("~/");
    if !is_whole || !is_allowed || is_local || is_of_user {
        return None;
    }
    if port.is_empty() || port == usual_port {
        return Some(format!("{host}/{path}"));
    }
    let is_port = port.len() <= MAX_PORT && port.bytes().all(|byte| byte.is_ascii_digit());
    is_port.then(|| format!("{host}:{port}/{path}"))
}

/// The form `host:path`, which has no scheme and no port.
const SCP: &str = "";

/// The port of a protocol. `None` for what is no protocol of remotes.
fn usual_port(scheme: &str) -> Option<&'static str> {
    Some(match scheme {
        "ssh" | "git+ssh" | "ssh+git" => "22",
        "https" => "443",
        "http" => "80",
        "git" => "9418",
        SCP => "",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_clone_has_the_same_and_no_secret_is_in_it() {
        for url in [
            "git@github.com:org/repo.git",
            "github.com:org/repo",
            "ssh://git@github.com:22/org/repo",
            "https://ada:token@GitHub.com/org/repo.git/",
            "https://ada:to@ken@github.com:443/org/repo",
            "git://github.com/org/repo.git",
            " https://github.com/org/repo?token=secret\n",
            "https://github.com/org/repo.git?token=secret#x",
            "http://github.com:80/org/repo",
        ] {
            assert_eq!(normalised_remote(url).as_deref(), Some("github.com/org/repo"), "{url}");
        }
        for url in [
            "/srv/git/repo.git",
            "../repo",
            "./a:b",
            "file:///srv/git/repo.git",
            "ext::sh -c x",
            "C:/repo",
            "https://github.com",
            "https:///x",
            "host:",
            "",
            "ho st:x",
            "https://host:x/repo",
            "https://host:000443/repo",
        ] {
            assert_eq!(normalised_remote(url), None, "{url}");
        }
        assert_eq!(normalised_remote(&format!("host:{}", "x".repeat(600))), None);
        assert_eq!(normalised_remote(&format!("https://host:{}/repo", "1".repeat(5_000))), None);
    }

    #[test]
    fn two_repositories_are_never_taken_for_one() {
        // Two servers on one host.
        assert_eq!(normalised_remote("https://host:8443/org/repo").as_deref(), Some("host:8443/org/repo"));
        assert_eq!(normalised_remote("http://host:3000/org/repo").as_deref(), Some("host:3000/org/repo"));
        assert_eq!(normalised_remote("http://host:443/org/repo").as_deref(), Some("host:443/org/repo"));
        // Every machine and every user has one of their own.
        for url in [
            "http://localhost:3000/org/repo",
            "git@localhost:org/repo",
            "ssh://git@api.localhost/org/repo",
            "http://127.0.0.1/org/repo",
            "http://[::1]:3000/org/repo",
            "ada@host:repo",
            "host:~/repo",
            "ssh://ada@host/~/repo",
        ] {
            assert_eq!(normalised_remote(url), None, "{url}");
        }
        // The same for everyone.
        assert_eq!(normalised_remote("ada@host:/srv/repo").as_deref(), Some("host/srv/repo"));
        assert_eq!(normalised_remote("ssh://ada@host:29418/repo").as_deref(), Some("host:29418/repo"));
        assert_eq!(normalised_remote("git@git.sr.ht:~ada/repo").as_deref(), Some("git.sr.ht/~ada/repo"));
    }
}
