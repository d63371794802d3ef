//! Parser from text to a syntax tree: the grammar of POSIX sh with the parts of mksh that scripts
//! for Android use. Its parts are mutually recursive: commands contain words, and words contain
//! commands.

mod cursor;
mod redirects;
mod words;

use std::sync::Arc;

use self::cursor::{Parser, SyntaxError};
use super::ast::{Node, Word};

const RESERVED_ENDS: [&str; 9] = [
    "then", "else", "elif", "fi", "do", "done", "esac", "}", ";;",
];

/// Parses a whole script.
pub(crate) fn parse(script: &str) -> Result<Arc<Node>, SyntaxError> {
    let text: Vec<char> = script.chars().collect();
    Ok(Arc::new(Parser::new(&text).list(true)?))
}

impl Parser<'_> {
    /// Parses commands until a reserved word, `)` or the end.
    fn list(&mut self, top: bool) -> Result<Node, SyntaxError> {
        let mut commands = Vec::new();
        loop {
            self.newlines();
            let name = self.peek_name();
            match self.peek() {
                Some(c) if c != ')' && !RESERVED_ENDS.contains(&name.as_str()) => {}
                Some(c) if top => {
                    let what = if name.is_empty() { c.to_string() } else { name };
                    return Err(self.unexpected(&what));
                }
                _ => return Ok(Node::List(commands)),
            }
            let command = self.and_or()?;
            self.blanks();
            let background = self.accept("&");
            commands.push((Arc::new(command), background));
            match self.peek() {
                _ if background => {}
                Some(';') if !self.looking_at(";;") => self.at += 1,
                None | Some('\n' | ')' | ';') => {}
                Some(_) if RESERVED_ENDS.contains(&self.peek_name().as_str()) => {}
                Some(c) => return Err(self.unexpected(&c.to_string())),
            }
        }
    }

    /// Parses commands up to a `)`.
    fn in_parentheses(&mut self) -> Result<Arc<Node>, SyntaxError> {
        let body = Arc::new(self.list(false)?);
        match self.accept(")") {
            true => Ok(body),
            false => Err(self.unclosed(")")),
        }
    }

    fn and_or(&mut self) -> Result<Node, SyntaxError> {
        let mut left = self.pipeline()?;
        loop {
            self.blanks();
            let and = if self.accept("&&") {
                true
            } else if self.accept("||") {
                false
            } else {
                return Ok(left);
            };
            self.newlines();
            let right = self.pipeline()?;
            left = Node::AndOr {
                left: Arc::new(left),
                and,
                right: Arc::new(right),
            };
        }
    }

    fn pipeline(&mut self) -> Result<Node, SyntaxError> {
        self.blanks();
        let mut negated = false;
        while self.peek_name() == "!" {
            self.at += 1;
            negated = !negated;
            self.blanks();
        }
        let mut parts = vec![Arc::new(self.command()?)];
        loop {
            self.blanks();
            if self.looking_at("||") || !self.accept("|") {
                break;
            }
            self.newlines();
            parts.push(Arc::new(self.command()?));
        }
        if parts.len() == 1 && !negated {
            let only = parts.remove(0);
            return Ok(Arc::unwrap_or_clone(only));
        }
        Ok(Node::Pipeline { negated, parts })
    }

    fn command(&mut self) -> Result<Node, SyntaxError> {
        self.nested(|p| {
            p.blanks();
            let start = p.at;
            match p.peek_name().as_str() {
                "if" => p.compound(Self::if_command),
                "while" => p.compound(Self::loop_command),
                "for" => p.compound(Self::for_command),
                "case" => p.compound(Self::case_command),
                "{" => p.compound(|p| {
                    p.at += 1;
                    let body = p.list(false)?;
                    p.reserved("}")?;
                    Ok(body)
                }),
                word if RESERVED_ENDS.contains(&word) => Err(p.unexpected(word)),
                _ if p.accept("(") => p.compound(|p| Ok(Node::Subshell(p.in_parentheses()?))),
                name => {
                    // `name ()` defines a function.
                    if !name.is_empty() {
                        p.at += name.chars().count();
                        p.blanks();
                        if p.accept("(") {
                            p.blanks();
                            if !p.accept(")") {
                                return Err(p.unexpected("("));
                            }
                            p.newlines();
                            let body = Arc::new(p.command()?);
                            let name = name.to_owned();
                            return Ok(Node::Function { name, body });
                        }
                        p.at = start;
                    }
                    p.simple()
                }
            }
        })
    }

    /// Parses a compound command and the redirections after it.
    fn compound(
        &mut self,
        parse: impl FnOnce(&mut Self) -> Result<Node, SyntaxError>,
    ) -> Result<Node, SyntaxError> {
        let body = parse(self)?;
        let redirects = self.redirects()?;
        Ok(match redirects.is_empty() {
            true => body,
            false => Node::Redirected {
                body: Arc::new(body),
                redirects,
            },
        })
    }

    fn if_command(&mut self) -> Result<Node, SyntaxError> {
        self.at += 2;
        let mut branches = Vec::new();
        let mut otherwise = None;
        loop {
            let condition = Arc::new(self.list(false)?);
            self.reserved("then")?;
            let body = Arc::new(self.list(false)?);
            branches.push((condition, body));
            self.newlines();
            match self.peek_name().as_str() {
                "elif" => self.at += 4,
                "else" => {
                    self.at += 4;
                    otherwise = Some(Arc::new(self.list(false)?));
                    break;
                }
                _ => break,
            }
        }
        self.reserved("fi")?;
        Ok(Node::If {
            branches,
            otherwise,
        })
    }

    fn loop_command(&mut self) -> Result<Node, SyntaxError> {
        self.at += 5;
        let condition = Arc::new(self.list(false)?);
        let body = self.do_group()?;
        Ok(Node::Loop { condition, body })
    }

    fn do_group(&mut self) -> Result<Arc<Node>, SyntaxError> {
        self.reserved("do")?;
        let body = Arc::new(self.list(false)?);
        self.reserved("done")?;
        Ok(body)
    }

    fn for_command(&mut self) -> Result<Node, SyntaxError> {
        self.at += 3;
        self.blanks();
        let name = self.variable_name();
        self.newlines();
        let mut words = None;
        if self.peek_name() == "in" {
            self.at += 2;
            let mut list = Vec::new();
            loop {
                self.blanks();
                match self.peek() {
                    None | Some('\n' | ';') => break,
                    _ => list.push(self.word()?),
                }
            }
            words = Some(list);
        }
        self.blanks();
        self.accept(";");
        let body = self.do_group()?;
        Ok(Node::For { name, words, body })
    }

    fn case_command(&mut self) -> Result<Node, SyntaxError> {
        self.at += 4;
        self.blanks();
        let subject = self.word()?;
        self.reserved("in")?;
        let mut arms = Vec::new();
        loop {
            self.newlines();
            if self.peek_name() == "esac" {
                self.at += 4;
                break;
            }
            self.accept("(");
            let mut patterns = Vec::new();
            loop {
                self.blanks();
                patterns.push(self.word()?);
                self.blanks();
                if !self.accept("|") {
                    break;
                }
            }
            if !self.accept(")") {
                return Err(match self.peek() {
                    None => self.unclosed("esac"),
                    Some(c) => self.unexpected(&c.to_string()),
                });
            }
            let body = Arc::new(self.list(false)?);
            arms.push((patterns, body));
            self.newlines();
            if !self.accept(";;") {
                self.reserved("esac")?;
                break;
            }
        }
        Ok(Node::Case { subject, arms })
    }

    fn simple(&mut self) -> Result<Node, SyntaxError> {
        let mut assigns = Vec::new();
        let mut words: Vec<Word> = Vec::new();
        let mut redirects = Vec::new();
        loop {
            self.blanks();
            if let Some(redirect) = self.redirect()? {
                redirects.push(redirect);
                continue;
            }
            match self.peek() {
                None | Some('\n' | ';' | '&' | '|' | ')' | '(') => break,
                Some(_) => {}
            }
            if words.is_empty()
                && let Some(name) = self.assignment()
            {
                let value = match self.peek() {
                    None | Some(' ' | '\t' | '\n' | ';' | '&' | '|' | ')') => Word::default(),
                    _ => self.word()?,
                };
                assigns.push((name, value));
                continue;
            }
            words.push(self.word()?);
        }
        if words.is_empty() && assigns.is_empty() && redirects.is_empty() {
            return Err(match self.peek() {
                None => SyntaxError("syntax error: unexpected EOF".to_owned()),
                Some(c) => self.unexpected(&c.to_string()),
            });
        }
        Ok(Node::Simple {
            assigns,
            words,
            redirects,
        })
    }

    /// Consumes `name=`, if present, and returns the name.
    fn assignment(&mut self) -> Option<String> {
        let rest = &self.text[self.at..];
        let len = rest
            .iter()
            .take_while(|c| c.is_ascii_alphanumeric() || **c == '_')
            .count();
        let starts = rest.first().is_some_and(|c| !c.is_ascii_digit());
        if len == 0 || !starts || rest.get(len) != Some(&'=') {
            return None;
        }
        self.at += len + 1;
        Some(rest[..len].iter().collect())
    }
}
