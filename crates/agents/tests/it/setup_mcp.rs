//! Ringer's MCP server in the settings of each client: added, kept up to date, removed to the byte.

#![expect(clippy::unwrap_used, reason = "helpers of tests, outside any test function")]

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use ringer_agents::setup::{
    BackupTime, Client, ClientPaths, Entries, FileChange, RingerProgram, SetupAction, SetupRecords,
    SetupScope, Step, apply_with_observer, has_mcp_server, removals_elsewhere,
};
use serde_json::{Value, json};

use crate::setup_apply::{Home, setup};

const T1: &str = "20261115-060000";
const T2: &str = "20261115-070000";
const T3: &str = "20261115-080000";

/// The clients, the files and the object or table in which their servers are.
const FILES: [(Client, &str, &str); 4] = [
    (Client::Claude, ".claude.json", "mcpServers"),
    (Client::Codex, ".codex/config.toml", "mcp_servers"),
    (Client::Gemini, ".gemini/settings.json", "mcpServers"),
    (Client::Opencode, ".config/opencode/opencode.json", "mcp"),
];

fn add(program: &str) -> SetupAction {
    SetupAction::Setup(RingerProgram::new(Path::new(program)).unwrap(), Entries::McpServer)
}

const REMOVE: SetupAction = SetupAction::Remove(Entries::McpServer);
const REMOVE_ALL: SetupAction = SetupAction::Remove(Entries::All);

/// The servers of a file.
fn servers(text: &str, name: &str) -> Value {
    let text = text.trim_start_matches('\u{feff}');
    if name != "mcp_servers" {
        return serde_json::from_str::<Value>(text).unwrap()[name].clone();
    }
    let document: toml_edit::DocumentMut = text.parse().unwrap();
    let servers = document[name].as_table().unwrap().iter().map(|(name, server)| {
        let arguments = server["args"].as_array().unwrap().iter().map(|one| one.as_str().unwrap());
        let server =
            json!({ "command": server["command"].as_str().unwrap(), "args": arguments.collect::<Vec<_>>() });
        (name.to_owned(), server)
    });
    Value::Object(servers.collect())
}

/// The entry of each client, as its documentation and its own command write it.
fn entry(client: Client, program: &str) -> Value {
    match client {
        Client::Opencode => json!({ "type": "local", "command": [program, "mcp"], "enabled": true }),
        Client::Claude => json!({ "type": "stdio", "command": program, "args": ["mcp"] }),
        _ => json!({ "command": program, "args": ["mcp"] }),
    }
}

#[test]
fn in_an_empty_home_it_comes_and_goes() {
    for (client, file, name) in FILES {
        let home = Home::new();
        let path = home.places.home.join(file);
        home.run(client, &add("/opt/it's \"1\"\\é/ringer"), T1).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        let own = entry(client, "/opt/it's \"1\"\\é/ringer");
        assert_eq!(servers(&text, name), json!({ "ringer": own }), "{client}");
        assert!(has_mcp_server(client, &home.places));
        assert!(home.plan(client, &add("/opt/it's \"1\"\\é/ringer")).unwrap().is_empty(), "{client}");

        home.run(client, &add("/new/ringer"), T2).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(servers(&text, name), json!({ "ringer": entry(client, "/new/ringer") }), "{client}");

        home.run(client, &REMOVE, T3).unwrap();
        assert_eq!(home.files(), Vec::<String>::new(), "{client}");
        assert!(home.plan(client, &REMOVE).unwrap().is_empty());
    }
}

/// Files that a client's own parser might reject.
fn texts(client: Client, name: &str) -> Vec<String> {
    if client == Client::Codex {
        let texts = [
            "model = \"x\" # mine\n",
            "model = \"x\"\r\n\r\n[tui]\r\na = 1",
            "\u{feff}# only a comment",
            "[mcp_servers.other]\ncommand = \"npx\"\nargs = [\"-y\"]\n\n\n",
            "mcp_servers.other.command = \"npx\"\nmcp_servers.other.args = []\n",
            "\n",
        ];
        return texts.map(str::to_owned).to_vec();
    }
    vec![
        "{}".to_owned(),
        "{\n}\n".to_owned(),
        "{ \"theme\": \"dark\" }".to_owned(),
        format!("{{\r\n\t\"{name}\": {{\r\n\t\t\"other\": {{\"command\": \"x\"}}\r\n\t}}\r\n}}"),
        format!("{{\n  \"{name}\": {{}},\n  \"b\": [1, 2]\n}}\n"),
        format!("{{\n    \"a\": 1,\n    \"{name}\": {{ \"other\": {{\"url\": \"https://x\"}} }}\n}}"),
    ]
}

#[test]
fn what_is_there_stays_and_comes_back_to_the_byte() {
    for (client, file, name) in FILES {
        for text in texts(client, name) {
            let home = Home::new();
            let path = home.write(file, &text);
            home.run(client, &add("/bin/ringer"), T1).unwrap();
            let written = fs::read_to_string(&path).unwrap();
            let found = servers(&written, name);
            assert_eq!(found["ringer"], entry(client, "/bin/ringer"), "{client}: {written}");
            assert_eq!(found.get("other").is_some(), text.contains("other"), "{written}");
            home.run(client, &REMOVE, T2).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text, "{client}");
            assert_eq!(home.files().iter().filter(|name| name.contains("backup")).count(), 0);
        }
    }
}

/// Comments and trailing commas, where the client reads them.
#[test]
fn comments_and_commas_stay() {
    let text = "{\n  // mine\n  \"mcp\": {\n    /* theirs */\n    \"other\": { \"type\": \"remote\", }, // x\n  },\n}\n";
    let home = Home::new();
    let path = home.write(".config/opencode/opencode.jsonc", text);
    home.run(Client::Opencode, &add("/bin/ringer"), T1).unwrap();
    let written = fs::read_to_string(&path).unwrap();
    for line in text.lines() {
        assert!(written.contains(line), "{line}: {written}");
    }
    assert!(written.contains("\"/bin/ringer\""), "{written}");
    // Without the record, only the entry shows what was written.
    fs::remove_dir_all(home.state()).unwrap();
    home.run(Client::Opencode, &REMOVE, T2).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
}

/// Removal without the record, and after changes by the person.
#[test]
fn a_file_that_was_changed_since_loses_only_the_entry() {
    for (client, file, name) in FILES {
        let home = Home::new();
        let (text, addition, expected) = if client == Client::Codex {
            let addition = "\n[mcp_servers.ringer.env]\nA = \"b\"\n\n[tui]\na = 1\n";
            ("model = \"x\"\n".to_owned(), addition, "model = \"x\"\n\n[tui]\na = 1\n".to_owned())
        } else {
            (format!("{{\n  \"{name}\": {{}}\n}}\n"), " ", format!("{{\n  \"{name}\": {{\n  }}\n}}\n "))
        };
        let path = home.write(file, &text);
        home.run(client, &add("/bin/ringer"), T1).unwrap();
        fs::write(&path, fs::read_to_string(&path).unwrap() + addition).unwrap();
        assert!(home.plan(client, &add("/bin/ringer")).unwrap().is_empty(), "what was added stays");
        home.run(client, &REMOVE, T2).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), expected, "{client}");
    }
}

#[test]
fn a_server_of_the_persons_of_that_name_stays_and_is_told() {
    let own = [
        (Client::Claude, r#"{"mcpServers": {"ringer": {"command": "/bin/other", "args": ["mcp"]}}}"#),
        (Client::Gemini, r#"{"mcpServers": {"ringer": {"url": "https://example.com"}}}"#),
        (Client::Opencode, r#"{"mcp": {"ringer": {"type": "local", "command": ["ringer", "listen"]}}}"#),
        (Client::Gemini, r#"{"mcpServers": {"ringer": 7}}"#),
        (Client::Gemini, r#"{"mcpServers": {"ringer": {"command": "ringer"}}}"#),
        (Client::Codex, "[mcp_servers.ringer]\ncommand = \"other\"\nargs = [\"mcp\"]\n"),
        (Client::Codex, "[mcp_servers]\nringer = { command = \"ringer\", args = [\"mcp\"] }\n"),
    ];
    for (client, text) in own {
        let (_, file, _) = FILES.into_iter().find(|(known, ..)| *known == client).unwrap();
        let home = Home::new();
        let path = home.write(file, text);
        let plan = home.plan(client, &add("/bin/ringer")).unwrap();
        let told = plan.changes[0].notes[0].what.contains("\"ringer\" that is not Ringer's, which stays");
        assert!(plan.is_empty() && told, "{client}: {:?}", plan.changes[0].notes);
        assert!(home.plan(client, &REMOVE).unwrap().is_empty());
        assert!(home.plan(client, &REMOVE_ALL).unwrap().is_empty());
        assert!(!has_mcp_server(client, &home.places));
        assert_eq!(fs::read_to_string(path).unwrap(), text);
    }
}

/// An entry that the person extended is updated in place.
#[test]
fn an_older_path_is_replaced_and_nothing_else() {
    let text = r#"{"mcpServers": {"ringer": {"args": ["mcp"], "command": "/old/ringer-0.1", "timeout": 9 /* mine */}}}"#;
    let home = Home::new();
    let path = home.write(".gemini/settings.json", text);
    home.run(Client::Gemini, &add("/new/ringer"), T1).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), text.replace("/old/ringer-0.1", "/new/ringer"));

    let text = "[mcp_servers.ringer]\nargs = [ 'mcp' ]\r\ncommand = '/old/ringer' # mine\nstartup_timeout_sec = 20\n";
    let path = home.write(".codex/config.toml", text);
    home.run(Client::Codex, &add("/new/ringer"), T1).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), text.replace("'/old/ringer'", "\"/new/ringer\""));
}

#[test]
fn hooks_and_the_server_share_a_file_and_go_one_by_one() {
    let files = [
        (Client::Gemini, ".gemini/settings.json", "{\r\n\t\"theme\": \"x\"\r\n}"),
        (Client::Codex, ".codex/config.toml", "model = \"x\"\n\n[tui]\na = 1"),
    ];
    for (client, file, text) in files {
        let home = Home::new();
        let path = home.write(file, text);
        let read = || fs::read_to_string(&path).unwrap();
        home.run(client, &setup("/bin/ringer"), T1).unwrap();
        let with_hooks = read();
        assert!(!has_mcp_server(client, &home.places), "it is not asked for");
        home.run(client, &add("/bin/ringer"), T1).unwrap();
        let with_both = read();
        assert!(home.plan(client, &setup("/bin/ringer")).unwrap().is_empty());

        home.run(client, &REMOVE, T2).unwrap();
        assert_eq!(read(), with_hooks, "{client}");
        home.run(client, &add("/bin/ringer"), T2).unwrap();
        assert_eq!(read(), with_both);
        home.run(client, &REMOVE_ALL, T3).unwrap();
        assert_eq!(read(), text, "{client}: everything, to the byte");

        // The other order: the server was there first.
        home.run(client, &add("/bin/ringer"), T1).unwrap();
        home.run(client, &setup("/bin/ringer"), T1).unwrap();
        home.run(client, &REMOVE, T2).unwrap();
        assert!(read().contains("hook") && !has_mcp_server(client, &home.places), "{}", read());
        home.run(client, &REMOVE_ALL, T3).unwrap();
        assert_eq!(read(), text);
        assert!(home.plan(client, &REMOVE_ALL).unwrap().is_empty());
    }
}

#[test]
fn a_removal_of_everything_takes_the_server_as_well() {
    for (client, file, _) in FILES {
        let home = Home::new();
        home.run(client, &add("/bin/ringer"), T1).unwrap();
        fs::remove_dir_all(home.state()).unwrap();
        home.run(client, &REMOVE_ALL, T2).unwrap();
        assert!(!has_mcp_server(client, &home.places), "{client}: without the record, too");
        assert!(!fs::read_to_string(home.places.home.join(file)).unwrap_or_default().contains("ringer"));
    }
}

/// A client's private file that Ringer never wrote does not stop Ringer.
#[test]
fn a_broken_file_is_refused_where_it_counts_only() {
    let broken = [
        (Client::Claude, "{ \"mcpServers\": "),
        (Client::Claude, "[]"),
        (Client::Claude, "{\"mcpServers\": []}"),
        (Client::Opencode, "{\"mcp\": 1}"),
        (Client::Codex, "mcp_servers = [1]\n"),
        (Client::Codex, "mcp_servers = { other = { command = \"x\" } }\n"),
        (Client::Codex, "= 3"),
        (Client::Gemini, "\u{0}"),
    ];
    for (client, text) in broken {
        let (_, file, _) = FILES.into_iter().find(|(known, ..)| *known == client).unwrap();
        let home = Home::new();
        let path = home.write(file, text);
        let error = home.plan(client, &add("/bin/ringer")).unwrap_err().to_string();
        assert!(error.contains(file), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
        if client == Client::Claude {
            assert!(!home.plan(client, &setup("/bin/ringer")).unwrap().is_empty());
            assert!(home.plan(client, &REMOVE_ALL).unwrap().is_empty());
        }
    }
}

#[test]
fn links_modes_and_directories_in_the_way() {
    let home = Home::new();
    let real = home.write("dotfiles/claude.json", "{\n  \"a\": 1\n}\n");
    fs::set_permissions(&real, fs::Permissions::from_mode(0o600)).unwrap();
    let link = home.places.home.join(".claude.json");
    symlink(&real, &link).unwrap();
    let applied = home.run(Client::Claude, &add("/bin/ringer"), T1).unwrap();
    assert!(link.is_symlink() && fs::read_to_string(&real).unwrap().contains("/bin/ringer"));
    for path in [&real, &applied.backups[0]] {
        assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
    }
    home.run(Client::Claude, &REMOVE, T2).unwrap();
    assert!(link.is_symlink());
    assert_eq!(fs::read_to_string(&real).unwrap(), "{\n  \"a\": 1\n}\n");

    fs::create_dir_all(home.places.home.join(".gemini/settings.json")).unwrap();
    let error = home.plan(Client::Gemini, &add("/bin/ringer")).unwrap_err().to_string();
    assert!(error.contains("settings.json") && error.contains("not a file"), "{error}");
}

/// Claude Code keeps its own state in the file. It may write between the plan and the change, and does not write during the
/// change.
#[test]
fn a_file_of_the_clients_is_changed_under_its_lock() {
    let home = Home::new();
    let path = home.write(".claude.json", "{\n  \"numStartups\": 5\n}\n");
    let lock = home.places.home.join(".claude.json.lock");
    let plan = home.plan(Client::Claude, &add("/bin/ringer")).unwrap();
    fs::write(&path, "{\n  \"numStartups\": 6\n}\n").unwrap();
    let mut held = Vec::new();
    let time = BackupTime::new(T1).unwrap();
    apply_with_observer(&plan, &home.state(), &time, &mut |step| {
        held.push((step, lock.is_dir()));
        Ok(())
    })
    .unwrap();
    assert!(
        held.iter().any(|(step, _)| *step == Step::Replace) && held.iter().all(|(_, held)| *held),
        "{held:?}"
    );
    assert!(!lock.exists());
    let written = fs::read_to_string(&path).unwrap();
    assert!(
        written.contains("\"numStartups\": 6") && has_mcp_server(Client::Claude, &home.places),
        "{written}"
    );
    home.run(Client::Claude, &REMOVE, T2).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "{\n  \"numStartups\": 6\n}\n");
    assert!(!lock.exists());
}

/// Clients read the last of two members with the same name.
#[test]
fn a_name_that_is_there_twice() {
    let own = r#"{"command": "/bin/ringer", "args": ["mcp"]}"#;
    let text = format!(
        r#"{{"mcpServers": {{"ringer": {own}}}, "mcpServers": {{"a": 1, "ringer": {own}, "ringer": {own}}}}}"#
    );
    let home = Home::new();
    let path = home.write(".gemini/settings.json", &text);
    assert!(home.plan(Client::Gemini, &add("/bin/ringer")).unwrap().is_empty());
    home.run(Client::Gemini, &REMOVE, T1).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), r#"{"mcpServers": {"a": 1}}"#);
}

#[test]
fn variables_say_where_the_files_are() {
    let home = Home::new();
    let named = |name: &str| home.places.home.join(name);
    let places = ClientPaths {
        claude_dir: Some(named("cc")),
        codex_home: Some(named("cx")),
        config_home: Some(named("xdg")),
        ..home.places.clone()
    };
    let path = |client: Client| {
        let targets = places.targets(client, SetupScope::User).unwrap();
        targets.into_iter().find(|target| target.mcp.is_some()).unwrap().path
    };
    assert_eq!(path(Client::Claude), named("cc/.claude.json"));
    assert_eq!(path(Client::Codex), named("cx/config.toml"));
    assert_eq!(path(Client::Opencode), named("xdg/opencode/opencode.json"));
    // Servers of a project are not the person's.
    let places = ClientPaths { project: Some(named("project")), ..places };
    for client in Client::ALL {
        let targets = places.targets(client, SetupScope::Project).unwrap();
        assert!(targets.iter().all(|target| target.mcp.is_none()), "{client}");
    }
}

/// A file in a directory that a variable named at the time of the setup is found through its record.
#[test]
fn a_server_elsewhere_is_removed() {
    let mut home = Home::new();
    home.places.claude_dir = Some(home.places.home.join("cc"));
    home.run(Client::Claude, &add("/bin/ringer"), T1).unwrap();
    home.places.claude_dir = None;
    let records = SetupRecords::load(&home.state()).unwrap();
    let plans = removals_elsewhere(&records, &[]).unwrap();
    let changes: Vec<&FileChange> = plans.iter().flat_map(|plan| &plan.changes).collect();
    let paths: Vec<PathBuf> = changes.iter().map(|change| change.path().to_owned()).collect();
    assert_eq!(paths, [home.places.home.join("cc/.claude.json")]);
    assert_eq!(changes[0].after, None);
}
