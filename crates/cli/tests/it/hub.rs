//! The hub as people meet it: through the real program, with a real process in the background.

mod backlog;
mod callers;
mod commands;
mod down;
mod environment;
mod exchanged;
mod failing;
mod following;
mod hostile_text;
mod intruders;
mod looking;
mod naming;
mod open;
mod person_text;
mod places;
mod popups;
mod problems;
mod protocol;
mod snapshots;
mod spool;
mod starting;
mod stopped;
mod surroundings;
mod tmux;
mod trust;
mod undo;
