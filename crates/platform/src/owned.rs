//! Checks the target of a path before it is used: it belongs to this user, and no other user could have put it there.
//!
//! A path in `/tmp`, in an environment variable or in a message may lead to a socket, a program or a file of another user. The
//! functions that take a path walk it from `/`, as the kernel does: every directory on the way must belong to this user or to
//! root, and must not be writable by anybody else (`/tmp` passes, because its sticky bit protects its entries). Symbolic links
//! are followed if they belong to this user or to root; people keep settings in a repository of dotfiles. After that walk no
//! other user can exchange the target of the path, so there is no race between the check and the use.
//!
//! Two more owners are trusted: the private group of the user, and root seen from inside a user namespace.

use std::ffi::OsString;
use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::{Component, Path, PathBuf};
use std::sync::OnceLock;

use rustix::fs::{Mode, OFlags};

#[cfg(target_os = "linux")]
use crate::socket::connect_abstract_at_once;
use crate::socket::{connect_at_once, peer_uid};

/// Maximum number of symbolic links on a path, as in Linux.
const MAX_LINKS: usize = 40;
const OTHERS_WRITE: u32 = 0o002;
const OTHERS_USE: u32 = 0o077;
const GROUP_WRITES: u32 = 0o020;
const STICKY: u32 = 0o1000;
const ROOT: u32 = 0;

/// Opens a regular file of this user or of root that nobody else can write. Never blocks, whatever is there.
pub fn open(path: &Path) -> io::Result<File> {
    let (path, found) = walk(path, Writers::Strict)?;
    // A FIFO or a device is refused before it is opened: opening it may have an effect.
    check_file(&path, &found)?;
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(&path, flags, Mode::empty())?);
    check_file(&path, &file.metadata()?)?;
    Ok(file)
}

/// Reads a file that passes the checks of [`open`]. Refuses a file of more than `most` bytes.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length <= most) {
        return Ok(bytes);
    }
    Err(io::Error::new(ErrorKind::FileTooLarge, format!("{} has more than {most} bytes", path.display())))
}

/// Opens a file with a secret: it must belong to this user, and nobody else may read it.
pub fn open_secret(path: &Path) -> io::Result<File> {
    let file = open(path)?;
    let found = file.metadata()?;
    if found.uid() != own_uid() {
        return Err(foreign(path, found.uid()));
    }
    if found.mode() & OTHERS_USE != 0 {
        let why = format!("{0} can be read or written by others: chmod 600 {0}", path.display());
        return Err(io::Error::new(ErrorKind::PermissionDenied, why));
    }
    Ok(file)
}

/// Checks a socket before a program connects to it. It must belong to this user. Its mode does not matter: it controls who else
/// may connect, and tmux allows the group. Returns its path without links.
pub fn check_socket(path: &Path) -> io::Result<PathBuf> {
    let (path, found) = walk(path, Writers::Strict)?;
    require_socket(&path, &found)?;
    if found.uid() == own_uid() { Ok(path) } else { Err(foreign(&path, found.uid())) }
}

/// Connects to a socket of this user whose server is a process of this user, without waiting. The stream is non-blocking.
pub fn connect(path: &Path) -> io::Result<UnixStream> {
    let resolved = check_socket(path)?;
    let stream = connect_at_once(shorter(path, &resolved))?;
    check_peer(&stream)?;
    Ok(stream)
}

/// Connects to an abstract socket. Its name is in no directory, so only the process behind it can be checked.
#[cfg(target_os = "linux")]
pub fn connect_abstract(name: &[u8]) -> io::Result<UnixStream> {
    let stream = connect_abstract_at_once(name)?;
    check_peer(&stream)?;
    Ok(stream)
}

/// Returns the shorter of two paths of one socket: the kernel's limit is about a hundred bytes.
fn shorter<'a>(one: &'a Path, other: &'a Path) -> &'a Path {
    if one.as_os_str().len() <= other.as_os_str().len() { one } else { other }
}

/// Connects to a socket of this user or of root: an X server is often started by root.
pub fn connect_to_system(path: &Path) -> io::Result<UnixStream> {
    let (resolved, found) = walk(path, Writers::Strict)?;
    require_socket(&resolved, &found)?;
    if !is_trusted(found.uid()) {
        return Err(foreign(&resolved, found.uid()));
    }
    let stream = connect_at_once(shorter(path, &resolved))?;
    let peer = peer_uid(&stream)?;
    if is_trusted(peer) { Ok(stream) } else { Err(foreign_peer(peer)) }
}

/// Refuses a connection whose other end is a process of another user.
pub fn check_peer(stream: &UnixStream) -> io::Result<()> {
    let peer = peer_uid(stream)?;
    if peer == own_uid() { Ok(()) } else { Err(foreign_peer(peer)) }
}

/// Checks a directory of this user in which nobody else can create, rename or remove anything. Returns its path without links.
pub fn check_directory(path: &Path) -> io::Result<PathBuf> {
    let (path, found) = walk(path, Writers::Strict)?;
    if !found.is_dir() {
        return Err(wrong_kind(ErrorKind::NotADirectory, &path, "a directory"));
    }
    if found.uid() != own_uid() {
        return Err(foreign(&path, found.uid()));
    }
    check_writers(&path, &found, Writers::Strict)?;
    Ok(path)
}

/// Checks a directory in which this user can create something that nobody else can replace: a directory of their own, or one
/// with the sticky bit, such as `/tmp`.
pub fn check_base(path: &Path) -> io::Result<()> {
    let (path, found) = walk(path, Writers::Strict)?;
    check_passage(&path, &found, Writers::Strict)
}

/// Checks a program before it is run. It may be this user's or root's. Debian lets the group `staff` write in `/usr/local`, and
/// Homebrew `admin`; where root gave a group that right, its members are trusted with programs.
pub fn check_program(path: &Path) -> io::Result<()> {
    let (path, found) = walk(path, Writers::GroupOfRoot)?;
    if !found.is_file() {
        return Err(wrong_kind(ErrorKind::InvalidInput, &path, "a file"));
    }
    check_owner(&path, &found)?;
    check_writers(&path, &found, Writers::GroupOfRoot)
}

/// Checks the kind, the owner and the writers of a file, but not the directories of its path.
fn check_file(path: &Path, found: &Metadata) -> io::Result<()> {
    if !found.is_file() {
        return Err(wrong_kind(ErrorKind::InvalidInput, path, "a regular file"));
    }
    check_owner(path, found)?;
    check_writers(path, found, Writers::Strict)
}

/// Who may write besides the owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Writers {
    /// Nobody, or the private group of the user.
    Strict,
    /// Also the group of anything that root owns.
    GroupOfRoot,
}

/// Follows a path from `/` and checks every directory and link on the way. Returns its target, which is not checked.
fn walk(path: &Path, writers: Writers) -> io::Result<(PathBuf, Metadata)> {
    if !path.is_absolute() {
        let why = format!("{} is not an absolute path", path.display());
        return Err(io::Error::new(ErrorKind::InvalidInput, why));
    }
    let mut at = PathBuf::from("/");
    let mut found = fs::symlink_metadata(&at)?;
    let mut pending = Vec::new();
    push_components(&mut pending, path);
    let mut links = 0;
    while let Some(name) = pending.pop() {
        check_passage(&at, &found, writers)?;
        if name == ".." {
            at.pop();
            found = fs::symlink_metadata(&at)?;
            continue;
        }
        let next = at.join(&name);
        let metadata = fs::symlink_metadata(&next)?;
        if !metadata.is_symlink() {
            (at, found) = (next, metadata);
            continue;
        }
        links += 1;
        if links > MAX_LINKS {
            let why = format!("{} leads through too many links", path.display());
            return Err(io::Error::new(ErrorKind::InvalidInput, why));
        }
        check_owner(&next, &metadata)?;
        let target = fs::read_link(&next)?;
        if target.is_absolute() {
            at = PathBuf::from("/");
            found = fs::symlink_metadata(&at)?;
        }
        push_components(&mut pending, &target);
    }
    Ok((at, found))
}

/// Adds the components of a path to the pending ones, the next one last.
fn push_components(pending: &mut Vec<OsString>, path: &Path) {
    let names = path.components().rev().filter_map(|component| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    });
    pending.extend(names);
}

/// Checks a directory that a path leads through.
fn check_passage(path: &Path, found: &Metadata, writers: Writers) -> io::Result<()> {
    if !found.is_dir() {
        return Err(wrong_kind(ErrorKind::NotADirectory, path, "a directory"));
    }
    if !is_trusted(found.uid()) && !is_system_directory_of_root(path, found.uid()) {
        return Err(foreign(path, found.uid()));
    }
    if found.mode() & STICKY != 0 { Ok(()) } else { check_writers(path, found, writers) }
}

fn check_owner(path: &Path, found: &Metadata) -> io::Result<()> {
    if is_trusted(found.uid()) || is_system_directory_of_root(path, found.uid()) {
        Ok(())
    } else {
        Err(foreign(path, found.uid()))
    }
}

fn check_writers(path: &Path, found: &Metadata, writers: Writers) -> io::Result<()> {
    let mode = found.mode();
    let group_may = || {
        (writers == Writers::GroupOfRoot && found.uid() == ROOT) || Some(found.gid()) == own_private_group()
    };
    if mode & OTHERS_WRITE != 0 || (mode & GROUP_WRITES != 0 && !group_may()) {
        let why = format!("{} can be written by other users", path.display());
        return Err(io::Error::new(ErrorKind::PermissionDenied, why));
    }
    Ok(())
}

fn require_socket(path: &Path, found: &Metadata) -> io::Result<()> {
    if found.file_type().is_socket() {
        Ok(())
    } else {
        Err(wrong_kind(ErrorKind::InvalidInput, path, "a socket"))
    }
}

/// Root can do anything to this user, so what root owns is no danger.
fn is_trusted(uid: u32) -> bool {
    uid == own_uid() || uid == ROOT
}

fn own_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

fn wrong_kind(kind: ErrorKind, path: &Path, expected: &str) -> io::Error {
    io::Error::new(kind, format!("{} is not {expected}", path.display()))
}

fn foreign(path: &Path, uid: u32) -> io::Error {
    let why = format!("{} belongs to another user (uid {uid})", path.display());
    io::Error::new(ErrorKind::PermissionDenied, why)
}

fn foreign_peer(uid: u32) -> io::Error {
    io::Error::new(ErrorKind::PermissionDenied, format!("another user (uid {uid}) listens there"))
}

/// In a user namespace, root of the machine may not be mapped. It then appears as the overflow uid, like every unmapped user, so
/// only directories that every system has count as root's.
fn is_system_directory_of_root(path: &Path, uid: u32) -> bool {
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

/// Returns the private group of this user, if the system gives each user one. With such groups a umask of 002 is usual.
fn own_private_group() -> Option<u32> {
    static GROUP: OnceLock<Option<u32>> = OnceLock::new();
    *GROUP.get_or_init(|| {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        private_group(rustix::process::geteuid().as_raw(), &read("/etc/passwd"), &read("/etc/group"))
    })
}

/// Returns the private group of a user: their primary group, if it has their name or number and no other account is in it.
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
    use std::os::unix::fs::{PermissionsExt, chown, symlink};
    use std::os::unix::net::UnixListener;

    use super::*;

    const NOBODY: u32 = 65_534;

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    fn refusal<T>(result: io::Result<T>) -> String {
        result.err().map(|error| error.to_string()).unwrap_or_default()
    }

    /// A directory with a socket, a file and a program of this user.
    struct Place {
        directory: tempfile::TempDir,
        _listener: UnixListener,
    }

    impl Place {
        fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            let folder = directory.path().join("folder");
            fs::create_dir(&folder).unwrap();
            set_mode(&folder, 0o700);
            let listener = UnixListener::bind(folder.join("socket")).unwrap();
            for (name, mode) in [("file", 0o600), ("program", 0o755)] {
                fs::write(folder.join(name), "").unwrap();
                set_mode(&folder.join(name), mode);
            }
            Self { directory, _listener: listener }
        }

        fn folder(&self) -> PathBuf {
            self.directory.path().join("folder")
        }

        /// The refusal of each kind of check, below a folder.
        fn refusals(folder: &Path) -> [String; 5] {
            [
                refusal(connect(&folder.join("socket"))),
                refusal(check_socket(&folder.join("socket"))),
                refusal(open(&folder.join("file"))),
                refusal(check_program(&folder.join("program"))),
                refusal(check_directory(folder)),
            ]
        }
    }

    #[test]
    fn what_is_ours_passes_also_through_links_of_ours() {
        let place = Place::new();
        assert_eq!(Place::refusals(&place.folder()), [""; 5]);
        let link = place.directory.path().join("link");
        symlink("folder/../folder", &link).unwrap();
        assert_eq!(Place::refusals(&link), [""; 5]);
        for (name, target) in [("socket", "socket"), ("file", "file"), ("program", "program")] {
            let own = place.folder().join("links");
            let _ = fs::create_dir(&own);
            symlink(place.folder().join(target), own.join(name)).unwrap();
        }
        assert_eq!(Place::refusals(&place.folder().join("links")), [""; 5]);
    }

    #[test]
    fn a_directory_on_the_way_that_others_can_write_is_refused() {
        let place = Place::new();
        for mode in [0o777, 0o702] {
            set_mode(&place.folder(), mode);
            let expected = format!("{} can be written by other users", place.folder().display());
            assert_eq!(Place::refusals(&place.folder()), [(); 5].map(|()| expected.clone()), "{mode:o}");
        }
        set_mode(&place.folder(), 0o1777);
        let [connect, check, open, program, directory] = Place::refusals(&place.folder());
        assert_eq!([connect, check, open, program], [""; 4], "as /tmp: what is ours cannot be exchanged");
        assert!(directory.contains("other users"), "but others can make files in it: {directory}");
    }

    #[test]
    fn what_belongs_to_another_user_is_refused_at_every_place_of_a_path() {
        if !test_support::is_root() {
            return;
        }
        let expected = |path: &Path| format!("{} belongs to another user (uid {NOBODY})", path.display());
        let place = Place::new();
        for name in ["socket", "file", "program"] {
            chown(place.folder().join(name), Some(NOBODY), None).unwrap();
        }
        let [connect, check, open, program, directory] = Place::refusals(&place.folder());
        assert_eq!(connect, expected(&place.folder().join("socket")));
        assert_eq!(check, connect);
        assert_eq!(open, expected(&place.folder().join("file")));
        assert_eq!(program, expected(&place.folder().join("program")));
        assert_eq!(directory, "");

        let place = Place::new();
        chown(place.folder(), Some(NOBODY), None).unwrap();
        assert_eq!(Place::refusals(&place.folder()), [(); 5].map(|()| expected(&place.folder())));

        // A link that another user can change leads to what is ours today.
        let place = Place::new();
        let link = place.directory.path().join("link");
        symlink(place.folder(), &link).unwrap();
        std::os::unix::fs::lchown(&link, Some(NOBODY), None).unwrap();
        assert_eq!(Place::refusals(&link), [(); 5].map(|()| expected(&link)));
    }

    #[test]
    fn a_group_of_others_may_not_write_and_one_of_root_may_change_programs() {
        if !test_support::is_root() {
            return;
        }
        let place = Place::new();
        chown(place.folder(), None, Some(50)).unwrap();
        set_mode(&place.folder(), 0o2775);
        let [connect, check, open, program, directory] = Place::refusals(&place.folder());
        for refused in [connect, check, open, directory] {
            assert!(refused.contains("can be written by other users"), "{refused}");
        }
        assert_eq!(program, "", "as Debian's /usr/local/bin, of root:staff");
    }

    #[test]
    fn what_is_not_what_it_should_be_is_refused_and_never_waited_for() {
        let place = Place::new();
        let folder = place.folder();
        let fifo = folder.join("fifo");
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)
            .unwrap();
        for wrong in [&fifo, &folder, &folder.join("socket"), Path::new("/dev/null")] {
            assert!(refusal(open(wrong)).contains("is not a regular file"), "{wrong:?}");
        }
        for wrong in [&fifo, &folder, &folder.join("file")] {
            assert!(refusal(connect(wrong)).contains("is not a socket"), "{wrong:?}");
        }
        assert!(refusal(check_directory(&folder.join("file"))).contains("is not a directory"));
        assert!(refusal(open(&folder.join("file/below"))).contains("is not a directory"));
        assert!(refusal(open(Path::new("relative"))).contains("is not an absolute path"));
        assert_eq!(open(&folder.join("missing")).unwrap_err().kind(), ErrorKind::NotFound);
        let circle = folder.join("circle");
        symlink("circle", &circle).unwrap();
        assert!(refusal(open(&circle)).contains("too many links"));
    }

    #[test]
    fn a_base_may_be_sticky_or_ours() {
        let place = Place::new();
        check_base(&place.folder()).unwrap();
        set_mode(&place.folder(), 0o1777);
        check_base(&place.folder()).unwrap();
        set_mode(&place.folder(), 0o777);
        assert!(check_base(&place.folder()).is_err());
    }

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
