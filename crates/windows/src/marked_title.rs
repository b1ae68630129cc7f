//! A mark in front of a title.

/// What a marked title begins with.
const MARK: &str = "● ";

/// The title that has to be set, if it is not right as it is.
pub(crate) fn wanted_title(title: &str, is_marked: bool) -> Option<String> {
    match (title.strip_prefix(MARK), is_marked) {
        (None, true) => Some(format!("{MARK}{title}")),
        (Some(plain), false) => Some(plain.to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_marked_once_and_comes_back_as_it_was() {
        let marked = wanted_title("✳ fix it", true).unwrap();
        assert_eq!(marked, "● ✳ fix it");
        assert_eq!(wanted_title(&marked, true), None);
        assert_eq!(wanted_title(&marked, false).as_deref(), Some("✳ fix it"));
        assert_eq!(wanted_title("✳ fix it", false), None);
    }
}
