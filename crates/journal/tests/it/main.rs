//! Tests of the journal with real processes and real faults.
