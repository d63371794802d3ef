//! Redirections. Part of the parser.

use super::cursor::{Parser, SyntaxError};
use crate::shell::ast::{Redirect, RedirectKind};

impl Parser<'_> {
    pub(super) fn redirects(&mut self) -> Result<Vec<Redirect>, SyntaxError> {
        let mut all = Vec::new();
        loop {
            self.blanks();
            match self.redirect()? {
                Some(redirect) => all.push(redirect),
                None => return Ok(all),
            }
        }
    }

    /// Parses a redirection, if present.
    pub(super) fn redirect(&mut self) -> Result<Option<Redirect>, SyntaxError> {
        let start = self.at;
        let mut digits = String::new();
        while let Some(c) = self.peek().filter(char::is_ascii_digit) {
            digits.push(c);
            self.at += 1;
        }
        let operators = [
            (">>", RedirectKind::Append),
            (">&", RedirectKind::Duplicate),
            ("<", RedirectKind::Read),
            (">", RedirectKind::Write),
        ];
        let Some((_, kind)) = operators.into_iter().find(|(o, _)| self.accept(o)) else {
            self.at = start;
            return Ok(None);
        };
        let fd = match digits.as_str() {
            "" => u32::from(kind != RedirectKind::Read),
            digits => digits.parse().map_err(|_| self.unexpected(digits))?,
        };
        self.blanks();
        let target = self.word()?;
        Ok(Some(Redirect { fd, kind, target }))
    }
}
