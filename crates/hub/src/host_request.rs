//! What hosts on the socket send: what it means depends on the connection.

use ringer_ipc::ApiError;
use serde::Deserialize;
use serde_json::Value;

use crate::params::{one_or_several, read};

/// What a host sends on its connection.
#[derive(Debug)]
pub(crate) enum HostRequest {
    /// The connection is a host from now on.
    Attach { name: String, can_focus: bool },
    /// It has surfaces, or some of its surfaces changed.
    Opened(Vec<SurfaceParams>),
    /// A surface was closed.
    Closed { surface_id: String },
    /// What the person looks at in it.
    Looks(LooksParams),
    /// The person typed in it.
    Typed,
    /// A surface is unread, for one of two reasons that are no notifications.
    Unread { surface_id: String, is_restored: bool },
    /// It went to a surface as it was asked to, or says why not.
    Focused { surface_id: String, result: Result<(), String> },
}

pub(crate) type Reader = fn(Value) -> Result<HostRequest, ApiError>;

/// The methods of hosts: what they mean depends on the connection.
const METHODS: &[(&str, Reader)] = &[
    (ATTACH, |params| {
        let HostName { name, can_focus } = read(params)?;
        Ok(HostRequest::Attach { name, can_focus })
    }),
    ("surface.opened", |params| one_or_several(params, "surfaces").map(HostRequest::Opened)),
    ("surface.changed", |params| one_or_several(params, "surfaces").map(HostRequest::Opened)),
    ("surface.closed", |params| {
        let SurfaceName { surface_id } = read(params)?;
        Ok(HostRequest::Closed { surface_id })
    }),
    ("surface.looks", |params| read(params).map(HostRequest::Looks)),
    ("surface.typed", |_| Ok(HostRequest::Typed)),
    ("surface.unread", |params| {
        let SurfaceUnread { surface_id, restored } = read(params)?;
        Ok(HostRequest::Unread { surface_id, is_restored: restored })
    }),
    ("surface.focused", |params| {
        let SurfaceFocused { surface_id, why } = read(params)?;
        Ok(HostRequest::Focused { surface_id, result: why.map_or(Ok(()), Err) })
    }),
];

impl HostRequest {
    /// What reads the requests of a method, if it is one of hosts.
    pub(crate) fn reader(method: &str) -> Option<Reader> {
        METHODS.iter().find(|(name, _)| *name == method).map(|(_, reader)| *reader)
    }

    /// The names of the methods of hosts.
    pub(crate) fn method_names() -> impl Iterator<Item = &'static str> {
        METHODS.iter().map(|(name, _)| *name)
    }
}

/// The method that makes a connection a host.
pub(crate) const ATTACH: &str = "host.attach";

#[derive(Debug, Deserialize)]
struct HostName {
    name: String,
    /// Whether it goes to a surface when it is asked to.
    #[serde(default)]
    can_focus: bool,
}

#[derive(Debug, Deserialize)]
struct SurfaceName {
    surface_id: String,
}

#[derive(Debug, Deserialize)]
struct SurfaceUnread {
    surface_id: String,
    /// Whether it was unread in the session before; else something happened there.
    #[serde(default)]
    restored: bool,
}

#[derive(Debug, Deserialize)]
struct SurfaceFocused {
    surface_id: String,
    /// Why the host could not go there.
    why: Option<String>,
}

/// A surface of a host.
#[derive(Debug, Deserialize)]
pub(crate) struct SurfaceParams {
    pub(crate) surface_id: String,
    /// Without one it stands in the repository of what it sends.
    #[serde(default)]
    pub(crate) workspace_id: Option<String>,
    #[serde(default)]
    pub(crate) tty: Option<String>,
    #[serde(default)]
    pub(crate) title: Option<String>,
    /// Where it is, in words.
    #[serde(default)]
    pub(crate) place: Option<String>,
}

fn yes() -> bool {
    true
}

/// Everything that the person looks at in a host.
#[derive(Debug, Deserialize)]
pub(crate) struct LooksParams {
    pub(crate) views: Vec<ViewParams>,
    /// Whether the host would know of everything that is looked at.
    #[serde(default = "yes")]
    pub(crate) is_complete: bool,
    /// Whether the person is there. A host that does not know leaves it out.
    #[serde(default)]
    pub(crate) present: Option<bool>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct ViewParams {
    pub(crate) client: String,
    pub(crate) surface_id: String,
}
