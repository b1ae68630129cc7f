//! `ringer run`: a program between a real PTY and another one notices nothing.

mod bytes;
mod ending;
mod in_tmux;
mod job_control;
mod keys;
mod multiplexers;
mod no_terminal;
mod pane;
mod with_hub;
