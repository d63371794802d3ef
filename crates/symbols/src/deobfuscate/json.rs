//! JSON in mapping files: on one line, written strictly by R8, but with single quotes and bare keys
//! in its specification and by hand. Reads both; [`super::metadata`] interprets the values.

/// JSON value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Json {
    /// `null`, `true`, `false`, numbers that are not integers, and arrays.
    Other,
    Number(i64),
    Text(String),
    /// Entries in order; a key can occur twice.
    Object(Vec<(String, Json)>),
}

/// Maximum nesting.
const DEEPEST: u32 = 16;

impl Json {
    /// Parses a text that is exactly one value; `None` otherwise.
    pub(super) fn parse(text: &str) -> Option<Json> {
        let mut reader = Reader {
            rest: text.trim_start(),
        };
        let value = reader.value(0)?;
        reader.rest.is_empty().then_some(value)
    }

    /// Returns the last value of a key; `None` also if this is not an object.
    pub(super) fn get(&self, key: &str) -> Option<&Json> {
        match self {
            Json::Object(all) => all.iter().rev().find(|(k, _)| k == key).map(|(_, v)| v),
            _ => None,
        }
    }

    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Json::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns a number, including one written as text.
    pub(super) fn number(&self) -> Option<u32> {
        match self {
            Json::Number(number) => u32::try_from(*number).ok(),
            Json::Text(text) => text.trim().parse().ok(),
            _ => None,
        }
    }

    pub(super) fn entries(&self) -> &[(String, Json)] {
        match self {
            Json::Object(entries) => entries,
            _ => &[],
        }
    }
}

struct Reader<'a> {
    rest: &'a str,
}

impl Reader<'_> {
    fn value(&mut self, depth: u32) -> Option<Json> {
        if depth > DEEPEST {
            return None;
        }
        match self.rest.chars().next()? {
            '{' => self.object(depth),
            '[' => self.array(depth),
            '"' | '\'' => self.quoted().map(Json::Text),
            _ => {
                let word = self.bare()?;
                Some(match word.parse() {
                    Ok(number) => Json::Number(number),
                    Err(_) if matches!(&*word, "null" | "true" | "false") => Json::Other,
                    Err(_) if word.parse::<f64>().is_ok() => Json::Other,
                    Err(_) => return None,
                })
            }
        }
    }

    fn object(&mut self, depth: u32) -> Option<Json> {
        self.skip(1);
        let mut all = Vec::new();
        loop {
            if self.take('}') {
                return Some(Json::Object(all));
            }
            let key = if self.rest.starts_with(['"', '\'']) {
                self.quoted()?
            } else {
                self.bare()?
            };
            if !self.take(':') {
                return None;
            }
            all.push((key, self.value(depth + 1)?));
            if !self.take(',') && !self.rest.starts_with('}') {
                return None;
            }
        }
    }

    fn array(&mut self, depth: u32) -> Option<Json> {
        self.skip(1);
        loop {
            if self.take(']') {
                return Some(Json::Other);
            }
            self.value(depth + 1)?;
            if !self.take(',') && !self.rest.starts_with(']') {
                return None;
            }
        }
    }

    fn quoted(&mut self) -> Option<String> {
        let quote = self.rest.chars().next()?;
        let mut text = String::new();
        let mut chars = self.rest[1..].char_indices();
        while let Some((at, c)) = chars.next() {
            if c == quote {
                self.skip(1 + at + 1);
                return Some(text);
            }
            if c != '\\' {
                text.push(c);
                continue;
            }
            text.push(match chars.next()?.1 {
                'b' => '\u{8}',
                'f' => '\u{c}',
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                'u' => {
                    let first = hex(&mut chars)?;
                    match first {
                        0xd800..0xdc00 => {
                            let low = matches!((chars.next()?.1, chars.next()?.1), ('\\', 'u'));
                            let second = hex(&mut chars).filter(|_| low)?;
                            let low = second.checked_sub(0xdc00).filter(|low| *low < 0x400)?;
                            char::from_u32(0x10000 + ((first - 0xd800) << 10) + low)?
                        }
                        _ => char::from_u32(first)?,
                    }
                }
                other => other,
            });
        }
        None
    }

    fn bare(&mut self) -> Option<String> {
        let end = self
            .rest
            .find(|c: char| c.is_whitespace() || ",:{}[]\"'".contains(c))
            .unwrap_or(self.rest.len());
        if end == 0 {
            return None;
        }
        let word = self.rest[..end].to_owned();
        self.skip(end);
        Some(word)
    }

    fn take(&mut self, c: char) -> bool {
        let there = self.rest.starts_with(c);
        if there {
            self.skip(c.len_utf8());
        }
        there
    }

    /// Skips a number of bytes and the blanks after them.
    fn skip(&mut self, bytes: usize) {
        self.rest = self.rest[bytes..].trim_start();
    }
}

fn hex(chars: &mut std::str::CharIndices) -> Option<u32> {
    (0..4).try_fold(0, |number, _| {
        Some(number << 4 | chars.next()?.1.to_digit(16)?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strict_and_loose_json_say_the_same() {
        let strict = r#"{"id":"x.y", "positions": {"1": 4}, "all": ["a", -2, null], "e": {}}"#;
        let loose = "{ 'id': 'x.y', positions: { '1':4 }, all:['a',-2,null,], e: {},}";
        assert_eq!(Json::parse(strict), Json::parse(loose));
        let json = Json::parse(strict).unwrap();
        assert_eq!(json.get("id").unwrap().text(), Some("x.y"));
        let (key, value) = &json.get("positions").unwrap().entries()[0];
        assert_eq!((key.as_str(), value.number()), ("1", Some(4)));
        assert_eq!(json.get("all"), Some(&Json::Other));
        assert_eq!(json.get("nothing"), None);
    }

    #[test]
    fn escapes_are_undone() {
        let json = Json::parse(r#"{"fileName":"\u00e9\ud83d\ude00\"\\\/\n.kt"}"#).unwrap();
        assert_eq!(json.get("fileName").unwrap().text(), Some("é😀\"\\/\n.kt"));
        assert_eq!(Json::parse(r#""\ud83d\u0041""#), None);
        assert_eq!(Json::parse(r#""\ud83dxx0041""#), None);
    }

    #[test]
    fn what_is_no_json_is_nothing() {
        for text in [
            "", "{", "{a", "{a:", "{a:1", "{a 1}", "[1 2]", "{}x", "'a", "word", ":", "{:1}",
        ] {
            assert_eq!(Json::parse(text), None, "{text}");
        }
        let deep = "[".repeat(100_000);
        assert_eq!(Json::parse(&deep), None);
    }
}
