//! Rules that the compiler does not check. Each is a pure function of a file's path and text, so it can be tested without a
//! repository; only [`listing`] reads the disk.

mod arrows;
mod circles;
mod complaint;
mod leftovers;
mod length;
mod listing;
mod machine;
mod manifest;
mod named_tests;
mod page;
mod presence;
mod sleeps;
mod source;

use complaint::Complaint;
use listing::TextFile;

use crate::failure::Failure;

const RULES: &[fn(&TextFile) -> Vec<Complaint>] =
    &[arrows::check, leftovers::check, length::check, machine::check, page::check, sleeps::check];

pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    Failure::unless_empty(arguments)?;
    check()
}

pub(crate) fn check() -> Result<(), Failure> {
    let files = listing::text_files()?;
    let mut complaints: Vec<Complaint> =
        files.iter().flat_map(|file| RULES.iter().flat_map(move |rule| rule(file))).collect();
    complaints.extend(presence::check(&files));
    complaints.extend(circles::check(&files));
    complaints.extend(named_tests::check(&files));
    complaints.sort();
    for complaint in &complaints {
        println!("{complaint}");
    }
    match complaints.len() {
        0 => Ok(()),
        1 => Err(Failure::complaints("1 complaint".into())),
        many => Err(Failure::complaints(format!("{many} complaints"))),
    }
}
