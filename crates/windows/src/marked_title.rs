//! A mark in front of a title.

/// What a marked title begins with.
const MARK: &str = "● ";

/// The title that has to be set, if it is not right as it is.
pub fn wanted_title(title: &str, is_marked: bool) -> Option<String> {
    match (title.strip_prefix(MARK), is_marked) {
        (None, true) => Some(format!("{MARK}{title}")),
        (Some(plain), false) => Some(plain.to_owned()),
        _ => None,
    }
}

/// The title without the mark.
pub(crate) fn plain_title(title: &str) -> &str {
    title.strip_prefix(MARK).unwrap_or(title)
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
