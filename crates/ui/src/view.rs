//! What is on top of the list.

use crate::agent_view::AgentView;
use crate::dialog::Dialog;
use crate::menu::Menu;
use crate::pager::Pager;
use crate::text_input::TextInput;

/// What is on top of the list.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum View {
    List,
    Filter(TextInput),
    Help,
    /// A text that is read and closed.
    Text(Pager),
    Agent(AgentView),
    Menu(Menu),
    ConfirmClear,
    Dialog(Box<Dialog>),
}
