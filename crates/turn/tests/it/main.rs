//! Tests of the public face: what the channels of MCP servers must keep.

#![expect(clippy::unwrap_used, reason = "that is how a test fails")]

mod spec_channels;
