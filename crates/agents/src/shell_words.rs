//! Words of a shell's command line.

/// The words of a line that was made of words by quoting them. `None` if a quote is not closed.
pub(crate) fn split(line: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut rest = line.chars();
    while let Some(next) = rest.next() {
        match next {
            ' ' | '\t' | '\n' => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match rest.next()? {
                        '\'' => break,
                        quoted => word.push(quoted),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match rest.next()? {
                        '"' => break,
                        '\\' => match rest.next()? {
                            escaped @ ('$' | '`' | '"' | '\\') => word.push(escaped),
                            '\n' => {}
                            other => word.extend(['\\', other]),
                        },
                        quoted => word.push(quoted),
                    }
                }
            }
            '\\' => word.get_or_insert_default().push(rest.next()?),
            plain => word.get_or_insert_default().push(plain),
        }
    }
    words.extend(word);
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use ringer_platform::shell_word;

    #[test]
    fn words_as_codex_quotes_them() {
        let split = |line: &str| split(line).unwrap();
        assert_eq!(split("/bin/bash -lc 'touch zz-file'"), ["/bin/bash", "-lc", "touch zz-file"]);
        assert_eq!(split(r#"sh -c "touch x && echo 'a b'""#), ["sh", "-c", "touch x && echo 'a b'"]);
        assert_eq!(split(r#"a'b'"'c'"\ d '' "\$x\n""#), ["ab'c' d", "", r"$x\n"]);
        assert!(split("").is_empty());
    }

    #[test]
    fn an_open_quote_is_no_line_of_words() {
        assert_eq!([split("a 'b"), split("\"b"), split("b\\")], [None, None, None]);
    }

    proptest! {
        #[test]
        fn what_is_quoted_is_read_back(words in prop::collection::vec("(?s).{0,12}", 0..5)) {
            let line = words.iter().map(|word| shell_word(word)).collect::<Vec<_>>().join(" ");
            prop_assert_eq!(split(&line), Some(words));
        }
    }
}
