//! Redirections. Part of the parser.

use super::{Parser, SyntaxError};
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
        let operator = ["<&", ">>", ">&", "<", ">"]
            .into_iter()
            .find(|o| self.looking_at(o));
        let Some(operator) = operator else {
            self.at = start;
            return Ok(None);
        };
        self.at += operator.len();
        let fd = match digits.as_str() {
            "" => u32::from(!operator.starts_with('<')),
            digits => digits.parse().map_err(|_| self.unexpected(digits))?,
        };
        self.blanks();
        let word = self.word()?;
        let kind = match operator {
            "<" => RedirectKind::Read(word),
            ">" => RedirectKind::Write(word),
            ">>" => RedirectKind::Append(word),
            _ => RedirectKind::Duplicate(word),
        };
        Ok(Some(Redirect { fd, kind }))
    }
}
