//! The far end of a link: `ringer relay serve --stdio`.

use std::os::fd::AsFd;

use crate::error::Error;
use crate::exchange::{Ended, Exchange, Pipes};
use crate::exchange_setup::ExchangeSetup;

/// Serves the machine at the other end of standard input and output, until it closes its end.
pub fn serve(setup: &ExchangeSetup) -> Result<(), Error> {
    let (input, output) = (std::io::stdin(), std::io::stdout());
    let pipes = Pipes { input: input.as_fd(), output: output.as_fd(), stop: None, errors: None };
    match Exchange::begin(setup, pipes, &mut |_| {})?.run()? {
        Ended::Closed | Ended::Stopped => Ok(()),
    }
}
