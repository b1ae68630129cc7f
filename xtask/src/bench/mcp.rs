use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use super::Options;
use super::baseline;
use super::measure::{Samples, order, table};
use crate::binary::{self, Profile};
use crate::environment::TestEnvironment;
use crate::failure::Failure;
use crate::step_times::StepTimes;

/// Starts of each server.
const STARTS: usize = 500;
/// Calls to each server after the warm-up.
const CALLS: usize = 20_000;
const WARM_UPS: usize = 200;

const INITIALIZE: &str = r#"{"id":1,"jsonrpc":"2.0","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}"#;

/// Measures the start of `ringer mcp`, and the overhead of `ringer mcp proxy` for each tool call of another server.
pub(crate) fn run(_: &Options, times: &mut StepTimes) -> Result<(), Failure> {
    let ringer = binary::ringer(Profile::Dist, times)?;
    let (empty, server) = (baseline::build("empty", times)?, baseline::build("mcp_server", times)?);
    let environment = TestEnvironment::in_memory("bench-mcp", &ringer)?;
    times.time("mcp start", || starts(&environment, &server, &empty))?;
    times.time("mcp calls", || calls(&environment, &server))
}

/// Measures from before the start to the response to `initialize`; for the empty program, to its exit.
fn starts(environment: &TestEnvironment, server: &Path, empty: &Path) -> Result<(), Failure> {
    let names =
        ["`ringer mcp` until it has answered `initialize`", "the bench's own server", "empty Rust program"];
    let mut taken = [const { Vec::new() }; 3];
    for round in 0..STARTS {
        for place in order(round, names.len()) {
            taken[place].push(match place {
                0 => until_initialized(environment.ringer(["mcp"]))?,
                1 => until_initialized(Command::new(server))?,
                _ => until_end(empty)?,
            });
        }
    }
    let samples: Vec<Samples> =
        names.into_iter().zip(taken).map(|(name, taken)| Samples::new(name.to_owned(), taken)).collect();
    println!("{}", table(&format!("mcp ({STARTS} starts each, in turn)"), &samples));
    println!("Bar: `ringer mcp` p50 at most 3 ms beyond the empty program.\n");
    Ok(())
}

fn until_initialized(command: Command) -> Result<Duration, Failure> {
    let start = Instant::now();
    let mut server = Server::start(command)?;
    server.ask(INITIALIZE)?;
    let took = start.elapsed();
    server.end()?;
    Ok(took)
}

fn until_end(program: &Path) -> Result<Duration, Failure> {
    let start = Instant::now();
    let ended = Command::new(program).env_remove("LD_LIBRARY_PATH").status();
    let took = start.elapsed();
    ended.map(|_| took).map_err(|error| Failure::io("empty", &error))
}

/// Measures from a call to its result, with and without the proxy. No message waits for the agent, as in nearly all calls.
fn calls(environment: &TestEnvironment, server: &Path) -> Result<(), Failure> {
    let program = server.to_string_lossy();
    // Creates the journal and registers the agent's name.
    let sent = environment.ringer(["notify", "a message to the person"]).status();
    sent.map_err(|error| Failure::io("ringer notify", &error))?;
    let mut proxy = environment.ringer(["mcp", "proxy", "--", &*program]);
    proxy.env("RINGER_AGENT", "worker");
    let names = ["`ringer mcp proxy -- SERVER`", "SERVER"];
    let mut servers = [Server::start(proxy)?, Server::start(Command::new(server))?];
    let mut taken = [const { Vec::new() }; 2];
    for round in 0..WARM_UPS + CALLS {
        for place in order(round, names.len()) {
            let call = format!(
                r#"{{"id":{round},"jsonrpc":"2.0","method":"tools/call","params":{{"name":"run","arguments":{{}}}}}}"#
            );
            let start = Instant::now();
            servers[place].ask(&call)?;
            if round >= WARM_UPS {
                taken[place].push(start.elapsed());
            }
        }
    }
    for server in servers {
        server.end()?;
    }
    let samples: Vec<Samples> =
        names.into_iter().zip(taken).map(|(name, taken)| Samples::new(name.to_owned(), taken)).collect();
    println!("{}", table(&format!("a tool call ({CALLS} each, in turn)"), &samples));
    println!("Bar: the proxy adds less than 1 ms at p99.\n");
    Ok(())
}

/// A running server.
struct Server {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Server {
    fn start(mut command: Command) -> Result<Self, Failure> {
        let failed = |error: &std::io::Error| Failure::io("a server", error);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.env_remove("LD_LIBRARY_PATH").spawn().map_err(|error| failed(&error))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Failure::complaints("a server has no pipes".to_owned()));
        };
        Ok(Self { child, input, output: BufReader::new(output) })
    }

    /// Writes a request and waits for the next line.
    fn ask(&mut self, request: &str) -> Result<(), Failure> {
        let failed = |error: &std::io::Error| Failure::io("a server", error);
        let mut answer = String::new();
        self.input.write_all(format!("{request}\n").as_bytes()).map_err(|error| failed(&error))?;
        self.output.read_line(&mut answer).map_err(|error| failed(&error))?;
        // A failed call would measure something else.
        if answer.contains("\"result\"") {
            Ok(())
        } else {
            Err(Failure::complaints(format!("a server answered {answer:?} while it was measured")))
        }
    }

    /// Closes its input and waits until it exits.
    fn end(mut self) -> Result<(), Failure> {
        drop(self.input);
        self.child.wait().map(drop).map_err(|error| Failure::io("a server", &error))
    }
}
