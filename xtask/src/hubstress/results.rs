use std::fmt;

use super::popups::Popups;
use crate::failure::Failure;

/// The most problems that are printed individually.
const MAX_DETAILS: usize = 20;

/// The results of a run.
#[derive(Default)]
pub(super) struct HubStressResults {
    pub(super) kills: u64,
    pub(super) acknowledged: u64,
    /// Messages whose sender failed.
    pub(super) unacknowledged: u64,
    /// Acknowledged, but not in the journal.
    pub(super) lost: u64,
    /// Acknowledged, and the command ran.
    pub(super) recorded: u64,
    /// Acknowledged, but replaced by a newer one of its surface or read first, according to the trail.
    pub(super) superseded: u64,
    /// Acknowledged, but the command never ran although it should have.
    pub(super) undelivered: u64,
    /// Messages for which the command ran more than once. Allowed: the hub may have died before it could record the first run.
    pub(super) ran_twice: u64,
    /// Messages for which the command ran although they were never sent.
    pub(super) never_sent: u64,
    /// Notifications that are on the list twice.
    pub(super) doubled: u64,
    /// Acknowledged, and the desktop showed it.
    pub(super) shown: u64,
    /// Like `superseded`, for the desktop.
    pub(super) unneeded: u64,
    /// Acknowledged, but rejected by the desktop, according to the trail.
    pub(super) refused: u64,
    /// Acknowledged, but the desktop never showed it although it should have.
    pub(super) unshown: u64,
    pub(super) popups: Popups,
    /// Messages that were not shown, and why.
    pub(super) details: Vec<String>,
    /// Turns whose hook succeeded.
    pub(super) turns: u64,
    /// Turns that are not in the journal.
    pub(super) turns_lost: u64,
    /// Turns that are in the journal twice.
    pub(super) turns_doubled: u64,
    pub(super) races: u64,
    /// Races without exactly one winner and one loser.
    pub(super) undecided: u64,
    pub(super) endings: u64,
    /// Messages that were announced to a hub which exited without showing them.
    pub(super) stranded: u64,
}

impl HubStressResults {
    /// Fails if there is a problem that no kill explains.
    pub(super) fn check(&self) -> Result<(), Failure> {
        let popups = &self.popups;
        let problems = [
            (self.unacknowledged, "not acknowledged though they were not killed"),
            (self.lost, "lost"),
            (self.turns_lost, "ends of turns lost"),
            (self.turns_doubled, "ends of turns told twice"),
            (self.undelivered, "acknowledged and never shown"),
            (self.never_sent, "shown but never sent"),
            (self.doubled, "twice on the list"),
            (self.refused, "not taken by the desktop"),
            (self.unshown, "without a popup"),
            (popups.twice.known, "in two popups though the first was known"),
            (popups.beside.known, "beside a popup of their surface that was known"),
            (popups.left.known, "popups left over that were known"),
            (popups.replaced_foreign, "popups in a stranger's place"),
            (popups.never_sent, "popups that were never sent"),
            (self.undecided, "races without exactly one winner"),
            (self.stranded, "left by a hub that ended"),
        ];
        let details = popups.details.iter().chain(&self.details).take(MAX_DETAILS);
        let details: String = details.map(|detail| format!("  {detail}\n")).collect();
        Failure::unless_zero(&problems, &details)
    }
}

impl fmt::Display for HubStressResults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let popups = &self.popups;
        let rows = [
            ("kills", self.kills),
            ("acknowledged", self.acknowledged),
            ("not acknowledged", self.unacknowledged),
            ("lost", self.lost),
            ("turns that ended, by hooks", self.turns),
            ("of those, lost", self.turns_lost),
            ("of those, told twice", self.turns_doubled),
            ("the command ran", self.recorded),
            ("superseded or read first, with a trail", self.superseded),
            ("the command never ran", self.undelivered),
            ("the command ran twice", self.ran_twice),
            ("the command ran, never sent", self.never_sent),
            ("twice on the list", self.doubled),
            ("shown on the desktop", self.shown),
            ("superseded or read before that, with a trail", self.unneeded),
            ("not taken by the desktop, with a trail", self.refused),
            ("never shown", self.unshown),
            ("popups opened", popups.opened),
            ("popups replaced in place", popups.replaced),
            ("of those, by the same message", popups.again),
            ("popups closed", popups.closed),
            ("shown twice, the number known", popups.twice.known),
            ("shown twice, killed before the number was written", popups.twice.unknown),
            ("two of one surface, the number known", popups.beside.known),
            ("two of one surface, killed before the number was written", popups.beside.unknown),
            ("left over, the number known", popups.left.known),
            ("left over, killed before the number was written", popups.left.unknown),
            (
                "in the place of another surface's popup, or never sent",
                popups.replaced_foreign + popups.never_sent,
            ),
            ("races", self.races),
            ("races without one winner", self.undecided),
            ("endings", self.endings),
            ("left by a hub that ended", self.stranded),
        ];
        write!(f, "| what | number |\n|---|---:|")?;
        rows.iter().try_for_each(|(name, number)| write!(f, "\n| {name} | {number} |"))
    }
}

#[cfg(test)]
mod tests {
    use super::HubStressResults;

    #[test]
    fn twice_is_allowed_and_lost_is_not() {
        assert!(
            HubStressResults { ran_twice: 3, kills: 9, superseded: 2, ..HubStressResults::default() }
                .check()
                .is_ok()
        );
        let wrong = HubStressResults { lost: 1, stranded: 2, ..HubStressResults::default() };
        let failure = wrong.check().expect_err("something is wrong");
        assert_eq!((failure.code(), failure.to_string().as_str()), (1, "1 lost, 2 left by a hub that ended"));
        assert!(wrong.to_string().contains("| lost | 1 |"), "{wrong}");
    }
}
