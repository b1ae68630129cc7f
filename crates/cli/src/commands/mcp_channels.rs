//! `ringer mcp status`, `ringer mcp pair` and `ringer mcp unpair`: MCP servers that push messages to agents.

use ringer_config::Config;
use ringer_core::Scope;
use ringer_core::conversation::{ChannelSender, McpServer, Operator};
use ringer_journal::{Home, Journal};
use ringer_mcp::channels::{self, AccessError, ChannelState, ChannelStatus, ChannelsStatus};
use ringer_term::sanitise_line;
use serde_json::{Value, json};

use super::config;
use crate::failure::{Exit, Failure, Outcome};
use crate::output::{count, print_json, print_line};
use crate::{context, guard};

/// A server in the settings, with its status from the hub.
pub(super) struct ConfiguredChannel {
    pub(super) name: String,
    pub(super) to: String,
    pub(super) status: Option<ChannelStatus>,
}

/// Returns every server in the settings with its status, and the status of all channels.
pub(super) fn configured_channels(
    home: &Home,
    config: &Config,
) -> (Vec<ConfiguredChannel>, Option<ChannelsStatus>) {
    let status = ChannelsStatus::read(home);
    let find = |name: &str| status.iter().flat_map(|status| &status.servers).find(|own| own.name == name);
    let entries = config.channel_servers.iter();
    let set = entries.map(|entry| ConfiguredChannel {
        name: entry.name.clone(),
        to: entry.to.clone(),
        status: find(&entry.name).cloned(),
    });
    (set.collect(), status)
}

pub(super) fn show_status(as_json: bool) -> Outcome {
    let home = context::home()?;
    let config = match config::user_config(&config::environment()) {
        None => Config::default(),
        Some((_, Ok(config))) => config,
        Some((path, Err(errors))) => return config::report_and_fail(&path, errors),
    };
    let (set, status) = configured_channels(&home, &config);
    let waiting = status.as_ref().map(|status| status.waiting.clone()).unwrap_or_default();
    if as_json {
        let servers: Vec<Value> = set.iter().map(server_json).collect();
        let waiting: Vec<Value> = waiting
            .iter()
            .map(|waiting| {
                let (server, user) = (waiting.sender.server().as_str(), waiting.sender.user());
                json!({ "code": waiting.code, "server": server, "user": user })
            })
            .collect();
        let (enabled, hub) = (config.channels.enabled, status.is_some());
        return print_json(
            &json!({ "enabled": enabled, "hub": hub, "servers": servers, "waiting": waiting }),
        );
    }
    if set.is_empty() {
        print_line("no MCP channels are set; a [[channel]] in config.toml names one")?;
    }
    for channel in &set {
        let (name, to) = (&channel.name, &channel.to);
        print_line(&sanitise_line(&format!("{name} → {to}: {}", state_text(channel, &config))))?;
        if let Some(remedy) = channel.status.as_ref().and_then(|status| status.remedy.as_deref()) {
            print_line(&sanitise_line(&format!("  {remedy}")))?;
        }
    }
    for sender in waiting {
        let (user, server) = (sender.sender.user(), sender.sender.server());
        let line =
            format!("{user:?} on {server} wants to write; to allow it: ringer mcp pair {}", sender.code);
        print_line(&sanitise_line(&line))?;
    }
    Ok(())
}

/// Describes the state of a server, without a fix.
pub(super) fn state_text(channel: &ConfiguredChannel, config: &Config) -> String {
    let Some(status) = &channel.status else {
        let off = "refused at gate 2: MCP channels are switched off";
        let text = if config.channels.enabled { "not connected: the hub is not running" } else { off };
        return text.to_owned();
    };
    let why = status.why.as_deref().unwrap_or("no reason is known");
    let state = match (status.state, status.gate) {
        (ChannelState::Connected, _) => "connected".to_owned(),
        (ChannelState::Starting, _) => "starting".to_owned(),
        (ChannelState::Refused, Some(gate)) => format!("refused at gate {gate}: {why}"),
        (ChannelState::Refused, None) => format!("refused: {why}"),
        (ChannelState::Failed, _) => format!("not connected: {why}"),
    };
    let number = |number: u64, what: &str| (number > 0).then(|| format!(", {number} {what}"));
    let messages = usize::try_from(status.messages).unwrap_or(usize::MAX);
    let counts = [
        (messages > 0).then(|| format!(", {}", count(messages, "message"))),
        number(status.refused, "of senders that may not write"),
        number(status.over_rate, "over the rate"),
        number(status.invalid, "invalid"),
        number(status.answers, "answered"),
        number(status.late_answers, "answered too late"),
    ];
    state + &counts.into_iter().flatten().collect::<String>()
}

fn server_json(channel: &ConfiguredChannel) -> Value {
    match &channel.status {
        Some(status) => json!(status),
        None => json!({ "name": channel.name, "to": channel.to, "state": null }),
    }
}

/// Only a person may change the allowed senders.
fn operator(home: &Home) -> Result<Operator, Failure> {
    let mut journal = Journal::open(home)?;
    guard::only_a_person(&mut journal, &Scope::global(), "change who may write over MCP channels")?;
    Ok(Operator::at_the_keyboard())
}

pub(super) fn pair(code: &str) -> Outcome {
    let home = context::home()?;
    let operator = operator(&home)?;
    let sender = channels::pair(&home, &operator, code).map_err(failure)?;
    print_line(&sanitise_line(&format!("{sender} may write now")))
}

pub(super) fn unpair(server: &str, user: &str) -> Outcome {
    let home = context::home()?;
    let operator = operator(&home)?;
    let sender = ChannelSender::new(McpServer::new(server)?, user)?;
    if channels::unpair(&home, &operator, &sender).map_err(failure)? {
        return print_line(&sanitise_line(&format!("{sender} may not write any more")));
    }
    Err(Failure::new(Exit::Data, sanitise_line(&format!("{sender} was not paired")))
        .hint("senders under `allow` are taken out of config.toml"))
}

fn failure(error: AccessError) -> Failure {
    match error {
        AccessError::Refused(error) => {
            Failure::new(Exit::Data, sanitise_line(&error.to_string())).hint("ringer mcp status")
        }
        error @ AccessError::File { .. } => {
            Failure::new(Exit::CannotCreate, sanitise_line(&error.to_string())).hint("ringer doctor")
        }
    }
}
