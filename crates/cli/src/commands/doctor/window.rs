//! The window of this terminal: whether Ringer sees when the person looks at it, and can go there.

use ringer_core::message::SurfaceId;
use ringer_windows::inspect;

use super::row::Row;
use crate::origin::plain_surface;

const PART: &str = "window";

/// A row where this terminal has a window; none over SSH, in a pane of tmux or on a console.
pub(super) fn rows() -> Vec<Row> {
    let surface = plain_surface().map(|(surface, _)| SurfaceId::new(&surface));
    let Some(report) = surface.as_ref().and_then(inspect) else { return Vec::new() };
    let can = match (report.can_see, report.can_focus) {
        (true, _) => "Ringer sees when you look at it and can bring it to the front",
        (false, true) => "Ringer can bring it to the front, but does not see when you look at it",
        (false, false) => "Ringer does not see when you look at it and cannot bring it to the front",
    };
    let why = report.why.map(|why| format!(": {why}")).unwrap_or_default();
    let what = format!("{}; {can}{why}", report.name);
    // Without a fix it is as good as it can be there.
    vec![match report.fix {
        Some(fix) => Row::warn(PART, what).fix(fix),
        None => Row::ok(PART, what),
    }]
}
