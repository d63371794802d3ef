//! Redirections and here-documents. Part of the parser.

use super::{Parser, SyntaxError};
use crate::shell::ast::{Node, Part, Redirect, RedirectKind, Word};

/// A here-document whose body is still to come.
pub(super) struct HereDoc {
    id: usize,
    delimiter: String,
    strip_tabs: bool,
    expand: bool,
}

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

    /// A redirection, where one stands here.
    pub(super) fn redirect(&mut self) -> Result<Option<Redirect>, SyntaxError> {
        let start = self.at;
        let mut digits = String::new();
        while let Some(c) = self.peek().filter(char::is_ascii_digit) {
            digits.push(c);
            self.at += 1;
        }
        let operator = ["<<-", "<<<", "<<", "<>", "<&", ">>", ">&", ">|", "<", ">"]
            .into_iter()
            .find(|o| self.looking_at(o));
        let Some(operator) = operator else {
            if digits.is_empty() && self.accept("&>") {
                // mksh: both streams into one file.
                self.blanks();
                let word = self.word()?;
                return Ok(Some(Redirect {
                    fd: u32::MAX,
                    kind: RedirectKind::Write(word),
                }));
            }
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
            ">" | ">|" => RedirectKind::Write(word),
            ">>" => RedirectKind::Append(word),
            "<>" => RedirectKind::ReadWrite(word),
            "<<<" => {
                let mut text = word;
                text.0.push(Part::Text {
                    text: "\n".to_owned(),
                    quoted: true,
                });
                RedirectKind::Here(text)
            }
            "<<" | "<<-" => {
                let quoted = |p: &Part| matches!(p, Part::Text { quoted: true, .. } | Part::Empty);
                let expand = !word.0.iter().any(quoted);
                let delimiter = word
                    .0
                    .iter()
                    .map(|p| match p {
                        Part::Text { text, .. } => text.as_str(),
                        _ => "",
                    })
                    .collect();
                self.here_count += 1;
                self.here.push(HereDoc {
                    id: self.here_count,
                    delimiter,
                    strip_tabs: operator == "<<-",
                    expand,
                });
                // The body comes later: its number stands in for it.
                RedirectKind::Here(Word(vec![Part::Text {
                    text: format!("\0{}", self.here_count),
                    quoted: true,
                }]))
            }
            _ => RedirectKind::Duplicate(word),
        };
        Ok(Some(Redirect { fd, kind }))
    }

    pub(super) fn here_bodies(&mut self) -> Result<(), SyntaxError> {
        for doc in std::mem::take(&mut self.here) {
            let mut body = String::new();
            loop {
                if self.peek().is_none() {
                    return Err(SyntaxError(format!(
                        "here document '{}' unclosed",
                        doc.delimiter
                    )));
                }
                let start = self.at;
                while self.peek().is_some_and(|c| c != '\n') {
                    self.at += 1;
                }
                let line: String = self.text[start..self.at].iter().collect();
                if self.peek().is_some() {
                    self.at += 1;
                }
                let line = if doc.strip_tabs {
                    line.trim_start_matches('\t')
                } else {
                    &line
                };
                if line == doc.delimiter {
                    break;
                }
                body.push_str(line);
                body.push('\n');
            }
            let word = if doc.expand {
                super::words::parse_here(&body)?
            } else {
                Word(vec![Part::Text {
                    text: body,
                    quoted: true,
                }])
            };
            self.bodies.push((doc.id, word));
        }
        Ok(())
    }

    /// Puts the bodies of here-documents that ended by now where they belong.
    pub(super) fn with_bodies(&mut self, node: Node) -> Node {
        if self.bodies.is_empty() {
            return node;
        }
        let bodies = &self.bodies;
        let find = |word: &Word| {
            let [Part::Text { text, .. }] = word.0.as_slice() else {
                return None;
            };
            let id = text.strip_prefix('\0')?.parse::<usize>().ok()?;
            bodies
                .iter()
                .find(|(n, _)| *n == id)
                .map(|(_, w)| w.clone())
        };
        super::heredoc::fill(node, &find)
    }
}
