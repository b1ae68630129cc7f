//! The six checks that an MCP server passes before it may push messages into a conversation.
//!
//! They run in order before the server's handler is registered, and the first refusal counts. They run again whenever the
//! policy changes, and a server that is refused then is unregistered at once.

use std::collections::BTreeSet;
use std::fmt;

use crate::conversation::source::McpServer;

/// The checks, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Gate {
    /// The server declares `experimental["claude/channel"]`.
    Capability,
    /// MCP channels are enabled: the kill switch.
    RuntimeFlag,
    /// The person is signed in with an account.
    Auth,
    /// The organisation allows MCP channels.
    OrgPolicy,
    /// The server was named for this session.
    SessionOptIn,
    /// The plugin is verified and approved.
    Allowlist,
}

impl Gate {
    /// Every gate, in order.
    pub const ALL: [Self; 6] = [
        Self::Capability,
        Self::RuntimeFlag,
        Self::Auth,
        Self::OrgPolicy,
        Self::SessionOptIn,
        Self::Allowlist,
    ];

    /// The number of the gate, counted from 1 as in the documentation.
    pub fn number(self) -> u8 {
        self as u8 + 1
    }

    /// The name of the gate.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Capability => "capability",
            Self::RuntimeFlag => "runtime flag",
            Self::Auth => "auth",
            Self::OrgPolicy => "org policy",
            Self::SessionOptIn => "session opt-in",
            Self::Allowlist => "allowlist",
        }
    }
}

/// A refusal: the gate, the reason and a remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("MCP channel {server} refused at gate {} ({}): {why}; {remedy}", gate.number(), gate.as_str())]
pub struct GateRefusal {
    /// The server.
    pub server: McpServer,
    /// The gate.
    pub gate: Gate,
    /// What is wrong.
    pub why: String,
    /// How to fix it.
    pub remedy: String,
}

/// The reason and the remedy, or `None` if the gate is open.
type Objection = Option<(String, String)>;

#[expect(clippy::unnecessary_wraps, reason = "every gate gives an `Option`")]
fn objection(why: impl Into<String>, remedy: impl Into<String>) -> Objection {
    Some((why.into(), remedy.into()))
}

impl Gate {
    fn objection(self, candidate: &ChannelCandidate, policy: &ChannelPolicy) -> Objection {
        match self {
            Self::Capability if !candidate.declares_channel => objection(
                "the server does not declare experimental[\"claude/channel\"]",
                "use a version of it that does, or add the capability if it is yours",
            ),
            Self::RuntimeFlag if !policy.channels_enabled => {
                objection("MCP channels are switched off", "switch them on in the configuration")
            }
            Self::Auth => match policy.auth {
                Auth::OAuth | Auth::NotRequired => None,
                Auth::ApiKey => {
                    objection("an API key is not enough", "sign in with your account instead of the key")
                }
                Auth::SignedOut => objection("you are not signed in", "sign in with your account"),
            },
            Self::OrgPolicy => match policy.account {
                Account::Personal | Account::Managed { channels_enabled: Some(true) } => None,
                Account::Managed { .. } => objection(
                    "the organisation has not enabled MCP channels",
                    "ask its administrator to set `channelsEnabled: true`",
                ),
            },
            Self::SessionOptIn if !policy.opted_in.contains(&candidate.server) => objection(
                "it was not named for this session",
                format!("start the session with `--channels {}`", candidate.server),
            ),
            Self::Allowlist => policy.unlisted(candidate.plugin.as_ref()),
            Self::Capability | Self::RuntimeFlag | Self::SessionOptIn => None,
        }
    }
}

impl ChannelPolicy {
    fn unlisted(&self, plugin: Option<&Plugin>) -> Objection {
        match plugin {
            None => objection(
                "it does not come from a plugin",
                "install it as a plugin of a verified marketplace",
            ),
            Some(plugin) if !self.verified.contains(&plugin.marketplace) => objection(
                format!("the marketplace {:?} is not verified", plugin.marketplace),
                "install the plugin from a verified marketplace",
            ),
            Some(plugin) if !self.approved.contains(plugin) => objection(
                format!("the plugin {plugin} is not in the approved ledger"),
                "ask the keeper of the ledger to approve it",
            ),
            Some(_) => None,
        }
    }
}

/// Checks all six gates. A server's handler may be registered only if they are open.
///
/// ```
/// use ringer_core::conversation::{check_gates, Account, ChannelCandidate, Auth, ChannelPolicy, Gate, McpServer};
///
/// let candidate = ChannelCandidate { server: McpServer::new("slack")?, declares_channel: true, plugin: None };
/// let policy = ChannelPolicy {
///     channels_enabled: true,
///     auth: Auth::ApiKey,
///     account: Account::Personal,
///     opted_in: [McpServer::new("slack")?].into(),
///     verified: [].into(),
///     approved: [].into(),
/// };
/// let refusal = check_gates(&candidate, &policy).unwrap_err();
/// assert_eq!(refusal.gate, Gate::Auth);
/// assert_eq!(
///     refusal.to_string(),
///     "MCP channel slack refused at gate 3 (auth): an API key is not enough; \
///      sign in with your account instead of the key"
/// );
/// # Ok::<(), ringer_core::message::InvalidName>(())
/// ```
pub fn check_gates(candidate: &ChannelCandidate, policy: &ChannelPolicy) -> Result<(), GateRefusal> {
    let refusal = Gate::ALL.into_iter().find_map(|gate| {
        let (why, remedy) = gate.objection(candidate, policy)?;
        Some(GateRefusal { server: candidate.server.clone(), gate, why, remedy })
    });
    refusal.map_or(Ok(()), Err)
}

/// A plugin, identified by its name and its marketplace.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Plugin {
    /// The marketplace.
    pub marketplace: String,
    /// The name in the marketplace.
    pub name: String,
}

impl fmt::Display for Plugin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}@{}", self.name, self.marketplace)
    }
}

/// An MCP server that asks to push messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChannelCandidate {
    /// The server.
    pub server: McpServer,
    /// True if it declares `experimental["claude/channel"]`.
    pub declares_channel: bool,
    /// The plugin it comes from, if any.
    pub plugin: Option<Plugin>,
}

/// How the person is signed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Auth {
    /// With an account's OAuth token.
    OAuth,
    /// With an API key, which is not tied to one person.
    ApiKey,
    /// Not signed in.
    SignedOut,
    /// The client does not tie channels to an account.
    NotRequired,
}

/// The kind of account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Account {
    /// A personal account, without an organisation's policy.
    Personal,
    /// An account of a team or an enterprise, whose policy may set `channelsEnabled`.
    Managed {
        /// The setting. Unset means no.
        channels_enabled: Option<bool>,
    },
}

/// The policy that candidates are checked against.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChannelPolicy {
    /// The kill switch.
    pub channels_enabled: bool,
    /// How the person is signed in.
    pub auth: Auth,
    /// The kind of account.
    pub account: Account,
    /// The servers named by `--channels` for this session.
    pub opted_in: BTreeSet<McpServer>,
    /// The marketplaces that are verified.
    pub verified: BTreeSet<String>,
    /// The approved plugins.
    pub approved: BTreeSet<Plugin>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plugin(name: &str, marketplace: &str) -> Plugin {
        Plugin { marketplace: marketplace.to_owned(), name: name.to_owned() }
    }

    fn candidate(name: &str) -> ChannelCandidate {
        let server = McpServer::new(name).unwrap();
        ChannelCandidate { server, declares_channel: true, plugin: Some(plugin(name, "official")) }
    }

    fn open() -> ChannelPolicy {
        ChannelPolicy {
            channels_enabled: true,
            auth: Auth::OAuth,
            account: Account::Personal,
            opted_in: ["slack", "discord"].map(|name| McpServer::new(name).unwrap()).into(),
            verified: ["official".to_owned()].into(),
            approved: ["slack", "discord"].map(|name| plugin(name, "official")).into(),
        }
    }

    fn check(
        change: impl FnOnce(&mut ChannelCandidate, &mut ChannelPolicy),
        expected: Option<Gate>,
        says: &str,
    ) {
        let (mut candidate, mut policy) = (candidate("slack"), open());
        change(&mut candidate, &mut policy);
        let refusal = check_gates(&candidate, &policy).err();
        assert_eq!(refusal.as_ref().map(|refusal| refusal.gate), expected);
        let words = refusal.map(|refusal| refusal.to_string()).unwrap_or_default();
        assert!(words.contains(says), "{words}");
    }

    #[test]
    fn gate_1_capability() {
        check(|_, _| {}, None, "");
        check(|candidate, _| candidate.declares_channel = false, Some(Gate::Capability), "claude/channel");
    }

    #[test]
    fn gate_2_runtime_flag() {
        check(|_, now| now.channels_enabled = false, Some(Gate::RuntimeFlag), "switch them on");
    }

    #[test]
    fn gate_3_auth_refuses_api_keys() {
        check(|_, now| now.auth = Auth::ApiKey, Some(Gate::Auth), "API key");
        check(|_, now| now.auth = Auth::SignedOut, Some(Gate::Auth), "sign in");
        check(|_, now| now.auth = Auth::NotRequired, None, "");
    }

    #[test]
    fn gate_4_org_policy_must_say_yes() {
        let managed = |channels_enabled| Account::Managed { channels_enabled };
        check(|_, now| now.account = managed(Some(true)), None, "");
        check(|_, now| now.account = managed(Some(false)), Some(Gate::OrgPolicy), "channelsEnabled: true");
        check(|_, now| now.account = managed(None), Some(Gate::OrgPolicy), "administrator");
    }

    #[test]
    fn gate_5_session_opt_in() {
        check(|_, now| now.opted_in.clear(), Some(Gate::SessionOptIn), "--channels slack");
        check(|_, now| _ = now.opted_in.remove(&McpServer::new("discord").unwrap()), None, "");
    }

    #[test]
    fn gate_6_allowlist_verified_and_approved() {
        check(|candidate, _| candidate.plugin = None, Some(Gate::Allowlist), "install it as a plugin");
        check(|_, now| now.verified.clear(), Some(Gate::Allowlist), "\"official\" is not verified");
        check(
            |_, now| now.approved.clear(),
            Some(Gate::Allowlist),
            "slack@official is not in the approved ledger",
        );
        // The same name from elsewhere is another plugin.
        check(
            |candidate, now| {
                candidate.plugin = Some(plugin("slack", "fork"));
                now.verified.insert("fork".to_owned());
            },
            Some(Gate::Allowlist),
            "slack@fork",
        );
    }

    #[test]
    fn first_refusal_wins_and_names_its_gate_and_the_remedy() {
        let mut refused = candidate("slack");
        refused.declares_channel = false;
        refused.plugin = None;
        let mut shut = ChannelPolicy {
            channels_enabled: false,
            auth: Auth::ApiKey,
            account: Account::Managed { channels_enabled: None },
            opted_in: [].into(),
            ..open()
        };
        let gates: Vec<Gate> = (0..6)
            .map(|step| {
                let refusal = check_gates(&refused, &shut).unwrap_err();
                assert!(!refusal.why.is_empty() && !refusal.remedy.is_empty());
                match step {
                    0 => refused.declares_channel = true,
                    1 => shut.channels_enabled = true,
                    2 => shut.auth = Auth::OAuth,
                    3 => shut.account = Account::Personal,
                    4 => shut.opted_in = open().opted_in,
                    _ => refused.plugin = candidate("slack").plugin,
                }
                refusal.gate
            })
            .collect();
        assert_eq!(gates, Gate::ALL);
        assert_eq!(gates.iter().map(|gate| gate.number()).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6]);
        assert_eq!(check_gates(&refused, &shut), Ok(()));
    }
}
