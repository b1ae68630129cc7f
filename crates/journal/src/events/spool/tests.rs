use std::os::unix::fs::PermissionsExt;

use super::*;
use crate::events::spool::LostEvents;
use crate::wake::doorbell::make_fifo;

struct Place {
    directory: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        for name in ["home", "run"] {
            DirBuilder::new().mode(0o700).create(directory.path().join(name)).unwrap();
        }
        Self { directory }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn spool(&self) -> Spool {
        Spool::of(&Home::new(self.path("home")).with_runtime(Some(self.path("run"))))
    }
}

fn agent(id: &str) -> Agent {
    Agent::new(id).unwrap()
}

fn put(spool: &Spool, id: &str, at: u64, random: u32) -> String {
    spool.begin(&agent(id), random).unwrap().finish(Duration::from_secs(at), b"event").unwrap()
}

#[test]
fn events_come_back_in_the_order_in_which_they_happened() {
    let place = Place::new();
    let spool = place.spool();
    put(&spool, "claude-b", 30, 1);
    put(&spool, "claude-a", 10, 2);
    put(&spool, "claude-a", 20, 3);
    let times: Vec<u64> = spool.entries().iter().map(|entry| entry.mono.as_secs()).collect();
    assert_eq!(times, [10, 20, 30]);
    assert!(spool.has_any_of(&agent("claude-a")));
    assert!(!spool.has_any_of(&agent("a")), "an agent whose name ends the same is another one");
    let entries = spool.entries();
    assert_eq!(entries[0].read().unwrap(), b"event");
    assert!(entries[0].exists() && entries[0].is_of_this_boot());
    entries.iter().for_each(Entry::remove);
    assert_eq!((spool.entries(), spool.count()), (Vec::new(), (0, 0)));
}

#[test]
fn an_event_that_is_being_written_is_known_and_not_read() {
    let place = Place::new();
    let spool = place.spool();
    let writer = spool.begin(&agent("claude-a"), 7).unwrap();
    assert!(spool.has_any_of(&agent("claude-a")) && !spool.has_any_of(&agent("claude-b")));
    assert_eq!(spool.entries(), []);
    drop(writer);
    assert!(!spool.has_any_of(&agent("claude-a")), "given up, it leaves nothing");
}

#[test]
fn what_happened_before_the_machine_was_started_comes_first() {
    let place = Place::new();
    let spool = place.spool();
    let name = put(&spool, "claude-a", 5, 1);
    let (boot, rest) = name.split_once('-').unwrap();
    let folder = spool.directories.written[0].clone();
    let earlier = format!("{}-{}", "0badb007", rest.replace("00005000000000", "99000000000000"));
    assert_ne!(boot, "0badb007");
    fs::write(folder.join(earlier), "event").unwrap();
    let boots: Vec<bool> = spool.entries().iter().map(Entry::is_of_this_boot).collect();
    assert_eq!(boots, [false, true]);
}

#[test]
fn the_runtime_directory_is_used_where_it_is_private() {
    let place = Place::new();
    put(&place.spool(), "a", 1, 1);
    assert!(place.path("run/ringer").is_dir() && !place.path("home/spool").exists());
    for (mode, what) in [(0o777, "others can write there"), (0o500, "it cannot be written")] {
        fs::remove_dir_all(place.path("run/ringer")).unwrap();
        fs::set_permissions(place.path("run"), fs::Permissions::from_mode(mode)).unwrap();
        // Root ignores the permissions of a directory.
        if mode == 0o777 || !rustix::process::geteuid().is_root() {
            put(&place.spool(), "a", 1, mode);
            assert_eq!(fs::read_dir(place.path("home/spool")).unwrap().count(), 1, "{what}");
            fs::remove_dir_all(place.path("home/spool")).unwrap();
        }
        fs::set_permissions(place.path("run"), fs::Permissions::from_mode(0o700)).unwrap();
        fs::create_dir_all(place.path("run/ringer")).unwrap();
    }
}

#[test]
fn what_no_hook_wrote_is_set_aside_unread() {
    let place = Place::new();
    let spool = place.spool();
    put(&spool, "a", 1, 1);
    let folder = spool.directories.written[0].clone();
    let name = |number: u32| format!("00000000-{number:020}-00000000-a{EVENT}");
    fs::create_dir(folder.join(name(1))).unwrap();
    std::os::unix::fs::symlink("/dev/zero", folder.join(name(2))).unwrap();
    fs::write(folder.join(name(3)), vec![b' '; usize::try_from(MAX_EVENT).unwrap() + 1]).unwrap();
    make_fifo(&folder.join(name(4))).unwrap();
    for entry in spool.entries().iter().filter(|entry| !entry.is_of_this_boot()) {
        assert_eq!(entry.read().unwrap_err().kind(), ErrorKind::InvalidData, "{}", entry.name);
        entry.quarantine().unwrap();
    }
    assert_eq!(spool.count(), (1, 4));
    assert_eq!(spool.entries().len(), 1);
}

#[test]
fn a_spool_that_is_full_says_so() {
    let place = Place::new();
    let spool = place.spool();
    put(&spool, "a", 1, 0);
    let folder = spool.directories.written[0].clone();
    for number in 1..MAX_FILES {
        fs::write(folder.join(number.to_string()), "").unwrap();
    }
    // The home is used if the runtime directory cannot be.
    put(&spool, "a", 2, 2);
    assert_eq!(fs::read_dir(place.path("home/spool")).unwrap().count(), 1);
}

#[test]
fn ids_that_are_no_file_names_are_told_apart_all_the_same() {
    let place = Place::new();
    let spool = place.spool();
    for (number, id) in ["../../x", "a/b", ".", "ä"].iter().enumerate() {
        put(&spool, id, 1, u32::try_from(number).unwrap());
        assert!(spool.has_any_of(&agent(id)));
    }
    assert_eq!(spool.entries().len(), 4);
    assert!(!spool.has_any_of(&agent("a_b")));
}

#[test]
fn lost_events_are_counted_and_told_once() {
    let place = Place::new();
    let spool = place.spool();
    spool.prepare_counter();
    assert_eq!(spool.lost(), None);
    assert!(spool.count_lost(1000, "no space left") && spool.count_lost(2000, "read-only\nfile system"));
    let lost = LostEvents { count: 2, since_ms: 1000, why: "read-only file system".into() };
    assert_eq!(spool.lost(), Some(lost.clone()));
    spool.mark_lost_reported();
    assert_eq!((spool.lost(), spool.lost_since(1000)), (None, Some(lost)));
    assert_eq!(spool.lost_since(2000).unwrap().count, 1);
    assert!(spool.count_lost(3000, "again"));
    assert_eq!(spool.lost().unwrap().count, 1);
}

#[test]
fn what_the_killed_left_half_written_goes_in_the_end() {
    let place = Place::new();
    let spool = place.spool();
    put(&spool, "a", 1, 1);
    let folder = spool.directories.written[0].clone();
    let (old, new) =
        (folder.join(format!("00000001-a{TEMPORARY}")), folder.join(format!("00000002-a{TEMPORARY}")));
    fs::write(&old, "ha").unwrap();
    fs::write(&new, "ha").unwrap();
    let long_ago = SystemTime::now() - ABANDONED_AFTER * 2;
    File::options().write(true).open(&old).unwrap().set_modified(long_ago).unwrap();
    spool.remove_abandoned();
    assert!(!old.exists() && new.exists());
}
