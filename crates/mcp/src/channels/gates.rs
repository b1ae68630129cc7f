//! Checks the six gates of `ringer_core::conversation`, which are pure, against what the hub knows.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use ringer_config::ChannelEntry;
use ringer_core::conversation::{
    Account, Auth, ChannelCandidate, ChannelPolicy, Gate, GateRefusal, McpServer, Plugin, check_gates,
};
use ringer_core::message::InvalidName;
use ringer_platform::{find_program, owned};

/// The marketplace name that stands for the person's own settings.
const OWN_SETTINGS: &str = "config.toml";

/// The facts about a server and its agent that the gates check.
#[derive(Debug, Clone)]
pub(super) struct GateInputs {
    /// The kill switch.
    pub(super) enabled: bool,
    /// The account with which the person is signed in to the agent's client. `None` if the agent is not running.
    pub(super) account: Option<(Auth, Account)>,
    /// A file in the server's command that other users can change.
    pub(super) changeable: Option<PathBuf>,
    /// True if the server declares the channel capability, and before it has been asked: the other gates then decide whether to
    /// start it.
    pub(super) declares_channel: bool,
}

/// Returns the refusal of the first gate that is closed.
pub(super) fn refusal(
    server: &ChannelEntry,
    circumstances: &GateInputs,
) -> Result<Option<GateRefusal>, InvalidName> {
    let name = McpServer::new(&server.name)?;
    let plugin = Plugin { marketplace: OWN_SETTINGS.to_owned(), name: server.name.clone() };
    let (auth, account) = circumstances.account.unwrap_or((Auth::NotRequired, Account::Personal));
    let policy = ChannelPolicy {
        channels_enabled: circumstances.enabled,
        auth,
        account,
        opted_in: circumstances.account.map(|_| name.clone()).into_iter().collect(),
        verified: circumstances.changeable.is_none().then(|| OWN_SETTINGS.to_owned()).into_iter().collect(),
        // A command in the person's own settings is approved. A repository's settings cannot contain one.
        approved: [plugin.clone()].into(),
    };
    let declares_channel = circumstances.declares_channel;
    let candidate = ChannelCandidate { server: name, declares_channel, plugin: Some(plugin) };
    Ok(check_gates(&candidate, &policy).err().map(|refusal| reword(refusal, server, circumstances)))
}

/// Rewords a refusal in terms of Ringer's settings.
fn reword(refusal: GateRefusal, server: &ChannelEntry, circumstances: &GateInputs) -> GateRefusal {
    let (why, remedy) = match refusal.gate {
        Gate::RuntimeFlag => (refusal.why, "set enabled = true under [channels] in config.toml".to_owned()),
        Gate::Auth => (refusal.why, format!("{}, with /login in Claude Code", refusal.remedy)),
        Gate::SessionOptIn => (
            format!("no agent {:?} is running", server.to),
            "start it, or name a running agent as `to`; `ringer status` lists them".to_owned(),
        ),
        Gate::Allowlist => {
            let file = circumstances.changeable.clone().unwrap_or_default();
            let file = file.display();
            (format!("other people can change {file}, which it runs"), format!("chmod go-w {file}"))
        }
        Gate::Capability | Gate::OrgPolicy => (refusal.why, refusal.remedy),
    };
    GateRefusal { why, remedy, ..refusal }
}

/// Returns the first file of a command (the program, or an argument that is an absolute path) that users other than this one
/// and root can change, by the rules of [`owned::check_program`].
pub(super) fn changeable_file(command: &[String], search_path: &OsStr) -> Option<PathBuf> {
    let (program, arguments) = command.split_first()?;
    let program = find_program(search_path, program);
    let arguments = arguments.iter().map(PathBuf::from).filter(|path| path.is_absolute());
    program.into_iter().chain(arguments).find(|path| is_changeable(path))
}

fn is_changeable(path: &Path) -> bool {
    path.is_file() && owned::check_program(path).is_err()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringer_config::Source;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    fn server() -> ChannelEntry {
        ChannelEntry {
            name: "slack".to_owned(),
            command: vec!["slack".to_owned()],
            to: "worker".to_owned(),
            allow: Vec::new(),
            may_answer: false,
            source: Source::default(),
        }
    }

    const OPEN: GateInputs = GateInputs {
        enabled: true,
        account: Some((Auth::OAuth, Account::Personal)),
        changeable: None,
        declares_channel: true,
    };

    #[test]
    fn the_first_closed_gate_refuses() {
        let check = |circumstances: GateInputs, expected: &str| {
            let refusal = refusal(&server(), &circumstances).unwrap();
            assert_eq!(refusal.map(|refusal| refusal.to_string()).unwrap_or_default(), expected);
        };
        let account = |auth, account| GateInputs { account: Some((auth, account)), ..OPEN };
        let managed = |channels_enabled| Account::Managed { channels_enabled };
        check(OPEN, "");
        check(account(Auth::NotRequired, Account::Personal), "");
        check(account(Auth::OAuth, managed(Some(true))), "");
        check(
            GateInputs { declares_channel: false, ..OPEN },
            "MCP channel slack refused at gate 1 (capability): the server does not declare \
             experimental[\"claude/channel\"]; use a version of it that does, or add the capability if it is yours",
        );
        check(
            GateInputs { enabled: false, ..OPEN },
            "MCP channel slack refused at gate 2 (runtime flag): MCP channels are switched off; \
             set enabled = true under [channels] in config.toml",
        );
        check(
            account(Auth::ApiKey, Account::Personal),
            "MCP channel slack refused at gate 3 (auth): an API key is not enough; \
             sign in with your account instead of the key, with /login in Claude Code",
        );
        check(
            account(Auth::SignedOut, Account::Personal),
            "MCP channel slack refused at gate 3 (auth): you are not signed in; \
             sign in with your account, with /login in Claude Code",
        );
        for channels_enabled in [None, Some(false)] {
            check(
                account(Auth::OAuth, managed(channels_enabled)),
                "MCP channel slack refused at gate 4 (org policy): the organisation has not enabled MCP channels; \
                 ask its administrator to set `channelsEnabled: true`",
            );
        }
        check(
            GateInputs { account: None, ..OPEN },
            "MCP channel slack refused at gate 5 (session opt-in): no agent \"worker\" is running; \
             start it, or name a running agent as `to`; `ringer status` lists them",
        );
        check(
            GateInputs { changeable: Some("/tmp/x".into()), ..OPEN },
            "MCP channel slack refused at gate 6 (allowlist): other people can change /tmp/x, which it runs; \
             chmod go-w /tmp/x",
        );
        // All at once: the first one.
        let shut = GateInputs {
            enabled: false,
            account: Some((Auth::ApiKey, managed(None))),
            changeable: Some("/tmp/x".into()),
            declares_channel: true,
        };
        assert_eq!(refusal(&server(), &shut).unwrap().unwrap().gate, Gate::RuntimeFlag);
    }

    #[test]
    fn world_writable_files_are_found() {
        let directory = tempfile::tempdir().unwrap();
        let (own, open) = (directory.path().join("own"), directory.path().join("open"));
        for (path, mode) in [(&own, 0o775), (&open, 0o777)] {
            fs::write(path, "#!/bin/sh\n").unwrap();
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        }
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let check = |command: &[&str], expected: Option<&PathBuf>| {
            assert_eq!(
                changeable_file(&words(command), directory.path().as_os_str()).as_ref(),
                expected,
                "{command:?}"
            );
        };
        let (own_path, open_path) = (own.to_str().unwrap(), open.to_str().unwrap());
        check(&[own_path], None);
        check(&["own"], None);
        check(&["open"], Some(&open));
        check(&[own_path, "-x", open_path], Some(&open));
        check(&["nowhere", "open"], None);
        check(&[], None);
    }
}
