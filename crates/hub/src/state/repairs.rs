//! Reports repairs. Whichever process finds damage, the next hub repairs the file when it starts, and tells the person once.

use ringer_core::attention::Record;
use ringer_core::{Draft, Kind, MessageId, Now, Recipient, Scope, Sender};
use ringer_journal::{Damage, Error, RepairRecord, UnreadableRecord};

use super::HubState;

/// The file that was damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DamagedFile {
    Journal,
    HubStore,
}

impl HubState {
    /// Returns the reason why this hub must end: a file is damaged or was replaced, so its memory no longer matches.
    pub(crate) fn unusable_files(&mut self) -> Option<&'static str> {
        let store = self.notifications.store();
        if self.journal.is_damaged() {
            Some("the journal is damaged")
        } else if store.is_damaged() {
            Some("the list of notifications is damaged")
        } else if self.journal.is_reopened() {
            Some("another file is in the place of the journal")
        } else if store.is_reopened() {
            Some("another file is in the place of the list of notifications")
        } else {
            None
        }
    }

    /// Reports the repairs that are recorded in the files, if there may be new ones.
    pub(super) fn tell_of_repairs(&mut self, now: Now) {
        if self.is_offline() || !self.maintenance.take_repairs_check() {
            return;
        }
        if let Err(error) = self.append_repair_notices() {
            self.write_failed(now, "cannot tell of a repair, trying again later", &error);
            self.maintenance.check_repairs();
            self.ingest.schedule();
            self.ingest.pause(self.time.mono(now));
        }
    }

    fn append_repair_notices(&mut self) -> Result<(), Error> {
        let repairs = self.journal.unreported_repairs()?;
        self.append_notices(DamagedFile::Journal, &repairs)?;
        if !repairs.is_empty() {
            self.journal.mark_repairs_reported(&repairs)?;
        }
        let repairs = self.notifications.store().unreported_repairs()?;
        self.append_notices(DamagedFile::HubStore, &repairs)?;
        if !repairs.is_empty() {
            self.notifications.store().mark_repairs_reported(&repairs)?;
        }
        Ok(())
    }

    /// Appends a message for each repaired file, and one for all rows. A message has the id of its repair, so if a hub ends in
    /// between and the next one reports the repair again, it is the same message.
    fn append_notices(&mut self, file: DamagedFile, repairs: &[RepairRecord]) -> Result<(), Error> {
        for RepairNotice { id, unix_ms, title, body } in notices(file, repairs) {
            self.log(format!("{title}. {body}"));
            let Ok(mut draft) = Draft::new(Scope::global(), Sender::system(), Kind::Error, &body) else {
                continue;
            };
            draft.title = Some(format!("Ringer: {title}"));
            draft.recipient = Recipient::Person;
            self.journal.append_as(&draft, &id, unix_ms)?;
            self.ingest.schedule();
        }
        Ok(())
    }

    /// Moves unreadable notifications out of the hub store. Returns those that the journal still has.
    pub(super) fn rescue_notifications(
        &mut self,
        now: Now,
        unreadable: Vec<UnreadableRecord>,
    ) -> Result<Vec<Record>, Error> {
        if unreadable.is_empty() {
            return Ok(Vec::new());
        }
        let numbers: Vec<i64> = unreadable.iter().map(|row| row.number).collect();
        let mut rescued = Vec::new();
        for UnreadableRecord { id, is_read, record, .. } in unreadable {
            let record = match record {
                Some(record) => Some(record),
                None => self.journal.message(&id)?.as_ref().and_then(Record::of),
            };
            rescued.extend(record.map(|record| {
                let is_resolved = is_read || record.is_resolved;
                Record { is_read, is_resolved, ..record }
            }));
        }
        if self.is_offline() {
            return Ok(rescued);
        }
        let ids = self.ids(now);
        self.notifications.store().quarantine_notifications(&numbers, &ids)?;
        Ok(rescued)
    }
}

/// The message about a repair.
#[derive(Debug, PartialEq, Eq)]
struct RepairNotice {
    id: MessageId,
    unix_ms: i64,
    title: String,
    body: String,
}

fn notices(file: DamagedFile, repairs: &[RepairRecord]) -> Vec<RepairNotice> {
    let (file, rows) = match file {
        DamagedFile::Journal => ("the journal", "message"),
        DamagedFile::HubStore => ("the list of notifications", "notification"),
    };
    let counted = |count: usize| if count == 1 { format!("1 {rows}") } else { format!("{count} {rows}s") };
    let mut notices = Vec::new();
    let mut damaged_rows: Option<(&RepairRecord, usize)> = None;
    for repair in repairs {
        match &repair.damage {
            Damage::File { damaged_copy: aside, rescued_rows: saved } => notices.push(RepairNotice {
                id: repair.id.clone(),
                unix_ms: repair.unix_ms,
                title: format!("{file} was damaged"),
                body: format!(
                    "{} could be read and kept. The damaged copy is {}; remove it when you do not need it any more.",
                    counted(*saved),
                    aside.display()
                ),
            }),
            Damage::Row { .. } => {
                let (first, count) = damaged_rows.unwrap_or((repair, 0));
                damaged_rows = Some((first, count + 1));
            }
        }
    }
    if let Some((first, count)) = damaged_rows {
        notices.push(RepairNotice {
            id: first.id.clone(),
            unix_ms: first.unix_ms,
            title: format!("{} could not be read", counted(count)),
            body: format!("{file} is damaged there. What is left of it is in the table repair of its file."),
        });
    }
    notices
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repair(number: u64, damage: Damage) -> RepairRecord {
        RepairRecord { id: MessageId::new(number, [0; 10]), unix_ms: 7, damage }
    }

    #[test]
    fn each_file_is_told_of_and_all_rows_together() {
        let row = || Damage::Row { table: "message".to_owned() };
        let file =
            |saved| Damage::File { damaged_copy: "/x/ringer.db.damaged-1".into(), rescued_rows: saved };
        let repairs = [repair(1, row()), repair(2, file(120)), repair(3, row()), repair(4, file(1))];
        let told: Vec<(MessageId, String, String)> = notices(DamagedFile::Journal, &repairs)
            .into_iter()
            .map(|notice| (notice.id, notice.title, notice.body))
            .collect();
        let copy = "The damaged copy is /x/ringer.db.damaged-1; remove it when you do not need it any more.";
        assert_eq!(
            told,
            [
                (
                    repairs[1].id.clone(),
                    "the journal was damaged".to_owned(),
                    format!("120 messages could be read and kept. {copy}")
                ),
                (
                    repairs[3].id.clone(),
                    "the journal was damaged".to_owned(),
                    format!("1 message could be read and kept. {copy}")
                ),
                (
                    repairs[0].id.clone(),
                    "2 messages could not be read".to_owned(),
                    "the journal is damaged there. What is left of it is in the table repair of its file."
                        .to_owned()
                ),
            ]
        );
        assert_eq!(notices(DamagedFile::HubStore, &[]), []);
    }
}
