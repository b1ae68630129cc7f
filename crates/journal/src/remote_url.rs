//! Where a repository comes from, in a form that is the same in every clone of it.

/// A longer one is none.
const MAX_URL: usize = 512;

/// The host and the path of a remote: `git@github.com:org/repo.git`, `ssh://git@github.com:22/org/repo` and
/// `https://ada:token@github.com/org/repo.git/` are all `github.com/org/repo`. Users, passwords and ports are left out. `None` for
/// what is a path, which is another repository on another machine, and for what is no URL.
pub(crate) fn normalised_remote(url: &str) -> Option<String> {
    let (authority, path) = match url.trim().split_once("://") {
        Some((scheme, rest)) if is_remote(scheme) => rest.split_once('/')?,
        Some(_) => return None,
        // The form of scp: `host:path`. A `/` before the colon makes it a path.
        None => url.trim().split_once(':').filter(|(host, _)| !host.contains('/'))?,
    };
    let host = authority.rsplit('@').next().unwrap_or(authority);
    let host = host.split(':').next().unwrap_or(host).to_ascii_lowercase();
    let path = path.trim_matches('/');
    let path = path.strip_suffix(".git").unwrap_or(path).trim_end_matches('/');
    let is_host = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let is_path = |character: char| !character.is_control() && !character.is_whitespace();
    let is_whole = !host.is_empty() && !path.is_empty() && host.len() + path.len() < MAX_URL;
    // One letter before the colon is a drive.
    let is_drive = !url.contains("://") && host.len() == 1;
    let is_allowed = host.bytes().all(is_host) && path.chars().all(is_path) && !is_drive;
    // What follows `?` or `#` may be a secret, and names no repository.
    let path = path.split(['?', '#']).next().unwrap_or(path);
    (is_whole && is_allowed).then(|| format!("{host}/{path}"))
}

fn is_remote(scheme: &str) -> bool {
    let scheme = scheme.to_ascii_lowercase();
    ["ssh", "git", "https", "http", "git+ssh", "ssh+git"].contains(&scheme.as_str())
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
        ] {
            assert_eq!(normalised_remote(url), None, "{url}");
        }
        assert_eq!(normalised_remote(&format!("host:{}", "x".repeat(600))), None);
    }
}
