//! The environment of a test: a home in which a client opens without a dialog, a repository, Ringer set up.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use portable_pty::CommandBuilder;
use serde_json::{Value, json};
use tempfile::TempDir;
use test_support::{Model, until_within};

use crate::follower::Follower;
use crate::processes;
use crate::session::Session;
use crate::terminal::Terminal;

/// How long anything may take before the test has failed. Nothing is expected to come near it.
pub(crate) const DEADLINE: Duration = Duration::from_secs(90);

/// The folder in which the clients are.
const CLIENTS: &str = "RINGER_CLIENTS";

/// Not a real key: the stand-in takes every one. Claude Code asks about a key unless it knows its end.
const KEY: &str = "sk-ant-dummy-key-000000000000000000";

/// Who sends messages to agents in these tests.
pub(crate) const SENDER: &str = "builder";

pub(crate) const RINGER: &str = env!("CARGO_BIN_EXE_ringer");

/// What is the same in every environment.
const FIXED: [(&str, &str); 23] = [
    ("RINGER", RINGER),
    ("TERM", "xterm-256color"),
    ("LANG", "C.UTF-8"),
    ("TZ", "UTC"),
    ("ANTHROPIC_API_KEY", KEY),
    ("GEMINI_API_KEY", KEY),
    ("MOCK_KEY", KEY),
    ("DISABLE_TELEMETRY", "1"),
    ("DISABLE_ERROR_REPORTING", "1"),
    ("DISABLE_AUTOUPDATER", "1"),
    ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
    // It would try an overloaded server for minutes.
    ("CLAUDE_CODE_MAX_RETRIES", "0"),
    ("COPILOT_OFFLINE", "true"),
    ("COPILOT_AUTO_UPDATE", "false"),
    ("COPILOT_MODEL", "stand-in"),
    ("COPILOT_PROVIDER_TYPE", "openai"),
    ("COPILOT_PROVIDER_API_KEY", KEY),
    ("GEMINI_CLI_TRUST_WORKSPACE", "true"),
    ("OPENCODE_DISABLE_AUTOUPDATE", "1"),
    ("OPENCODE_DISABLE_DEFAULT_PLUGINS", "1"),
    ("OPENCODE_DISABLE_LSP_DOWNLOAD", "1"),
    ("OPENCODE_DISABLE_MODELS_FETCH", "1"),
    ("OPENCODE_DISABLE_SHARE", "1"),
];

/// Ringer set up for one client in a home of its own. Whatever runs there ends with it.
pub(crate) struct ClientEnvironment {
    client: &'static str,
    follower: Follower,
    directories: Directories,
    _directory: TempDir,
}

impl ClientEnvironment {
    /// With Ringer set up for Claude Code, and this model behind it.
    pub(crate) fn for_claude(model: &Model) -> Self {
        Self::new("claude", model, |home, project| {
            let seen = json!({ "hasTrustDialogAccepted": true, "hasCompletedProjectOnboarding": true,
                "projectOnboardingSeenCount": 4, "allowedTools": [] });
            let state = json!({
                "hasCompletedOnboarding": true, "lastOnboardingVersion": "99.0.0", "theme": "dark",
                "numStartups": 5, "autoUpdates": false, "hasSeenAutoDefaultNudge": true,
                "hasResetAutoModeOptInForDefaultOffer": true, "officialMarketplaceAutoInstallAttempted": true,
                "officialMarketplaceAutoInstalled": true, "lastReleaseNotesSeen": "99.0.0",
                "customApiKeyResponses": { "approved": [&KEY[KEY.len() - 20..]], "rejected": [] },
                "projects": { project.to_str().expect("a path in UTF-8"): seen },
            });
            write(&home.join(".claude.json"), &state.to_string());
        })
    }

    /// With Ringer set up for Codex, and this model behind it.
    pub(crate) fn for_codex(model: &Model) -> Self {
        Self::new("codex", model, |home, project| {
            let config = format!(
                "model = \"stand-in\"\nmodel_provider = \"mock\"\napproval_policy = \"never\"\n\
                 sandbox_mode = \"danger-full-access\"\ncheck_for_update_on_startup = false\n\n\
                 [analytics]\nenabled = false\n\n\
                 [features]\ndefault_mode_request_user_input = true\n\n\
                 [model_providers.mock]\nname = \"mock\"\nbase_url = \"{}/v1\"\nwire_api = \"responses\"\n\
                 env_key = \"MOCK_KEY\"\nrequest_max_retries = 0\nstream_max_retries = 0\n\n\
                 [projects.\"{}\"]\ntrust_level = \"trusted\"\n",
                model.url(),
                project.display()
            );
            write(&home.join(".codex/config.toml"), &config);
        })
    }

    /// With Ringer set up for Gemini CLI, and this model behind it.
    pub(crate) fn for_gemini(model: &Model) -> Self {
        Self::new("gemini", model, |home, _| {
            let settings = json!({
                "security": { "auth": { "selectedType": "gemini-api-key" } },
                "general": { "enableAutoUpdate": false, "enableAutoUpdateNotification": false },
                "privacy": { "usageStatisticsEnabled": false },
                // It would fetch the one and ask another model about the other.
                "tools": { "useRipgrep": false },
                "model": { "name": "gemini-2.5-flash" },
            });
            write(&home.join(".gemini/settings.json"), &settings.to_string());
        })
    }

    /// With Ringer set up for Copilot CLI, and this model behind it.
    pub(crate) fn for_copilot(model: &Model) -> Self {
        Self::new("copilot", model, |home, project| {
            let config = json!({ "trustedFolders": [project], "firstLaunchAt": "2026-11-01T00:00:00.000Z" });
            write(&home.join(".copilot/config.json"), &config.to_string());
        })
    }

    /// With Ringer set up for opencode, and this model behind it. The shell asks first if a command says so.
    pub(crate) fn for_opencode(model: &Model) -> Self {
        Self::new("opencode", model, |home, _| {
            let provider = json!({
                "npm": "@ai-sdk/openai-compatible", "name": "stand-in",
                "options": { "baseURL": format!("{}/v1", model.url()), "apiKey": KEY },
                "models": { "stand-in": { "name": "stand-in" } },
            });
            let config = json!({
                "model": "mock/stand-in", "small_model": "mock/stand-in", "provider": { "mock": provider },
                "permission": { "bash": { "*": "allow", "touch *": "ask" } },
            });
            let folder = home.join(".config/opencode");
            write(&folder.join("opencode.json"), &config.to_string());
            // It would fetch this package before it loads a plugin, and Ringer's needs none.
            let lock = json!({ "packages": { "": { "dependencies": { "@opencode-ai/plugin": "*" } } } });
            write(&folder.join("package-lock.json"), &lock.to_string());
            fs::create_dir(folder.join("node_modules")).expect("a folder");
        })
    }

    fn new(client: &'static str, model: &Model, prepare: impl FnOnce(&Path, &Path)) -> Self {
        let clients = std::env::var_os(CLIENTS).unwrap_or_else(|| {
            panic!("{CLIENTS} does not say where the clients are: cargo xtask test --clients installs and names them")
        });
        let clients = fs::canonicalize(&clients).expect("the folder of the clients");
        let directory = tempfile::tempdir().expect("a temporary directory");
        let directories = Directories { root: directory.path().to_owned(), clients, model: model.url() };
        for folder in ["home", "run", "tmp", "project"] {
            fs::create_dir(directories.root.join(folder)).expect("a folder");
        }
        // Else the terminal in which a developer runs this would be told. The end of what `ringer run` runs is always told.
        write(
            &directories.root.join("config.toml"),
            "[answers]\nscripts = true\n[notify]\npopup = \"off\"\nmin_turn = \"0s\"\n",
        );
        run(directories.command("git", &["init", "--quiet"]));
        prepare(&directories.root.join("home"), &directories.project());
        run(directories.command(RINGER, &["setup", client, "--yes"]));
        let follower = Follower::start(directories.command(RINGER, &["log", "--follow", "--json"]));
        Self { client, follower, directories, _directory: directory }
    }

    /// The same without Ringer's hooks.
    pub(crate) fn without_hooks(self) -> Self {
        self.ringer(&["setup", self.client, "--remove", "--yes"]);
        self
    }

    /// The home of the person who runs the client.
    pub(crate) fn home(&self) -> PathBuf {
        self.directories.root.join("home")
    }

    /// The state directory.
    pub(crate) fn state(&self) -> PathBuf {
        self.directories.state()
    }

    /// A client or another program, in the project.
    pub(crate) fn command(&self, program: &str, arguments: &[&str]) -> Command {
        self.directories.command(program, arguments)
    }

    /// What doctor says of the client. The exit code is doctor's own matter.
    #[track_caller]
    pub(crate) fn doctor(&self) -> Value {
        let output = self.directories.command(RINGER, &["doctor", "--json"]).output().expect("it runs");
        let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let part = self.client;
        let rows = report["rows"].as_array().expect("rows");
        rows.iter().find(|row| row["part"] == part).expect("a row").clone()
    }

    /// The repository that clients work in.
    pub(crate) fn project(&self) -> PathBuf {
        self.directories.project()
    }

    /// Adds a hook of the project's own, which Claude Code starts after Ringer's.
    pub(crate) fn add_hook(&self, event: &str, command: &str) {
        let hook = json!({ "type": "command", "command": command });
        let settings = json!({ "hooks": { event: [{ "hooks": [hook] }] } });
        write(&self.project().join(".claude/settings.json"), &settings.to_string());
    }

    /// Adds an MCP server to the project, which opencode starts.
    pub(crate) fn add_mcp_server(&self, name: &str, source: &str) {
        let program = self.directories.root.join("mcp_server.mjs");
        write(&program, source);
        let server = json!({ "type": "local", "enabled": true, "command": ["node", program] });
        write(&self.project().join("opencode.json"), &json!({ "mcp": { name: server } }).to_string());
    }

    /// Starts a client without a terminal.
    #[track_caller]
    pub(crate) fn start(&self, client: &str, arguments: &[&str]) -> Session {
        self.start_command(self.directories.command(client, arguments))
    }

    /// Starts a command without a terminal.
    #[track_caller]
    pub(crate) fn start_command(&self, command: Command) -> Session {
        Session::start(command, self.directories.root.join("printed"))
    }

    /// Where the packages for Python are, beside the clients.
    pub(crate) fn python_packages(&self) -> PathBuf {
        self.directories.clients.join("../../python")
    }

    /// Starts a client without a terminal and with another model behind it.
    #[track_caller]
    pub(crate) fn start_with_model(&self, model: &Model, client: &str, arguments: &[&str]) -> Session {
        let mut command = self.directories.command(client, arguments);
        command.env("ANTHROPIC_BASE_URL", model.url());
        self.start_command(command)
    }

    /// Starts a client in a terminal.
    #[track_caller]
    pub(crate) fn start_in_terminal(&self, client: &str, arguments: &[&str]) -> Terminal {
        let client = self.directories.clients.join(client);
        self.open_terminal(client.to_str().expect("a path in UTF-8"), arguments)
    }

    /// Starts any program in a terminal.
    #[track_caller]
    pub(crate) fn open_terminal(&self, program: &str, arguments: &[&str]) -> Terminal {
        let mut command = CommandBuilder::new(program);
        command.args(arguments);
        command.env_clear();
        for (name, value) in self.directories.variables() {
            command.env(name, value);
        }
        command.cwd(self.project());
        Terminal::start(command)
    }

    /// Runs Ringer as a person in another terminal would. Gives what it printed.
    #[track_caller]
    pub(crate) fn ringer(&self, arguments: &[&str]) -> String {
        run(self.directories.command(RINGER, arguments))
    }

    /// What the agent asks, as `ringer answer` shows it.
    #[track_caller]
    pub(crate) fn shown_prompt(&self) -> String {
        let (code, shown) = self.try_ringer(&["answer", "last"]);
        assert_eq!(code, 64, "no answer was given: {shown}");
        shown
    }

    /// Runs Ringer as a person in another terminal would. Gives its exit code and what it printed, errors last.
    #[track_caller]
    pub(crate) fn try_ringer(&self, arguments: &[&str]) -> (i32, String) {
        ended(self.begin_ringer(arguments))
    }

    /// Begins to run Ringer, for [`ended`] to wait for.
    #[track_caller]
    pub(crate) fn begin_ringer(&self, arguments: &[&str]) -> Child {
        let mut command = self.directories.command(RINGER, arguments);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().expect("the program runs")
    }

    /// The hooks that wait for the person.
    pub(crate) fn waiting_hooks(&self) -> Vec<u32> {
        let hooks = processes::with_home(&self.directories.state()).into_iter();
        hooks.filter(|pid| processes::waits_for_person(*pid)).collect()
    }

    /// The hooks that wait for messages while their sessions are idle.
    pub(crate) fn listening_hooks(&self) -> Vec<u32> {
        let hooks = processes::with_home(&self.directories.state()).into_iter();
        hooks.filter(|pid| processes::waits_for_messages(*pid)).collect()
    }

    /// The one agent that Ringer knows here.
    #[track_caller]
    pub(crate) fn agent(&self) -> String {
        let status: Value = serde_json::from_str(&self.ringer(&["status", "--json"])).expect("JSON");
        let agents = status["agents"].as_array().expect("a list");
        assert_eq!(agents.len(), 1, "{agents:?}");
        assert_eq!(agents[0]["client"], self.client, "{agents:?}");
        agents[0]["id"].as_str().expect("an id").to_owned()
    }

    /// Adds something to the settings, whose last table is `[notify]`.
    pub(crate) fn add_settings(&self, text: &str) {
        let path = self.directories.root.join("config.toml");
        let before = fs::read_to_string(&path).expect("the settings");
        write(&path, &(before + text));
    }

    /// Waits until the agent is in this state.
    #[track_caller]
    pub(crate) fn until_state(&self, state: &str) {
        until_within(DEADLINE, state, || self.is_in_state(state));
    }

    /// Whether the agent is in this state.
    pub(crate) fn is_in_state(&self, state: &str) -> bool {
        self.states().iter().any(|own| own == state)
    }

    /// The state of each agent. What only sent something has none.
    pub(crate) fn states(&self) -> Vec<String> {
        self.of_agents("state")
    }

    /// What is known of each agent.
    pub(crate) fn of_agents(&self, what: &str) -> Vec<String> {
        let status: Value = serde_json::from_str(&self.ringer(&["status", "--json"])).expect("JSON");
        let agents = status["agents"].as_array().expect("a list").iter();
        agents.filter_map(|agent| Some(agent[what].as_str()?.to_owned())).collect()
    }

    /// What is listed, oldest first, but for what Ringer tells of itself. A report that was told again with more is left out: the
    /// newer one has taken its place.
    #[track_caller]
    pub(crate) fn listed(&self) -> Vec<Value> {
        let mut rows: Vec<Value> = serde_json::from_str(&self.ringer(&["list", "--json"])).expect("JSON");
        rows.retain(|row| row["kind"] != "status");
        let log = self.ringer(&["log", "--json", "--everywhere"]);
        let messages: Vec<Value> =
            log.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        let mut episodes = HashSet::new();
        rows.retain(|row| {
            let message = messages.iter().find(|message| message["id"] == row["id"]).expect("its message");
            message["key"].as_str().is_none_or(|key| episodes.insert(key.to_owned()))
        });
        rows.reverse();
        rows
    }

    /// Waits until so many notifications of the agent are open. Gives what ended the newest one that is not.
    #[track_caller]
    pub(crate) fn until_open(&self, count: usize) -> Option<String> {
        let is_open = |row: &&Value| row["is_open"] == true;
        until_within(DEADLINE, "they are resolved", || self.listed().iter().filter(is_open).count() == count);
        let ended = self.listed().into_iter().rev().find(|row| row["is_open"] == false)?;
        let why = self.ringer(&["why", ended["id"].as_str().expect("an id")]);
        why.lines().find_map(|line| Some(line.split_once("over: ")?.1.to_owned()))
    }

    /// Waits until the agent has notified of something of this kind. Gives it.
    #[track_caller]
    pub(crate) fn notified(&self, kind: &str) -> Value {
        self.follower.until(|message| message["type"] == kind)
    }

    /// The kinds of all that the agent has notified of. Waits for the hooks that run, because one of them may be the one
    /// too many.
    #[track_caller]
    pub(crate) fn kinds(&self) -> Vec<String> {
        let home = self.directories.state();
        until_within(DEADLINE, "no hook runs", || {
            let hooks = processes::with_home(&home).into_iter().filter(|pid| processes::is_hook(*pid));
            // A hook beside an open dialog has told of it, and one of an idle session tells nothing.
            hooks
                .into_iter()
                .all(|pid| processes::waits_for_person(pid) || processes::waits_for_messages(pid))
        });
        let log = self.ringer(&["log", "--json"]);
        let messages = log.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
        let of_agent = messages.filter(|message| {
            let from = message["from"].as_str().expect("a sender");
            // The test has no terminal, and what it decides is announced.
            from != SENDER
                && !from.ends_with(&format!("/{SENDER}"))
                && message["category"] != "done_by_script"
        });
        of_agent.map(|message| message["type"].as_str().expect("a kind").to_owned()).collect()
    }

    /// What hooks could not do; it is in their log only.
    pub(crate) fn complaints(&self) -> String {
        fs::read_to_string(self.directories.state().join("hooks.log")).unwrap_or_default()
    }
}

impl Drop for ClientEnvironment {
    fn drop(&mut self) {
        if thread::panicking() {
            let log =
                |name: &str| fs::read_to_string(self.directories.state().join(name)).unwrap_or_default();
            eprintln!("hooks.log:\n{}hub.log:\n{}", log("hooks.log"), log("hub.log"));
            eprintln!("journal:\n{}", self.ringer(&["log", "--json", "--everywhere"]));
        }
        let _ = self.directories.command(RINGER, &["hub", "stop"]).stdout(Stdio::null()).status();
        processes::end_all(&self.directories.state());
    }
}

/// Where everything is.
struct Directories {
    root: PathBuf,
    clients: PathBuf,
    model: String,
}

impl Directories {
    fn project(&self) -> PathBuf {
        self.root.join("project")
    }

    fn state(&self) -> PathBuf {
        self.root.join("state")
    }

    /// A program in the project. Clients are found first.
    fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(arguments).env_clear().envs(self.variables()).current_dir(self.project());
        command
    }

    /// The whole environment: nothing of the developer's own, and nothing that would look for the network.
    fn variables(&self) -> Vec<(&'static str, String)> {
        let path = |name: &str| self.root.join(name).to_string_lossy().into_owned();
        let programs = std::env::var("PATH").unwrap_or_default();
        let set = |(name, value): (&'static str, &str)| (name, value.to_owned());
        let mut variables = vec![
            ("HOME", path("home")),
            ("RINGER_HOME", path("state")),
            ("RINGER_CONFIG", path("config.toml")),
            ("XDG_RUNTIME_DIR", path("run")),
            ("TMPDIR", path("tmp")),
            ("TMUX_TMPDIR", path("run")),
            ("SHELL", "/bin/sh".to_owned()),
            ("PATH", format!("{}:{programs}", self.clients.display())),
            ("ANTHROPIC_BASE_URL", self.model.clone()),
            ("GOOGLE_GEMINI_BASE_URL", self.model.clone()),
            ("COPILOT_PROVIDER_BASE_URL", format!("{}/v1", self.model)),
            // It unpacks 235 MB when it is started for the first time.
            ("COPILOT_PKG_CACHE_HOME", self.clients.join("../../copilot").to_string_lossy().into_owned()),
        ];
        variables.extend(FIXED.map(set));
        variables
    }
}

/// Waits for a program. Gives its exit code and what it printed, errors last.
#[track_caller]
pub(crate) fn ended(child: Child) -> (i32, String) {
    let output = child.wait_with_output().expect("it ends");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().expect("an exit code"), text(&output.stdout) + &text(&output.stderr))
}

#[track_caller]
fn run(mut command: Command) -> String {
    let output = command.stdin(Stdio::null()).output().expect("the program runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{command:?}: {}{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    fs::write(path, text).expect("a file");
}
