//! Surfaces and the workspaces they stand in.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The id of a workspace: a group of surfaces, one row in the sidebar. Opaque.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WorkspaceId(Arc<str>);

/// The id of a surface: one terminal. Opaque.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SurfaceId(Arc<str>);

/// The text of an id, which records of the same place share.
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
    /// The workspace of that id.
    pub fn new(id: &str) -> Self {
        Self(id.into())
    }

    /// The id.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl SurfaceId {
    /// The surface of that id.
    pub fn new(id: &str) -> Self {
        Self(id.into())
    }

    /// The id.
    pub fn as_str(&self) -> &str {
        &self.0
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

    /// The workspace of what rings nowhere in particular: one for each repository.
    pub fn own_workspace(scope: &str) -> Self {
        Self::workspace(WorkspaceId::new(&format!("repo:{scope}")))
    }

    /// A surface.
    pub fn surface(workspace: WorkspaceId, surface: SurfaceId) -> Self {
        Self { workspace, surface: Some(surface) }
    }

    /// Whether another place is this one or lies in it.
    pub fn covers(&self, other: &Self) -> bool {
        self.workspace == other.workspace && (self.surface.is_none() || self.surface == other.surface)
    }
}
