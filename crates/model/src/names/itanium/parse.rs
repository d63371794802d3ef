//! Reads names and types of the Itanium ABI into nodes.

use super::tables::{Patterns, SPECIAL_NAMES, STANDARD, TYPES};
use super::tree::{Function, Id, List, MAX_DEPTH, Node, Tree};

/// Reads a whole name; `None` if it is not a mangled name or nests too deep.
pub(super) fn parse(name: &str) -> Option<(Tree<'_>, Id)> {
    let mut parser = Parser {
        name,
        at: name.find('Z')? + 1,
        takes_arguments: true,
        ..Parser::default()
    };
    let mut root = parser.encoding()?;
    // Suffixes that compilers append to clones are not part of the name: `.cold`, `.llvm.1234`.
    let suffix = &name[parser.at..];
    if suffix.starts_with('.') {
        let texts = [" (", suffix, ")"].map(|text| parser.text(text));
        root = parser.sequence(&[root, texts[0], texts[1], texts[2]]);
    } else if !suffix.is_empty() {
        return None;
    }
    Some((parser.tree, root))
}

#[derive(Default)]
pub(super) struct Parser<'a> {
    pub(super) name: &'a str,
    pub(super) at: usize,
    pub(super) tree: Tree<'a>,
    /// Nodes that will be a list.
    pub(super) stack: Vec<Id>,
    pub(super) substitutions: Vec<Id>,
    /// Template arguments of the function, to which parameters refer.
    pub(super) arguments: Option<Vec<Id>>,
    /// Whether arguments behind a type belong to it, not to the conversion operator.
    pub(super) takes_arguments: bool,
    /// Level of the parameters that are the `auto` of the lambda being read.
    pub(super) lambda_level: Option<usize>,
    pub(super) depth: usize,
}

/// What a function's name says about its type.
#[derive(Default)]
pub(super) struct Traits {
    /// Whether this is the name of a function, not of a type.
    pub(super) is_function: bool,
    /// Constructors and conversion operators have no result type.
    pub(super) is_structor: bool,
    pub(super) has_arguments: bool,
    pub(super) qualifiers: &'static str,
    pub(super) reference: &'static str,
}

impl<'a> Parser<'a> {
    // Letters of the name.

    pub(super) fn rest(&self) -> &'a [u8] {
        &self.name.as_bytes()[self.at..]
    }

    /// Returns the next two letters; 0 behind the end.
    pub(super) fn next(&self) -> [u8; 2] {
        let rest = self.rest();
        [0, 1].map(|at| rest.get(at).copied().unwrap_or(0))
    }

    pub(super) fn is_digit(&self) -> bool {
        self.next()[0].is_ascii_digit()
    }

    pub(super) fn take(&mut self, text: &str) -> bool {
        let is_next = self.rest().starts_with(text.as_bytes());
        self.at += if is_next { text.len() } else { 0 };
        is_next
    }

    pub(super) fn expect(&mut self, text: &str) -> Option<()> {
        self.take(text).then_some(())
    }

    /// Takes digits, after the `n` of a negative number.
    pub(super) fn number(&mut self) -> &'a str {
        let start = self.at;
        self.take("n");
        while self.is_digit() {
            self.at += 1;
        }
        &self.name[start..self.at]
    }

    /// Takes `_` as 0, `0_` as 1 and so on, with digits of a radix.
    pub(super) fn index(&mut self, radix: u32) -> Option<usize> {
        let digits = self.rest().split(|&letter| letter == b'_').next()?;
        let digits = &self.name[self.at..self.at + digits.len()];
        self.at += digits.len();
        self.expect("_")?;
        match digits {
            "" => Some(0),
            _ => usize::from_str_radix(digits, radix).ok()?.checked_add(1),
        }
    }

    /// Takes a length and as many letters.
    pub(super) fn identifier(&mut self) -> Option<Id> {
        let length: usize = self.number().parse().ok()?;
        let text = self.name.get(self.at..self.at.checked_add(length)?)?;
        self.at += length;
        let is_anonymous = text.starts_with("_GLOBAL__N");
        (length > 0).then(|| {
            self.text(if is_anonymous {
                "(anonymous namespace)"
            } else {
                text
            })
        })
    }

    // Nodes.

    pub(super) fn add(&mut self, node: Node<'a>) -> Id {
        self.tree.nodes.push(node);
        self.tree.nodes.len() as Id - 1
    }

    pub(super) fn text(&mut self, text: &'a str) -> Id {
        self.add(Node::Text(text))
    }

    pub(super) fn sequence(&mut self, parts: &[Id]) -> Id {
        let start = self.stack.len();
        self.stack.extend_from_slice(parts);
        let parts = self.popped(start);
        self.add(Node::Sequence(parts))
    }

    pub(super) fn popped(&mut self, start: usize) -> List {
        let first = self.tree.lists.len() as u32;
        self.tree.lists.extend(self.stack.drain(start..));
        List(first, self.tree.lists.len() as u32)
    }

    /// Reads nodes until the letter that ends them, as `a, b`.
    pub(super) fn until(
        &mut self,
        end: &str,
        read: impl Fn(&mut Self) -> Option<Id>,
    ) -> Option<Id> {
        let start = self.stack.len();
        while !self.take(end) {
            let node = read(self)?;
            self.stack.push(node);
        }
        let list = self.popped(start);
        Some(self.add(Node::Commas(list)))
    }

    /// Reads something that can contain its own kind.
    pub(super) fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return None;
        }
        let read = read(self);
        self.depth -= 1;
        read
    }

    /// Reads what the first pattern describes whose code is next.
    pub(super) fn any_of(&mut self, patterns: Patterns) -> Option<Option<Id>> {
        let found = patterns.iter().find(|(code, _)| self.take(code));
        found.map(|(_, pattern)| {
            let parts = self.parts(pattern, "")?;
            Some(self.add(Node::Sequence(parts)))
        })
    }

    /// Reads what a pattern describes: its text, in which `%` and a letter stand for a part of the
    /// name (`part`), for the symbol of an operator (`%o`), or for a letter that must follow: `%E`
    /// and `%_`.
    pub(super) fn parts(&mut self, pattern: &'static str, symbol: &'static str) -> Option<List> {
        let start = self.stack.len();
        let mut pieces = pattern.split('%');
        let mut text = pieces.next()?;
        loop {
            if !text.is_empty() {
                let text = self.text(text);
                self.stack.push(text);
            }
            let Some(piece) = pieces.next() else { break };
            text = &piece[1..];
            match piece.as_bytes()[0] {
                b'E' => self.expect("E")?,
                b'_' => self.expect("_")?,
                // A number that is not written.
                b'#' => _ = self.index_text()?,
                b'p' => {
                    self.number();
                    self.expect("p")?;
                }
                b'q' => _ = self.qualifiers(),
                // Older compilers append no number.
                b'R' if self.rest().is_empty() => {}
                b'R' => _ = self.index(36)?,
                kind => {
                    let part = match kind {
                        b'o' => self.text(symbol),
                        _ => self.part(kind)?,
                    };
                    self.stack.push(part);
                }
            }
        }
        Some(self.popped(start))
    }

    /// Takes a number and `_`.
    pub(super) fn index_text(&mut self) -> Option<&'a str> {
        let number = self.number();
        self.expect("_")?;
        Some(number)
    }

    fn part(&mut self, kind: u8) -> Option<Id> {
        let part = match kind {
            b't' => self.type_(),
            b'z' => self.type_without_arguments(),
            b'n' => self.name(&mut Traits::default()),
            b'f' => self.encoding(),
            b'e' => self.expression(),
            b'c' => self.converted(),
            b'L' => self.until("E", Self::expression),
            b'A' => self.until("E", Self::template_argument),
            b'i' | b'u' => self.identifier(),
            b'd' => {
                let number = self.number();
                Some(self.text(number))
            }
            b'0' => {
                let part = self.expression()?;
                Some(self.add(Node::Operand(part)))
            }
            b'P' | b'X' | b'Y' => {
                // `sizeof...(T)` has the parameter behind its code, whose `T` was taken.
                self.at -= usize::from(kind == b'Y');
                let part = match kind {
                    b'P' => self.type_(),
                    b'X' => self.expression(),
                    _ => self.template_parameter(),
                };
                Some(self.add(Node::Expansion(part?)))
            }
            b'C' => {
                let whole = self.type_()?;
                self.index_text()?;
                let part = self.type_()?;
                let between = self.text("-in-");
                Some(self.sequence(&[part, between, whole]))
            }
            b'v' => {
                let length = self.length()?;
                let element = self.type_()?;
                let (open, close) = (self.text(" vector["), self.text("]"));
                Some(self.sequence(&[element, open, length, close]))
            }
            _ => None,
        }?;
        // Built-in types can have arguments.
        if kind == b'u' && self.take("I") {
            let arguments = self.until("E", Self::template_argument)?;
            let (open, close) = (self.text("("), self.text(")"));
            return Some(self.sequence(&[part, open, arguments, close]));
        }
        Some(part)
    }

    // Functions and names.

    /// Reads a function with its type, a variable or a special name.
    pub(super) fn encoding(&mut self) -> Option<Id> {
        let outer = self.arguments.take();
        let encoding = self.nested(|parser| match parser.next()[0] {
            b'G' | b'T' => parser.any_of(SPECIAL_NAMES)?,
            _ => parser.function(),
        })?;
        self.arguments = outer;
        Some(encoding)
    }

    pub(super) fn function(&mut self) -> Option<Id> {
        let mut traits = Traits {
            is_function: true,
            ..Traits::default()
        };
        let name = self.name(&mut traits)?;
        let is_end = |parser: &Self| matches!(parser.next()[0], 0 | b'E' | b'.' | b'_');
        if is_end(self) {
            return Some(name);
        }
        let result = match traits.has_arguments && !traits.is_structor {
            true => Some(self.type_()?),
            false => None,
        };
        let start = self.stack.len();
        if !self.take("v") {
            loop {
                let parameter = self.type_()?;
                self.stack.push(parameter);
                if is_end(self) {
                    break;
                }
            }
        }
        let parameters = self.popped(start);
        let suffix = [traits.qualifiers, traits.reference, ""];
        Some(self.add_function(result, Some(name), parameters, suffix))
    }

    pub(super) fn add_function(
        &mut self,
        result: Option<Id>,
        name: Option<Id>,
        parameters: List,
        suffix: [&'static str; 3],
    ) -> Id {
        let parameters = self.add(Node::Commas(parameters));
        self.add(Node::Function(Function {
            result,
            name,
            parameters,
            suffix,
        }))
    }

    pub(super) fn name(&mut self, traits: &mut Traits) -> Option<Id> {
        if self.take("N") {
            return self.nested(|parser| parser.nested_name(traits));
        }
        if self.take("Z") {
            return self.nested(|parser| parser.local_name(traits));
        }
        let [first, second] = self.next();
        let is_substitution = first == b'S' && second != b't';
        let name = match is_substitution {
            true => self.substitution()?,
            false => {
                let scope = self.take("St").then(|| self.text("std"));
                self.unqualified_name(traits, scope)?
            }
        };
        if self.next()[0] != b'I' {
            return (!is_substitution).then_some(name);
        }
        if !is_substitution {
            self.substitutions.push(name);
        }
        self.template(name, traits)
    }

    /// Reads the arguments of a template.
    pub(super) fn template(&mut self, name: Id, traits: &mut Traits) -> Option<Id> {
        let arguments = self.template_arguments(traits.is_function)?;
        traits.has_arguments = true;
        Some(self.add(Node::Template(name, arguments)))
    }

    pub(super) fn unqualified_name(
        &mut self,
        traits: &mut Traits,
        scope: Option<Id>,
    ) -> Option<Id> {
        self.take("L");
        let mut name = match (self.next(), scope) {
            ([b'1'..=b'9', _], _) => self.identifier()?,
            ([b'U', b'l'], _) => {
                self.at += 2;
                self.nested(Self::lambda)?
            }
            ([b'U', b't'], _) => {
                self.at += 2;
                let texts = ["'unnamed", self.index_text()?, "'"].map(|text| self.text(text));
                self.sequence(&texts)
            }
            ([b'C' | b'D', _], Some(scope)) => self.structor(scope, traits)?,
            _ => self.operator_name(traits)?,
        };
        name = self.tagged(name)?;
        Some(self.scoped(scope, name))
    }

    pub(super) fn tagged(&mut self, mut name: Id) -> Option<Id> {
        while self.take("B") {
            let tag = self.identifier()?;
            name = self.add(Node::Tagged(name, tag));
        }
        Some(name)
    }

    pub(super) fn structor(&mut self, class: Id, traits: &mut Traits) -> Option<Id> {
        let (tilde, variants) = match self.take("C") {
            true => ("", b"12345"),
            false => ("~", b"01245"),
        };
        self.at += usize::from(!tilde.is_empty());
        if !variants.contains(&self.next()[0]) {
            return None;
        }
        self.at += 1;
        traits.is_structor = true;
        Some(self.add(Node::Structor(tilde, class)))
    }

    pub(super) fn nested_name(&mut self, traits: &mut Traits) -> Option<Id> {
        traits.qualifiers = self.qualifiers();
        traits.reference = match self.take("O") {
            true => " &&",
            false if self.take("R") => " &",
            false => "",
        };
        let mut name = None;
        while !self.take("E") {
            traits.has_arguments = false;
            let part = match (self.next(), name) {
                ([b'T', _], None) => self.template_parameter()?,
                ([b'I', _], Some(scope)) => match self.tree.node(scope) {
                    Node::Template(..) => return None,
                    _ => self.template(scope, traits)?,
                },
                ([b'D', b't' | b'T'], None) => self.any_of(TYPES)??,
                ([b'S', _], None) => {
                    name = Some(match self.take("St") {
                        true => self.text("std"),
                        false => self.substitution()?,
                    });
                    // Constructors of an abbreviated class are called as the class is.
                    if let (Node::Standard(class, _), [b'C' | b'D', _]) =
                        (self.tree.node(name?), self.next())
                    {
                        name = Some(self.add(Node::Standard(class, true)));
                    }
                    continue;
                }
                (_, scope) => self.unqualified_name(traits, scope)?,
            };
            name = Some(part);
            self.substitutions.push(part);
            // Older compilers mark the members that lambdas initialize.
            self.take("M");
        }
        self.substitutions.pop()?;
        name
    }

    pub(super) fn local_name(&mut self, traits: &mut Traits) -> Option<Id> {
        let function = self.encoding()?;
        self.expect("E")?;
        let name = if self.take("s") {
            self.discriminator();
            self.text("string literal")
        } else {
            let outer = self.arguments.take();
            let is_default_argument = self.take("d");
            if is_default_argument {
                self.index_text()?;
            }
            let name = self.name(traits)?;
            if !is_default_argument {
                self.discriminator();
            }
            self.arguments = outer;
            name
        };
        Some(self.add(Node::Scoped(function, name)))
    }

    /// Takes `_1`, `__12_`, or digits at the end: which of several equal local names this is.
    pub(super) fn discriminator(&mut self) {
        let start = self.at;
        let is_whole = if self.take("__") {
            self.index_text().is_some()
        } else if self.take("_") {
            self.at += 1;
            self.name
                .as_bytes()
                .get(start + 1)
                .is_some_and(u8::is_ascii_digit)
        } else {
            self.number();
            self.rest().is_empty()
        };
        if !is_whole {
            self.at = start;
        }
    }

    /// Reads the name of an operator: `operator+`.
    pub(super) fn operator_name(&mut self, traits: &mut Traits) -> Option<Id> {
        if self.take("cv") {
            let class = self.type_without_arguments()?;
            traits.is_structor = true;
            let operator = self.text("operator ");
            return Some(self.sequence(&[operator, class]));
        }
        if self.take("li") {
            let operator = self.text("operator\"\" ");
            let suffix = self.identifier()?;
            return Some(self.sequence(&[operator, suffix]));
        }
        let operator = self.operator()?;
        let texts = operator.name()?.map(|text| self.text(text));
        Some(self.sequence(&texts))
    }

    // Template arguments.

    /// Reads arguments. Those of the function itself (`are_own`) are what parameters refer to.
    pub(super) fn template_arguments(&mut self, are_own: bool) -> Option<Id> {
        self.expect("I")?;
        if are_own {
            self.arguments = Some(Vec::new());
        }
        let start = self.stack.len();
        while !self.take("E") {
            let argument = self.template_argument()?;
            self.stack.push(argument);
            if are_own {
                // An argument list as a parameter is one argument at a time.
                let meant = match self.tree.node(argument) {
                    Node::Commas(pack) => self.add(Node::Pack(pack)),
                    _ => argument,
                };
                self.arguments.as_mut()?.push(meant);
            }
        }
        let arguments = self.popped(start);
        Some(self.add(Node::Arguments(arguments)))
    }

    pub(super) fn template_argument(&mut self) -> Option<Id> {
        self.nested(|parser| match parser.next() {
            [b'X', _] => {
                parser.at += 1;
                let expression = parser.expression()?;
                parser.expect("E")?;
                Some(expression)
            }
            [b'J', _] => {
                parser.at += 1;
                parser.until("E", Self::template_argument)
            }
            [b'L', _] => parser.literal(),
            // How the parameter is declared is not written.
            [b'T', kind @ (b'y' | b'n' | b'k')] => {
                parser.at += 2;
                match kind {
                    b'n' => _ = parser.type_()?,
                    b'k' => _ = parser.name(&mut Traits::default())?,
                    _ => {}
                }
                parser.template_argument()
            }
            _ => parser.type_(),
        })
    }

    pub(super) fn template_parameter(&mut self) -> Option<Id> {
        self.expect("T")?;
        let level = match self.take("L") {
            true => self.index(10)?.checked_add(1)?,
            false => 0,
        };
        let index = self.index(10)?;
        let known = self.arguments.as_ref().filter(|_| level == 0);
        if let Some(argument) = known.and_then(|known| known.get(index)) {
            return Some(*argument);
        }
        (self.lambda_level == Some(level)).then(|| self.text("auto"))
    }

    /// Reads a reference to an earlier part, or an abbreviated class of the standard library.
    pub(super) fn substitution(&mut self) -> Option<Id> {
        self.expect("S")?;
        let [code, _] = self.next();
        if !code.is_ascii_lowercase() {
            let index = self.index(36)?;
            return self.substitutions.get(index).copied();
        }
        self.at += 1;
        let class = STANDARD.iter().position(|class| class.0 == code)?;
        let class = self.add(Node::Standard(class, false));
        let tagged = self.tagged(class)?;
        if tagged != class {
            self.substitutions.push(tagged);
        }
        Some(tagged)
    }
}
