//! What the fuzz targets check. Each module is one target, so that its corpus can also be replayed without a fuzzer.

pub mod channel_lines;
pub mod claims;
pub mod config_files;
pub mod hook;
pub mod hub_requests;
mod input;
pub mod keeper_frames;
pub mod kitty_answers;
pub mod link_frames;
pub mod mcp_proxy;
pub mod osc99;
pub mod pane_frames;
pub mod scanner;
pub mod spool_files;
pub mod tmux_listings;

/// A target: its name, and what it does with an input.
pub type Target = (&'static str, fn(&[u8]));

/// All targets.
pub const TARGETS: [Target; 14] = [
    ("channel_lines", channel_lines::run),
    ("claims", claims::run),
    ("config_files", config_files::run),
    ("hook", hook::run),
    ("hub_requests", hub_requests::run),
    ("keeper_frames", keeper_frames::run),
    ("kitty_answers", kitty_answers::run),
    ("link_frames", link_frames::run),
    ("mcp_proxy", mcp_proxy::run),
    ("osc99", osc99::run),
    ("pane_frames", pane_frames::run),
    ("scanner", scanner::run),
    ("spool_files", spool_files::run),
    ("tmux_listings", tmux_listings::run),
];
