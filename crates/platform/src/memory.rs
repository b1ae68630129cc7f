//! The memory of this process: pages that it does not need while it sleeps, and its heap.

#[cfg(any(target_os = "linux", test))]
use std::io::BufRead;
#[cfg(any(target_os = "linux", test))]
use std::ops::Range;

/// Releases pages of the program file and its libraries. The kernel maps them again when they are used, from its page cache or
/// from the file. For a process that is about to sleep for long: most of the memory of a short program is code that ran once.
/// Replacing or deleting the program file meanwhile is harmless, because a mapping keeps the old file. Does nothing except on
/// Linux.
pub fn release_clean_pages() {
    #[cfg(target_os = "linux")]
    if let Ok(maps) = std::fs::File::open("/proc/self/smaps") {
        for range in clean_ranges(std::io::BufReader::new(maps)) {
            release(&range);
        }
    }
}

#[cfg(target_os = "linux")]
#[expect(
    unsafe_code,
    reason = "there is no safe way to call it, and it changes no byte that is read or written here"
)]
fn release(range: &Range<usize>) {
    use rustix::mm::{Advice, madvise};
    let start = std::ptr::without_provenance_mut(range.start);
    // A range that cannot be released, such as one that is locked in memory, stays.
    // SAFETY: the range is a private mapping of a file, cannot be written to, and holds no page that differs from the file
    // (`clean_ranges`). The next access reads the same bytes from the file again.
    let _ = unsafe { madvise(start, range.len(), Advice::LinuxDontNeed) };
}

/// Returns the mappings in a `/proc/PID/smaps` whose pages all equal the file: private file mappings that are not writable, and
/// that have no anonymous page in memory or in swap. Anonymous pages of such a mapping were relocated by the dynamic linker
/// before it made them read-only; releasing one would bring back the unrelocated addresses of the file.
///
/// `Private_Dirty` is no substitute: it also counts pages of a file that the kernel has not written to the disk yet.
#[cfg(any(target_os = "linux", test))]
fn clean_ranges(smaps: impl BufRead) -> Vec<Range<usize>> {
    let mut clean = Vec::new();
    let mut mapping = None;
    for line in smaps.lines().map_while(Result::ok) {
        if let Some((range, is_candidate)) = header(&line) {
            mapping = is_candidate.then_some(Mapping { range, has_no_anonymous_page: false });
            continue;
        }
        let Some(known) = &mut mapping else { continue };
        match amount(&line) {
            Some(("Anonymous", amount)) => known.has_no_anonymous_page = amount == 0,
            // This line comes after `Anonymous`.
            Some(("Swap", amount)) => {
                clean.extend(
                    mapping
                        .take()
                        .filter(|known| known.has_no_anonymous_page && amount == 0)
                        .map(|known| known.range),
                );
            }
            _ => {}
        }
    }
    clean
}

/// A mapping whose lines are being read.
#[cfg(any(target_os = "linux", test))]
struct Mapping {
    range: Range<usize>,
    has_no_anonymous_page: bool,
}

/// Parses the first line of a mapping, such as `7f04-7f08 r-xp 00000000 fe:00 1234   /usr/bin/program`. Returns its range, and
/// true if it is a private file mapping that is not writable.
#[cfg(any(target_os = "linux", test))]
fn header(line: &str) -> Option<(Range<usize>, bool)> {
    let mut words = line.split_ascii_whitespace();
    let (start, end) = words.next()?.split_once('-')?;
    let address = |text: &str| usize::from_str_radix(text, 16).ok();
    let range = address(start)?..address(end)?;
    let rights = words.next()?;
    let is_file = words.nth(3).is_some_and(|name| name.starts_with('/'));
    Some((range, is_file && rights.ends_with('p') && !rights.contains('w')))
}

/// Parses a line such as `Anonymous:     12 kB`.
#[cfg(any(target_os = "linux", test))]
fn amount(line: &str) -> Option<(&str, u64)> {
    let (name, rest) = line.split_once(':')?;
    Some((name, rest.split_ascii_whitespace().next()?.parse().ok()?))
}

/// Makes all threads of this process allocate from one heap. glibc gives each thread its own heap, and memory that is freed in
/// one heap cannot be used by the others: a long-running process with few threads and much data takes a sixth less this way. Call
/// it before any other thread starts. Does nothing without glibc.
pub fn share_one_heap() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    #[expect(unsafe_code, reason = "there is no safe way to set it, and it only sets a number")]
    // SAFETY: it may be called at any time, and changes no memory that is in use.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
}

#[cfg(test)]
mod tests {
    use super::clean_ranges;
    #[cfg(target_os = "linux")]
    use test_support::until;

    fn mapping(header: &str, anonymous: u32, swap: u32) -> String {
        format!(
            "{header}\nSize: 132 kB\nRss: 64 kB\nPrivate_Clean: 0 kB\nPrivate_Dirty: 64 kB\n\
             Anonymous: {anonymous} kB\nAnonHugePages: 0 kB\nSwap: {swap} kB\nSwapPss: 0 kB\nTHPeligible: 0\nVmFlags: rd ex\n"
        )
    }

    #[test]
    fn only_what_is_as_in_the_file_is_clean() {
        fn check(header: &str, anonymous: u32, swap: u32, is_clean: bool) {
            let expect = is_clean.then_some(0x1000..0x3000);
            let smaps = mapping(header, anonymous, swap);
            assert_eq!(clean_ranges(smaps.as_bytes()), Vec::from_iter(expect), "{smaps}");
        }
        check("1000-3000 r-xp 00000000 fe:00 1234    /usr/bin/a program", 0, 0, true);
        check("1000-3000 r--p 00000000 fe:00 1234    /usr/lib/libc.so.6 (deleted)", 0, 0, true);
        // What the dynamic linker relocated, in memory and in the swap space.
        check("1000-3000 r--p 00000000 fe:00 1234    /usr/bin/program", 12, 0, false);
        check("1000-3000 r--p 00000000 fe:00 1234    /usr/bin/program", 0, 12, false);
        check("1000-3000 rw-p 00000000 fe:00 1234    /usr/bin/program", 0, 0, false);
        check("1000-3000 r--s 00000000 fe:00 1234    /usr/bin/program", 0, 0, false);
        check("1000-3000 r--p 00000000 00:00 0", 0, 0, false);
        check("1000-3000 r-xp 00000000 00:00 0       [vdso]", 0, 0, false);
    }

    #[test]
    fn each_mapping_is_judged_by_its_own_lines() {
        let smaps = [
            mapping("1000-2000 r-xp 00000000 fe:00 1  /a", 0, 0),
            mapping("2000-3000 rw-p 00000000 fe:00 1  /a", 0, 0),
            mapping("3000-4000 r--p 00000000 fe:00 1  /a", 4, 0),
            mapping("4000-5000 r--p 00000000 fe:00 1  /a", 0, 0),
            // The kernel tells no more of this one: it counts as not clean.
            "5000-6000 r--p 00000000 fe:00 1  /a\nRss: 64 kB\n".to_owned(),
        ]
        .concat();
        assert_eq!(clean_ranges(smaps.as_bytes()), [0x1000..0x2000, 0x4000..0x5000]);
        assert_eq!(clean_ranges(&b"\xff\n1000-"[..]), []);
    }

    /// Bytes of files that are in the memory of this process.
    #[cfg(target_os = "linux")]
    fn resident_file_kilobytes() -> u64 {
        let rollup = std::fs::read_to_string("/proc/self/smaps_rollup").unwrap();
        let of = |wanted: &str| {
            rollup.lines().filter_map(super::amount).find(|(name, _)| *name == wanted).unwrap().1
        };
        of("Rss") - of("Anonymous")
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_process_that_gave_its_pages_back_goes_on() {
        let before = resident_file_kilobytes();
        // Other tests of this process use pages meanwhile.
        until("half a megabyte less is in memory", || {
            super::release_clean_pages();
            resident_file_kilobytes() + 512 < before
        });
        // Addresses that the dynamic linker wrote (a table of functions), code, and constants are as before.
        let shown: Vec<Box<dyn std::fmt::Display>> = vec![Box::new("a"), Box::new(1.5), Box::new(char::MAX)];
        assert_eq!(shown.iter().map(ToString::to_string).collect::<String>(), "a1.5\u{10ffff}");
        let thread = std::thread::spawn(|| std::fs::read_to_string("/proc/self/comm").unwrap());
        assert!(!thread.join().unwrap().is_empty());
    }
}
