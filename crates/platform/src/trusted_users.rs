//! Whose files count as those of this user or of root, beside the obvious: the private group of the user, and root seen from inside a user
//! namespace.

use std::fs;
use std::path::Path;
use std::sync::OnceLock;

/// In a user namespace, root of the machine has no number of its own and appears as the overflow uid, as all users do that are not
/// mapped. Only the directories that every system has count as root's there.
pub(crate) fn is_system_directory_of_root(path: &Path, uid: u32) -> bool {
    is_overflow_uid(uid) && is_system_path(path)
}

fn is_system_path(path: &Path) -> bool {
    let is_below = |directory: &str| path.starts_with(directory);
    path.components().count() <= 2
        || path == Path::new("/run/user")
        || path == Path::new("/var/tmp")
        || ["/usr", "/etc", "/var/lib", "/var/run", "/opt", "/nix/store", "/gnu/store"]
            .iter()
            .any(|path| is_below(path))
}

#[cfg(target_os = "linux")]
fn is_overflow_uid(uid: u32) -> bool {
    static OVERFLOW: OnceLock<Option<u32>> = OnceLock::new();
    let read = || {
        let map = fs::read_to_string("/proc/self/uid_map").ok()?;
        let is_identity = map.split_ascii_whitespace().eq(["0", "0", "4294967295"]);
        let overflow = fs::read_to_string("/proc/sys/kernel/overflowuid").ok()?;
        if is_identity { None } else { overflow.trim().parse().ok() }
    };
    // Few things belong to such a uid, so the files are seldom read.
    uid >= 65_534 && *OVERFLOW.get_or_init(read) == Some(uid)
}

#[cfg(not(target_os = "linux"))]
fn is_overflow_uid(_: u32) -> bool {
    false
}

/// The group that only this user is in, if the system gives each user one. With such groups a umask of 002 is usual.
pub(crate) fn own_private_group() -> Option<u32> {
    static GROUP: OnceLock<Option<u32>> = OnceLock::new();
    *GROUP.get_or_init(|| {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        private_group(rustix::process::geteuid().as_raw(), &read("/etc/passwd"), &read("/etc/group"))
    })
}

/// The private group of a user: the group of their name, or with their number, in which no other account is.
fn private_group(uid: u32, passwd: &str, group: &str) -> Option<u32> {
    let accounts = || {
        passwd.lines().filter_map(|line| {
            let mut fields = line.split(':');
            let (name, uid, gid) = (fields.next()?, fields.nth(1)?, fields.next()?);
            Some((name, uid.parse::<u32>().ok()?, gid.parse::<u32>().ok()?))
        })
    };
    let own = accounts().find(|account| account.1 == uid);
    // Accounts of a directory service are not in the file. Their private group has their number.
    let gid = own.map_or(uid, |account| account.2);
    let name = own.map(|account| account.0);
    let listed = group.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (group_name, number, members) = (fields.next()?, fields.nth(1)?, fields.next()?);
        (number.parse() == Ok(gid)).then_some((group_name, members))
    });
    let is_named_so = listed.is_some_and(|(group_name, _)| Some(group_name) == name);
    let members = listed.map_or("", |(_, members)| members);
    let is_alone = members.split(',').all(|member| member.is_empty() || Some(member) == name)
        && accounts().all(|account| account.2 != gid || account.1 == uid);
    ((is_named_so || gid == uid) && is_alone).then_some(gid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_group_without_other_accounts_is_private() {
        let passwd = "root:x:0:0:root:/root:/bin/sh\nann:x:1000:1000::/people/ann:/bin/sh\nbob:x:1001:100::/people/bob:/bin/sh\n\
                      cy:x:1002:2002::/people/cy:/bin/sh\ndi:x:1003:2002::/people/di:/bin/sh\nbroken\n";
        let group = "root:x:0:\nann:x:1000:\nusers:x:100:\ncy:x:2002:\nteam:x:1004:eve\nfay:x:1005:fay\n";
        for (uid, expected, why) in [
            (0, Some(0), "root's"),
            (1000, Some(1000), "of their name"),
            (1001, None, "everybody's"),
            (1002, None, "another account has it, too"),
            (1004, None, "of their number, and somebody is in it"),
            (1006, Some(1006), "an account of a directory service"),
        ] {
            assert_eq!(private_group(uid, passwd, group), expected, "{uid}: {why}");
        }
        assert_eq!(private_group(1000, passwd, "ann:x:1000:ann\n"), Some(1000));
        assert_eq!(private_group(1000, passwd, "ann:x:1000:ann,bob\n"), None);
    }

    #[test]
    fn unmapped_owners_count_as_root_only_for_directories_of_the_system() {
        for path in ["/", "/srv", "/tmp", "/run/user", "/usr/local/bin", "/etc/xdg"] {
            assert!(is_system_path(Path::new(path)), "{path}");
        }
        for path in ["/srv/mallory", "/tmp/tmux-1000", "/run/user/1000", "/var/tmp/x", "/srv/x"] {
            assert!(!is_system_path(Path::new(path)), "{path}");
        }
        assert!(!is_overflow_uid(1000));
    }
}
