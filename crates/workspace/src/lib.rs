//! x
#![forbid(unsafe_code)]
#![allow(dead_code)]
mod actions;
mod area;
mod emulator;
mod layout;
mod mouse;
mod outer_modes;
mod screen;
mod string_limit;
mod style;
