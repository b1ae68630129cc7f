//! Tests with real parts.
