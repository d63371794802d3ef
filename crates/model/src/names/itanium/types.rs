//! Reads the types in names, among them lambdas.

use super::parse::{Parser, Traits};
use super::tables::{BUILTIN_TYPES, EXCEPTIONS, LETTER_TYPES, Operator, TYPES, UNNAMED};
use super::{Id, Node};

impl<'a> Parser<'a> {
    pub(super) fn qualifiers(&mut self) -> &'static str {
        let (restrict, volatile, constant) = (self.take("r"), self.take("V"), self.take("K"));
        let found = usize::from(constant) + 2 * usize::from(volatile) + 4 * usize::from(restrict);
        [
            "",
            " const",
            " volatile",
            " const volatile",
            " restrict",
            " const restrict",
            " volatile restrict",
            " const volatile restrict",
        ][found]
    }

    /// Reads a type, which later parts of the name can refer to.
    pub(super) fn type_(&mut self) -> Option<Id> {
        let [letter, second] = self.next();
        if let Some((_, name)) = LETTER_TYPES.iter().find(|(code, _)| *code == letter) {
            self.at += 1;
            return Some(self.text(name));
        }
        if letter == b'S' && second != b't' {
            let earlier = self.substitution()?;
            if self.next()[0] != b'I' || !self.takes_arguments {
                return Some(earlier);
            }
            let read = self.nested(|parser| parser.with_arguments(earlier))?;
            self.substitutions.push(read);
            return Some(read);
        }
        if letter == b'D'
            && let Some(builtin) = self.any_of(BUILTIN_TYPES)
        {
            return builtin;
        }
        let read = self.nested(Self::compound_type)?;
        self.substitutions.push(read);
        Some(read)
    }

    pub(super) fn compound_type(&mut self) -> Option<Id> {
        if self.is_function_type() {
            return self.function_type();
        }
        let [letter, second] = self.next();
        match letter {
            b'r' | b'V' | b'K' | b'U' => self.qualified_type(),
            b'P' | b'R' | b'O' => {
                self.at += 1;
                let part = self.type_()?;
                Some(self.add(match letter {
                    b'P' => Node::Pointer(part),
                    b'R' => Node::Reference(part, "&"),
                    _ => Node::Reference(part, "&&"),
                }))
            }
            b'A' => {
                self.at += 1;
                let length = self.length()?;
                let element = self.type_()?;
                Some(self.add(Node::Array(element, length)))
            }
            b'M' => {
                self.at += 1;
                let class = self.type_()?;
                let member = self.type_()?;
                Some(self.add(Node::Member(class, member)))
            }
            b'D' | b'C' | b'G' => self.any_of(TYPES)?,
            b'T' if matches!(second, b's' | b'u' | b'e') => self.any_of(TYPES)?,
            b'T' => {
                let parameter = self.template_parameter()?;
                if self.next()[0] != b'I' || !self.takes_arguments {
                    return Some(parameter);
                }
                self.substitutions.push(parameter);
                self.with_arguments(parameter)
            }
            b'u' => {
                self.at += 1;
                let name = self.identifier()?;
                match self.take("I") {
                    true => {
                        let part = self.pattern("(%t)%E", &Operator::NONE)?;
                        Some(self.sequence(&[name, part]))
                    }
                    false => Some(name),
                }
            }
            _ => self.name(&mut Traits::default()),
        }
    }

    pub(super) fn qualified_type(&mut self) -> Option<Id> {
        if self.take("U") {
            let space = self.text(" ");
            let mut parts = vec![space, self.identifier()?];
            if self.next()[0] == b'I' {
                parts.push(self.template_arguments(false)?);
            }
            parts.insert(0, self.nested(Self::qualified_type)?);
            return Some(self.sequence(&parts));
        }
        let qualifiers = self.qualifiers();
        let part = self.type_()?;
        Some(match qualifiers {
            "" => part,
            _ => self.add(Node::Qualified(part, qualifiers)),
        })
    }

    pub(super) fn is_function_type(&self) -> bool {
        let qualifiers = self.rest().iter();
        let qualifiers = qualifiers.take_while(|letter| b"rVK".contains(letter));
        let rest = &self.rest()[qualifiers.count()..];
        matches!(rest, [b'F', ..] | [b'D', b'o' | b'O' | b'w' | b'x', ..])
    }

    pub(super) fn function_type(&mut self) -> Option<Id> {
        let qualifiers = self.qualifiers();
        let exceptions = match self.any_of(EXCEPTIONS) {
            Some(exceptions) => exceptions?,
            None => self.text(""),
        };
        self.take("Dx");
        self.expect("F")?;
        self.take("Y");
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
        let suffix = [self.text(qualifiers), self.text(reference), exceptions];
        Some(self.add_function(Some(result), None, parameters, &suffix))
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

    pub(super) fn unnamed_type(&mut self) -> Option<Id> {
        if let Some(unnamed) = self.any_of(UNNAMED) {
            return unnamed;
        }
        self.expect("Ul")?;
        self.nested(Self::lambda)
    }

    /// Reads the parameters of a lambda, which precede its number.
    pub(super) fn lambda(&mut self) -> Option<Id> {
        let outer_level = self.lambda_level.replace(self.parameters.len());
        self.parameters.push(Some(Vec::new()));
        let mut declarator = Vec::new();
        let start = self.stack.len();
        while self.is_parameter_declaration() {
            let declaration = self.nested(|parser| parser.parameter_declaration(true))?;
            self.stack.push(declaration);
        }
        let has_templates = self.stack.len() > start;
        if has_templates {
            let templates = self.popped(start);
            declarator.push(self.add(Node::Arguments(templates)));
        } else {
            self.parameters.pop();
        }
        declarator.extend(self.requirement()?);
        if !self.take("v") {
            while !matches!(self.next()[0], b'E' | b'Q') {
                let parameter = self.type_()?;
                self.stack.push(parameter);
            }
        }
        let parameters = self.popped(start);
        let parameters = self.add(Node::Commas(parameters));
        let (open, close) = (self.text("("), self.text(")"));
        declarator.extend([open, parameters, close]);
        declarator.extend(self.requirement()?);
        if has_templates {
            self.parameters.pop();
        }
        self.lambda_level = outer_level;
        let title = self.pattern("'lambda%E%d'%_", &Operator::NONE)?;
        let declarator = self.sequence(&declarator);
        Some(self.sequence(&[title, declarator]))
    }

    pub(super) fn is_parameter_declaration(&self) -> bool {
        matches!(self.next(), [b'T', b'y' | b'p' | b't' | b'n' | b'k'])
    }

    /// Reads a template parameter of a lambda, which gets a name: `typename $T`, `typename ...$T`.
    pub(super) fn parameter_declaration(&mut self, is_named: bool) -> Option<Id> {
        const NUMBERS: [&str; 9] = ["", "0", "1", "2", "3", "4", "5", "6", "7"];
        let is_pack = self.take("Tp");
        let dots = self.text(if is_pack { " ..." } else { " " });
        let [_, kind] = self.next();
        let (index, name) = match kind {
            b'n' => (1, "$N"),
            b't' => (2, "$TT"),
            b'k' | b'y' => (0, "$T"),
            _ => return None,
        };
        self.expect("T")?;
        self.at += 1;
        let number = NUMBERS.get(self.lambda_names[index])?;
        let name = [name, number].map(|text| self.text(text));
        let name = self.sequence(&name);
        self.lambda_names[index] += 1;
        if is_named {
            self.parameters.last_mut()?.as_mut()?.push(name);
        }
        let title = match kind {
            b'y' => self.text("typename"),
            b'k' => self.name(&mut Traits::default())?,
            b'n' => self.type_()?,
            _ => {
                self.parameters.push(Some(Vec::new()));
                let parameters = self.until("E", |parser| {
                    parser.nested(|parser| parser.parameter_declaration(true))
                })?;
                self.parameters.pop();
                let (word, class) = (self.text("template<"), self.text("> typename"));
                self.sequence(&[word, parameters, class])
            }
        };
        Some(self.sequence(&[title, dots, name]))
    }
}
