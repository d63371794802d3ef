//! Parsing of words: quotes and `$…`. Part of the parser.

use super::cursor::{Parser, SyntaxError};
use crate::shell::ast::{ParamOp, Part, Word};

fn push_text(parts: &mut Vec<Part>, c: char, is_quoted: bool) {
    if let Some(Part::Text { text, quoted }) = parts.last_mut()
        && *quoted == is_quoted
    {
        text.push(c);
        return;
    }
    parts.push(Part::Text {
        text: c.to_string(),
        quoted: is_quoted,
    });
}

impl Parser<'_> {
    /// Parses a required word.
    pub(super) fn word(&mut self) -> Result<Word, SyntaxError> {
        let start = self.at;
        let word = self.word_until(false, &|c| " \t\r\n;&|()<>".contains(c))?;
        if self.at == start {
            return Err(match self.peek() {
                None => self.unclosed("word"),
                Some(c) => self.unexpected(&c.to_string()),
            });
        }
        Ok(word)
    }

    /// Parses text up to an unquoted character that `ends` it; `quoted` is text in double quotes or
    /// an arithmetic expression.
    fn word_until(
        &mut self,
        quoted: bool,
        ends: &dyn Fn(char) -> bool,
    ) -> Result<Word, SyntaxError> {
        let mut parts = Vec::new();
        while let Some(c) = self.peek().filter(|c| !ends(*c)) {
            self.at += 1;
            match c {
                '\\' => match self.peek() {
                    Some('\n') => self.at += 1,
                    Some(next) if !quoted || "$`\\\"".contains(next) || ends(next) => {
                        self.at += 1;
                        push_text(&mut parts, next, true);
                    }
                    _ => push_text(&mut parts, '\\', true),
                },
                '\'' if !quoted => {
                    let start = self.at;
                    while self.peek().ok_or_else(|| self.unclosed("'"))? != '\'' {
                        self.at += 1;
                    }
                    let text: String = self.text[start..self.at].iter().collect();
                    self.at += 1;
                    parts.push(Part::Text { text, quoted: true });
                }
                // Within `"${name:-…}"`, too.
                '"' if !quoted || ends('}') => {
                    parts.push(Part::Empty);
                    parts.extend(self.word_until(true, &|c| c == '"')?.0);
                    if !self.accept("\"") {
                        return Err(self.unclosed("\""));
                    }
                }
                '$' => self.dollar(&mut parts, quoted)?,
                '`' => return Err(self.unexpected("`")),
                c => push_text(&mut parts, c, quoted),
            }
        }
        Ok(Word(parts))
    }

    /// Parses the text after a `$`.
    fn dollar(&mut self, parts: &mut Vec<Part>, quoted: bool) -> Result<(), SyntaxError> {
        let plain = |name: String| Part::Parameter {
            name,
            op: ParamOp::Plain,
            quoted,
        };
        if self.accept("((") {
            let expr = self.arithmetic_body()?;
            parts.push(Part::Arithmetic { expr, quoted });
            return Ok(());
        }
        if self.accept("(") {
            let script = self.nested(Self::in_parentheses)?;
            parts.push(Part::Command { script, quoted });
            return Ok(());
        }
        if self.accept("{") {
            let part = self.nested(|p| p.braced(quoted))?;
            parts.push(part);
            return Ok(());
        }
        match self.peek() {
            Some(c) if "?$!#*@-".contains(c) || c.is_ascii_digit() => {
                self.at += 1;
                parts.push(plain(c.to_string()));
            }
            Some(c) if c.is_ascii_alphabetic() || c == '_' => {
                let name = self.variable_name();
                parts.push(plain(name));
            }
            _ => push_text(parts, '$', quoted),
        }
        Ok(())
    }

    pub(super) fn variable_name(&mut self) -> String {
        let start = self.at;
        while self
            .peek()
            .is_some_and(|c| c.is_ascii_alphanumeric() || c == '_')
        {
            self.at += 1;
        }
        self.text[start..self.at].iter().collect()
    }

    /// Parses the inside of `((…))`, after its opening.
    pub(super) fn arithmetic_body(&mut self) -> Result<Word, SyntaxError> {
        let start = self.at;
        let mut depth = 0usize;
        loop {
            if depth == 0 && self.looking_at("))") {
                let text: Vec<char> = self.text[start..self.at].to_vec();
                self.at += 2;
                let mut inner = Parser::new(&text);
                inner.depth = self.depth + 1;
                return inner.word_until(true, &|_| false);
            }
            match self.peek().ok_or_else(|| self.unclosed("))"))? {
                '(' => depth += 1,
                ')' => depth = depth.saturating_sub(1),
                _ => {}
            }
            self.at += 1;
        }
    }

    /// Parses the text after `${`.
    fn braced(&mut self, quoted: bool) -> Result<Part, SyntaxError> {
        let name = match self.peek() {
            Some(c) if "?$!#*@-".contains(c) => {
                self.at += 1;
                c.to_string()
            }
            _ => self.variable_name(),
        };
        if name.is_empty() || (name == "#" && self.peek() != Some('}')) {
            return Err(SyntaxError("bad substitution".to_owned()));
        }
        let op = match self.peek() {
            Some('}') => ParamOp::Plain,
            Some(':') if self.accept(":-") => {
                ParamOp::Default(self.word_until(quoted, &|c| c == '}')?)
            }
            Some(c @ ('#' | '%')) => {
                self.at += 1;
                let longest = self.peek() == Some(c);
                if longest {
                    self.at += 1;
                }
                let pattern = self.word_until(false, &|c| c == '}')?;
                ParamOp::Trim {
                    suffix: c == '%',
                    longest,
                    pattern,
                }
            }
            _ => return Err(SyntaxError("bad substitution".to_owned())),
        };
        if !self.accept("}") {
            return Err(self.unclosed("}"));
        }
        Ok(Part::Parameter { name, op, quoted })
    }
}

#[cfg(test)]
mod tests {
    use crate::shell::parser::parse;

    #[test]
    fn scripts_parse() {
        for script in [
            "echo a; echo b &\nwait",
            "while [ -d /proc/1 ]; do echo x; sleep 1; done",
            "if a; then b; elif c; then d; else e; fi >/dev/null 2>&1",
            "for f in a b; do echo \"$f\"; done",
            "case \"$x\" in a|b) echo 1;; *) echo 2; esac",
            "f() { echo \"${1:-none}\" \"$@\"; }; f 1",
            "x=$(cat /a | grep -v 'b)' ; echo \")\")",
            "x=$((1 + (2*3)))",
            "( trap 'rm x' TERM; sleep 1 ) </dev/null >/dev/null 2>&1 &",
            "! [ -e x ] && [ a = b ] || { false; }",
            "echo ${x##*/} ${x%.*} ${x:-y}",
            "v=$(case $1 in a) echo 1;; esac)",
            "# only a comment",
            "",
        ] {
            parse(script).unwrap_or_else(|e| panic!("{script}: {}", e.0));
        }
    }

    #[test]
    fn broken_scripts_are_refused() {
        for script in [
            "if a; then b",
            "echo 'x",
            "echo \"x",
            "(",
            ")",
            "do",
            "a | | b",
            "a && && b",
            "x=$(",
            "${",
            "case x in",
            "for",
            "fi",
            "cat <<E\nx\nE",
            "echo ${x/a/b}",
            "echo ${#x}",
            "`",
            "$((1",
            "a;;",
        ] {
            assert!(parse(script).is_err(), "{script}");
        }
        let deep = "(".repeat(5_000);
        assert!(parse(&deep).is_err());
        let deep = "$(".repeat(5_000);
        assert!(parse(&deep).is_err());
    }
}
