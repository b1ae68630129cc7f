//! opencode's plugin file. Ringer owns the whole file, or does not touch it.

use super::entries::RingerProgram;

/// The file, with a place for the program.
const TEMPLATE: &str = include_str!("opencode.js");

/// The first words of every plugin file that any version of Ringer wrote.
const MARK: &str = "// ringer-hook:";

/// The plugin file for a program.
pub(crate) fn source(program: &RingerProgram) -> String {
    // A JSON string is a JavaScript string.
    TEMPLATE.replace("\"@PROGRAM@\"", &serde_json::Value::from(program.as_str()).to_string())
}

/// Whether Ringer wrote the file at the plugin's path.
pub(crate) fn is_ours(text: &str) -> bool {
    text.trim_start_matches('\u{feff}').trim_start().starts_with(MARK)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn the_program_is_written_as_a_string() {
        let program = RingerProgram::new(Path::new("/a \"b\"\\/ringer")).unwrap();
        let source = source(&program);
        assert!(source.contains(r#"const PROGRAM = "/a \"b\"\\/ringer""#));
        assert!(is_ours(&source) && !source.contains("@PROGRAM@"));
        assert!(!is_ours("export const Mine = async () => ({}) // ringer-hook:"));
    }
}
