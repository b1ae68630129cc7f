//! `ringer run` beside the same program without it: how long much output takes until a terminal has it, what that costs, and how
//! long a key takes to its echo.
//!
//! Run with `cargo xtask bench run`, which names the program to try in `RINGER`. No hub runs.

#![expect(clippy::expect_used, reason = "a measurement that cannot go on has failed")]

use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use alacritty_terminal::Term;
use alacritty_terminal::event::VoidListener;
use alacritty_terminal::grid::Dimensions;
use alacritty_terminal::term::Config;
use alacritty_terminal::vte::ansi::Processor;
use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

const ROUNDS: usize = 7;
const OUTPUT: usize = 100 * 1024 * 1024;
const KEYS: usize = 500;
const SIZE: PtySize = PtySize { rows: 30, cols: 100, pixel_width: 0, pixel_height: 0 };

/// A program that stands between the terminal and the one that is run.
#[derive(Clone, Copy)]
enum Between {
    Ringer,
    Script,
    Nothing,
}

const ALL: [(&str, Between); 3] =
    [("`ringer run`", Between::Ringer), ("`script`", Between::Script), ("nothing between", Between::Nothing)];

/// What reads the output of the outer terminal.
#[derive(Clone, Copy)]
enum Reader {
    /// An emulator, as in a terminal's window.
    Emulator,
    /// It is thrown away.
    Discarding,
}

fn main() {
    let Some(ringer) = std::env::var("RINGER").ok() else {
        // As when all targets are tried.
        eprintln!("RINGER names no program; cargo xtask bench run does");
        return;
    };
    let directory = tempfile::tempdir().expect("a directory");
    let (text, colours) = (directory.path().join("text"), directory.path().join("colours"));
    fill(&text, b"the quick brown fox jumps over the lazy dog, and runs on until the line is long enough\n");
    fill(
        &colours,
        b"\x1b[1;34mthe quick\x1b[0m \x1b[38;5;208mbrown\x1b[m fox \x1b[38;2;1;2;3mjumps\x1b[0m\r\n",
    );
    let bench = Bench { ringer, home: directory.path().join("home").to_string_lossy().into_owned() };
    for (what, file, reader) in [
        ("100 MB of text into an emulator", &text, Reader::Emulator),
        ("100 MB of colours into an emulator", &colours, Reader::Emulator),
        ("100 MB of text, thrown away", &text, Reader::Discarding),
        ("100 MB of colours, thrown away", &colours, Reader::Discarding),
    ] {
        bench.output(what, file, reader);
    }
    bench.keys();
}

struct Bench {
    ringer: String,
    home: String,
}

impl Bench {
    /// A program in a terminal of 100 columns and 30 lines.
    fn start(&self, between: Between, program: &[&str]) -> Screen {
        let joined = program.join(" ");
        let argv: Vec<&str> = match between {
            Between::Ringer => [&[self.ringer.as_str(), "run", "--"], program].concat(),
            Between::Script => vec!["script", "-qec", &joined, "/dev/null"],
            Between::Nothing => program.to_vec(),
        };
        let mut command = CommandBuilder::new(argv[0]);
        command.args(&argv[1..]);
        command.env("RINGER_HOME", &self.home);
        command.env("TERM", "xterm-256color");
        Screen::of(command)
    }

    /// From before the program is started until its terminal has read everything; in turn, so that all have the same machine.
    fn output(&self, what: &str, file: &Path, reader: Reader) {
        let mut times: [Vec<(Duration, Duration)>; 3] = Default::default();
        let file = file.to_str().expect("a path in UTF-8");
        for _ in 0..ROUNDS {
            for ((_, between), times) in ALL.iter().zip(&mut times) {
                let (begun, cpu) = (Instant::now(), children_cpu());
                let read = self.start(*between, &["cat", file]).read_all(reader);
                assert!(read >= OUTPUT, "only {read} bytes");
                times.push((begun.elapsed(), children_cpu().saturating_sub(cpu)));
            }
        }
        println!(
            "| {what} ({ROUNDS} runs each, in turn) | shortest | median | ratio of the medians | CPU, median |"
        );
        println!("|---|---:|---:|---:|---:|");
        let middle = |of: &dyn Fn(&(Duration, Duration)) -> Duration, times: &[(Duration, Duration)]| {
            let mut all: Vec<Duration> = times.iter().map(of).collect();
            all.sort_unstable();
            (all[0].as_secs_f64(), all[all.len() / 2].as_secs_f64())
        };
        let baseline = middle(&|time| time.0, &times[2]).1;
        for ((name, _), times) in ALL.iter().zip(&times) {
            let ((shortest, median), (_, cpu)) =
                (middle(&|time| time.0, times), middle(&|time| time.1, times));
            println!(
                "| {name} | {shortest:.2} s | {median:.2} s | {:.2} × | {cpu:.2} s |",
                median / baseline
            );
        }
        println!();
    }

    /// From a key to its echo.
    fn keys(&self) {
        let mut screens = ALL.map(|(_, between)| self.start(between, &["cat"]));
        for screen in &mut screens {
            // It runs, and nothing else comes any more.
            screen.echo(b"a\n", b"a\r\na\r\n");
        }
        let mut times: [Vec<Duration>; 3] = Default::default();
        for _ in 0..KEYS {
            for (screen, times) in screens.iter_mut().zip(&mut times) {
                times.push(screen.echo(b"x", b"x"));
            }
        }
        println!("| a key to its echo ({KEYS} each, in turn) | p50 | p99 | longest | p50 over nothing |");
        println!("|---|---:|---:|---:|---:|");
        for times in &mut times {
            times.sort_unstable();
        }
        let at = |times: &[Duration], percent: usize| {
            times[(times.len() * percent).div_ceil(100) - 1].as_secs_f64() * 1e3
        };
        let baseline = at(&times[2], 50);
        for ((name, _), times) in ALL.iter().zip(&times) {
            let [p50, p99, longest] = [50, 99, 100].map(|percent| at(times, percent));
            println!("| {name} | {p50:.3} ms | {p99:.3} ms | {longest:.3} ms | {:.3} ms |", p50 - baseline);
        }
    }
}

/// The processor time of all processes that have been waited for.
fn children_cpu() -> Duration {
    let stat = fs::read_to_string("/proc/self/stat").expect("Linux");
    let fields: Vec<&str> = stat.rsplit(')').next().expect("fields").split_whitespace().collect();
    let ticks: u32 = fields[13..15].iter().map(|field| field.parse::<u32>().expect("a number")).sum();
    // The kernel counts in hundredths of a second here.
    Duration::from_millis(10) * ticks
}

fn fill(path: &Path, line: &[u8]) {
    let bytes: Vec<u8> = line.iter().copied().cycle().take(OUTPUT).collect();
    fs::write(path, bytes).expect("a file");
}

struct Screen {
    child: Box<dyn Child + Send + Sync>,
    reader: Box<dyn Read + Send>,
    writer: Box<dyn Write + Send>,
    _master: Box<dyn MasterPty + Send>,
}

impl Screen {
    fn of(command: CommandBuilder) -> Self {
        let pair = native_pty_system().openpty(SIZE).expect("a terminal");
        let child = pair.slave.spawn_command(command).expect("a program");
        let reader = pair.master.try_clone_reader().expect("a reader");
        let writer = pair.master.take_writer().expect("a writer");
        Self { child, reader, writer, _master: pair.master }
    }

    fn read_all(mut self, reader: Reader) -> usize {
        let mut terminal = Term::new(Config::default(), &Lines, VoidListener);
        let mut parser: Processor = Processor::new();
        let (mut buffer, mut read) = (vec![0; 65_536], 0);
        while let Ok(count @ 1..) = self.reader.read(&mut buffer) {
            read += count;
            if let Reader::Emulator = reader {
                parser.advance(&mut terminal, &buffer[..count]);
            }
        }
        self.child.wait().expect("it ends");
        read
    }

    /// Types something and waits until the terminal has shown exactly this.
    fn echo(&mut self, typed: &[u8], shown: &[u8]) -> Duration {
        let begun = Instant::now();
        self.writer.write_all(typed).and_then(|()| self.writer.flush()).expect("a key is typed");
        let mut read = Vec::new();
        let mut buffer = [0; 4096];
        while !read.ends_with(shown) {
            let count = self.reader.read(&mut buffer).expect("an echo");
            read.extend_from_slice(&buffer[..count]);
        }
        begun.elapsed()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The size of the screen, for the emulator.
struct Lines;

impl Dimensions for Lines {
    fn total_lines(&self) -> usize {
        self.screen_lines()
    }

    fn screen_lines(&self) -> usize {
        usize::from(SIZE.rows)
    }

    fn columns(&self) -> usize {
        usize::from(SIZE.cols)
    }
}
