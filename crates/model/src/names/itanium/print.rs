//! Writes the nodes of a name: what precedes a declared name, then what follows it.

use super::tables::STANDARD;
use super::tree::{Function, Id, List, MAX_DEPTH, Node, Tree};

/// Maximum number of nodes that are visited: packs can multiply them without a letter of output.
const MAX_STEPS: usize = 1 << 17;

/// Writes a name; `None` if it exceeds a limit.
pub(super) fn print(tree: &Tree<'_>, root: Id, max_bytes: usize) -> Option<String> {
    let mut printer = Printer {
        tree,
        text: String::with_capacity(64),
        max_bytes,
        steps: 0,
        depth: 0,
        pack: None,
    };
    printer.print(root)?;
    Some(printer.text)
}

struct Printer<'t> {
    tree: &'t Tree<'t>,
    text: String,
    max_bytes: usize,
    steps: usize,
    depth: usize,
    /// The argument of packs that is written, and the number of arguments.
    pack: Option<(usize, usize)>,
}

/// What follows the name of something declared with a type.
#[derive(PartialEq)]
enum Shape {
    Nothing,
    /// The rest of an array or function behind a pointer.
    Rest,
    Array,
    Function,
}

impl<'t> Printer<'t> {
    fn print(&mut self, id: Id) -> Option<()> {
        self.side(id, Self::left)?;
        self.side(id, Self::right)
    }

    fn side(&mut self, id: Id, write: fn(&mut Self, Id) -> Option<()>) -> Option<()> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return None;
        }
        self.step()?;
        write(self, id)?;
        self.depth -= 1;
        Some(())
    }

    fn step(&mut self) -> Option<()> {
        self.steps += 1;
        (self.steps <= MAX_STEPS).then_some(())
    }

    fn push(&mut self, text: &str) -> Option<()> {
        self.text.push_str(text);
        (self.text.len() <= self.max_bytes).then_some(())
    }

    fn left(&mut self, id: Id) -> Option<()> {
        match self.tree.node(id) {
            Node::Text(text) => self.push(text),
            Node::Sequence(parts) | Node::Operation(parts) => {
                let mut parts = self.tree.list(parts).iter();
                parts.try_for_each(|&part| self.print(part))
            }
            Node::Operand(part) => match self.tree.node(part) {
                Node::Operation(_) => {
                    self.push("(")?;
                    self.print(part)?;
                    self.push(")")
                }
                _ => self.print(part),
            },
            Node::Commas(parts) => self.commas(parts),
            Node::Arguments(arguments) => {
                self.push("<")?;
                self.commas(arguments)?;
                self.push(">")
            }
            Node::Scoped(scope, name) => {
                self.print(scope)?;
                self.push("::")?;
                self.print(name)
            }
            Node::Template(name, arguments) => {
                self.print(name)?;
                self.print(arguments)
            }
            Node::Tagged(name, tag) => {
                self.print(name)?;
                self.push("[abi:")?;
                self.print(tag)?;
                self.push("]")
            }
            Node::Standard(class, false) => self.push(STANDARD[class].1),
            Node::Standard(class, true) => {
                self.push("std::")?;
                self.push(STANDARD[class].2)?;
                self.push(STANDARD[class].3)
            }
            Node::Structor(tilde, class) => {
                self.push(tilde)?;
                self.push(self.base_name(class))
            }
            Node::Function(Function { result, name, .. }) => {
                if let Some(result) = result {
                    self.side(result, Self::left)?;
                    if name.is_none() || self.shape(result)? == Shape::Nothing {
                        self.push(" ")?;
                    }
                }
                name.map_or(Some(()), |name| self.print(name))
            }
            Node::Pointer(pointee) => self.left_of_pointer(pointee, "*"),
            Node::Reference(..) => {
                let (pointee, symbol) = self.collapsed(id)?;
                self.left_of_pointer(pointee, symbol)
            }
            Node::Member(class, member) => {
                self.side(member, Self::left)?;
                let is_plain = matches!(self.shape(member)?, Shape::Nothing | Shape::Rest);
                self.text.push(if is_plain { ' ' } else { '(' });
                self.print(class)?;
                self.push("::*")
            }
            Node::Array(part, _) => self.side(part, Self::left),
            Node::Qualified(part, qualifiers) => {
                self.side(part, Self::left)?;
                self.push(qualifiers)
            }
            Node::Expansion(part) => self.expand(part),
            Node::Pack(_) => match self.argument(id) {
                Some(argument) => self.side(argument, Self::left),
                None => Some(()),
            },
        }
    }

    fn right(&mut self, id: Id) -> Option<()> {
        match self.tree.node(id) {
            Node::Function(function) => {
                self.push("(")?;
                self.print(function.parameters)?;
                self.push(")")?;
                if let Some(result) = function.result {
                    self.side(result, Self::right)?;
                }
                let mut suffix = function.suffix.iter();
                suffix.try_for_each(|text| self.push(text))
            }
            Node::Pointer(pointee) | Node::Member(_, pointee) => self.right_of_pointer(pointee),
            Node::Reference(..) => {
                let (pointee, _) = self.collapsed(id)?;
                self.right_of_pointer(pointee)
            }
            Node::Array(element, length) => {
                self.push(if self.text.ends_with(']') { "[" } else { " [" })?;
                self.print(length)?;
                self.push("]")?;
                self.side(element, Self::right)
            }
            Node::Qualified(part, _) => self.side(part, Self::right),
            Node::Pack(_) => match self.argument(id) {
                Some(argument) => self.side(argument, Self::right),
                None => Some(()),
            },
            _ => Some(()),
        }
    }

    fn left_of_pointer(&mut self, pointee: Id, symbol: &str) -> Option<()> {
        self.side(pointee, Self::left)?;
        let shape = self.shape(pointee)?;
        self.text.push_str(match shape {
            Shape::Array => " (",
            Shape::Function => "(",
            _ => "",
        });
        self.push(symbol)
    }

    fn right_of_pointer(&mut self, pointee: Id) -> Option<()> {
        if matches!(self.shape(pointee)?, Shape::Array | Shape::Function) {
            self.text.push(')');
        }
        self.side(pointee, Self::right)
    }

    /// Writes parts with commas between them. Packs without arguments have none.
    fn commas(&mut self, parts: List) -> Option<()> {
        let mut separator = "";
        for &part in self.tree.list(parts) {
            let before = self.text.len();
            self.push(separator)?;
            let start = self.text.len();
            self.print(part)?;
            match self.text.len() == start {
                true => self.text.truncate(before),
                false => separator = ", ",
            }
        }
        Some(())
    }

    /// Writes a part once for each argument of the first pack in it.
    fn expand(&mut self, part: Id) -> Option<()> {
        let outer = self.pack.take();
        let start = self.text.len();
        self.print(part)?;
        match self.pack {
            None => self.push("...")?,
            Some((_, 0)) => self.text.truncate(start),
            Some((_, count)) => {
                for index in 1..count {
                    self.push(", ")?;
                    self.pack = Some((index, count));
                    self.print(part)?;
                }
            }
        }
        self.pack = outer;
        Some(())
    }

    /// Returns the argument that a parameter stands for; of a pack, the one that is written.
    fn argument(&mut self, id: Id) -> Option<Id> {
        let Node::Pack(arguments) = self.tree.node(id) else {
            return None;
        };
        let arguments = self.tree.list(arguments);
        let (index, _) = *self.pack.get_or_insert((0, arguments.len()));
        arguments.get(index).copied()
    }

    /// Follows parameters to the type that they stand for.
    fn resolved(&mut self, mut id: Id) -> Option<Id> {
        self.step()?;
        while let Some(argument) = self.argument(id) {
            self.step()?;
            id = argument;
        }
        Some(id)
    }

    /// Returns what a reference refers to through others, and its symbol: `&` if any of them is one.
    fn collapsed(&mut self, id: Id) -> Option<(Id, &'static str)> {
        let (mut pointee, mut symbol) = (id, "&&");
        while let Node::Reference(next, kind) = self.tree.node(self.resolved(pointee)?) {
            symbol = symbol.min(kind);
            pointee = next;
        }
        Some((pointee, symbol))
    }

    fn shape(&mut self, mut id: Id) -> Option<Shape> {
        let mut is_direct = true;
        loop {
            let shape = match self.tree.node(self.resolved(id)?) {
                Node::Qualified(part, _) => {
                    id = part;
                    continue;
                }
                Node::Pointer(part) | Node::Reference(part, _) | Node::Member(_, part) => {
                    (id, is_direct) = (part, false);
                    continue;
                }
                Node::Array(..) => Shape::Array,
                Node::Function(_) => Shape::Function,
                _ => return Some(Shape::Nothing),
            };
            return Some(if is_direct { shape } else { Shape::Rest });
        }
    }

    /// Returns the name of a class without its scope and arguments.
    fn base_name(&self, mut class: Id) -> &'t str {
        loop {
            class = match self.tree.node(class) {
                Node::Scoped(_, name) | Node::Template(name, _) | Node::Tagged(name, _) => name,
                Node::Text(name) => return name,
                Node::Standard(class, _) => return STANDARD[class].2,
                _ => return "",
            }
        }
    }
}
