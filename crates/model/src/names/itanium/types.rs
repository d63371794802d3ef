//! Reads the types in names, among them lambdas.

use super::parse::{Parser, Traits};
use super::tables::{BUILTIN_TYPES, LETTER_TYPES, TYPES};
use super::tree::{Id, Node};

impl<'a> Parser<'a> {
    pub(super) fn qualifiers(&mut self) -> &'static str {
        match (self.take("V"), self.take("K")) {
            (false, false) => "",
            (false, true) => " const",
            (true, false) => " volatile",
            (true, true) => " const volatile",
        }
    }

    /// Reads a type, which later parts of the name can refer to.
    pub(super) fn type_(&mut self) -> Option<Id> {
        let [letter, second] = self.next();
        if let Some((_, name)) = LETTER_TYPES.iter().find(|(code, _)| *code == letter) {
            self.at += 1;
            return Some(self.text(name));
        }
        if letter == b'D'
            && let Some(builtin) = self.any_of(BUILTIN_TYPES)
        {
            return builtin;
        }
        let read = match letter == b'S' && second != b't' {
            true => {
                let earlier = self.substitution()?;
                if self.next()[0] != b'I' || !self.takes_arguments {
                    return Some(earlier);
                }
                self.nested(|parser| parser.with_arguments(earlier))?
            }
            false => self.nested(Self::compound_type)?,
        };
        self.substitutions.push(read);
        Some(read)
    }

    fn compound_type(&mut self) -> Option<Id> {
        if self.is_function_type() {
            return self.function_type();
        }
        let letter = self.next()[0];
        match letter {
            b'V' | b'K' => {
                let qualifiers = self.qualifiers();
                let part = self.type_()?;
                Some(self.add(Node::Qualified(part, qualifiers)))
            }
            b'P' | b'R' | b'O' | b'A' | b'M' => {
                self.at += 1;
                let first = match letter {
                    b'A' => self.length()?,
                    _ => self.type_()?,
                };
                let node = match letter {
                    b'P' => Node::Pointer(first),
                    b'R' => Node::Reference(first, "&"),
                    b'O' => Node::Reference(first, "&&"),
                    b'A' => Node::Array(self.type_()?, first),
                    _ => Node::Member(first, self.type_()?),
                };
                Some(self.add(node))
            }
            b'D' | b'C' | b'u' => self.any_of(TYPES)?,
            b'T' => {
                let parameter = self.template_parameter()?;
                if self.next()[0] != b'I' || !self.takes_arguments {
                    return Some(parameter);
                }
                self.substitutions.push(parameter);
                self.with_arguments(parameter)
            }
            _ => self.name(&mut Traits::default()),
        }
    }

    /// Reads a type whose arguments are not those of a template.
    pub(super) fn type_without_arguments(&mut self) -> Option<Id> {
        let outer = std::mem::replace(&mut self.takes_arguments, false);
        let class = self.type_()?;
        self.takes_arguments = outer;
        Some(class)
    }

    fn is_function_type(&self) -> bool {
        let qualifiers = self.rest().iter();
        let qualifiers = qualifiers.take_while(|letter| b"VK".contains(letter));
        let rest = &self.rest()[qualifiers.count()..];
        rest.starts_with(b"F") || rest.starts_with(b"Do")
    }

    fn function_type(&mut self) -> Option<Id> {
        let qualifiers = self.qualifiers();
        let exceptions = if self.take("Do") { " noexcept" } else { "" };
        self.expect("F")?;
        let result = self.type_()?;
        let mut reference = "";
        let start = self.stack.len();
        while !self.take("E") {
            if self.take("RE") {
                reference = " &";
                break;
            }
            if self.take("OE") {
                reference = " &&";
                break;
            }
            if !self.take("v") {
                let parameter = self.type_()?;
                self.stack.push(parameter);
            }
        }
        let parameters = self.popped(start);
        let suffix = [qualifiers, reference, exceptions];
        Some(self.add_function(Some(result), None, parameters, suffix))
    }

    /// Reads the length of an array and the `_` behind it.
    pub(super) fn length(&mut self) -> Option<Id> {
        let length = match self.is_digit() || self.next()[0] == b'_' {
            true => {
                let length = self.number();
                self.text(length)
            }
            false => self.expression()?,
        };
        self.expect("_")?;
        Some(length)
    }

    /// Reads the parameters of a lambda, which precede its number.
    pub(super) fn lambda(&mut self) -> Option<Id> {
        let outer_level = self.lambda_level.replace(self.arguments.is_some().into());
        self.take("v");
        let parameters = self.until("E", Self::type_)?;
        self.lambda_level = outer_level;
        let texts = ["'lambda", self.index_text()?, "'(", ")"].map(|text| self.text(text));
        Some(self.sequence(&[texts[0], texts[1], texts[2], parameters, texts[3]]))
    }
}
