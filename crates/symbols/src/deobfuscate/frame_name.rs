//! Parser for the names of Java frames that ART gives to the unwinder. Most are
//! `pkg.Cls.method`; full symbol tables give `ret pkg.Cls.method(args)`. If several methods share
//! their code, the name begins with `[DEDUPED]` and has `?` for the parts that differ.

/// Parsed name of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FrameName<'n> {
    /// `[DEDUPED] `, or empty.
    pub(super) prefix: &'n str,
    pub(super) class: &'n str,
    /// `None` if several methods share the code.
    pub(super) method: Option<&'n str>,
    /// Types in the app, if the name has them.
    pub(super) types: Option<FrameTypes<'n>>,
}

/// Types in a frame's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FrameTypes<'n> {
    pub(super) returns: Option<&'n str>,
    pub(super) parameters: &'n str,
}

/// Prefix of ART for code that several methods share.
const DEDUPED: &str = "[DEDUPED] ";
/// ART's text for the parts that differ.
const UNKNOWN: &str = "?";

impl<'n> FrameName<'n> {
    /// Parses a name; `None` if it does not name a member of a class.
    pub(super) fn parse(name: &'n str) -> Option<FrameName<'n>> {
        let rest = name.strip_prefix(DEDUPED).unwrap_or(name);
        let prefix = &name[..name.len() - rest.len()];
        let (path, types) = match rest.strip_suffix(')').and_then(|r| r.split_once('(')) {
            Some((head, parameters)) => {
                let (returns, path) = match head.rsplit_once(' ') {
                    Some((returns, path)) => (Some(returns), path),
                    None => (None, head),
                };
                (
                    path,
                    Some(FrameTypes {
                        returns,
                        parameters,
                    }),
                )
            }
            None => (rest, None),
        };
        let (class, method) = path.rsplit_once('.')?;
        let is_name = |text: &str| !text.is_empty() && !text.contains([' ', '(', ')', ':']);
        if !is_name(class) || !is_name(method) || class == UNKNOWN {
            return None;
        }
        Some(FrameName {
            prefix,
            class,
            method: (method != UNKNOWN).then_some(method),
            types,
        })
    }

    /// Returns the method, or `?` if it is unknown.
    pub(super) fn method_or_unknown(&self) -> &'n str {
        self.method.unwrap_or(UNKNOWN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_apart() {
        for (name, prefix, class, method) in [
            ("a.b$c.d", "", "a.b$c", Some("d")),
            ("a.b.<init>", "", "a.b", Some("<init>")),
            ("void a.b.d()", "", "a.b", Some("d")),
            ("int[] a.b.d(int, a.c)", "", "a.b", Some("d")),
            ("a.b.d(int)", "", "a.b", Some("d")),
            ("[DEDUPED] a.b.?", "[DEDUPED] ", "a.b", None),
            ("[DEDUPED] a.b.d", "[DEDUPED] ", "a.b", Some("d")),
        ] {
            let parsed = FrameName::parse(name).unwrap_or_else(|| panic!("{name}"));
            let found = (parsed.prefix, parsed.class, parsed.method);
            assert_eq!(found, (prefix, class, method), "{name}");
        }
        let typed = FrameName::parse("int[] a.b.d(int, a.c)").and_then(|name| name.types);
        let types = FrameTypes {
            returns: Some("int[]"),
            parameters: "int, a.c",
        };
        assert_eq!(typed, Some(types));
    }

    #[test]
    fn what_names_no_member_is_left_alone() {
        for name in [
            "",
            "malloc",
            "[DEDUPED]",
            "[DEDUPED] ?.m",
            "art::Thread::Run()",
            "a.",
            ".a",
            "operator new(unsigned long)",
            "_ZN1aE",
            "a.b c.d e",
        ] {
            assert_eq!(FrameName::parse(name), None, "{name}");
        }
    }
}
