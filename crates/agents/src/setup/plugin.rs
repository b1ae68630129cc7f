//! opencode's plugin file. The whole file is ours, or it is none of our business.

use super::entries::Program;

/// The file, with a place for the program.
const TEMPLATE: &str = include_str!("opencode.js");

/// The first words of every plugin file that we ever wrote.
const MARK: &str = "// ringer-hook:";

/// The plugin file for a program.
pub(crate) fn source(program: &Program) -> String {
    // A JSON string is a JavaScript string.
    TEMPLATE.replace("\"@PROGRAM@\"", &serde_json::Value::from(program.as_str()).to_string())
}

/// Whether a file at the plugin's place was written by us.
pub(crate) fn is_ours(text: &str) -> bool {
    text.trim_start_matches('\u{feff}').trim_start().starts_with(MARK)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn the_program_is_written_as_a_string() {
        let program = Program::new(Path::new("/a \"b\"\\/ringer")).unwrap();
        let source = source(&program);
        assert!(source.contains(r#"const PROGRAM = "/a \"b\"\\/ringer""#));
        assert!(is_ours(&source) && !source.contains("@PROGRAM@"));
        assert!(!is_ours("export const Mine = async () => ({}) // ringer-hook:"));
    }
}
