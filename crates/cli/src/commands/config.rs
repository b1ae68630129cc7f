//! `ringer config`.

use std::path::{Path, PathBuf};

use ringer_config::{
    Config, ConfigErrors, Environment, REPOSITORY_FILE, RepositorySettings, Rules, TableRule, Trusted,
    example, load, load_repository, schema_text, user_path,
};
use ringer_hub::delivery::setup::settings_rules;
use ringer_hub::{HubOptions, trust_file};
use ringer_journal::Home;
use ringer_panes::PaneKeys;
use ringer_term::sanitise_line;
use ringer_ui::{KEY_EXAMPLES, KeyMap, Palette};
use serde::Serialize;
use serde_json::json;

use crate::context;
use crate::failure::{Exit, Failure, Outcome};
use crate::output::{eprint_line, print_json, print_line, print_text};

/// Check and show the configuration
///
/// Examples:
///   ringer config check
///   ringer config show --default > ~/.config/ringer/config.toml
///   ringer config schema > config.schema.json   # for an editor
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Check your configuration file and this repository's .ringer.toml
    ///
    /// Examples:
    ///   ringer config check
    ///   ringer config check ~/dotfiles/ringer.toml
    ///   ringer config check --json | jq -r '.files[].problems[].message'
    #[command(verbatim_doc_comment)]
    Check {
        /// Check only this file; a file named .ringer.toml is checked as a repository's
        file: Option<PathBuf>,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Print the effective configuration as TOML
    ///
    /// Includes webhook URLs, which may be secret: check the output before you share it.
    ///
    /// Examples:
    ///   ringer config show
    ///   ringer config show --default   # every key with its meaning
    ///   ringer config show --json | jq .notify.popup
    #[command(verbatim_doc_comment)]
    Show {
        /// Print the defaults with comments, and examples to uncomment
        #[arg(long)]
        default: bool,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Print the configuration's JSON schema, for editors
    Schema,
}

pub(crate) fn run(arguments: &Args) -> Outcome {
    match &arguments.command {
        Command::Check { file, json } => check(file.as_deref(), *json),
        Command::Show { default: true, json: false } => print_text(&example(&rules())),
        Command::Show { default: true, json: true } => print_json(&Config::default()),
        Command::Show { default: false, json } => show(*json),
        Command::Schema => print_text(&schema_text(&rules())),
    }
}

/// Returns the places of the settings, as a hub started here would look for them.
pub(crate) fn environment() -> Environment {
    // The home is not used for this.
    HubOptions::of_process(Home::new("/"), false).environment
}

/// The user's file. `None` if neither HOME nor XDG_CONFIG_HOME is set: then the defaults apply.
pub(crate) fn user_config(environment: &Environment) -> Option<(PathBuf, Result<Config, ConfigErrors>)> {
    let path = user_path(environment)?;
    let read = load(&path, environment.home.as_deref(), &settings_rules());
    Some((path, read))
}

/// Returns the errors in tables that are read entry by entry, for a file that can otherwise be read. Wrong entries are left out,
/// and the rest of the file applies.
pub(super) fn left_out(path: &Path, environment: &Environment) -> Option<ConfigErrors> {
    load(path, environment.home.as_deref(), &rules()).err()
}

#[derive(Serialize)]
struct FileView {
    path: String,
    exists: bool,
    problems: Vec<ProblemView>,
}

#[derive(Serialize)]
struct ProblemView {
    line: usize,
    column: usize,
    message: String,
    hint: Option<String>,
}

impl FileView {
    fn of<T>(path: &Path, read: &Result<T, ConfigErrors>) -> Self {
        let problems = read.as_ref().err().into_iter().flat_map(|errors| &errors.0);
        let view = |error: &ringer_config::ConfigError| ProblemView {
            line: error.line,
            column: error.column,
            message: error.message.clone(),
            hint: error.hint.clone(),
        };
        Self {
            path: path.display().to_string(),
            // A file that exists but cannot be read has a problem.
            exists: read.is_err() || path.exists(),
            problems: problems.map(view).collect(),
        }
    }
}

fn check(file: Option<&Path>, as_json: bool) -> Outcome {
    let environment = environment();
    let files = match file {
        Some(file) => vec![check_one(file, &environment)?],
        None => check_here(&environment),
    };
    let problems: usize = files.iter().map(|file| file.problems.len()).sum();
    if as_json {
        print_json(&json!({ "ok": problems == 0, "files": files }))?;
    } else {
        for file in &files {
            print_file(file)?;
        }
    }
    fail_if_any(problems)
}

fn check_one(file: &Path, environment: &Environment) -> Result<FileView, Failure> {
    let name = file.display().to_string();
    // A missing default file means default settings, but a file that the person names must exist.
    std::fs::metadata(file).map_err(|error| Failure::open(&sanitise_line(&name), error))?;
    let home = environment.home.as_deref();
    if file.file_name().is_some_and(|name| name == REPOSITORY_FILE) {
        let root = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        return Ok(FileView::of(file, &load_repository(root, home)));
    }
    Ok(FileView::of(file, &load(file, home, &rules())))
}

fn check_here(environment: &Environment) -> Vec<FileView> {
    let home = environment.home.as_deref();
    let user = user_path(environment).map(|path| FileView::of(&path, &load(&path, home, &rules())));
    let repository = context::repository().map(|repository| {
        let path = repository.worktree.join(REPOSITORY_FILE);
        FileView::of(&path, &load_repository(&repository.worktree, home))
    });
    // Most repositories have no such file, so a missing one is not listed.
    user.into_iter().chain(repository.filter(|file| file.exists)).collect()
}

fn print_file(file: &FileView) -> Outcome {
    let path = sanitise_line(&file.path);
    for problem in &file.problems {
        eprint_line(&format!(
            "{path}:{}:{}: {}",
            problem.line,
            problem.column,
            sanitise_line(&problem.message)
        ));
        if let Some(hint) = &problem.hint {
            eprint_line(&format!("hint: {}", sanitise_line(hint)));
        }
    }
    match (file.problems.is_empty(), file.exists) {
        (false, _) => Ok(()),
        (true, true) => print_line(&format!("{path}: ok")),
        (true, false) => print_line(&format!("{path}: no config file; using defaults")),
    }
}

fn fail_if_any(problems: usize) -> Outcome {
    let what = match problems {
        0 => return Ok(()),
        1 => "1 problem in the configuration".to_owned(),
        problems => format!("{problems} problems in the configuration"),
    };
    Err(Failure::new(Exit::Config, what).hint("ringer config show --default   # every key with its meaning"))
}

/// Prints the problems of a file. Returns a failure with their number.
pub(super) fn report_and_fail<T>(path: &Path, errors: ConfigErrors) -> Result<T, Failure> {
    let file = FileView::of::<()>(path, &Err(errors));
    print_file(&file)?;
    fail_if_any(file.problems.len())?;
    // The list of problems is never empty.
    Err(Failure::new(Exit::Config, "the configuration is invalid"))
}

fn show(as_json: bool) -> Outcome {
    let environment = environment();
    let config = match user_config(&environment) {
        None => Config::default(),
        Some((_, Ok(config))) => config,
        Some((path, Err(errors))) => return report_and_fail(&path, errors),
    };
    let config = with_repository(config, &environment)?;
    if as_json {
        return print_json(&config);
    }
    let text = config
        .to_toml()
        .map_err(|error| Failure::new(Exit::InputOutput, "cannot write the configuration").because(error))?;
    print_text(&text)
}

/// Adds the mutes and the trusted programs of the repository around the current directory.
fn with_repository(config: Config, environment: &Environment) -> Result<Config, Failure> {
    let Some(repository) = context::repository() else { return Ok(config) };
    let path = repository.worktree.join(REPOSITORY_FILE);
    let mut settings = match load_repository(&repository.worktree, environment.home.as_deref()) {
        Ok(settings) => settings,
        Err(errors) => {
            // As in the hub, a broken repository file has no effect.
            print_file(&FileView::of::<RepositorySettings>(&path, &Err(errors)))?;
            return Ok(config);
        }
    };
    let trusted = Trusted::load(&trust_file(&context::home()?)).unwrap_or_default();
    let all = settings.hooks.len() + settings.watches.len();
    settings.hooks.retain(|hook| trusted.is_trusted(hook));
    settings.watches.retain(|watch| trusted.is_trusted(watch));
    let left_out = all - settings.hooks.len() - settings.watches.len();
    if left_out > 0 {
        eprint_line(&format!(
            "warning: left out {left_out} programs in {}: not trusted\nhint: ringer trust",
            sanitise_line(&path.display().to_string())
        ));
    }
    if settings.mute.is_empty() && settings.hooks.is_empty() && settings.watches.is_empty() {
        return Ok(config);
    }
    Ok(config.with_repository(&settings, context::scope(Some(&repository)).as_str()))
}

/// The key `name` in `[theme]`.
pub(super) const THEME_NAME: &str = "name";
/// The key `mouse` in `[theme]`.
pub(super) const THEME_MOUSE: &str = "mouse";
/// The value that leaves the mouse to the terminal.
pub(super) const MOUSE_OFF: &str = "off";

const MOUSE: [&str; 2] = ["on", MOUSE_OFF];

/// All rules, including those of `[keys]` and `[theme]`, whose names the inbox and the panes define.
fn rules() -> Rules {
    let actions = KeyMap::action_names().into_iter().chain(PaneKeys::names()).collect();
    let tables = vec![
        TableRule { table: "keys", keys: actions, check: check_keys },
        TableRule { table: "theme", keys: vec![THEME_NAME, THEME_MOUSE], check: check_theme },
    ];
    Rules { tables, ..settings_rules() }
}

fn check_keys(_: &str, value: &str) -> Result<(), String> {
    if KeyMap::are_keys(value) {
        return Ok(());
    }
    Err(format!("is {value:?}; expected a key or several with spaces between, like {KEY_EXAMPLES}"))
}

fn check_theme(key: &str, value: &str) -> Result<(), String> {
    let known = if key == THEME_NAME { Palette::names() } else { MOUSE.to_vec() };
    if known.contains(&value) {
        return Ok(());
    }
    Err(format!("is {value:?}; expected one of {}", known.join(", ")))
}

#[cfg(test)]
mod tests {
    use std::{env, fs};

    use ringer_config::reference_text;

    use super::*;

    /// With `UPDATE_DOCS=1`, writes the documents instead of comparing them.
    #[test]
    fn generated_documents_are_current() {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
        let documents = [
            ("config.schema.json", schema_text(&rules())),
            ("reference/settings.md", reference_text(&rules())),
        ];
        for (name, text) in documents {
            let path = docs.join(name);
            if env::var_os("UPDATE_DOCS").is_some() {
                fs::write(&path, &text).unwrap();
            }
            let fix = "UPDATE_DOCS=1 cargo test -p ringer --bin ringer generated_documents";
            assert!(
                fs::read_to_string(&path).unwrap_or_default() == text,
                "docs/{name} is out of date: {fix}"
            );
        }
    }
}
