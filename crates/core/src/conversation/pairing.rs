//! The allowlist of senders who may write into a conversation over an MCP channel, and how a sender gets onto it.
//!
//! An unknown sender gets a code and gives it to the person at the keyboard, who types it in. The sender's message itself
//! changes nothing: only a caller with an [`Operator`] token can change access.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::conversation::channel::ChannelSender;
use crate::conversation::error::Error;

/// How long a pairing code is valid.
pub const CODE_LIFETIME: Duration = Duration::from_hours(1);
/// The most open codes. Further senders have to try again later, so that the person never faces a long list of unknown
/// senders.
pub const MAX_PAIRINGS: usize = 3;
/// The most senders on the allowlist. Adding another fails with an error that the person sees.
pub const MAX_ALLOWED: usize = 1024;

/// A sender who is on the allowlist. Only [`Access::admit`] creates one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AdmittedSender<'a>(&'a ChannelSender);

impl AdmittedSender<'_> {
    /// The sender.
    pub fn sender(&self) -> &ChannelSender {
        self.0
    }
}

/// A pairing code: six hex characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PairingCode(u32);

impl PairingCode {
    const BITS: u32 = 0x00ff_ffff;

    fn new(random: [u8; 3]) -> Self {
        let [a, b, c] = random;
        Self(u32::from_be_bytes([0, a, b, c]))
    }

    fn next(self) -> Self {
        Self(self.0.wrapping_add(1) & Self::BITS)
    }

    /// Parses a code as typed by a person: in either case, with spaces around it.
    fn typed(text: &str) -> Option<Self> {
        let text = text.trim();
        let is_code = text.len() == 6 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_code.then(|| u32::from_str_radix(text, 16).ok().map(Self))?
    }
}

impl fmt::Display for PairingCode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:06x}", self.0)
    }
}

/// A sender who waits for approval, as saved by the process that offered the code for the process that approves it. Both use
/// the same clock for `until`, which is valid only until the next reboot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WaitingSender {
    /// The code, as displayed.
    pub code: String,
    /// The sender.
    pub sender: ChannelSender,
    /// When the code expires, in seconds.
    pub until: u64,
}

#[derive(Debug, Clone)]
struct Pairing {
    code: PairingCode,
    sender: ChannelSender,
    until: Duration,
}

/// The allowlist as saved in a file (0600, replaced by rename). It does not contain codes: their expiry is meaningless after a
/// reboot, and a sender can get a new one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Allowlist {
    version: u32,
    senders: BTreeSet<ChannelSender>,
}

impl Allowlist {
    const VERSION: u32 = 1;
}

/// The allowed senders, and those who wait for approval.
#[derive(Debug, Clone, Default)]
pub struct Access {
    allowed: BTreeSet<ChannelSender>,
    /// The senders in the person's own settings.
    configured: BTreeSet<ChannelSender>,
    pairings: Vec<Pairing>,
}

impl Access {
    /// Restores the saved allowlist.
    pub fn restored(list: Allowlist) -> Result<Self, Error> {
        if list.version > Allowlist::VERSION {
            return Err(Error::NewerVersion { found: list.version, known: Allowlist::VERSION });
        }
        if list.senders.len() > MAX_ALLOWED {
            return Err(Error::AllowlistFull { most: MAX_ALLOWED });
        }
        Ok(Self { allowed: list.senders, ..Self::default() })
    }

    /// Sets the senders that wait for approval, as saved by another process.
    pub fn with_waiting(mut self, now: Duration, waiting: Vec<WaitingSender>) -> Self {
        let pairing = |waiting: WaitingSender| {
            let code = PairingCode::typed(&waiting.code)?;
            // The file cannot extend the lifetime of a code.
            let until = Duration::from_secs(waiting.until).min(now.saturating_add(CODE_LIFETIME));
            Some(Pairing { code, sender: waiting.sender, until })
        };
        self.pairings = waiting.into_iter().filter_map(pairing).take(MAX_PAIRINGS).collect();
        self
    }

    /// Replaces the allowlist with the one that another process saved. Senders on it stop waiting for approval.
    pub fn set_allowlist(&mut self, list: Allowlist) -> Result<(), Error> {
        self.allowed = Self::restored(list)?.allowed;
        self.forget_admitted();
        Ok(())
    }

    /// Replaces the senders from the person's own settings. They are not saved with the allowlist.
    pub fn set_configured(&mut self, senders: BTreeSet<ChannelSender>) {
        self.configured = senders;
        self.forget_admitted();
    }

    fn forget_admitted(&mut self) {
        let Self { allowed, configured, pairings } = self;
        pairings
            .retain(|pairing| !allowed.contains(&pairing.sender) && !configured.contains(&pairing.sender));
    }

    /// Returns the allowlist for saving.
    pub fn allowlist(&self) -> Allowlist {
        Allowlist { version: Allowlist::VERSION, senders: self.allowed.clone() }
    }

    /// Returns the sender as admitted, if they may write. Messages of other senders enter no conversation.
    pub fn admit<'a>(&self, sender: &'a ChannelSender) -> Option<AdmittedSender<'a>> {
        (self.allowed.contains(sender) || self.configured.contains(sender)).then_some(AdmittedSender(sender))
    }

    /// Returns a code for a sender who is not on the list, from the caller's random bytes. Asking again returns the same code
    /// with the same expiry. Takes only the sender, so that the text of a message cannot influence it.
    pub fn offer_code(
        &mut self,
        now: Duration,
        sender: &ChannelSender,
        random: [u8; 3],
    ) -> Result<PairingCode, Error> {
        self.pairings.retain(|pairing| now < pairing.until);
        if let Some(pairing) = self.pairings.iter().find(|pairing| pairing.sender == *sender) {
            return Ok(pairing.code);
        }
        if self.pairings.len() >= MAX_PAIRINGS {
            let first = self.pairings.iter().map(|pairing| pairing.until).min().unwrap_or(now);
            return Err(Error::PairingsFull { most: MAX_PAIRINGS, free_in: first.saturating_sub(now) });
        }
        let mut code = PairingCode::new(random);
        while self.pairings.iter().any(|pairing| pairing.code == code) {
            code = code.next();
        }
        self.pairings.push(Pairing {
            code,
            sender: sender.clone(),
            until: now.saturating_add(CODE_LIFETIME),
        });
        Ok(code)
    }

    /// Adds the sender with this code to the allowlist. A code can be used once.
    pub fn approve(&mut self, now: Duration, _: &Operator, code: &str) -> Result<ChannelSender, Error> {
        self.pairings.retain(|pairing| now < pairing.until);
        let typed = PairingCode::typed(code);
        let place = self.pairings.iter().position(|pairing| Some(pairing.code) == typed);
        let place = place.ok_or_else(|| Error::NoSuchCode(code.trim().to_owned()))?;
        if self.allowed.len() >= MAX_ALLOWED {
            return Err(Error::AllowlistFull { most: MAX_ALLOWED });
        }
        let pairing = self.pairings.remove(place);
        self.allowed.insert(pairing.sender.clone());
        Ok(pairing.sender)
    }

    /// Removes a sender from the allowlist. Returns true if they were on it.
    pub fn revoke(&mut self, _: &Operator, sender: &ChannelSender) -> bool {
        self.allowed.remove(sender)
    }

    /// Returns the senders who wait for approval, with their codes.
    pub fn waiting(&self, now: Duration) -> impl Iterator<Item = WaitingSender> {
        let alive = self.pairings.iter().filter(move |pairing| now < pairing.until);
        alive.map(|pairing| WaitingSender {
            code: pairing.code.to_string(),
            sender: pairing.sender.clone(),
            until: pairing.until.as_secs(),
        })
    }
}

/// A token for the person at the keyboard. Functions that change access require it.
///
/// Create one only where a command that a person typed is executed. It cannot be cloned, saved or deserialised, so nothing
/// that arrives over a channel, a socket or a tool can become one.
///
/// ```compile_fail,E0277
/// # use ringer_core::conversation::Operator;
/// let forged: Operator = serde_json::from_str("null").unwrap();
/// ```
/// ```compile_fail,E0423
/// # use ringer_core::conversation::Operator;
/// let forged = Operator(());
/// ```
/// ```compile_fail,E0599
/// # use ringer_core::conversation::Operator;
/// let two = Operator::at_the_keyboard().clone();
/// ```
///
/// An agent that runs the command because a message asked for it is not an operator. Before creating a token, the command must
/// check that it has a terminal and was not run by an agent.
#[derive(Debug)]
pub struct Operator(());

impl Operator {
    /// Creates the token. The caller asserts that a person typed the command.
    pub fn at_the_keyboard() -> Self {
        Self(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::source::McpServer;
    use proptest::prelude::*;

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn sender(user: &str) -> ChannelSender {
        ChannelSender::new(McpServer::new("slack").unwrap(), user).unwrap()
    }

    fn offer(access: &mut Access, now: u64, user: &str, random: u8) -> Result<String, Error> {
        access.offer_code(at(now), &sender(user), [random; 3]).map(|code| code.to_string())
    }

    fn approve(access: &mut Access, now: u64, code: &str) -> Result<ChannelSender, Error> {
        access.approve(at(now), &Operator::at_the_keyboard(), code)
    }

    #[test]
    fn a_code_has_six_hex_characters() {
        let mut access = Access::default();
        assert_eq!(offer(&mut access, 0, "a", 0).unwrap(), "000000");
        assert_eq!(offer(&mut access, 0, "b", 0xff).unwrap(), "ffffff");
        assert_eq!(offer(&mut access, 0, "c", 0xff).unwrap(), "000001", "never the code of another");
    }

    #[test]
    fn a_code_is_valid_for_one_hour() {
        let mut access = Access::default();
        let code = offer(&mut access, 0, "alice", 7).unwrap();
        assert_eq!(access.waiting(at(3599)).count(), 1);
        assert_eq!(access.waiting(at(3600)).count(), 0);
        assert_eq!(offer(&mut access, 3599, "alice", 9).unwrap(), code, "asking again gives no more time");
        assert_eq!(approve(&mut access, 3600, &code), Err(Error::NoSuchCode(code.clone())));
        let second = offer(&mut access, 3600, "alice", 8).unwrap();
        assert_eq!(approve(&mut access, 7199, &second), Ok(sender("alice")));
        assert_eq!(approve(&mut access, 7199, &second), Err(Error::NoSuchCode(second)), "good for once");
    }

    #[test]
    fn at_most_three_wait() {
        let mut access = Access::default();
        for (now, user) in [(0, "a"), (1, "b"), (2, "c")] {
            offer(&mut access, now, user, u8::try_from(now).unwrap()).unwrap();
        }
        let error = offer(&mut access, 10, "d", 4).unwrap_err();
        assert_eq!(error.to_string(), "3 senders are waiting to be paired; the next place is free in 3590 s");
        assert!(offer(&mut access, 10, "b", 4).is_ok(), "who waits already still does");
        assert!(offer(&mut access, 3600, "d", 4).is_ok());
    }

    #[test]
    fn what_is_typed_may_have_capitals_and_spaces() {
        let check = |typed: &str, good: bool| {
            let mut access = Access::default();
            offer(&mut access, 0, "alice", 0xab).unwrap();
            assert_eq!(approve(&mut access, 1, typed).is_ok(), good, "{typed:?}");
        };
        check("ababab", true);
        check(" ABABAB\n", true);
        for typed in ["", "ababa", "0ababab", "+babab", "ab abab", "approve ababab"] {
            check(typed, false);
        }
    }

    #[test]
    fn an_operator_can_revoke() {
        let mut access = Access::default();
        let code = offer(&mut access, 0, "alice", 1).unwrap();
        approve(&mut access, 0, &code).unwrap();
        let alice = sender("alice");
        assert_eq!(
            access.admit(&alice).map(|admitted| admitted.sender().to_string()),
            Some("alice on slack".into())
        );
        assert!(access.revoke(&Operator::at_the_keyboard(), &alice));
        assert!(access.admit(&alice).is_none());
        assert!(!access.revoke(&Operator::at_the_keyboard(), &alice));
    }

    #[test]
    fn the_allowlist_is_kept_with_a_version_and_without_codes() {
        let mut access = Access::default();
        let code = offer(&mut access, 0, "alice", 1).unwrap();
        approve(&mut access, 0, &code).unwrap();
        offer(&mut access, 0, "bob", 2).unwrap();
        let kept = serde_json::to_string(&access.allowlist()).unwrap();
        assert_eq!(kept, r#"{"version":1,"senders":[{"server":"slack","user":"alice"}]}"#);
        let restored = Access::restored(serde_json::from_str(&kept).unwrap()).unwrap();
        assert!(restored.admit(&sender("alice")).is_some() && restored.waiting(at(0)).count() == 0);
        let newer = serde_json::from_str(r#"{"version":2,"senders":[]}"#).unwrap();
        assert_eq!(Access::restored(newer).err(), Some(Error::NewerVersion { found: 2, known: 1 }));
    }

    #[test]
    fn another_process_approves_a_code() {
        let mut access = Access::default();
        let code = offer(&mut access, 100, "alice", 1).unwrap();
        let waiting: Vec<WaitingSender> = access.waiting(at(200)).collect();
        let saved = serde_json::to_string(&waiting).unwrap();
        assert_eq!(saved, r#"[{"code":"010101","sender":{"server":"slack","user":"alice"},"until":3700}]"#);
        let read = || serde_json::from_str::<Vec<WaitingSender>>(&saved).unwrap();
        let mut other = Access::default().with_waiting(at(3700), read());
        assert_eq!(approve(&mut other, 3700, &code), Err(Error::NoSuchCode(code.clone())), "after its hour");
        let mut other = Access::default().with_waiting(at(200), read());
        approve(&mut other, 200, &code).unwrap();
        access.set_allowlist(other.allowlist()).unwrap();
        assert!(access.admit(&sender("alice")).is_some());
        assert_eq!(access.waiting(at(200)).count(), 0, "who is on the list waits no longer");
        // A forged file does not extend the lifetime of a code.
        let forged = vec![WaitingSender { until: u64::MAX, ..read().remove(0) }];
        let other = Access::default().with_waiting(at(0), forged);
        assert_eq!((other.waiting(at(3599)).count(), other.waiting(at(3600)).count()), (1, 0));
    }

    #[test]
    fn senders_in_the_settings_are_admitted_and_not_saved() {
        let mut access = Access::default();
        offer(&mut access, 0, "alice", 1).unwrap();
        access.set_configured([sender("alice")].into());
        assert!(access.admit(&sender("alice")).is_some() && access.admit(&sender("bob")).is_none());
        assert_eq!(access.waiting(at(0)).count(), 0);
        assert_eq!(access.allowlist(), Access::default().allowlist());
        access.set_configured(BTreeSet::new());
        assert!(access.admit(&sender("alice")).is_none());
    }

    #[test]
    fn the_allowlist_is_bounded() {
        let senders: BTreeSet<ChannelSender> =
            (0..MAX_ALLOWED).map(|number| sender(&format!("u{number}"))).collect();
        let mut access = Access::restored(Allowlist { version: 1, senders }).unwrap();
        let code = offer(&mut access, 0, "late", 1).unwrap();
        assert_eq!(approve(&mut access, 0, &code), Err(Error::AllowlistFull { most: MAX_ALLOWED }));
        access.revoke(&Operator::at_the_keyboard(), &sender("u0"));
        assert!(approve(&mut access, 0, &code).is_ok(), "the code was not used up by the failure");
    }

    proptest! {
        #[test]
        fn access_never_changes_because_of_what_comes_over_a_channel(
            asked in prop::collection::vec(("[a-e]", any::<[u8; 3]>(), 0u64..5_000), 0..40),
        ) {
            let mut access = Access::default();
            let mut now = 0;
            for (user, random, later) in asked {
                now += later;
                let _ = access.offer_code(at(now), &sender(&user), random);
                prop_assert!(access.admit(&sender(&user)).is_none());
                prop_assert!(access.waiting(at(now)).count() <= MAX_PAIRINGS);
                let mut codes: Vec<String> = access.waiting(at(now)).map(|waiting| waiting.code).collect();
                let all = codes.len();
                codes.sort();
                codes.dedup();
                prop_assert_eq!(codes.len(), all, "every code is one sender's");
            }
            prop_assert_eq!(access.allowlist(), Access::default().allowlist());
        }
    }
}
