use proptest::prelude::*;
use serde_json::Value as Reference;

use super::*;

const EVERYTHING: Limits =
    Limits { document: u64::MAX, text: usize::MAX, field: usize::MAX, total: usize::MAX, keeps: |_| true };

fn read(bytes: &[u8]) -> Result<Value> {
    // A step of one byte would be slow; pieces of three meet every boundary all the same.
    Reader::new(Trickle(bytes), EVERYTHING).document().map(Option::unwrap)
}

/// Returns at most three bytes per read, like a slow pipe.
struct Trickle<'a>(&'a [u8]);

impl Read for Trickle<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.0.len().min(buffer.len()).min(3);
        let (now, later) = self.0.split_at(length);
        buffer[..length].copy_from_slice(now);
        self.0 = later;
        Ok(length)
    }
}

fn same(own: &Value, reference: &Reference) -> bool {
    match (own, reference) {
        (Value::Null, Reference::Null) => true,
        (Value::Bool(own), Reference::Bool(other)) => own == other,
        (Value::Number(own), Reference::Number(other)) => {
            own.parse::<serde_json::Number>().unwrap() == *other
        }
        (Value::Text(own), Reference::String(other)) => !own.cut && own.tail.is_empty() && own.head == *other,
        (Value::List { items, seen }, Reference::Array(others)) => {
            *seen == others.len()
                && items.len() == others.len()
                && items.iter().zip(others).all(|(own, other)| same(own, other))
        }
        (Value::Map(members), Reference::Object(others)) => {
            members.len() == others.len()
                && members.iter().all(|(name, own)| others.get(name).is_some_and(|other| same(own, other)))
        }
        _ => false,
    }
}

#[test]
fn values_are_those_of_serde_json() {
    for text in [
        "null",
        " true\n",
        "[]",
        "{ }",
        "[1,-0,0.5,1e3,1E-3,12345678901234567890]",
        r#"{"a":1,"a":[2]}"#,
        r#""\"\\\/\b\f\n\r\t\u00e4\ud83d\ude00""#,
        "\"\u{e4}\u{1f600}\"",
        r#"{"a":{"b":{"c":[[],{}]}}}"#,
    ] {
        let reference: Reference = serde_json::from_str(text).unwrap();
        assert!(same(&read(text.as_bytes()).unwrap(), &reference), "{text}");
    }
}

#[test]
fn what_is_no_json_is_said_to_be_none() {
    let check =
        |text: &str, expected: &str| assert_eq!(read(text.as_bytes()).unwrap_err().to_string(), expected);
    check("", "it ends in the middle");
    check("{\"a", "it ends in the middle");
    check("tru", "it ends in the middle");
    check("[1,]", "byte 3: expected a value");
    check("[1 2]", "byte 3: expected a comma or the end of the list");
    check("{1:2}", "byte 1: expected a name");
    check("{\"a\",", "byte 4: expected a colon");
    check("{\"a\":1,}", "byte 7: expected a name");
    check("01", "byte 1: expected the end");
    check("-", "byte 1: expected a digit");
    check("1.x", "byte 2: expected a digit");
    check("\"\\x\"", "byte 2: expected an escape");
    check("\"\\u12g4\"", "byte 5: expected four hex digits");
    check("\"a\nb\"", "byte 2: expected no control character in a text");
    check("nul1", "byte 3: expected true, false or null");
    check("{}{}", "byte 2: expected the end");
    check("1 {}", "byte 2: expected the end");
    assert!(read(b"{}  {}").is_ok(), "what did not come with a complete object is not waited for");
}

#[test]
fn depth_is_limited_as_in_serde_json() {
    for (depth, fits) in [(127, true), (128, false), (1_000_000, false)] {
        let text = "[".repeat(depth) + &"]".repeat(depth);
        assert_eq!(serde_json::from_str::<Reference>(&text).is_ok(), fits);
        assert_eq!(read(text.as_bytes()).is_ok(), fits, "{depth}");
    }
}

#[test]
fn what_broke_in_two_is_repaired() {
    let check = |bytes: &[u8], expected: &str| {
        let Value::Text(text) = read(bytes).unwrap() else { panic!("a text") };
        assert_eq!(text.head, expected);
    };
    check(br#""cut \ud83d""#, "cut \u{fffd}");
    check(br#""\ude00 x""#, "\u{fffd} x");
    check(b"\"\xff\"", "\u{fffd}");
}

#[test]
fn an_interrupted_read_goes_on_and_a_failed_one_is_told() {
    struct Stumbling(Vec<io::Result<&'static [u8]>>);
    impl Read for Stumbling {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let bytes = self.0.pop().unwrap_or(Ok(b""))?;
            buffer[..bytes.len()].copy_from_slice(bytes);
            Ok(bytes.len())
        }
    }
    let interrupted = || Err(io::ErrorKind::Interrupted.into());
    let source = Stumbling(vec![interrupted(), Ok(b"]"), interrupted(), Ok(b"[")]);
    assert!(Reader::new(source, EVERYTHING).document().is_ok());
    let source = Stumbling(vec![Err(io::ErrorKind::BrokenPipe.into()), Ok(b"[")]);
    assert!(matches!(Reader::new(source, EVERYTHING).document(), Err(InputError::Read(_))));
}

fn values() -> impl Strategy<Value = Reference> {
    let leaf = prop_oneof![
        Just(Reference::Null),
        any::<bool>().prop_map(Reference::from),
        any::<i64>().prop_map(Reference::from),
        any::<u64>().prop_map(Reference::from),
        any::<f64>().prop_map(Reference::from),
        "(?s).{0,20}".prop_map(Reference::from),
        "[\"\\\\/\u{1}\u{1f}\n\t\u{e4}\u{1f600}]{0,10}".prop_map(Reference::from),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Reference::from),
            prop::collection::btree_map("(?s).{0,6}", inner, 0..6)
                .prop_map(|members| members.into_iter().collect::<Reference>()),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn it_agrees_with_serde_json_on_what_serde_json_writes(value in values(), pretty in any::<bool>()) {
        let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) };
        let text = text.unwrap();
        // Read back: of a number with many digits it does not read quite what it wrote.
        let reference: Reference = serde_json::from_str(&text).unwrap();
        prop_assert!(same(&read(text.as_bytes()).unwrap(), &reference));
    }

    /// `\u` escapes are left out: half a surrogate pair is the one difference between the two.
    #[test]
    fn it_takes_and_refuses_what_serde_json_does(text in "[\\[\\]{}:,\" \\\\ntrue01.eE+-]{0,12}") {
        let whole = serde_json::from_str::<Reference>(&text);
        // What follows a complete object may not have been read with it, and is not waited for.
        let is_object = text.trim_start().starts_with(['{', '[']);
        let first = serde_json::Deserializer::from_str(&text).into_iter::<Reference>().next();
        let reference = match (read(text.as_bytes()), first) {
            (Ok(_), Some(first)) if is_object => first,
            _ => whole,
        };
        match (read(text.as_bytes()), reference) {
            (Ok(own), Ok(reference)) => prop_assert!(same(&own, &reference)),
            (Err(_), Err(_)) => {}
            // A number that is too great for it: Ringer reads no numbers.
            (Ok(_), Err(error)) if error.to_string().contains("out of range") => {}
            (own, reference) => prop_assert!(text.contains("\\u"), "{own:?} {reference:?}"),
        }
    }

    #[test]
    fn a_valid_document_with_a_byte_changed_is_judged_alike(
        value in values(), at in any::<prop::sample::Index>(), byte in 0x20_u8..0x7f,
    ) {
        let mut text = serde_json::to_string(&value).unwrap().into_bytes();
        let at = at.index(text.len());
        prop_assume!(text[at].is_ascii());
        text[at] = byte;
        let reference: std::result::Result<Reference, _> = serde_json::from_slice(&text);
        match (read(&text), reference) {
            (Ok(own), Ok(reference)) => prop_assert!(same(&own, &reference)),
            (Ok(_), Err(error)) => {
                let error = error.to_string();
                let tolerated = ["out of range", "surrogate", "hex escape", "trailing characters"];
                prop_assert!(tolerated.iter().any(|words| error.contains(words)), "{error}");
            }
            (Err(own), reference) => prop_assert!(reference.is_err(), "{own}"),
        }
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), text in 0_usize..40) {
        let limits = Limits { text, field: 300, total: 600, keeps: |name| name.len() < 3, ..EVERYTHING };
        let _ = Reader::new(&bytes[..], limits).document();
        let _ = read(&bytes);
    }

    /// Whatever is dropped, what is kept is the beginning of what was there.
    #[test]
    fn limits_only_leave_out(value in values(), text in 0_usize..20, total in 0_usize..3000) {
        let limits = Limits { text, field: 1000, total, ..EVERYTHING };
        let bytes = serde_json::to_vec(&value).unwrap();
        let value: Reference = serde_json::from_slice(&bytes).unwrap();
        let kept = Reader::new(&bytes[..], limits).document().unwrap();
        prop_assert!(kept.is_none_or(|kept| is_part(&kept, &value)));
    }
}

fn is_part(own: &Value, reference: &Reference) -> bool {
    match (own, reference) {
        (Value::Text(own), Reference::String(other)) => {
            other.starts_with(&own.head) && (own.cut || own.head == *other) && other.ends_with(&own.tail)
        }
        (Value::List { items, seen }, Reference::Array(others)) => {
            *seen == others.len() && items.iter().all(|own| others.iter().any(|other| is_part(own, other)))
        }
        (Value::Map(members), Reference::Object(others)) => {
            members.iter().all(|(name, own)| others.get(name).is_some_and(|other| is_part(own, other)))
        }
        _ => same(own, reference),
    }
}
