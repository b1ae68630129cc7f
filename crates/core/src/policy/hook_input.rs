//! The input and output of hooks, and the effects that they switch.
//!
//! The JSON has the same shape as in the first terminal with rings, so that its hooks work unchanged. Names are accepted in
//! `snake_case` as well.

use serde::{Deserialize, Serialize};

/// The switches of a notification. All are on until a rule or a hook turns one off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_excessive_bools, reason = "seven switches, each by itself: that is what they are")]
pub struct Effects {
    /// It is kept in the store, and its toast shown.
    pub record: bool,
    /// It rings: unread, with a ring and a badge.
    pub mark_unread: bool,
    /// Its pane flashes.
    pub pane_flash: bool,
    /// It pops up, on the desktop or in the terminal.
    pub desktop: bool,
    /// It makes a sound.
    pub sound: bool,
    /// It runs commands and webhooks.
    pub command: bool,
    /// It moves its workspace to the top, if the person wants rows to move at all.
    pub reorder_workspace: bool,
}

impl Default for Effects {
    fn default() -> Self {
        Self {
            record: true,
            mark_unread: true,
            pane_flash: true,
            desktop: true,
            sound: true,
            command: true,
            reorder_workspace: true,
        }
    }
}

impl Effects {
    /// No effect.
    pub const NONE: Self = Self {
        record: false,
        mark_unread: false,
        pane_flash: false,
        desktop: false,
        sound: false,
        command: false,
        reorder_workspace: false,
    };

    /// The remaining effects of a notification that the person muted: it is listed as before, and draws no attention.
    pub(crate) fn muted(self) -> Self {
        Self { record: self.record, mark_unread: self.mark_unread, ..Self::NONE }
    }

    /// The names of the switches that are on.
    pub fn names(self) -> Vec<&'static str> {
        [
            ("record", self.record),
            ("markUnread", self.mark_unread),
            ("paneFlash", self.pane_flash),
            ("desktop", self.desktop),
            ("sound", self.sound),
            ("command", self.command),
            ("reorderWorkspace", self.reorder_workspace),
        ]
        .into_iter()
        .filter_map(|(name, on)| on.then_some(name))
        .collect()
    }

    fn patch(&mut self, patch: EffectsPatch) {
        for (switch, value) in [
            (&mut self.record, patch.record),
            (&mut self.mark_unread, patch.mark_unread),
            (&mut self.pane_flash, patch.pane_flash),
            (&mut self.desktop, patch.desktop),
            (&mut self.sound, patch.sound),
            (&mut self.command, patch.command),
            (&mut self.reorder_workspace, patch.reorder_workspace),
        ] {
            *switch = value.unwrap_or(*switch);
        }
    }
}

/// What a hook reads on its standard input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookInput {
    /// The version of this shape.
    pub version: u32,
    /// The notification as it stands.
    pub notification: HookInputText,
    /// Its context.
    pub context: HookInputContext,
    /// The agent behind it.
    pub agent: AgentContext,
    /// The switches as they stand.
    pub effects: Effects,
}

/// The text of a notification, and where it rings.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HookInputText {
    /// The workspace.
    pub workspace_id: String,
    /// The surface, if one is known.
    pub surface_id: Option<String>,
    /// A heading.
    pub title: String,
    /// A second heading.
    pub subtitle: String,
    /// The text.
    pub body: String,
}

/// The origin of the notification, and what has the focus.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HookInputContext {
    /// The directory of the surface.
    pub cwd: Option<String>,
    /// The file that names the hook.
    pub config_path: Option<String>,
    /// The hook's own name.
    pub hook_id: Option<String>,
    /// True if the person looks at any surface.
    pub app_focused: bool,
    /// True if they look at this surface.
    pub focused_panel: bool,
}

/// The agent behind a notification.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentContext {
    /// The kind of the notification, as in the journal.
    pub kind: Option<String>,
    /// The same in the words for people: `permission` and `idle` instead of `waiting`.
    #[serde(default)]
    pub shown: Option<String>,
    /// The category, in the client's words.
    pub category: Option<String>,
    /// True if the agent still has work running.
    pub pending: bool,
    /// True for a subagent.
    pub is_subagent: bool,
}

/// What a hook writes to its standard output: only what it changes. Ids cannot be changed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HookPatch {
    notification: TextPatch,
    effects: EffectsPatch,
    /// Skips the hooks after this one.
    pub stop: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct TextPatch {
    title: Option<String>,
    subtitle: Option<String>,
    body: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct EffectsPatch {
    record: Option<bool>,
    #[serde(alias = "mark_unread")]
    mark_unread: Option<bool>,
    #[serde(alias = "pane_flash")]
    pane_flash: Option<bool>,
    desktop: Option<bool>,
    sound: Option<bool>,
    command: Option<bool>,
    #[serde(alias = "reorder_workspace")]
    reorder_workspace: Option<bool>,
}

impl HookInput {
    /// Creates the input for the hooks of a notification, with every switch on.
    pub fn new(notification: HookInputText, context: HookInputContext, agent: AgentContext) -> Self {
        Self { version: 1, notification, context, agent, effects: Effects::default() }
    }

    /// Applies the changes of a hook.
    pub fn apply(&mut self, patch: HookPatch) {
        let TextPatch { title, subtitle, body } = patch.notification;
        for (text, new) in [
            (&mut self.notification.title, title),
            (&mut self.notification.subtitle, subtitle),
            (&mut self.notification.body, body),
        ] {
            if let Some(new) = new {
                *text = new;
            }
        }
        self.effects.patch(patch.effects);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hook_input() -> HookInput {
        let text = HookInputText {
            workspace_id: "w".into(),
            title: "t".into(),
            body: "b".into(),
            ..HookInputText::default()
        };
        HookInput::new(text, HookInputContext::default(), AgentContext::default())
    }

    fn patched(json: &str) -> HookInput {
        let mut hook_input = hook_input();
        hook_input.apply(serde_json::from_str(json).unwrap());
        hook_input
    }

    #[test]
    fn the_input_has_the_names_that_hooks_know() {
        let json = serde_json::to_value(hook_input()).unwrap();
        assert_eq!(json["version"], 1);
        for (part, names) in [
            ("notification", &["workspaceId", "surfaceId", "title", "subtitle", "body"][..]),
            ("context", &["cwd", "configPath", "hookId", "appFocused", "focusedPanel"]),
            ("agent", &["kind", "shown", "category", "pending", "isSubagent"]),
            (
                "effects",
                &["record", "markUnread", "paneFlash", "desktop", "sound", "command", "reorderWorkspace"],
            ),
        ] {
            let found: Vec<&str> = json[part].as_object().unwrap().keys().map(String::as_str).collect();
            let mut expected = names.to_vec();
            expected.sort_unstable();
            assert_eq!(found, expected, "{part}");
        }
        assert_eq!(hook_input().effects.names().len(), 7, "all on to begin with");
    }

    #[test]
    fn a_patch_changes_only_what_it_names() {
        assert_eq!(patched("{}"), hook_input());
        let changed =
            patched(r#"{"notification":{"title":"new"},"effects":{"markUnread":false,"sound":false}}"#);
        assert_eq!((changed.notification.title.as_str(), changed.notification.body.as_str()), ("new", "b"));
        assert!(!changed.effects.mark_unread && !changed.effects.sound && changed.effects.desktop);
        assert!(!patched(r#"{"effects":{"mark_unread":false}}"#).effects.mark_unread, "our own names, too");
    }

    #[test]
    fn ids_and_unknown_fields_are_ignored() {
        let json = r#"{"notification":{"workspaceId":"other","surfaceId":"x","later":1},"more":[],"effects":{"new":true}}"#;
        assert_eq!(patched(json), hook_input());
    }

    #[test]
    fn a_patch_of_another_shape_is_no_patch() {
        for json in
            ["[1]", r#"{"effects":{"sound":"no"}}"#, r#"{"stop":1}"#, r#"{"notification":{"title":1}}"#, ""]
        {
            assert!(serde_json::from_str::<HookPatch>(json).is_err(), "{json}");
        }
    }
}
