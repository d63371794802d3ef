//! Parser for one line of a mapping file, without copying:
//!
//! ```text
//! class   = type '->' type ':'                      at the start of a line; the right is obfuscated
//! member  = WS+ [n ':' n ':'] type WS+ name ['(' [type (',' type)*] ')'] [':' n [':' n]] '->' name
//! comment = WS* '#' text
//! ```
//!
//! Blanks (spaces, tabs) are allowed around `->`, `,` and `:`. Brackets make a method. A name can
//! contain `-`, so an arrow begins at the `-` right before a `>`. Lines can end in CRLF. Each line
//! is parsed without the others.

use super::class::{LineRange, OriginalLines};

/// Parsed line.
#[derive(Debug, PartialEq)]
pub(super) enum Line<'a> {
    Blank,
    /// Text after the `#`.
    Comment(&'a str),
    Class {
        original: &'a str,
        obfuscated: &'a str,
    },
    Member(Member<'a>),
}

/// Line of a field or method.
#[derive(Debug, PartialEq)]
pub(super) struct Member<'a> {
    pub(super) lines: Option<LineRange>,
    /// Return type of a method, or type of a field.
    pub(super) of_type: &'a str,
    /// A name with a dot includes the class: another class declares it.
    pub(super) name: &'a str,
    /// Text between the brackets, for a method.
    pub(super) parameters: Option<&'a str>,
    pub(super) original: OriginalLines,
    pub(super) obfuscated: &'a str,
}

/// Reason why a line is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    #[error("not UTF-8")]
    NotText,
    #[error("missing `->`")]
    NoArrow,
    #[error("missing `:` at the end of a class")]
    NoColon,
    /// Nothing on one side of the arrow.
    #[error("missing name")]
    NoName,
    #[error("blank in a name")]
    BlankInName,
    /// A member without a type.
    #[error("missing type")]
    NoType,
    #[error("line range with only one number")]
    OneNumber,
    #[error("missing number after `:`")]
    NoNumber,
    #[error("`(` without `)`")]
    OpenBracket,
    /// Something other than an arrow after the name and its lines.
    #[error("unexpected text before `->`")]
    Unexpected,
    #[error("member without a class")]
    NoClass,
    #[error("too many members in the class")]
    TooMany,
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\x0b' | b'\x0c')
}

fn trim(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_ascii() && is_blank(c as u8))
}

impl<'a> Line<'a> {
    /// Parses a line without its line feed.
    pub(super) fn parse(line: &'a [u8]) -> Result<Line<'a>, Fault> {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let Some(start) = line.iter().position(|&byte| !is_blank(byte)) else {
            return Ok(Line::Blank);
        };
        let text = std::str::from_utf8(line).map_err(|_| Fault::NotText)?;
        if line[start] == b'#' {
            return Ok(Line::Comment(&text[start + 1..]));
        }
        if start == 0 {
            class(text)
        } else {
            member(text, start).map(Line::Member)
        }
    }
}

/// Returns the offset of the arrow.
fn arrow(text: &str) -> Result<usize, Fault> {
    let mut from = 0;
    while let Some(at) = text[from..].find('>') {
        let at = from + at;
        if text[..at].ends_with('-') {
            return Ok(at - 1);
        }
        from = at + 1;
    }
    Err(Fault::NoArrow)
}

/// Returns a name without the blanks around it.
fn name(text: &str) -> Result<&str, Fault> {
    let name = trim(text);
    if name.is_empty() {
        Err(Fault::NoName)
    } else if name.bytes().any(is_blank) {
        Err(Fault::BlankInName)
    } else {
        Ok(name)
    }
}

fn class(text: &str) -> Result<Line<'_>, Fault> {
    let arrow = arrow(text)?;
    let right = trim(&text[arrow + 2..]);
    let obfuscated = right.strip_suffix(':').ok_or(Fault::NoColon)?;
    Ok(Line::Class {
        original: name(&text[..arrow])?,
        obfuscated: name(obfuscated)?,
    })
}

/// Cursor in a line. Reading past the end gives zeros, which are not valid in a line.
struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    fn peek(&self) -> u8 {
        self.text.as_bytes().get(self.at).copied().unwrap_or(0)
    }

    fn skip_blanks(&mut self) {
        while is_blank(self.peek()) {
            self.at += 1;
        }
    }

    /// Skips a byte and the blanks after it.
    fn take(&mut self, byte: u8) -> bool {
        let there = self.peek() == byte;
        if there {
            self.at += 1;
            self.skip_blanks();
        }
        there
    }

    /// Parses a number and saturates at the largest `u32`.
    fn number(&mut self) -> Option<u32> {
        let start = self.at;
        let mut number = 0u32;
        while let digit @ b'0'..=b'9' = self.peek() {
            number = number
                .saturating_mul(10)
                .saturating_add(u32::from(digit - b'0'));
            self.at += 1;
        }
        let there = self.at > start;
        self.skip_blanks();
        there.then_some(number)
    }

    fn at_arrow(&self) -> bool {
        self.text.as_bytes()[self.at..].starts_with(b"->")
    }

    /// Returns the text up to an ending byte or an arrow.
    fn until(&mut self, ends: impl Fn(u8) -> bool) -> &'a str {
        let start = self.at;
        let bytes = self.text.as_bytes();
        while let Some(&byte) = bytes.get(self.at) {
            if ends(byte) {
                break;
            }
            if byte == b'>' && self.at > start && bytes[self.at - 1] == b'-' {
                self.at -= 1;
                break;
            }
            self.at += 1;
        }
        &self.text[start..self.at]
    }
}

fn member(text: &str, start: usize) -> Result<Member<'_>, Fault> {
    let mut cursor = Cursor { text, at: start };
    let mut lines = None;
    if let Some(first) = cursor.number() {
        let last = cursor.take(b':').then(|| cursor.number()).flatten();
        let last = last.filter(|_| cursor.take(b':')).ok_or(Fault::OneNumber)?;
        lines = Some(LineRange::new(first, last));
    }
    let of_type = cursor.until(is_blank);
    if of_type.is_empty() {
        return Err(if cursor.at_arrow() {
            Fault::NoType
        } else {
            Fault::NoArrow
        });
    }
    cursor.skip_blanks();
    let name = cursor.until(|byte| is_blank(byte) || matches!(byte, b'(' | b':'));
    if name.is_empty() {
        return Err(if cursor.at_arrow() {
            Fault::NoType
        } else {
            Fault::NoArrow
        });
    }
    cursor.skip_blanks();
    let mut parameters = None;
    if cursor.take(b'(') {
        let inside = cursor.until(|byte| byte == b')');
        if cursor.peek() != b')' {
            return Err(Fault::OpenBracket);
        }
        cursor.take(b')');
        parameters = Some(trim(inside));
    }
    let mut original = OriginalLines::Same;
    if cursor.take(b':') {
        let first = cursor.number().ok_or(Fault::NoNumber)?;
        let last = if cursor.take(b':') {
            Some(cursor.number().ok_or(Fault::NoNumber)?)
        } else {
            None
        };
        original = OriginalLines::new(Some(first), last);
    }
    if !cursor.at_arrow() {
        return Err(if arrow(&text[cursor.at..]).is_ok() {
            Fault::Unexpected
        } else {
            Fault::NoArrow
        });
    }
    Ok(Member {
        lines,
        of_type,
        name,
        parameters,
        original,
        obfuscated: self::name(&text[cursor.at + 2..])?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(text: &str) -> Member<'_> {
        match Line::parse(text.as_bytes()) {
            Ok(Line::Member(member)) => member,
            other => panic!("{text}: {other:?}"),
        }
    }

    fn range(first: u32, last: u32) -> LineRange {
        LineRange { first, last }
    }

    #[test]
    fn classes_have_an_arrow_and_a_colon() {
        for (text, original, obfuscated) in [
            ("x.A -> a:", "x.A", "a"),
            ("x.B->b:", "x.B", "b"),
            ("x.X$-CC -> a.-$$b :  ", "x.X$-CC", "a.-$$b"),
            ("x.-->b:", "x.-", "b"),
            ("x.Держатель\t->\tб:\r", "x.Держатель", "б"),
            (
                "x.package-info -> x.package-info:",
                "x.package-info",
                "x.package-info",
            ),
            ("a -> R8$$REMOVED$$CLASS$$0:", "a", "R8$$REMOVED$$CLASS$$0"),
        ] {
            let class = Line::Class {
                original,
                obfuscated,
            };
            assert_eq!(Line::parse(text.as_bytes()), Ok(class), "{text}");
        }
    }

    #[test]
    fn members_are_taken_apart() {
        let all = member("    1:3:java.lang.Object[] x.B.run(int,byte[][]):11:13 -> a");
        assert_eq!(all.lines, Some(range(1, 3)));
        assert_eq!(all.of_type, "java.lang.Object[]");
        assert_eq!(all.name, "x.B.run");
        assert_eq!(all.parameters, Some("int,byte[][]"));
        assert_eq!(all.original, OriginalLines::Range(range(11, 13)));
        assert_eq!(all.obfuscated, "a");
        let field = member("\tint -$$x -> b");
        assert_eq!(
            (field.of_type, field.name, field.obfuscated),
            ("int", "-$$x", "b")
        );
        assert_eq!((field.parameters, field.lines), (None, None));
        let tight = member(" 1:2:void <init>():7-><init>");
        assert_eq!((tight.name, tight.obfuscated), ("<init>", "<init>"));
        assert_eq!(tight.original, OriginalLines::Line(7));
        let wide = member(" 1 : 2 : void  f ( int , x.B ) : 3 : 4  ->  g \r");
        assert_eq!((wide.name, wide.parameters), ("f", Some("int , x.B")));
        assert_eq!((wide.lines, wide.obfuscated), (Some(range(1, 2)), "g"));
        assert_eq!(wide.original, OriginalLines::Range(range(3, 4)));
    }

    #[test]
    fn odd_numbers_are_made_sense_of() {
        assert_eq!(member(" 5:3:void f() -> a").lines, Some(range(3, 5)));
        assert_eq!(member(" 5:0:void f() -> a").lines, Some(range(5, 5)));
        assert_eq!(
            member(" void f():0:0 -> a").original,
            OriginalLines::Line(0)
        );
        let huge = member(" 1:99999999999:void f():5:2 -> a");
        assert_eq!(huge.lines, Some(range(1, u32::MAX)));
        assert_eq!(huge.original, OriginalLines::Range(range(2, 5)));
    }

    #[test]
    fn comments_and_blank_lines_are_neither() {
        assert_eq!(Line::parse(b""), Ok(Line::Blank));
        assert_eq!(Line::parse(b" \t \r"), Ok(Line::Blank));
        assert_eq!(Line::parse(b"# x -> y:"), Ok(Line::Comment(" x -> y:")));
        assert_eq!(Line::parse(b"   #{}"), Ok(Line::Comment("{}")));
    }

    #[test]
    fn each_fault_has_its_reason() {
        for (line, fault) in [
            (&b"x.A a:"[..], Fault::NoArrow),
            (b"x.A -> a", Fault::NoColon),
            (b"x.A -> a: # why", Fault::NoColon),
            (b" -> a:", Fault::NoType),
            (b"-> a:", Fault::NoName),
            (b"x.A -> :", Fault::NoName),
            (b"x. A -> a:", Fault::BlankInName),
            (b"x\xff -> a:", Fault::NotText),
            (b"    1:void f() -> a", Fault::OneNumber),
            (b"    1:2 void f() -> a", Fault::OneNumber),
            (b"    f() -> a", Fault::NoType),
            (b"    void f(): -> a", Fault::NoNumber),
            (b"    void f():1: -> a", Fault::NoNumber),
            (b"    void f( -> a", Fault::OpenBracket),
            (b"    void f() extra -> a", Fault::Unexpected),
            (b"    void f() - a", Fault::NoArrow),
            (b"    void f() ->", Fault::NoName),
            (b"    void f() -> a b", Fault::BlankInName),
            (b"    void", Fault::NoArrow),
        ] {
            let text = String::from_utf8_lossy(line);
            assert_eq!(Line::parse(line), Err(fault), "{text}");
        }
    }
}
