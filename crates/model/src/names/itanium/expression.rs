//! Reads the expressions in names: of template arguments and `decltype`.

use super::parse::{Parser, Traits};
use super::tables::{EXPRESSIONS, Operator, SUFFIXES, TYPES, VALUES};
use super::tree::{Id, Node};

impl<'a> Parser<'a> {
    pub(super) fn operator(&mut self) -> Option<Operator> {
        let operator = Operator::of_code(self.next())?;
        self.at += 2;
        Some(operator)
    }

    pub(super) fn expression(&mut self) -> Option<Id> {
        self.nested(|parser| match (parser.operator(), parser.next()) {
            (Some(operator), _) => parser.operation(operator),
            (None, [b'L', _]) => parser.literal(),
            (None, [b'T', _]) => parser.template_parameter(),
            _ => match parser.any_of(EXPRESSIONS) {
                Some(expression) => expression,
                None => parser.unresolved_name(),
            },
        })
    }

    fn operation(&mut self, operator: Operator) -> Option<Id> {
        let pattern = operator.pattern(|| self.take("_"))?;
        let parts = self.parts(pattern, operator.symbol)?;
        Some(self.add(match operator.is_binary() {
            true => Node::Operation(parts),
            false => Node::Sequence(parts),
        }))
    }

    /// Reads the value that is converted: one, or several behind a `_`.
    pub(super) fn converted(&mut self) -> Option<Id> {
        match self.take("_") {
            true => self.until("E", Self::expression),
            false => self.expression(),
        }
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
            false => {
                self.take("on");
                let name = self.operator_name(&mut Traits::default())?;
                self.with_arguments(name)?
            }
        };
        Some(self.scoped(name, last))
    }

    pub(super) fn scoped(&mut self, scope: Option<Id>, name: Id) -> Id {
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
        let letter = self.next()[0];
        let class = self.type_()?;
        let number = self.number();
        self.expect("E")?;
        let digits = number.trim_start_matches('n');
        if digits.is_empty() {
            return None;
        }
        let sign = if digits.len() < number.len() { "-" } else { "" };
        let [open, close, sign, digits] = ["(", ")", sign, digits].map(|text| self.text(text));
        let Some((_, suffix)) = SUFFIXES.iter().find(|suffix| suffix.0 == letter) else {
            return Some(self.sequence(&[open, class, close, sign, digits]));
        };
        let suffix = self.text(suffix);
        Some(self.sequence(&[sign, digits, suffix]))
    }
}
