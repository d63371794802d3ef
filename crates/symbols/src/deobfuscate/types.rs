//! Types as Java, the class file and tools write them: `a.b[]`, `[La/b;`, `a/b`,
//! `java.lang.Class<a.b>`. Owns taking them apart and turning one into another; what a class is
//! called is asked of the caller.

/// What a type is of, and how many arrays deep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Type<'t> {
    /// Class or primitive.
    base: Base<'t>,
    depth: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Base<'t> {
    /// `int`, `void` and the like.
    Primitive(&'static str, char),
    /// With dots or slashes.
    Class(&'t str),
    /// `java.lang.Class<…>`: the statics of a class, as heap graphs have them.
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
    /// Reads a type in any of its forms.
    pub(super) fn parse(text: &'t str) -> Type<'t> {
        let text = text.trim();
        let inner = text.trim_start_matches('[');
        let depth = text.len() - inner.len();
        if depth > 0 {
            // Only descriptors begin with brackets; ART writes their classes with dots.
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

    /// As the source writes it, with its class as `rename` has it: asked with dots, and answered
    /// with the same where nothing is known.
    pub(super) fn written(self, rename: impl Fn(&str) -> String) -> String {
        let mut text = match self.base {
            Base::Primitive(name, _) => name.to_owned(),
            Base::Class(class) => rename(&class.replace('/', ".")),
            // The class within may be an array's.
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

    /// As the class file writes it, appended; its class as `rename` has it.
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

    /// Whether it is an object (an array too) or a primitive: all that HPROF knows of a field.
    pub(super) fn is_object(self) -> bool {
        self.depth > 0 || !matches!(self.base, Base::Primitive(..))
    }
}

/// The descriptor of a type, its class as `rename` has it.
pub(super) fn descriptor(text: &str, rename: impl Fn(&str) -> String) -> String {
    let mut out = String::new();
    Type::parse(text).put_descriptor(&rename, &mut out);
    out
}

/// `(…)` of a method's parameters, given between commas; classes as `rename` has them.
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
