//! Surfaces and the workspaces that contain them.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Prefix of the ids of repositories' workspaces.
pub const REPOSITORY_PREFIX: &str = "repo:";
/// Prefix of the ids of workspaces and surfaces of another machine.
pub const MACHINE_PREFIX: &str = "machine:";
/// Prefix of the ids of Ringer's own panes.
pub const PANE_PREFIX: &str = "pane:";

/// The id of a workspace: a group of surfaces, one row in the sidebar. Opaque.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WorkspaceId(Arc<str>);

/// The id of a surface: one terminal. Opaque.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SurfaceId(Arc<str>);

/// Uses a shared text: records of the same place share the text of their id.
impl From<Arc<str>> for WorkspaceId {
    fn from(id: Arc<str>) -> Self {
        Self(id)
    }
}

impl From<Arc<str>> for SurfaceId {
    fn from(id: Arc<str>) -> Self {
        Self(id)
    }
}

impl WorkspaceId {
    /// Creates the workspace id from a text.
    pub fn new(id: &str) -> Self {
        Self(id.into())
    }

    /// Returns true if the workspace is on another machine.
    pub fn is_on_other_machine(&self) -> bool {
        self.0.starts_with(MACHINE_PREFIX)
    }

    /// The id.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl SurfaceId {
    /// Creates the surface id from a text.
    pub fn new(id: &str) -> Self {
        Self(id.into())
    }

    /// Returns true for one of Ringer's own panes.
    pub fn is_pane(&self) -> bool {
        self.0.starts_with(PANE_PREFIX)
    }

    /// The id.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The parts of the id of a tmux pane, `tmux:<socket>:<server's pid>:%N`. They are enough to find the pane again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TmuxSurface<'a> {
    /// The socket of the server.
    pub socket: &'a str,
    /// The pid of the server: another server may use the socket now.
    pub server: &'a str,
    /// The id of the pane, with its `%`.
    pub pane: &'a str,
}

impl<'a> TmuxSurface<'a> {
    /// The pane of a process, from its variables `TMUX` (`SOCKET,PID,SESSION`) and `TMUX_PANE`.
    pub fn of_variables(tmux: &'a str, pane: &'a str) -> Option<Self> {
        let mut fields = tmux.rsplitn(3, ',');
        let (_session, server, socket) = (fields.next()?, fields.next()?, fields.next()?);
        (!socket.is_empty()).then_some(Self { socket, server, pane })
    }

    /// The id.
    pub fn id(self) -> SurfaceId {
        SurfaceId::new(&format!("tmux:{}:{}:{}", self.socket, self.server, self.pane))
    }
}

impl SurfaceId {
    /// Parses the id of a tmux pane.
    pub fn tmux(&self) -> Option<TmuxSurface<'_>> {
        let mut fields = self.as_str().strip_prefix("tmux:")?.rsplitn(3, ':');
        let (pane, server, socket) = (fields.next()?, fields.next()?, fields.next()?);
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let is_pane = is_number(server) && pane.strip_prefix('%').is_some_and(is_number);
        is_pane.then_some(TmuxSurface { socket, server, pane })
    }
}

/// The parts of the id of a plain terminal, `tty:<device>@<start time of the session leader>`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TtySurface<'a> {
    /// The device.
    pub tty: &'a str,
    /// The start time of the session leader, in the kernel's unit. It is needed because devices are reused.
    pub leader_started: u64,
}

impl TtySurface<'_> {
    /// The id.
    pub fn id(self) -> SurfaceId {
        SurfaceId::new(&format!("tty:{}@{}", self.tty, self.leader_started))
    }
}

impl SurfaceId {
    /// Parses the id of a plain terminal.
    pub fn tty(&self) -> Option<TtySurface<'_>> {
        let (tty, started) = self.as_str().strip_prefix("tty:")?.rsplit_once('@')?;
        Some(TtySurface { tty, leader_started: started.parse().ok()? })
    }
}

impl fmt::Display for WorkspaceId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl fmt::Display for SurfaceId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// A place that can ring: a surface in a workspace, or a workspace as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Place {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// The surface, where one is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub surface: Option<SurfaceId>,
}

impl Place {
    /// A workspace as a whole.
    pub fn workspace(workspace: WorkspaceId) -> Self {
        Self { workspace, surface: None }
    }

    /// The workspace for notifications without a place: one for each repository.
    pub fn own_workspace(scope: &str) -> Self {
        Self::workspace(WorkspaceId::new(&format!("{REPOSITORY_PREFIX}{scope}")))
    }

    /// A surface.
    pub fn surface(workspace: WorkspaceId, surface: SurfaceId) -> Self {
        Self { workspace, surface: Some(surface) }
    }

    /// Returns true if another place is this one or lies in it.
    pub fn covers(&self, other: &Self) -> bool {
        self.workspace == other.workspace && (self.surface.is_none() || self.surface == other.surface)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pane_of_tmux_is_named_by_its_server() {
        let id = |tmux| TmuxSurface::of_variables(tmux, "%3").map(|pane| pane.id().to_string());
        assert_eq!(id("/tmp/tmux-0/a,b,12,0").as_deref(), Some("tmux:/tmp/tmux-0/a,b:12:%3"));
        assert_eq!((id("oops"), id(",12,0")), (None, None));
    }

    #[test]
    fn a_surface_names_a_pane_of_tmux_or_none() {
        let surface = SurfaceId::new("tmux:/tmp/a:b/default:77:%3");
        let expected = TmuxSurface { socket: "/tmp/a:b/default", server: "77", pane: "%3" };
        assert_eq!(surface.tmux(), Some(expected));
        for other in
            ["tty:/dev/pts/1@5", "tmux:x", "tmux:s:77:%3' ; kill-server", "tmux:s:7x:%3", "tmux:s::%"]
        {
            assert_eq!(SurfaceId::new(other).tmux(), None, "{other}");
        }
    }
}
