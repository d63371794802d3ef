//! Cursor over the text of a script: what the parsers of commands, words and redirections share.

/// Syntax error in a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SyntaxError(pub(crate) String);

/// Maximum nesting of a script.
const MAX_DEPTH: usize = 100;

pub(super) struct Parser<'a> {
    pub(super) text: &'a [char],
    pub(super) at: usize,
    pub(super) depth: usize,
}

impl<'a> Parser<'a> {
    pub(super) fn new(text: &'a [char]) -> Self {
        Parser {
            text,
            at: 0,
            depth: 0,
        }
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.text.get(self.at).copied()
    }

    pub(super) fn looking_at(&self, what: &str) -> bool {
        what.chars()
            .enumerate()
            .all(|(i, c)| self.text.get(self.at + i) == Some(&c))
    }

    pub(super) fn accept(&mut self, what: &str) -> bool {
        let found = self.looking_at(what);
        if found {
            self.at += what.chars().count();
        }
        found
    }

    pub(super) fn unexpected(&self, what: &str) -> SyntaxError {
        SyntaxError(format!("syntax error: unexpected '{what}'"))
    }

    pub(super) fn unclosed(&self, what: &str) -> SyntaxError {
        SyntaxError(format!("syntax error: unexpected EOF: no closing '{what}'"))
    }

    pub(super) fn nested<T>(
        &mut self,
        parse: impl FnOnce(&mut Self) -> Result<T, SyntaxError>,
    ) -> Result<T, SyntaxError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(SyntaxError("syntax error: nested too deeply".to_owned()));
        }
        let result = parse(self);
        self.depth -= 1;
        result
    }

    /// Skips blanks, comments and escaped newlines.
    pub(super) fn blanks(&mut self) {
        loop {
            match self.peek() {
                Some(' ' | '\t' | '\r') => self.at += 1,
                Some('\\') if self.text.get(self.at + 1) == Some(&'\n') => self.at += 2,
                Some('#') => {
                    while self.peek().is_some_and(|c| c != '\n') {
                        self.at += 1;
                    }
                }
                _ => return,
            }
        }
    }

    /// Skips blanks and newlines.
    pub(super) fn newlines(&mut self) {
        self.blanks();
        while self.accept("\n") {
            self.blanks();
        }
    }

    /// Returns the next reserved word or name without consuming it.
    pub(super) fn peek_name(&self) -> String {
        let rest = &self.text[self.at..];
        if rest.first().is_some_and(|c| "{}!".contains(*c)) {
            let ends = rest.get(1).is_none_or(|c| " \t\n;&|)(<>".contains(*c));
            return if ends {
                rest[0].to_string()
            } else {
                String::new()
            };
        }
        if rest.starts_with(&[';', ';']) {
            return ";;".to_owned();
        }
        let word: String = rest
            .iter()
            .take_while(|c| c.is_ascii_alphanumeric() || **c == '_')
            .collect();
        let after = rest.get(word.chars().count());
        let ends = after.is_none_or(|c| " \t\n;&|()<>".contains(*c));
        if ends { word } else { String::new() }
    }

    pub(super) fn reserved(&mut self, word: &str) -> Result<(), SyntaxError> {
        self.newlines();
        if self.peek_name() == word {
            self.at += word.len();
            return Ok(());
        }
        match self.peek() {
            None => Err(self.unclosed(word)),
            Some(c) => Err(self.unexpected(&c.to_string())),
        }
    }
}
