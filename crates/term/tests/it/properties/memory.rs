//! Unterminated input costs the scanner little memory, and it continues afterwards.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use ringer_term::{Multiplexer, Scanner, TerminalEventKind, wrap};

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
    static MOST: Cell<isize> = const { Cell::new(0) };
}

/// The system's allocator with a count of the thread's memory. Tests run in parallel in one process, so a count for the
/// whole process would include theirs.
struct Counting;

#[global_allocator]
static COUNTING: Counting = Counting;

impl Counting {
    fn count(change: isize) {
        // A thread that is ending has no counters any more, and its figures are not used.
        let _ = HELD.try_with(|held| {
            held.set(held.get() + change);
            let _ = MOST.try_with(|most| most.set(most.get().max(held.get())));
        });
    }
}

// SAFETY: every call is forwarded unchanged to the system's allocator; counting allocates nothing. Only
// the allocator can observe the memory in use, and implementing one is unsafe by its trait.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Self::count(layout.size().cast_signed());
        // SAFETY: the caller keeps `alloc`'s contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        Self::count(-layout.size().cast_signed());
        // SAFETY: the caller keeps `dealloc`'s contract, and the pointer came from `System`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;
/// The approximate size of a read from a terminal.
const BLOCK: usize = 64 * KIB;

/// Returns the scanner's peak memory while it reads a start and then the same bytes repeatedly, without an end.
fn most_held(start: &[u8], repeated: &[u8], length: usize) -> usize {
    let block: Vec<u8> = repeated.repeat(BLOCK.div_ceil(repeated.len()));
    let (mut scanner, mut seen) = (Scanner::new(), Vec::new());
    let before = HELD.get();
    MOST.set(before);
    scanner.feed(start, |event| seen.push(event.kind));
    for _ in 0..length / block.len() {
        scanner.feed(&block, |event| seen.push(event.kind));
    }
    let most = MOST.get() - before;
    assert_eq!(seen, [], "nothing that was sent says anything");

    // First ends any open sequence.
    scanner.feed(b"\x18\x1b\\\x1b]0;still there\x07", |event| seen.push(event.kind));
    assert_eq!(seen, [TerminalEventKind::Title("still there".into())]);
    usize::try_from(most).unwrap()
}

fn check(name: &str, start: &[u8], repeated: &[u8], length: usize, bound: usize) {
    let most = most_held(start, repeated, length);
    assert!(most <= bound, "{name}: held {most} bytes, the bound is {bound}");
}

/// One OSC of 8 KiB, and the spare capacity of a growing buffer.
const ONE_OSC: usize = 16 * KIB;

#[test]
fn an_osc_without_an_end_costs_no_memory() {
    check("64 MiB of title", b"\x1b]0;", b"x", 64 * MIB, ONE_OSC);
}

#[test]
fn other_strings_without_an_end_cost_no_memory() {
    check("OSC of semicolons", b"\x1b]99;", b";", 4 * MIB, ONE_OSC);
    check("OSC that begins anew", b"", b"\x1b]0;half a title ", 4 * MIB, ONE_OSC);
    check("DCS", b"\x1bPq", b"x", 4 * MIB, KIB);
    check("APC", b"\x1b_G", b"x", 4 * MIB, KIB);
    check("PM", b"\x1b^", b"\x07", 4 * MIB, KIB);
    check("SOS", b"\x1bX", b"x", 4 * MIB, KIB);
    check("CSI", b"\x1b[", b"1;", 4 * MIB, KIB);
}

#[test]
fn wrappers_without_an_end_cost_no_memory() {
    check("tmux", b"\x1bPtmux;\x1b\x1b]0;", b"x", 4 * MIB, 2 * ONE_OSC);
    check("tmux around nothing", b"", b"\x1bPtmux;", 4 * MIB, 2 * ONE_OSC);
    check("pieces for screen", b"\x1bP\x1b]0;", b"x\x1b\\\x1bP", 4 * MIB, 2 * ONE_OSC);
    // Deeper than any real nesting, and deeper than the scanner follows. Truncated before the terminators.
    let nested = wrap(b"\x1b]0;", &[Multiplexer::Tmux; 8]);
    let open = nested.windows(2).rposition(|pair| pair == b"0;").unwrap() + 2;
    check("tmux inside tmux", &nested[..open], b"x", 4 * MIB, 5 * ONE_OSC);
}

/// 16 notifications of 16 KiB, the spare capacity of growing buffers, and the current chunk.
const SIXTEEN_NOTIFICATIONS: usize = 2 * 16 * 16 * KIB + 256 * KIB;

#[test]
fn chunks_of_osc_99_without_an_end_cost_little_memory() {
    let check = |name, repeated: &str| check(name, b"", repeated.as_bytes(), 2 * MIB, SIXTEEN_NOTIFICATIONS);
    check("one id", "\x1b]99;i=1:d=0;a title that goes on and on\x1b\\");
    check("no id", "\x1b]99;d=0:p=body;a body that goes on and on\x1b\\");
    check("buttons", "\x1b]99;i=1:d=0:p=buttons;Yes\x1b\\");
    check("a few keys", "\x1b]99;i=1:d=0:n=aW5mbw==:t=aW5mbw==:f=aW5mbw==:a=report;\x1b\\");
    check("all keys that fit", &format!("\x1b]99;i=1:d=0:{};\x1b\\", "u=1:".repeat(1_900)));
    let ids = |count: usize, text: usize| {
        let chunk = |id| format!("\x1b]99;i={id}:d=0;{}\x1b\\", "x".repeat(text));
        (0..count).map(chunk).collect::<String>()
    };
    check("many ids", &ids(400, 100));
    check("many ids with much text", &ids(24, 2_040));
}

/// Metadata can be added to the last 16 notifications at any time, so their size needs a limit, too.
#[test]
fn late_keys_cost_little_memory() {
    let titles: String = (0..16).map(|id| format!("\x1b]99;i={id};title\x1b\\")).collect();
    let long = "x".repeat(7_000);
    let keys: String =
        (0..16).map(|id| format!("\x1b]99;i={id}:n={long};\x1b\\\x1b]99;i={id}:t={long};\x1b\\")).collect();
    let mut scanner = Scanner::new();
    let before = HELD.get();
    MOST.set(before);
    scanner.feed(titles.as_bytes(), |_| {});
    for _ in 0..20 {
        scanner.feed(keys.as_bytes(), |event| panic!("{event:?}"));
    }
    let most = MOST.get() - before;
    assert!(most <= SIXTEEN_NOTIFICATIONS.cast_signed(), "held {most} bytes of {SIXTEEN_NOTIFICATIONS}");
}
