//! Checks the MCP servers that push messages to agents.

use ringer_config::Config;
use ringer_journal::Home;
use ringer_mcp::channels::ChannelState;

use super::programs::find;
use super::row::Row;
use crate::commands::mcp_channels::{set_channels, state_text};

/// The gate that stays closed until the person opens it.
const SWITCH: u8 = 2;

pub(super) fn rows(home: &Home, config: &Config) -> Vec<Row> {
    let (set, _) = set_channels(home, config);
    let row = |(channel, command): (_, &Vec<String>)| {
        let (part, text) = (part(&channel), state_text(&channel, config));
        let Some(status) = &channel.status else {
            let found = find(command).err().filter(|_| config.channels.enabled);
            return match found {
                Some(why) => Row::broken(part, why).fix("install it, or correct its command"),
                None => Row::ok(part, text),
            };
        };
        let row = match status.state {
            ChannelState::Failed => Row::broken(part, text),
            ChannelState::Refused if status.gate != Some(SWITCH) => Row::warn(part, text),
            _ => return Row::ok(part, text),
        };
        row.fix(status.remedy.clone().unwrap_or_else(|| "ringer mcp status".to_owned()))
    };
    let commands = config.channel_servers.iter().map(|entry| &entry.command);
    set.into_iter().zip(commands).map(row).collect()
}

fn part(channel: &crate::commands::mcp_channels::SetChannel) -> String {
    format!("channel {}", channel.name)
}
