//! Reads the expressions in names: of template arguments, `decltype` and `requires`.

use super::parse::{Parser, Traits};
use super::tables::{
    CAST, DESIGNATORS, EXPRESSIONS, NAME_ONLY, OPERATORS, Operator, POSTFIXED, PREFIX,
    REQUIREMENTS, TYPES, VALUES,
};
use super::{Id, Node};

impl<'a> Parser<'a> {
    /// Takes the code of an operator.
    pub(super) fn operator(&mut self) -> Option<Operator> {
        let code = self.next();
        let found = OPERATORS.binary_search_by_key(&code, |operator| operator.code);
        self.at += 2;
        match found {
            Ok(found) => Some(OPERATORS[found]),
            Err(_) => {
                self.at -= 2;
                None
            }
        }
    }

    pub(super) fn expression(&mut self) -> Option<Id> {
        self.nested(Self::any_expression)
    }

    fn any_expression(&mut self) -> Option<Id> {
        let is_global = self.take("gs");
        let expression = match self.operator() {
            Some(operator) => self.operation(operator)?,
            None => match self.next() {
                [b'L', _] => return self.literal(),
                [b'T', _] => return self.template_parameter(),
                [b'f', b'l' | b'r' | b'R'] => self.fold()?,
                [b'f', b'L'] if !self.rest()[2..].first()?.is_ascii_digit() => self.fold()?,
                [b'c', b'v'] => self.conversion()?,
                _ => match self.any_of(EXPRESSIONS) {
                    Some(expression) => expression?,
                    None => self.unresolved_name()?,
                },
            },
        };
        if !is_global {
            return Some(expression);
        }
        let colons = self.text("::");
        Some(self.sequence(&[colons, expression]))
    }

    /// Reads the parts of patterns that only expressions have.
    pub(super) fn expression_part(&mut self, kind: u8, operator: &Operator) -> Option<Id> {
        let precedence = match kind {
            b'0' => operator.precedence,
            b'1' => operator.precedence + 1,
            b'2' => operator.precedence + 2,
            b'm' => operator.precedence - 2,
            b'e' => return self.expression(),
            b'o' => return Some(self.text(operator.symbol)),
            b'L' => return self.until("E", Self::expression),
            b'T' => return self.until("E", Self::type_),
            b'U' => return self.until("_", Self::type_),
            b'V' => return self.until("E", Self::initial_value),
            b'r' => return self.requirements(),
            b'N' => return self.new_object(),
            b'X' => {
                let part = self.expression()?;
                return Some(self.add(Node::Expansion(part)));
            }
            b'Y' => {
                self.at -= 1;
                let pack = self.template_parameter()?;
                return Some(self.add(Node::Expansion(pack)));
            }
            // A value follows its designators.
            b'=' => {
                let is_designator = matches!(self.next(), [b'd', b'i' | b'x' | b'X']);
                let equals = self.text(if is_designator { "" } else { " = " });
                let value = self.nested(Self::initial_value)?;
                return Some(self.sequence(&[equals, value]));
            }
            _ => return None,
        };
        let part = self.expression()?;
        Some(self.add(Node::Operand(part, precedence)))
    }

    fn operation(&mut self, operator: Operator) -> Option<Id> {
        let is_prefix = operator.pattern == POSTFIXED && self.take("_");
        let pattern = if is_prefix { PREFIX } else { operator.pattern };
        if pattern == NAME_ONLY {
            return None;
        }
        let whole = self.pattern(pattern, &operator)?;
        Some(match operator.symbol {
            ">" | ">>" => self.add(Node::Greater(whole)),
            _ => whole,
        })
    }

    /// Reads what follows `new`: places, a type, initial values.
    fn new_object(&mut self) -> Option<Id> {
        let places = match self.take("_") {
            true => self.text(" "),
            false => {
                let places = self.until("_", Self::expression)?;
                let (open, close) = (self.text("("), self.text(") "));
                self.sequence(&[open, places, close])
            }
        };
        let class = self.type_()?;
        let initial = match self.take("pi") {
            true => self.pattern("(%L)", &Operator::NONE)?,
            false => self.pattern("%E", &Operator::NONE)?,
        };
        Some(self.sequence(&[places, class, initial]))
    }

    fn conversion(&mut self) -> Option<Id> {
        self.expect("cv")?;
        let outer = std::mem::replace(&mut self.takes_arguments, false);
        let class = self.type_()?;
        self.takes_arguments = outer;
        let parts = match self.take("_") {
            true => self.pattern(")(%L)", &Operator::NONE)?,
            false => self.pattern(")(%e)", &Operator::NONE)?,
        };
        let open = self.text("(");
        Some(self.sequence_with(CAST, &[open, class, parts]))
    }

    /// Reads an initial value: `a` or `.b = c`.
    fn initial_value(&mut self) -> Option<Id> {
        match self.any_of(DESIGNATORS) {
            Some(value) => value,
            None => self.expression(),
        }
    }

    fn requirements(&mut self) -> Option<Id> {
        let mut requirements = Vec::new();
        while !self.take("E") {
            requirements.push(self.any_of(REQUIREMENTS)??);
        }
        Some(self.sequence(&requirements))
    }

    /// Reads `(pack op ...)` and the like.
    fn fold(&mut self) -> Option<Id> {
        let [_, kind] = self.next();
        self.at += 2;
        let operator = self.operator()?;
        let is_left = matches!(kind, b'l' | b'L');
        let mut parts = vec![self.expression()?];
        if matches!(kind, b'L' | b'R') {
            parts.push(self.expression()?);
        }
        // The pack is the last part of a left fold, and the first of a right one.
        let pack = if is_left { parts.len() - 1 } else { 0 };
        for (at, part) in parts.iter_mut().enumerate() {
            *part = match at == pack {
                true => {
                    let pack = self.add(Node::Expansion(*part));
                    let (open, close) = (self.text("("), self.text(")"));
                    self.sequence(&[open, pack, close])
                }
                false => self.add(Node::Operand(*part, CAST + 1)),
            };
        }
        let dots = self.text("...");
        parts.insert(if is_left { pack } else { 1 }, dots);
        let symbol = [" ", operator.symbol, " "].map(|text| self.text(text));
        let symbol = self.sequence(&symbol);
        let mut written = vec![self.text("(")];
        for (at, part) in parts.into_iter().enumerate() {
            written.extend((at > 0).then_some(symbol));
            written.push(part);
        }
        written.push(self.text(")"));
        Some(self.sequence(&written))
    }

    /// Reads a name whose meaning depends on template parameters.
    fn unresolved_name(&mut self) -> Option<Id> {
        let mut name = None;
        let has_scopes = self.take("srN");
        if has_scopes || self.take("sr") {
            let is_type = has_scopes || !self.is_digit();
            if is_type {
                name = Some(self.unresolved_type()?);
            }
            while (has_scopes || !is_type) && !self.take("E") {
                let next = self.simple_name()?;
                name = Some(self.scoped(name, next));
            }
        }
        let last = match self.is_digit() {
            true => self.simple_name()?,
            false if self.take("dn") => {
                let tilde = self.text("~");
                let class = match self.is_digit() {
                    true => self.simple_name()?,
                    false => self.unresolved_type()?,
                };
                self.sequence(&[tilde, class])
            }
            false => {
                self.take("on");
                let name = self.operator_name(&mut Traits::default())?;
                self.with_arguments(name)?
            }
        };
        Some(self.scoped(name, last))
    }

    fn scoped(&mut self, scope: Option<Id>, name: Id) -> Id {
        match scope {
            Some(scope) => self.add(Node::Scoped(scope, name)),
            None => name,
        }
    }

    fn unresolved_type(&mut self) -> Option<Id> {
        let class = match self.next()[0] {
            b'S' => self.substitution()?,
            letter => {
                let class = match letter {
                    b'T' => self.template_parameter()?,
                    _ => self.any_of(TYPES)??,
                };
                self.substitutions.push(class);
                class
            }
        };
        self.with_arguments(class)
    }

    pub(super) fn with_arguments(&mut self, name: Id) -> Option<Id> {
        match self.next()[0] {
            b'I' => self.template(name, &mut Traits::default()),
            _ => Some(name),
        }
    }

    fn simple_name(&mut self) -> Option<Id> {
        let name = self.identifier()?;
        self.with_arguments(name)
    }

    /// Reads `L`, a type and a value.
    pub(super) fn literal(&mut self) -> Option<Id> {
        self.expect("L")?;
        if let Some(value) = self.any_of(VALUES) {
            return value;
        }
        match self.next()[0] {
            b'A' => return self.pattern("\"<%t>\"%E", &Operator::NONE),
            // The value of a lambda: its parameters are the last part of its type.
            b'U' => {
                let lambda = self.unnamed_type()?;
                self.expect("E")?;
                let Node::Sequence(_, parts) = self.tree.node(lambda) else {
                    return None;
                };
                let declarator = *self.tree.list(parts).last()?;
                let (open, body) = (self.text("[]"), self.text("{...}"));
                return Some(self.sequence(&[open, declarator, body]));
            }
            _ => {}
        }
        let suffix = match self.next()[0] {
            b'i' => Some(""),
            b'j' => Some("u"),
            b'l' => Some("l"),
            b'm' => Some("ul"),
            b'x' => Some("ll"),
            b'y' => Some("ull"),
            _ => None,
        };
        let class = self.type_()?;
        let number = self.number();
        self.expect("E")?;
        let digits = number.trim_start_matches('n');
        if digits.is_empty() {
            return None;
        }
        let sign = if digits.len() < number.len() { "-" } else { "" };
        let [open, close, sign, digits] = ["(", ")", sign, digits].map(|text| self.text(text));
        Some(match suffix {
            Some(suffix) => {
                let suffix = self.text(suffix);
                self.sequence(&[sign, digits, suffix])
            }
            None => self.sequence(&[open, class, close, sign, digits]),
        })
    }
}
