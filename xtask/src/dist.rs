use crate::binary::{self, Profile};
use crate::failure::Failure;
use crate::step_times::StepTimes;

/// Builds the program as it is shipped, and prints its path.
pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    Failure::unless_empty(arguments)?;
    StepTimes::around(|times| {
        let ringer = binary::ringer(Profile::Dist, times)?;
        println!("{}", ringer.display());
        Ok(())
    })
}
