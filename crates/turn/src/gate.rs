//! The six gates that an MCP server passes before it may push messages into a conversation.
//!
//! All are asked before its handler is registered, in order, and the first refusal wins. They are asked again whenever
//! the circumstances change: who would be refused now is unregistered at once.

use crate::applicant::{Account, Applicant, Auth, Circumstances, Plugin};
use crate::source::Server;

/// The gates, in the order in which they are asked.
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

    /// Its number, counted from 1, as documents have it.
    pub fn number(self) -> u8 {
        self as u8 + 1
    }

    /// Its name.
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

/// Which gate refused, why, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("MCP channel {server} refused at gate {} ({}): {why}; {remedy}", gate.number(), gate.as_str())]
pub struct ApiError {
    /// The server.
    pub server: Server,
    /// The gate.
    pub gate: Gate,
    /// What is not as it has to be.
    pub why: String,
    /// What somebody can do about it.
    pub remedy: String,
}

/// What is wrong, and what helps; nothing for a gate that is open.
type Objection = Option<(String, String)>;

#[expect(clippy::unnecessary_wraps, reason = "every gate gives an `Option`")]
fn objection(why: impl Into<String>, remedy: impl Into<String>) -> Objection {
    Some((why.into(), remedy.into()))
}

impl Gate {
    fn objection(self, applicant: &Applicant, circumstances: &Circumstances) -> Objection {
        match self {
            Self::Capability if !applicant.declares_channel => objection(
                "the server does not declare experimental[\"claude/channel\"]",
                "use a version of it that does, or add the capability if it is yours",
            ),
            Self::RuntimeFlag if !circumstances.channels_enabled => {
                objection("MCP channels are switched off", "switch them on in the configuration")
            }
            Self::Auth => match circumstances.auth {
                Auth::OAuth => None,
                Auth::ApiKey => {
                    objection("an API key is not enough", "sign in with your account instead of the key")
                }
                Auth::SignedOut => objection("nobody is signed in", "sign in with your account"),
            },
            Self::OrgPolicy => match circumstances.account {
                Account::Personal | Account::Managed { channels_enabled: Some(true) } => None,
                Account::Managed { .. } => objection(
                    "the organisation has not enabled MCP channels",
                    "ask its administrator to set `channelsEnabled: true`",
                ),
            },
            Self::SessionOptIn if !circumstances.opted_in.contains(&applicant.server) => objection(
                "it was not named for this session",
                format!("start the session with `--channels {}`", applicant.server),
            ),
            Self::Allowlist => circumstances.unlisted(applicant.plugin.as_ref()),
            Self::Capability | Self::RuntimeFlag | Self::SessionOptIn => None,
        }
    }
}

impl Circumstances {
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
                "ask whoever keeps the ledger to approve it",
            ),
            Some(_) => None,
        }
    }
}

/// Asks all six gates. Only who passes may have its handler registered.
///
/// ```
/// use ringer_turn::{pass_gates, Account, Applicant, Auth, Circumstances, Gate, Server};
///
/// let applicant = Applicant { server: Server::new("slack")?, declares_channel: true, plugin: None };
/// let circumstances = Circumstances {
///     channels_enabled: true,
///     auth: Auth::ApiKey,
///     account: Account::Personal,
///     opted_in: [Server::new("slack")?].into(),
///     verified: [].into(),
///     approved: [].into(),
/// };
/// let refusal = pass_gates(&applicant, &circumstances).unwrap_err();
/// assert_eq!(refusal.gate, Gate::Auth);
/// assert_eq!(
///     refusal.to_string(),
///     "MCP channel slack refused at gate 3 (auth): an API key is not enough; \
///      sign in with your account instead of the key"
/// );
/// # Ok::<(), ringer_core::InvalidName>(())
/// ```
pub fn pass_gates(applicant: &Applicant, circumstances: &Circumstances) -> Result<(), ApiError> {
    let refusal = Gate::ALL.into_iter().find_map(|gate| {
        let (why, remedy) = gate.objection(applicant, circumstances)?;
        Some(ApiError { server: applicant.server.clone(), gate, why, remedy })
    });
    refusal.map_or(Ok(()), Err)
}

/// Who has to be unregistered now that the circumstances are these. With the kill switch off that is everybody.
pub fn to_unregister(registered: &[Applicant], circumstances: &Circumstances) -> Vec<ApiError> {
    registered.iter().filter_map(|applicant| pass_gates(applicant, circumstances).err()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plugin(name: &str, marketplace: &str) -> Plugin {
        Plugin { marketplace: marketplace.to_owned(), name: name.to_owned() }
    }

    fn applicant(name: &str) -> Applicant {
        let server = Server::new(name).unwrap();
        Applicant { server, declares_channel: true, plugin: Some(plugin(name, "official")) }
    }

    fn open() -> Circumstances {
        Circumstances {
            channels_enabled: true,
            auth: Auth::OAuth,
            account: Account::Personal,
            opted_in: ["slack", "discord"].map(|name| Server::new(name).unwrap()).into(),
            verified: ["official".to_owned()].into(),
            approved: ["slack", "discord"].map(|name| plugin(name, "official")).into(),
        }
    }

    fn check(change: impl FnOnce(&mut Applicant, &mut Circumstances), expected: Option<Gate>, says: &str) {
        let (mut applicant, mut circumstances) = (applicant("slack"), open());
        change(&mut applicant, &mut circumstances);
        let refusal = pass_gates(&applicant, &circumstances).err();
        assert_eq!(refusal.as_ref().map(|refusal| refusal.gate), expected);
        let words = refusal.map(|refusal| refusal.to_string()).unwrap_or_default();
        assert!(words.contains(says), "{words}");
    }

    #[test]
    fn gate_1_capability() {
        check(|_, _| {}, None, "");
        check(|applicant, _| applicant.declares_channel = false, Some(Gate::Capability), "claude/channel");
    }

    #[test]
    fn gate_2_runtime_flag() {
        check(|_, now| now.channels_enabled = false, Some(Gate::RuntimeFlag), "switch them on");
    }

    #[test]
    fn gate_3_auth_refuses_api_keys() {
        check(|_, now| now.auth = Auth::ApiKey, Some(Gate::Auth), "API key");
        check(|_, now| now.auth = Auth::SignedOut, Some(Gate::Auth), "sign in");
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
        check(|_, now| _ = now.opted_in.remove(&Server::new("discord").unwrap()), None, "");
    }

    #[test]
    fn gate_6_allowlist_verified_and_approved() {
        check(|applicant, _| applicant.plugin = None, Some(Gate::Allowlist), "install it as a plugin");
        check(|_, now| now.verified.clear(), Some(Gate::Allowlist), "\"official\" is not verified");
        check(
            |_, now| now.approved.clear(),
            Some(Gate::Allowlist),
            "slack@official is not in the approved ledger",
        );
        // The same name from elsewhere is another plugin.
        check(
            |applicant, now| {
                applicant.plugin = Some(plugin("slack", "fork"));
                now.verified.insert("fork".to_owned());
            },
            Some(Gate::Allowlist),
            "slack@fork",
        );
    }

    #[test]
    fn first_refusal_wins_and_names_its_gate_and_the_remedy() {
        let mut refused = applicant("slack");
        refused.declares_channel = false;
        refused.plugin = None;
        let mut shut = Circumstances {
            channels_enabled: false,
            auth: Auth::ApiKey,
            account: Account::Managed { channels_enabled: None },
            opted_in: [].into(),
            ..open()
        };
        let gates: Vec<Gate> = (0..6)
            .map(|step| {
                let refusal = pass_gates(&refused, &shut).unwrap_err();
                assert!(!refusal.why.is_empty() && !refusal.remedy.is_empty());
                match step {
                    0 => refused.declares_channel = true,
                    1 => shut.channels_enabled = true,
                    2 => shut.auth = Auth::OAuth,
                    3 => shut.account = Account::Personal,
                    4 => shut.opted_in = open().opted_in,
                    _ => refused.plugin = applicant("slack").plugin,
                }
                refusal.gate
            })
            .collect();
        assert_eq!(gates, Gate::ALL);
        assert_eq!(gates.iter().map(|gate| gate.number()).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6]);
        assert_eq!(pass_gates(&refused, &shut), Ok(()));
    }

    #[test]
    fn flipping_the_kill_switch_unregisters_at_once() {
        let registered = [applicant("slack"), applicant("discord")];
        assert_eq!(to_unregister(&registered, &open()), []);
        let off = Circumstances { channels_enabled: false, ..open() };
        let refusals = to_unregister(&registered, &off);
        let servers: Vec<&str> = refusals.iter().map(|refusal| refusal.server.as_str()).collect();
        assert_eq!(servers, ["slack", "discord"]);
        assert!(refusals.iter().all(|refusal| refusal.gate == Gate::RuntimeFlag));
    }

    #[test]
    fn a_plugin_taken_off_the_ledger_is_unregistered_alone() {
        let registered = [applicant("slack"), applicant("discord")];
        let mut now = open();
        now.approved.remove(&plugin("slack", "official"));
        let refusals = to_unregister(&registered, &now);
        assert_eq!(refusals.len(), 1);
        assert_eq!((refusals[0].server.as_str(), refusals[0].gate), ("slack", Gate::Allowlist));
    }
}
