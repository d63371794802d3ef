//! SQL tokens: enough to distinguish statements, keywords and calls from comments and texts. Never
//! fails: unclosed comments and quotes extend to the end.

use std::ops::Range;

/// Kind of token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sort {
    /// A keyword or a plain name.
    Word,
    /// A name in quotes, backticks or brackets.
    Quoted,
    /// A text in single quotes.
    Text,
    /// `$name`, `?1`, `:name`, `@name`.
    Variable,
    Number,
    /// Any other single character.
    Sign,
}

/// Token with its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) sort: Sort,
    pub(super) at: Range<usize>,
}

impl Token {
    pub(super) fn text<'a>(&self, sql: &'a str) -> &'a str {
        &sql[self.at.clone()]
    }

    /// Returns whether it is that keyword.
    pub(super) fn is(&self, sql: &str, word: &str) -> bool {
        self.sort == Sort::Word && self.text(sql).eq_ignore_ascii_case(word)
    }

    pub(super) fn is_sign(&self, sql: &str, sign: char) -> bool {
        self.sort == Sort::Sign && self.text(sql).starts_with(sign)
    }
}

/// Returns a name without its quotes, with doubled quotes in it halved.
pub(super) fn unquoted(text: &str) -> String {
    let mut chars = text.chars();
    let (Some(open), Some(_)) = (chars.next(), text.chars().next_back()) else {
        return String::new();
    };
    let close = match open {
        '[' => ']',
        '"' | '`' | '\'' => open,
        _ => return text.to_owned(),
    };
    let inner = &text[1..];
    let inner = inner.strip_suffix(close).unwrap_or(inner);
    match close {
        ']' => inner.to_owned(),
        quote => inner.replace(&format!("{quote}{quote}"), &quote.to_string()),
    }
}

fn is_word_start(c: char) -> bool {
    c.is_alphabetic() || c == '_' || !c.is_ascii()
}

fn is_word(c: char) -> bool {
    is_word_start(c) || c.is_ascii_digit() || c == '$'
}

/// Returns all tokens, without blanks and comments.
pub(super) fn tokens(sql: &str) -> Vec<Token> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(c) = sql[at..].chars().next() {
        let rest = &sql[at..];
        let until = |ends: &dyn Fn(char) -> bool| rest.find(ends).unwrap_or(rest.len());
        let (sort, length) = match c {
            c if c.is_ascii_whitespace() || c == '\u{feff}' => (None, c.len_utf8()),
            '-' if rest.starts_with("--") => (None, until(&|c| c == '\n')),
            '/' if rest.starts_with("/*") => {
                let end = rest[2..].find("*/").map_or(rest.len(), |end| end + 4);
                (None, end)
            }
            '\'' => (Some(Sort::Text), quoted(rest, '\'')),
            '"' | '`' => (Some(Sort::Quoted), quoted(rest, c)),
            '[' => {
                let end = rest.find(']').map_or(rest.len(), |end| end + 1);
                (Some(Sort::Quoted), end)
            }
            '$' | ':' | '@' | '?' | '#' => {
                let name = rest[1..].find(|c| !is_word(c)).unwrap_or(rest.len() - 1);
                let sort = if name > 0 || c == '?' {
                    Sort::Variable
                } else {
                    Sort::Sign
                };
                (Some(sort), 1 + name)
            }
            c if c.is_ascii_digit() => (Some(Sort::Number), number(rest)),
            c if is_word_start(c) => (Some(Sort::Word), until(&|c| !is_word(c))),
            c => (Some(Sort::Sign), c.len_utf8()),
        };
        if let Some(sort) = sort {
            found.push(Token {
                sort,
                at: at..at + length,
            });
        }
        at += length;
    }
    found
}

/// Returns the length of a quoted text; doubled quotes are part of it.
fn quoted(rest: &str, quote: char) -> usize {
    let mut from = 1;
    loop {
        let Some(end) = rest[from..].find(quote) else {
            return rest.len();
        };
        let after = from + end + 1;
        if !rest[after..].starts_with(quote) {
            return after;
        }
        from = after + 1;
    }
}

fn number(rest: &str) -> usize {
    let mut before = '0';
    let end = rest.find(|c: char| {
        let sign_of_exponent = matches!(c, '+' | '-') && matches!(before, 'e' | 'E');
        let hexadecimal = rest.starts_with("0x") || rest.starts_with("0X");
        let part = c.is_ascii_alphanumeric() || c == '.' || c == '_';
        before = c;
        !(part || sign_of_exponent && !hexadecimal)
    });
    end.unwrap_or(rest.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(sql: &str) -> Vec<&str> {
        tokens(sql).iter().map(|token| token.text(sql)).collect()
    }

    #[test]
    fn comments_and_quotes_hide_what_is_in_them() {
        assert_eq!(
            texts("SELECT 'a;b''c' /* ; */ , \"x;\"\"y\" -- ;\n FROM [t;u] WHERE `v`=1.5e-3;"),
            [
                "SELECT",
                "'a;b''c'",
                ",",
                "\"x;\"\"y\"",
                "FROM",
                "[t;u]",
                "WHERE",
                "`v`",
                "=",
                "1.5e-3",
                ";"
            ]
        );
        assert_eq!(texts("0x1F-2"), ["0x1F", "-", "2"]);
        assert_eq!(
            texts("$ts + ?1 :a m!(x)"),
            ["$ts", "+", "?1", ":a", "m", "!", "(", "x", ")"]
        );
    }

    #[test]
    fn what_is_unclosed_reaches_to_the_end() {
        for sql in [
            "'a", "\"a", "`", "[a", "/* a", "-- a", "'a''", "é'", "$", "/*/",
        ] {
            let all = tokens(sql);
            assert!(all.last().is_none_or(|last| last.at.end <= sql.len()));
        }
    }

    #[test]
    fn names_come_out_of_their_quotes() {
        assert_eq!(unquoted("\"a\"\"b\""), "a\"b");
        assert_eq!(unquoted("[a b]"), "a b");
        assert_eq!(unquoted("plain"), "plain");
        assert_eq!(unquoted("\""), "");
    }
}
