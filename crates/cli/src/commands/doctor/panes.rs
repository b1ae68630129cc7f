//! Checks the panes: their server and their keeper, the versions, and the saved panes that can be restored.

use std::io;
use std::path::Path;

use ringer_journal::Home;
use ringer_panes::{
    ClientError, ClientSettings, PanePaths, RunningServer, ServerAge, running_server, saved_panes,
};

use super::hub::try_writing;
use super::row::Row;
use crate::output::count;

const PART: &str = "panes";

pub(super) fn rows(home: &Home) -> Vec<Row> {
    // Only reads: creates nothing if there never were panes.
    if !PanePaths::has_session(home) {
        return vec![Row::unused(PART, "none were opened yet (ringer open)")];
    }
    let paths = match PanePaths::of(home) {
        Ok(paths) => paths,
        Err(error) => {
            let what = format!("there is no safe directory for their sockets: {error}");
            return vec![Row::broken(PART, what).fix("XDG_RUNTIME_DIR=/some/directory ringer attach")];
        }
    };
    let found = running_server(&paths, &ClientSettings::default());
    let row = server_row(found, paths.has_programs(), || saved_panes(&paths));
    let sockets = paths.server();
    std::iter::once(row).chain(sockets.parent().and_then(unwritable)).collect()
}

fn server_row(
    found: Result<RunningServer, ClientError>,
    has_keeper: bool,
    saved: impl FnOnce() -> io::Result<usize>,
) -> Row {
    let server = match found {
        Ok(server) => server,
        Err(ClientError::NoServer) if has_keeper => {
            let what = "their programs run, but no server shows them";
            return Row::warn(PART, what).fix("ringer attach   # starts one");
        }
        Err(ClientError::NoServer) => {
            return match saved() {
                Ok(0) => Row::unused(PART, "none are open (ringer open)"),
                Ok(saved) => {
                    Row::ok(PART, format!("{} saved; ringer attach brings them back", count(saved, "pane")))
                }
                Err(error) => Row::warn(PART, format!("the saved ones cannot be read: {error}"))
                    .fix("ringer attach   # keeps the file beside it, and begins with a shell"),
            };
        }
        Err(error) => {
            let fix = "end its process `ringer pane-server serve` (programs go on), then: ringer attach";
            return Row::broken(PART, error.to_string()).fix(fix);
        }
    };
    let RunningServer { version, age, panes } = server;
    let own = env!("CARGO_PKG_VERSION");
    match age {
        ServerAge::Older => {
            let what = format!("their server is version {version}, older than this program, {own}");
            Row::warn(PART, what).fix("ringer attach   # takes over; programs go on")
        }
        ServerAge::Newer => {
            let what = format!("their server is version {version}, newer than this program, {own}");
            Row::warn(PART, what).fix("which -a ringer   # use the newer one")
        }
        ServerAge::Same if panes == Some(0) => {
            Row::ok(PART, format!("none are open; their server runs, version {version}"))
        }
        ServerAge::Same if !has_keeper => {
            let what = "their keeper has ended, so their programs end when the server does";
            Row::warn(PART, what).fix("ringer panes   # open them again when it suits you")
        }
        ServerAge::Same => {
            let panes = panes.map_or_else(|| "open".to_owned(), |panes| count(panes, "pane"));
            Row::ok(PART, format!("{panes}; server and keeper run, version {version}"))
        }
    }
}

/// Returns a row if the socket directory cannot be written: screens are saved there, too.
fn unwritable(directory: &Path) -> Option<Row> {
    let error = try_writing(directory).err()?;
    let what = format!("{} cannot be written, so screens are not saved: {error}", directory.display());
    Some(Row::warn(PART, what).fix(format!("df -h {}", directory.display())))
}

#[cfg(test)]
mod tests {
    use super::super::row::Verdict;
    use super::*;

    #[test]
    fn each_state_is_a_line_with_what_is_to_be_done() {
        let runs = |age, panes| Ok(RunningServer { version: "0.0.7".to_owned(), age, panes });
        let line = |found, has_keeper, saved| server_row(found, has_keeper, || Ok(saved)).lines(true);
        let own = env!("CARGO_PKG_VERSION");
        let lines = [
            line(runs(ServerAge::Same, Some(1)), true, 1),
            line(runs(ServerAge::Same, Some(0)), false, 0),
            line(runs(ServerAge::Same, Some(2)), false, 2),
            line(runs(ServerAge::Older, None), true, 2),
            line(runs(ServerAge::Newer, None), true, 2),
            line(Err(ClientError::NoServer), true, 2),
            line(Err(ClientError::NoServer), false, 3),
            line(Err(ClientError::Silent(io::ErrorKind::TimedOut.into())), true, 3),
        ];
        insta::assert_snapshot!(lines.concat().replace(own, "[version]"), @"
          ✓ panes         1 pane; server and keeper run, version 0.0.7
          ✓ panes         none are open; their server runs, version 0.0.7
          ! panes         their keeper has ended, so their programs end when the server does
                          fix: ringer panes   # open them again when it suits you
          ! panes         their server is version 0.0.7, older than this program, [version]
                          fix: ringer attach   # takes over; programs go on
          ! panes         their server is version 0.0.7, newer than this program, [version]
                          fix: which -a ringer   # use the newer one
          ! panes         their programs run, but no server shows them
                          fix: ringer attach   # starts one
          ✓ panes         3 panes saved; ringer attach brings them back
          ✗ panes         the server of panes does not answer: timed out
                          fix: end its process `ringer pane-server serve` (programs go on), then: ringer attach
        ");
        assert!(server_row(Err(ClientError::NoServer), false, || Ok(0)).is_unused);
        let damaged =
            server_row(Err(ClientError::NoServer), false, || Err(io::ErrorKind::InvalidData.into()));
        assert!(damaged.verdict == Verdict::Warn && damaged.lines(true).contains("cannot be read"));
    }
}
