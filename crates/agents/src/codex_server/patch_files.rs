//! The files that a patch of Codex changes.

const FILE_MARKERS: [&str; 4] = ["*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "];
const OTHER_MARKERS: [&str; 3] = ["*** Begin Patch", "*** End Patch", "*** End of File"];

/// The files that a patch names, each once. `None` if a line may mean more to Codex than it does here: then it is not certain
/// that these are all.
pub(super) fn files_in(patch: &str) -> Option<Vec<String>> {
    let mut files: Vec<String> = Vec::new();
    for line in patch.lines() {
        let marker = FILE_MARKERS.iter().find_map(|marker| line.trim_start().strip_prefix(marker));
        match marker {
            // In some places Codex takes an indented line for a marker, in others for a line of a file.
            Some(_) if line.starts_with(char::is_whitespace) => return None,
            Some(name) if name.trim().is_empty() => return None,
            Some(name) => {
                let name = name.trim().to_owned();
                if !files.contains(&name) {
                    files.push(name);
                }
            }
            None if line.starts_with("***") && !OTHER_MARKERS.contains(&line.trim_end()) => return None,
            None => {}
        }
    }
    (!files.is_empty()).then_some(files)
}

#[cfg(test)]
mod tests {
    use super::files_in;

    #[test]
    fn every_file_that_a_patch_names_is_found_or_none() {
        fn check(lines: &[&str], expect: Option<&[&str]>) {
            let patch = format!("*** Begin Patch\n{}\n*** End Patch", lines.join("\n"));
            let expect = expect.map(|files| files.iter().map(ToString::to_string).collect());
            assert_eq!(files_in(&patch), expect, "{patch}");
        }
        check(&["*** Add File: new.txt", "+hello"], Some(&["new.txt"]));
        check(
            &[
                "*** Update File: a b.rs ",
                "*** Move to: c.rs",
                "@@",
                "-x",
                "+y",
                "*** End of File",
                "*** Delete File: d",
            ],
            Some(&["a b.rs", "c.rs", "d"]),
        );
        check(
            &["*** Update File: a", "@@", "+*** Add File: b", "*** Update File: a", "@@", " x"],
            Some(&["a"]),
        );
        check(&["*** Add File: a", "+x", "  *** Add File: b", "+y"], None);
        check(&["*** Environment ID: other", "*** Add File: a", "+x"], None);
        check(&["*** Add File:  ", "+x"], None);
        check(&["+x"], None);
    }
}
