//! Reads the two commands from the README, so that the tested commands and the documented ones cannot differ.

use std::fs;

use crate::failure::Failure;

const README: &str = "README.md";
const HEADING: &str = "## Install";

/// Returns the command that opens Ringer and the one that runs the tests.
pub(super) fn commands() -> Result<[String; 2], Failure> {
    let text = fs::read_to_string(README).map_err(|error| Failure::io(README, &error))?;
    let found = commands_in(&text);
    found.try_into().map_err(|found: Vec<String>| {
        let message =
            format!("{README} should have two commands below `{HEADING}`, not {}: {found:?}", found.len());
        Failure::complaints(message)
    })
}

/// Returns the lines of the first code block below the heading, without comments.
fn commands_in(text: &str) -> Vec<String> {
    let below = text.lines().skip_while(|line| *line != HEADING).skip(1);
    let section = below.take_while(|line| !line.starts_with("## "));
    let block = section.skip_while(|line| !line.starts_with("```")).skip(1);
    let lines = block.take_while(|line| !line.starts_with("```"));
    let commands = lines.map(|line| line.split(" #").next().unwrap_or(line).trim());
    commands.filter(|command| !command.is_empty() && !command.starts_with('#')).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::commands_in;

    #[test]
    fn commands_are_read_off_the_page() {
        fn check(text: &str, expect: &[&str]) {
            assert_eq!(commands_in(text), expect, "{text}");
        }
        let page = "# Ringer\n\n```\nnot this\n```\n\n## Install\n\nOn a machine:\n\n```\n\
                    cargo run --release      # opens\n# a note\n\ncargo xtask test\n```\n\n```\nnor this\n```\n";
        check(page, &["cargo run --release", "cargo xtask test"]);
        check("## Install\n\n## Next\n\n```\nelsewhere\n```\n", &[]);
        check("## Another\n\n```\nelsewhere\n```\n", &[]);
        check("## Install\n```sh\na \"#b\"\n```\n", &["a \"#b\""]);
    }

    #[test]
    fn the_readme_has_them() {
        let page = include_str!("../../../README.md");
        assert_eq!(commands_in(page), ["cargo run --release", "cargo xtask test"]);
    }
}
