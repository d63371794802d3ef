//! Types in the forms of Java, class files and tools: `a.b[]`, `[La/b;`, `a/b`,
//! `java.lang.Class<a.b>`. Parses and converts them; the caller renames classes.

/// Base type and number of array dimensions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Type<'t> {
    base: Base<'t>,
    depth: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Base<'t> {
    /// `int`, `void` and others.
    Primitive(&'static str, char),
    /// With dots or slashes.
    Class(&'t str),
    /// `java.lang.Class<…>`: the statics of a class in heap graphs.
    Statics(&'t str),
}

const PRIMITIVES: [(&str, char); 9] = [
    ("boolean", 'Z'),
    ("byte", 'B'),
    ("char", 'C'),
    ("double", 'D'),
    ("float", 'F'),
    ("int", 'I'),
    ("long", 'J'),
    ("short", 'S'),
    ("void", 'V'),
];

fn by_letter(text: &str) -> Option<Base<'static>> {
    let mut chars = text.chars();
    let letter = chars.next()?;
    let (name, _) = PRIMITIVES.iter().find(|(_, l)| *l == letter)?;
    chars
        .next()
        .is_none()
        .then_some(Base::Primitive(name, letter))
}

fn descriptor_class(text: &str) -> Option<&str> {
    text.strip_prefix('L')?.strip_suffix(';')
}

impl<'t> Type<'t> {
    /// Parses a type in any form.
    pub(super) fn parse(text: &'t str) -> Type<'t> {
        let text = text.trim();
        let inner = text.trim_start_matches('[');
        let depth = text.len() - inner.len();
        if depth > 0 {
            // Only descriptors begin with brackets; ART writes dots in their classes.
            let base = descriptor_class(inner).map(Base::Class);
            let base = base.or_else(|| by_letter(inner));
            return Type {
                base: base.unwrap_or(Base::Class(inner)),
                depth,
            };
        }
        let mut inner = text;
        let mut depth = 0;
        while let Some(less) = inner.strip_suffix("[]") {
            inner = less.trim_end();
            depth += 1;
        }
        let primitive = PRIMITIVES.iter().find(|(name, _)| *name == inner);
        let statics = inner.strip_prefix("java.lang.Class<");
        let base = if let Some(&(name, letter)) = primitive {
            Base::Primitive(name, letter)
        } else if let Some(class) = statics.and_then(|rest| rest.strip_suffix('>')) {
            Base::Statics(class)
        } else {
            Base::Class(descriptor_class(inner).unwrap_or(inner))
        };
        Type { base, depth }
    }

    /// Returns the type as written in the source. `rename` gets the class name with dots and
    /// returns it unchanged if it is unknown.
    pub(super) fn written(self, rename: impl Fn(&str) -> String) -> String {
        let mut text = match self.base {
            Base::Primitive(name, _) => name.to_owned(),
            Base::Class(class) => rename(&class.replace('/', ".")),
            // The inner class can be an array.
            Base::Statics(class) => {
                let inner = Type::parse(class);
                let inner = match inner.base {
                    Base::Statics(_) => class.to_owned(),
                    _ => inner.written(rename),
                };
                format!("java.lang.Class<{inner}>")
            }
        };
        for _ in 0..self.depth {
            text.push_str("[]");
        }
        text
    }

    /// Appends the type in the form of class files, with classes renamed.
    fn put_descriptor(self, rename: &impl Fn(&str) -> String, out: &mut String) {
        out.extend(std::iter::repeat_n('[', self.depth));
        match self.base {
            Base::Primitive(_, letter) => out.push(letter),
            Base::Class(class) | Base::Statics(class) => {
                out.push('L');
                out.push_str(&rename(&class.replace('/', ".")).replace('.', "/"));
                out.push(';');
            }
        }
    }

    /// Returns whether it is an object or array rather than a primitive; an HPROF has no more.
    pub(super) fn is_object(self) -> bool {
        self.depth > 0 || !matches!(self.base, Base::Primitive(..))
    }
}

/// Returns the descriptor of a type, with its class renamed.
pub(super) fn descriptor(text: &str, rename: impl Fn(&str) -> String) -> String {
    let mut out = String::new();
    Type::parse(text).put_descriptor(&rename, &mut out);
    out
}

/// Returns `(…)` for parameters separated by commas, with classes renamed.
pub(super) fn parameters_descriptor(parameters: &str, rename: impl Fn(&str) -> String) -> String {
    let mut out = "(".to_owned();
    let all = parameters.split(',').filter(|p| !p.trim().is_empty());
    for parameter in all {
        Type::parse(parameter).put_descriptor(&rename, &mut out);
    }
    out.push(')');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rename(class: &str) -> String {
        match class {
            "a" => "x.A".to_owned(),
            "a.b" => "x.A$B".to_owned(),
            other => other.to_owned(),
        }
    }

    #[test]
    fn types_are_renamed_in_every_form() {
        for (text, renamed) in [
            ("a", "x.A"),
            ("a[][]", "x.A[][]"),
            ("int[]", "int[]"),
            ("void", "void"),
            ("[I", "int[]"),
            ("[[La/b;", "x.A$B[][]"),
            ("[La.b;", "x.A$B[]"),
            ("La/b;", "x.A$B"),
            ("a/b", "x.A$B"),
            ("java.lang.Class<a.b>", "java.lang.Class<x.A$B>"),
            ("java.lang.Class<a[]>", "java.lang.Class<x.A[]>"),
            ("java.lang.Class<a>[]", "java.lang.Class<x.A>[]"),
            ("java.lang.Class", "java.lang.Class"),
            ("I", "I"),
            ("", ""),
            ("[", "[]"),
        ] {
            assert_eq!(Type::parse(text).written(rename), renamed, "{text}");
        }
    }

    #[test]
    fn nesting_is_no_recursion() {
        let nested = "java.lang.Class<".repeat(100_000) + &">".repeat(100_000);
        assert_eq!(Type::parse(&nested).written(rename), nested);
        let brackets = "[".repeat(100_000);
        assert_eq!(Type::parse(&brackets).written(rename).len(), 200_000);
    }

    #[test]
    fn descriptors_are_those_of_the_class_file() {
        assert_eq!(descriptor("a[]", rename), "[Lx/A;");
        assert_eq!(descriptor("boolean", rename), "Z");
        assert_eq!(
            parameters_descriptor("int, a.b[] ,a", rename),
            "(I[Lx/A$B;Lx/A;)"
        );
        assert_eq!(parameters_descriptor("", rename), "()");
        assert!(Type::parse("int[]").is_object());
        assert!(!Type::parse("int").is_object());
    }
}
