//! Just enough JSON to judge a line that `ringer` printed: strictly, because a line that is almost JSON is a torn one.

/// Deeper nesting than `ringer` ever prints; what goes beyond is refused instead of exhausting the stack.
const DEEPEST: usize = 16;

#[derive(PartialEq, Debug)]
pub(crate) enum Value {
    /// `null`, `true`, `false` and numbers, as written.
    Word(String),
    Text(String),
    List(Vec<Value>),
    Object(Vec<(String, Value)>),
}

impl Value {
    /// The text in a field of an object.
    pub(crate) fn text(&self, field: &str) -> Option<&str> {
        match self.field(field)? {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The number in a field of an object, as written.
    pub(crate) fn word(&self, field: &str) -> Option<&str> {
        match self.field(field)? {
            Self::Word(word) => Some(word),
            _ => None,
        }
    }

    /// The list in a field of an object; empty when there is none.
    pub(crate) fn list(&self, field: &str) -> &[Self] {
        match self.field(field) {
            Some(Self::List(items)) => items,
            _ => &[],
        }
    }

    fn field(&self, field: &str) -> Option<&Self> {
        let Self::Object(fields) = self else { return None };
        fields.iter().find(|(name, _)| name == field).map(|(_, value)| value)
    }
}

/// One whole value and nothing after it.
pub(crate) fn parse(text: &str) -> Option<Value> {
    let mut reader = Reader { rest: text };
    let value = reader.value(DEEPEST)?;
    reader.skip_blanks();
    reader.rest.is_empty().then_some(value)
}

struct Reader<'a> {
    rest: &'a str,
}

impl Reader<'_> {
    fn value(&mut self, depth: usize) -> Option<Value> {
        let depth = depth.checked_sub(1)?;
        self.skip_blanks();
        match self.rest.chars().next()? {
            '"' => self.text().map(Value::Text),
            '[' => self.items('[', ']', |reader| reader.value(depth)).map(Value::List),
            '{' => self.items('{', '}', |reader| reader.field(depth)).map(Value::Object),
            _ => self.word().map(Value::Word),
        }
    }

    fn field(&mut self, depth: usize) -> Option<(String, Value)> {
        self.skip_blanks();
        let name = self.text()?;
        self.skip_blanks();
        self.eat(':')?;
        Some((name, self.value(depth)?))
    }

    fn items<T>(
        &mut self,
        open: char,
        close: char,
        mut item: impl FnMut(&mut Self) -> Option<T>,
    ) -> Option<Vec<T>> {
        let mut items = Vec::new();
        self.eat(open)?;
        self.skip_blanks();
        if self.eat(close).is_some() {
            return Some(items);
        }
        loop {
            items.push(item(self)?);
            self.skip_blanks();
            if self.eat(close).is_some() {
                return Some(items);
            }
            self.eat(',')?;
        }
    }

    fn text(&mut self) -> Option<String> {
        self.eat('"')?;
        let mut text = String::new();
        loop {
            let plain = self.rest.find(['"', '\\'])?;
            let (before, rest) = self.rest.split_at(plain);
            // A raw control character, above all a newline, would cut the line for every reader.
            if before.chars().any(|c| c < ' ') {
                return None;
            }
            text.push_str(before);
            self.rest = rest;
            if self.eat('"').is_some() {
                return Some(text);
            }
            text.push(self.escape()?);
        }
    }

    fn escape(&mut self) -> Option<char> {
        self.eat('\\')?;
        let kind = self.rest.chars().next()?;
        self.eat(kind)?;
        Some(match kind {
            '"' | '\\' | '/' => kind,
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => return self.code_point(),
            _ => return None,
        })
    }

    /// Four digits, or a pair of surrogates that stand for one character.
    fn code_point(&mut self) -> Option<char> {
        let first = self.four_digits()?;
        if !(0xd800..0xdc00).contains(&first) {
            return char::from_u32(first);
        }
        self.eat('\\')?;
        self.eat('u')?;
        let second = self.four_digits()?.checked_sub(0xdc00).filter(|second| *second < 0x400)?;
        char::from_u32(0x10000 + ((first - 0xd800) << 10) + second)
    }

    fn four_digits(&mut self) -> Option<u32> {
        let digits = self.rest.get(..4).filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()))?;
        let number = u32::from_str_radix(digits, 16).ok()?;
        self.rest = &self.rest[4..];
        Some(number)
    }

    fn word(&mut self) -> Option<String> {
        let end = self.rest.find(|c: char| !(c.is_ascii_alphanumeric() || "+-.".contains(c)));
        let (word, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        let number =
            word.starts_with(|c: char| c == '-' || c.is_ascii_digit()) && word.parse::<f64>().is_ok();
        let known = number || matches!(word, "null" | "true" | "false");
        self.rest = rest;
        known.then(|| word.to_owned())
    }

    fn eat(&mut self, expected: char) -> Option<()> {
        self.rest = self.rest.strip_prefix(expected)?;
        Some(())
    }

    fn skip_blanks(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\r', '\n']);
    }
}

#[cfg(test)]
mod tests {
    use super::{Value, parse};

    #[test]
    fn fields_are_read_back() {
        let line =
            r#"{"ts":"t","msg":"a \"b\"\n\u001b\u00e9\ud83d\udd14\\","n":-1.5e3,"o":{"pid":7,"l":[1,null]}}"#;
        let value = parse(line).expect("it is JSON");
        assert_eq!(value.text("ts"), Some("t"));
        assert_eq!(value.text("msg"), Some("a \"b\"\n\u{1b}é🔔\\"));
        assert_eq!(value.text("n"), None, "a number is no text");
        assert_eq!(value.word("n"), Some("-1.5e3"));
        assert_eq!(value.word("pid"), None, "not a field of the outer object");
        assert_eq!(parse(" [ ] "), Some(Value::List(Vec::new())));
    }

    #[test]
    fn almost_json_is_none() {
        for torn in [
            "",
            "{",
            r#"{"a":1"#,
            r#"{"a":1}}"#,
            r#"{"a":1}{"a":2}"#,
            r#"{"a":"b}"#,
            r#"{"a":}"#,
            r#"{"a" 1}"#,
            "{a:1}",
            r#"{"a":1,}"#,
            "{\"a\":\"b\nc\"}",
            "{\"a\":\"\u{1}\"}",
            r#""\x""#,
            r#""\u12""#,
            r#""\ud83d""#,
            r#""\ud83d\u0041""#,
            "nul",
            "inf",
            "1.2.3",
        ] {
            assert_eq!(parse(torn), None, "{torn:?}");
        }
        assert_eq!(parse(&"[".repeat(100_000)), None, "no depth exhausts the stack");
    }
}
