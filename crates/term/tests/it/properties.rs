//! Properties of every input.

mod encoders;
mod filter;
mod framing;
mod hostile;
mod memory;
mod opened;
mod round_trip;
mod splits;
