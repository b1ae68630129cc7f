//! Tests with real clients. npm and pip install them into the target folder, outside of version control.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::binary;
use crate::failure::Failure;
use crate::parts::{self, Missing, Part};
use crate::step::{self, Step};
use crate::step_times::StepTimes;

/// A client with a pinned version, because the tests depend on its output.
struct Client {
    package: &'static str,
    version: &'static str,
    program: &'static str,
}

const CLIENTS: &[Client] = &[
    Client { package: "@anthropic-ai/claude-code", version: "2.1.328", program: "claude" },
    Client { package: "@openai/codex", version: "0.169.0", program: "codex" },
    Client { package: "@google/gemini-cli", version: "0.61.0", program: "gemini" },
    Client { package: "opencode-ai", version: "1.18.33", program: "opencode" },
    Client { package: "@github/copilot", version: "1.0.102", program: "copilot" },
    Client { package: "@modelcontextprotocol/inspector", version: "2.12.0", program: "mcp-inspector" },
];

/// The MCP client for Python, pinned like the others, and the file that records its version.
const PYTHON_CLIENT: &str = "mcp==2.3.0";
const PYTHON_CLIENT_INFO: &str = "python/mcp-2.3.0.dist-info";

/// The oldest Node.js that all clients support; Gemini CLI requires it. Debian 12 has an older one.
const OLDEST_NODE: u32 = 20;

/// The limit for building and running these tests in CI. The whole CI run should take less than 45 minutes on 2 cores; this
/// part took 8 minutes on 2 busy cores.
const LIMIT_MINUTES: u32 = 20;

const INSTALLERS: &[Part] = &[
    Part::new("npm", "npm", "so the real clients can be installed for their tests"),
    Part::new("pip3", "python3-pip", "so the MCP client for Python can be installed for its tests"),
    Part::new("bwrap", "bubblewrap", "so the clients can put their shells into a sandbox"),
    Part::new("socat", "socat", "so Claude Code can put its shell into a sandbox"),
];

/// Runs the tests with real clients. They talk to stand-in servers on loopback; only installing needs the network.
pub(crate) fn test(missing: Missing, arguments: &[String], times: &mut StepTimes) -> Result<(), Failure> {
    let folder = binary::artifacts()?.join("clients");
    install(missing, &folder, times)?;
    run(Step::new("clients", step::cargo()), &folder, arguments, times)
}

/// Runs the tests in CI: with a time limit, and only if the clients can be installed.
pub(crate) fn test_in_ci(times: &mut StepTimes) -> Result<(), Failure> {
    let folder = binary::artifacts()?.join("clients");
    if let Err(failure) = parts::ensure_these(INSTALLERS, Missing::Install, times) {
        eprintln!("the tests with real clients were skipped: {failure}");
        return Ok(());
    }
    if let Some(why) = why_not_here(&folder, &node_version(), registry) {
        eprintln!("the tests with real clients were skipped: {why}");
        return Ok(());
    }
    install(Missing::Install, &folder, times)?;
    let limit = format!("{LIMIT_MINUTES}m");
    // `timeout` ends all child processes, and the death signal ends `timeout` if this process ends.
    let limited = Step::new("clients", "setpriv")
        .args(["--pdeathsig", "TERM", "timeout", "--kill-after=10s", &limit])
        .args([step::cargo()]);
    run(limited, &folder, &[], times).map_err(|failure| {
        const TIMED_OUT: u8 = 124;
        if !failure.is_code(TIMED_OUT) {
            return failure;
        }
        Failure::complaints(format!(
            "the tests with real clients took more than {LIMIT_MINUTES} minutes; which one hangs says: \
             cargo xtask test --clients -- --test-threads=1"
        ))
    })
}

/// Runs a benchmark with a real client, with the program as `cargo install` builds it. Fails if the client cannot be installed.
pub(crate) fn bench(
    name: &'static str,
    test: &str,
    missing: Missing,
    settings: &[(&str, &str)],
    times: &mut StepTimes,
) -> Result<(), Failure> {
    let folder = binary::artifacts()?.join("clients");
    if let Some(why) = why_not_here(&folder, &node_version(), registry) {
        return Err(Failure::unavailable(format!("there is no Claude Code to measure: {why}")));
    }
    install(missing, &folder, times)?;
    let step = Step::cargo(name, &["test", "--release", "-p", "ringer", "--test", "clients", test])
        .args(["--", "--ignored", "--nocapture"])
        .env("RINGER_CLIENTS", &programs(&folder).to_string_lossy());
    settings.iter().fold(step, |step, (setting, value)| step.env(setting, value)).run(times)
}

fn run(cargo: Step, folder: &Path, arguments: &[String], times: &mut StepTimes) -> Result<(), Failure> {
    cargo
        .args(["test", "-p", "ringer", "--test", "clients"])
        .args(with_ignored(arguments))
        .env("RINGER_CLIENTS", &programs(folder).to_string_lossy())
        .run(times)
}

/// Returns why the clients cannot be installed on this machine, or `None`. `registry` checks that npm reaches its registry.
fn why_not_here(folder: &Path, node: &str, registry: impl FnOnce() -> Result<(), String>) -> Option<String> {
    if major(node).is_none_or(|version| version < OLDEST_NODE) {
        return Some(format!(
            "the clients need Node.js {OLDEST_NODE} or newer, and this is {:?}",
            node.trim()
        ));
    }
    if lacking(folder).is_empty() {
        return None;
    }
    registry().err().map(|error| format!("npm does not reach its registry: {error}"))
}

/// Returns the version of Node.js, such as `v20.11.1`, or an empty string without Node.js.
fn node_version() -> String {
    let output = Command::new("node").arg("--version").output();
    output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default()
}

fn major(version: &str) -> Option<u32> {
    version.trim().strip_prefix('v')?.split('.').next()?.parse().ok()
}

/// Requests a known package from the registry. npm itself would retry for minutes.
fn registry() -> Result<(), String> {
    let asked = Command::new("npm")
        .args(["view", CLIENTS[0].package, "name", "--fetch-retries=1", "--fetch-timeout=20000"])
        .stdin(Stdio::null())
        .output()
        .map_err(|error| error.to_string())?;
    if asked.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&asked.stderr);
    let code = said.lines().find(|line| line.contains(" code "));
    Err(code.unwrap_or("it did not say why").trim_start_matches("npm error ").to_owned())
}

/// Adds the option that runs these tests, which are ignored by default. Arguments after `--` are for the test program.
fn with_ignored(arguments: &[String]) -> Vec<String> {
    let mut arguments = arguments.to_vec();
    if !arguments.iter().any(|argument| argument == "--") {
        arguments.push("--".to_owned());
    }
    arguments.push("--ignored".to_owned());
    arguments
}

fn install(missing: Missing, folder: &Path, times: &mut StepTimes) -> Result<(), Failure> {
    let lacking = lacking(folder);
    if lacking.is_empty() {
        return Ok(());
    }
    let command = ["install", "--no-audit", "--no-fund", "--save-exact", "--prefix"];
    if missing == Missing::Report {
        return Err(Failure::unavailable(format!(
            "clients that are needed are not here: {}; install them with: cargo xtask test --clients",
            lacking.join(" ")
        )));
    }
    parts::ensure_these(INSTALLERS, missing, times)?;
    fs::create_dir_all(folder).map_err(|error| Failure::io(&folder.display().to_string(), &error))?;
    // All clients in one command, because npm removes packages that are not named.
    if CLIENTS.iter().any(|client| !client.is_in(folder)) {
        let npm = Step::new("npm", "npm").args(command).args([folder]);
        npm.args(CLIENTS.iter().map(Client::spec)).run(times)?;
    }
    if !has_python_client(folder) {
        let pip = ["-m", "pip", "install", "--quiet", "--upgrade", "--root-user-action=ignore", "--target"];
        let pip = Step::new("pip", "python3").args(pip).args([folder.join("python")]);
        pip.args([PYTHON_CLIENT]).run(times)?;
    }
    Ok(())
}

/// Returns the clients that are not installed in their pinned version.
fn lacking(folder: &Path) -> Vec<String> {
    let from_npm = CLIENTS.iter().filter(|client| !client.is_in(folder)).map(Client::spec);
    from_npm.chain((!has_python_client(folder)).then(|| PYTHON_CLIENT.to_owned())).collect()
}

fn has_python_client(folder: &Path) -> bool {
    folder.join(PYTHON_CLIENT_INFO).is_dir()
}

/// The folder in which npm installs programs.
fn programs(folder: &Path) -> PathBuf {
    folder.join("node_modules/.bin")
}

impl Client {
    fn spec(&self) -> String {
        format!("{}@{}", self.package, self.version)
    }

    /// Returns true if the pinned version is installed. Checks the program too, because npm installs it last.
    fn is_in(&self, folder: &Path) -> bool {
        let manifest = folder.join("node_modules").join(self.package).join("package.json");
        let version = format!("\"version\": \"{}\"", self.version);
        programs(folder).join(self.program).exists()
            && fs::read_to_string(manifest).is_ok_and(|text| text.contains(&version))
    }
}

#[cfg(test)]
mod tests {
    use super::{CLIENTS, Client, PYTHON_CLIENT_INFO, install, why_not_here, with_ignored};
    use crate::parts::Missing;
    use crate::step_times::StepTimes;
    use std::fs;
    use std::path::Path;

    fn put(client: &Client, version: &str, folder: &Path) {
        let package = folder.join("node_modules").join(client.package);
        fs::create_dir_all(&package).expect("a folder");
        let manifest = format!("{{\n  \"name\": \"x\",\n  \"version\": \"{version}\"\n}}\n");
        fs::write(package.join("package.json"), manifest).expect("a file");
        fs::create_dir_all(folder.join("node_modules/.bin")).expect("a folder");
        fs::write(folder.join("node_modules/.bin").join(client.program), "").expect("a file");
    }

    #[test]
    fn clients_that_cannot_be_had_have_a_reason() {
        fn check(node: &str, registry: Result<(), String>, expect: Option<&str>) {
            let found = why_not_here(Path::new("nowhere"), node, || registry);
            assert_eq!(found.as_deref(), expect, "{node}");
        }
        let gone = || Err("code ECONNREFUSED".to_owned());
        check("v20.11.1\n", Ok(()), None);
        check("v22.0.0", gone(), Some("npm does not reach its registry: code ECONNREFUSED"));
        check("v18.20.4\n", Ok(()), Some("the clients need Node.js 20 or newer, and this is \"v18.20.4\""));
        check("", Ok(()), Some("the clients need Node.js 20 or newer, and this is \"\""));
    }

    #[test]
    fn the_tests_that_others_ignore_are_run() {
        fn check(arguments: &str, expect: &str) {
            let arguments: Vec<String> = arguments.split_whitespace().map(str::to_owned).collect();
            assert_eq!(with_ignored(&arguments).join(" "), expect, "{arguments:?}");
        }
        check("", "-- --ignored");
        check("codex", "codex -- --ignored");
        check("codex -- --nocapture", "codex -- --nocapture --ignored");
    }

    #[test]
    fn only_what_is_lacking_is_named() {
        let name = format!("ringer-xtask-clients-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        let complaint = |folder: &Path| {
            let outcome = install(Missing::Report, folder, &mut StepTimes::default());
            outcome.err().map(|failure| failure.to_string()).unwrap_or_default()
        };
        let all = "are not here: @anthropic-ai/claude-code@2.1.328 @openai/codex@0.169.0 @google/gemini-cli@0.61.0 \
                   opencode-ai@1.18.33 @github/copilot@1.0.102 @modelcontextprotocol/inspector@2.12.0 mcp==2.3.0; install them";
        assert!(complaint(&folder).contains(all), "{}", complaint(&folder));
        for client in CLIENTS {
            put(client, client.version, &folder);
        }
        fs::create_dir_all(folder.join(PYTHON_CLIENT_INFO)).expect("a folder");
        put(&CLIENTS[1], "0.165.9", &folder);
        let one = "are not here: @openai/codex@0.169.0; install them";
        assert!(complaint(&folder).contains(one), "{}", complaint(&folder));
        put(&CLIENTS[1], CLIENTS[1].version, &folder);
        assert_eq!(complaint(&folder), "");
        fs::remove_dir_all(&folder).expect("it was ours");
    }
}
