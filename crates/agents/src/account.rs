//! How the person is signed in to a client, as far as MCP channels depend on it.

use std::collections::BTreeSet;
use std::path::Path;

use ringer_core::conversation::{Account, Auth};
use ringer_platform::owned;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Deserializer};

use crate::client::{Client, ClientPaths};

const MAX_FILE: u64 = 1024 * 1024;
/// Variables that make Claude Code use an API key or a cloud provider instead of the person's account.
const KEY_VARIABLES: [&str; 5] = [
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "CLAUDE_CODE_USE_BEDROCK",
    "CLAUDE_CODE_USE_VERTEX",
    "CLAUDE_CODE_USE_FOUNDRY",
];
/// Variable with the OAuth token of the person's account.
const TOKEN_VARIABLE: &str = "CLAUDE_CODE_OAUTH_TOKEN";

/// `.credentials.json`. Only the presence of a token counts; its value is not read.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Credentials {
    claude_ai_oauth: Option<Login>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Login {
    #[serde(rename = "accessToken")]
    _access_token: IgnoredAny,
    subscription_type: Option<String>,
}

/// The members of a settings file that matter here.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Settings {
    api_key_helper: Option<IgnoredAny>,
    /// Only the names count.
    #[serde(deserialize_with = "names")]
    env: BTreeSet<String>,
    channels_enabled: Option<bool>,
}

/// `.claude.json`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct State {
    oauth_account: Option<IgnoredAny>,
}

/// How the person is signed in to this agent's client, and with what kind of account. Only Claude Code ties channels to an
/// account; other clients require nothing.
pub fn account_of(client: &str, process: Option<u32>, paths: &ClientPaths) -> (Auth, Account) {
    if client.parse() != Ok(Client::Claude) {
        return (Auth::NotRequired, Account::Personal);
    }
    let directory = paths.named_or_home(paths.claude_dir.as_ref(), ".claude");
    let managed: Settings = read(&paths.claude_managed);
    let settings: Settings = read(&directory.join("settings.json"));
    let login = read::<Credentials>(&directory.join(".credentials.json")).claude_ai_oauth;
    let variables = process.map(variables_of).unwrap_or_default();
    let has = |name: &str| variables.iter().any(|own| own == name) || settings.env.contains(name);
    let is_key = settings.api_key_helper.is_some()
        || managed.api_key_helper.is_some()
        || KEY_VARIABLES.iter().any(|name| has(name) || managed.env.contains(*name));
    // macOS keeps the token in the keychain; only the account is in a file.
    let is_signed_in = || {
        let state = || read::<State>(&paths.home.join(".claude.json")).oauth_account.is_some();
        login.is_some() || has(TOKEN_VARIABLE) || (cfg!(target_os = "macos") && state())
    };
    let auth = match is_key {
        true => Auth::ApiKey,
        false if is_signed_in() => Auth::OAuth,
        false => Auth::SignedOut,
    };
    let subscription = login.as_ref().and_then(|login| login.subscription_type.as_deref());
    let of_organisation = matches!(subscription, Some("team" | "enterprise"));
    let account = match managed.channels_enabled {
        None if !of_organisation => Account::Personal,
        channels_enabled => Account::Managed { channels_enabled },
    };
    (auth, account)
}

/// The keys of an object.
fn names<'d, D: Deserializer<'d>>(deserializer: D) -> Result<BTreeSet<String>, D::Error> {
    Ok(serde_json::Map::deserialize(deserializer)?.into_iter().map(|(name, _)| name).collect())
}

/// Reads a file; a missing or malformed one counts as empty.
fn read<T: DeserializeOwned + Default>(path: &Path) -> T {
    let bytes = owned::read(path, MAX_FILE).ok();
    bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
}

/// The names of a process's non-empty environment variables, on systems with `/proc`.
fn variables_of(process: u32) -> Vec<String> {
    let bytes = std::fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
    let set = bytes.split(|byte| *byte == 0).filter_map(|variable| {
        let at = variable.iter().position(|byte| *byte == b'=')?;
        (at + 1 < variable.len()).then(|| String::from_utf8_lossy(&variable[..at]).into_owned())
    });
    set.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const FILE: &str = ".claude/.credentials.json";

    #[test]
    fn what_claude_code_s_files_say() {
        let check = |files: &[(&str, &str)], auth, account| {
            let home = tempfile::tempdir().unwrap();
            fs::create_dir(home.path().join(".claude")).unwrap();
            for (name, text) in files {
                fs::write(home.path().join(name), text).unwrap();
            }
            let managed = home.path().join("managed.json");
            let paths = ClientPaths { claude_managed: managed, ..ClientPaths::new(home.path()) };
            assert_eq!(account_of("claude", None, &paths), (auth, account), "{files:?}");
            assert_eq!(account_of("codex", None, &paths), (Auth::NotRequired, Account::Personal));
        };
        let login = |kind: &str| {
            format!(r#"{{"claudeAiOauth":{{"accessToken":"x","expiresAt":1,"subscriptionType":{kind}}}}}"#)
        };
        let managed = |channels_enabled| Account::Managed { channels_enabled };
        check(&[], Auth::SignedOut, Account::Personal);
        check(&[(FILE, "no JSON")], Auth::SignedOut, Account::Personal);
        check(&[(FILE, &login("\"max\""))], Auth::OAuth, Account::Personal);
        check(&[(FILE, &login("null"))], Auth::OAuth, Account::Personal);
        check(&[(FILE, &login("\"team\""))], Auth::OAuth, managed(None));
        let allows = ("managed.json", r#"{"channelsEnabled":true}"#);
        check(&[(FILE, &login("\"enterprise\"")), allows], Auth::OAuth, managed(Some(true)));
        let forbids = ("managed.json", r#"{"channelsEnabled":false}"#);
        check(&[(FILE, &login("\"pro\"")), forbids], Auth::OAuth, managed(Some(false)));
        for key in [r#"{"apiKeyHelper":"get-key"}"#, r#"{"env":{"ANTHROPIC_API_KEY":"k"}}"#] {
            let both = [(FILE, login("\"max\"")), (".claude/settings.json", key.to_owned())];
            check(
                &both.each_ref().map(|(name, text)| (*name, text.as_str())),
                Auth::ApiKey,
                Account::Personal,
            );
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn what_the_environment_of_its_process_says() {
        let home = tempfile::tempdir().unwrap();
        let paths = ClientPaths::new(home.path());
        let check = |name: &str, value: &str, expected| {
            let mut child =
                std::process::Command::new("sleep").arg("60").env_clear().env(name, value).spawn().unwrap();
            let found = account_of("claude", Some(child.id()), &paths).0;
            child.kill().unwrap();
            child.wait().unwrap();
            assert_eq!(found, expected, "{name}={value}");
        };
        check("ANTHROPIC_API_KEY", "k", Auth::ApiKey);
        check("ANTHROPIC_API_KEY", "", Auth::SignedOut);
        check("CLAUDE_CODE_OAUTH_TOKEN", "t", Auth::OAuth);
    }
}
