//! Parsing of function names: parts, class, package, and shorter forms. The names are C++ and Rust
//! names after demangling, and Java names with dots. Names in an unknown form are returned
//! unchanged; nothing here fails.

use std::borrow::Cow;

use heaptap_model::stacks::Kind;

/// Returns a demangled name without return type and parameters: `void a::B<int>::c(char) const`
/// becomes `a::B<int>::c`.
pub fn qualified(name: &str) -> &str {
    let name = name.strip_prefix("non-virtual thunk to ").unwrap_or(name);
    let marks = Marks::from_name(name);
    let end = marks.parameters.unwrap_or(name.len());
    match marks.last_space {
        Some(at) if at < end => &name[at + 1..end],
        _ => &name[..end],
    }
    .trim_end()
}

/// Positions in a name, outside of brackets.
#[derive(Debug, Default)]
struct Marks {
    /// Positions of each `::` before the parameters.
    separators: Vec<usize>,
    /// Start of the parameters.
    parameters: Option<usize>,
    /// End of the return type.
    last_space: Option<usize>,
}

impl Marks {
    fn from_name(name: &str) -> Marks {
        let bytes = name.as_bytes();
        let mut marks = Marks::default();
        let mut depth = 0usize;
        let mut segment = 0;
        let mut at = 0;
        while at < bytes.len() {
            // `operator<`, `operator()`, `operator new`: the name extends to the parameters.
            if depth == 0 && at == segment && is_operator(&name[at..]) {
                let rest = &name[at + "operator".len()..];
                let call = if rest.starts_with("()") { 2 } else { 0 };
                marks.parameters = rest[call..]
                    .find('(')
                    .map(|found| at + "operator".len() + call + found);
                return marks;
            }
            match bytes[at] {
                b'<' => depth += 1,
                b'(' if depth == 0 && !is_unnamed(&name[at..]) && at > segment => {
                    marks.parameters = Some(at);
                    return marks;
                }
                b'(' | b'{' | b'[' => depth += 1,
                // An arrow is not a bracket.
                b'>' if at > 0 && bytes[at - 1] == b'-' => {}
                b'>' | b')' | b'}' | b']' => depth = depth.saturating_sub(1),
                b':' if depth == 0 && bytes.get(at + 1) == Some(&b':') => {
                    // Closures and arguments of Rust functions are part of their names.
                    let rest = &name[at + 2..];
                    if !rest.starts_with('{') && !is_turbofish(rest) {
                        marks.separators.push(at);
                        segment = at + 2;
                    }
                    at += 1;
                }
                b' ' if depth == 0 => {
                    marks.last_space = Some(at);
                    marks.separators.clear();
                    segment = at + 1;
                }
                _ => {}
            }
            at += 1;
        }
        marks
    }
}

fn is_operator(text: &str) -> bool {
    let Some(rest) = text.strip_prefix("operator") else {
        return false;
    };
    !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_')
}

/// Returns whether a text after `::` is the arguments of a Rust function: `f::<T>`.
fn is_turbofish(text: &str) -> bool {
    let scopes = ["<impl ", "<lambda", "<unnamed"];
    text.starts_with('<') && !scopes.iter().any(|scope| text.starts_with(scope))
}

/// Returns whether a parenthesized text replaces a name, like `(anonymous namespace)`.
fn is_unnamed(text: &str) -> bool {
    text.starts_with("(anonymous") || text.starts_with("('")
}

/// Returns a name without its suffix in brackets, such as ` [jit]`.
pub fn without_annotation(name: &str) -> &str {
    match name.strip_suffix(']').and_then(|rest| rest.rfind(" [")) {
        Some(at) => &name[..at],
        None => name,
    }
}

/// Returns the class of a method: `com.example.Cache` for `com.example.Cache.put [jit]`. For C++
/// and Rust this is the enclosing scope, which can be a namespace, without template arguments.
pub fn class_of(name: &str, kind: Kind) -> Option<Cow<'_, str>> {
    if kind == Kind::Class {
        return (!name.is_empty()).then_some(Cow::Borrowed(name));
    }
    let name = without_annotation(name);
    if kind == Kind::Java {
        let one = name.split(" | ").next().unwrap_or(name);
        let one = one.split('(').next().unwrap_or(one);
        let one = one.rsplit(' ').next().unwrap_or(one);
        return one
            .rsplit_once('.')
            .map(|(class, _)| Cow::Borrowed(class))
            .filter(|class| !class.is_empty());
    }
    let name = qualified(name);
    let last = *Marks::from_name(name).separators.last()?;
    let scope = &name[..last];
    let class = match scope.strip_prefix('<') {
        // A method of Rust is of its type.
        Some(inside) if scope.ends_with('>') => without_arguments(parts_of_impl(inside).0),
        _ => without_arguments(scope),
    };
    (!class.is_empty()).then_some(class)
}

/// Returns the type and the trait of `T as Trait>::f`, the rest of a Rust method after its bracket.
pub(super) fn parts_of_impl(name: &str) -> (&str, Option<&str>) {
    let bytes = name.as_bytes();
    let mut depth = 0usize;
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            b'<' | b'(' | b'[' => depth += 1,
            b'>' if at > 0 && bytes[at - 1] == b'-' => {}
            b'>' if depth == 0 => return (&name[..at], None),
            b'>' | b')' | b']' => depth = depth.saturating_sub(1),
            b' ' if depth == 0 && name[at..].starts_with(" as ") => {
                return (&name[..at], Some(&name[at + 4..]));
            }
            _ => {}
        }
    }
    (name, None)
}

/// Returns the package of a method, which is that of its class. For C++ and Rust this is the scope
/// around the class, or the class scope itself if there is no other.
pub fn package_of(name: &str, kind: Kind) -> Option<Cow<'_, str>> {
    let class = class_of(name, kind)?;
    let cut = match kind {
        Kind::Java | Kind::Class => class.rfind('.'),
        _ => Marks::from_name(&class).separators.last().copied(),
    };
    match (cut, class) {
        (None, class) => (kind != Kind::Java).then_some(class),
        (Some(0), _) => None,
        (Some(at), Cow::Borrowed(class)) => Some(Cow::Borrowed(&class[..at])),
        (Some(at), Cow::Owned(mut class)) => {
            class.truncate(at);
            Some(Cow::Owned(class))
        }
    }
}

/// Returns a name without template arguments: `std::vector<int>::push_back` becomes
/// `std::vector::push_back`.
fn without_arguments(name: &str) -> Cow<'_, str> {
    match name.contains('<') {
        true => Cow::Owned(folded(name, "")),
        false => Cow::Borrowed(name),
    }
}

/// Replaces everything between angle brackets with `mark`. A bracket at the start of a name, as in
/// `<T as Trait>::f` and `com.example.A.<init>`, is kept.
fn folded(name: &str, mark: &str) -> String {
    let mut text = String::with_capacity(name.len());
    let mut depth = 0usize;
    let mut rest = name;
    while let Some(c) = rest.chars().next() {
        let begins = text.is_empty() || text.ends_with(['<', ':', '.', ' ', '(', ',']);
        if depth == 0 && begins && is_operator(rest) {
            text.push_str(rest);
            break;
        }
        match c {
            '<' if depth > 0 || !begins || text.ends_with("::") && is_turbofish(rest) => {
                if depth == 0 {
                    text.push_str(mark);
                }
                depth += 1;
            }
            '>' if depth > 0 => depth -= 1,
            _ if depth == 0 => text.push(c),
            _ => {}
        }
        rest = &rest[c.len_utf8()..];
    }
    text
}

/// Index of the [`shortened`] form with scopes but without parameters and template arguments.
pub const WITHOUT_PARAMETERS: usize = 4;

/// Returns increasingly short forms of a name, from the whole name to the function: with `…` for
/// template arguments, then without return type and with `…` for parameters, then both, then
/// without the scopes.
pub fn shortened(name: &str) -> impl Iterator<Item = Cow<'_, str>> {
    (0..7).map(move |step| {
        if step == 0 {
            return Cow::Borrowed(name);
        }
        let plain = without_annotation(name);
        let annotation = &name[plain.len()..];
        if !plain.contains("::") && !plain.contains('(') && !plain.contains('<') {
            return Cow::Borrowed(name);
        }
        let inner = qualified(plain);
        let has_parameters = plain[..].contains('(') && !plain.ends_with(inner);
        let parameters = if has_parameters { "(…)" } else { "" };
        if step == 1 {
            return Cow::Owned(format!("{}{annotation}", folded(plain, "<…>")));
        }
        if step == 2 {
            return Cow::Owned(format!("{inner}{parameters}{annotation}"));
        }
        let inner = folded(inner, "<…>");
        let cuts = Marks::from_name(&inner).separators;
        let from = match (step, cuts.as_slice()) {
            (3 | WITHOUT_PARAMETERS, _) | (_, []) => None,
            (5, [.., class, _]) => Some(class + 2),
            (5, [_]) => None,
            (_, [.., last]) => Some(last + 2),
        };
        let parameters = if step == 3 { parameters } else { "" };
        Cow::Owned(match from {
            None => format!("{inner}{parameters}{annotation}"),
            Some(from) => format!("…{}{annotation}", &inner[from..]),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_from_types_and_parameters() {
        for (name, inner) in [
            ("malloc", "malloc"),
            ("void a::B<int>::c(char) const", "a::B<int>::c"),
            (
                "a::(anonymous namespace)::f(int)",
                "a::(anonymous namespace)::f",
            ),
            ("(anonymous namespace)::f(int)", "(anonymous namespace)::f"),
            ("operator new(unsigned long)", "operator new"),
            ("a::B::operator()(int) const", "a::B::operator()"),
            ("a::B::operator<(a::B const&)", "a::B::operator<"),
            ("bool a::operator<<int>(int)", "a::operator<<int>"),
            (
                "a::f(void (*)(int))::'lambda'(int)::operator()(int) const",
                "a::f",
            ),
            (
                "std::vector<a::B (*)(int), c<d>>::push_back(int&&)",
                "std::vector<a::B (*)(int), c<d>>::push_back",
            ),
            (
                "<alloc::vec::Vec<T> as a::B>::c",
                "<alloc::vec::Vec<T> as a::B>::c",
            ),
            (
                "std::unique_ptr<A>::operator->() const",
                "std::unique_ptr<A>::operator->",
            ),
            ("", ""),
            ("<<<", "<<<"),
            (")))(", ")))"),
        ] {
            assert_eq!(qualified(name), inner, "{name}");
        }
    }

    #[test]
    fn classes_and_packages_are_those_of_the_source() {
        let of = |name, kind| {
            let text = |part: Option<Cow<'_, str>>| part.map(Cow::into_owned).unwrap_or_default();
            (text(class_of(name, kind)), text(package_of(name, kind)))
        };
        let pair = |class: &str, package: &str| (class.to_owned(), package.to_owned());
        assert_eq!(
            of("com.example.Cache.put [jit]", Kind::Java),
            pair("com.example.Cache", "com.example")
        );
        assert_eq!(of("a.B.c | a.D.e", Kind::Java), pair("a.B", "a"));
        assert_eq!(of("a.b.C[]", Kind::Class), pair("a.b.C[]", "a.b"));
        assert_eq!(of("byte[]", Kind::Class), pair("byte[]", "byte[]"));
        assert_eq!(of("Main.main", Kind::Java), pair("Main", ""));
        assert_eq!(of("main", Kind::Plain), pair("", ""));
        assert_eq!(
            of("std::vector<a::B>::push_back(a::B const&)", Kind::Plain),
            pair("std::vector", "std")
        );
        assert_eq!(of("ns::f(int)", Kind::Plain), pair("ns", "ns"));
        for rust in [
            "alloc::vec::Vec<T,A>::push",
            "<alloc::vec::Vec<T> as core::iter::Extend<T>>::extend::{{closure}}",
            "<alloc::vec::Vec<u8>>::push",
        ] {
            assert_eq!(of(rust, Kind::Plain), pair("alloc::vec::Vec", "alloc::vec"));
        }
        assert_eq!(of("<[T]>::sort", Kind::Plain), pair("[T]", "[T]"));
        assert_eq!(
            of("a::f::{{closure}}::{{closure}}", Kind::Plain),
            pair("a", "a")
        );
        assert_eq!(
            of("a::b::C<d::E>::f()", Kind::Plain),
            pair("a::b::C", "a::b")
        );
    }

    #[test]
    fn shorter_forms_keep_the_function() {
        let name = "void a::b::C<std::map<int, long>>::insert(std::map<int, long> const&) [aot]";
        let forms: Vec<_> = shortened(name).map(Cow::into_owned).collect();
        assert_eq!(
            forms,
            [
                name,
                "void a::b::C<…>::insert(std::map<…> const&) [aot]",
                "a::b::C<std::map<int, long>>::insert(…) [aot]",
                "a::b::C<…>::insert(…) [aot]",
                "a::b::C<…>::insert [aot]",
                "…C<…>::insert [aot]",
                "…insert [aot]",
            ]
        );
        assert_eq!(forms[WITHOUT_PARAMETERS], "a::b::C<…>::insert [aot]");
        let last = |name| shortened(name).last().map(Cow::into_owned);
        let closure = last("a::build::{{closure}}::{{closure}}");
        assert_eq!(closure.unwrap(), "…build::{{closure}}::{{closure}}");
        let method = last("<a::B<T> as c::D>::f");
        assert_eq!(method.unwrap(), "…f");
        assert_eq!(last("a::f::<b::C>").unwrap(), "…f::<…>");
        assert_eq!(last("a::<impl b::C>::f").unwrap(), "…f");
        assert!(shortened("com.example.A.b").all(|form| form == "com.example.A.b"));
        assert!(shortened("com.example.A.<init>").all(|form| form == "com.example.A.<init>"));
        for odd in ["", "::", "<", "a::<", "operator", "()(", "a::operator()"] {
            assert_eq!(shortened(odd).count(), 7, "{odd}");
        }
    }
}
