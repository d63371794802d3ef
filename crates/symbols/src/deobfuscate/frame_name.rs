//! Names of Java frames as ART gives them to the unwinder: `pkg.Cls.method` for the most part;
//! `ret pkg.Cls.method(args)` from full symbol tables; with `[DEDUPED]` in front where several
//! methods share their code, and `?` for what of them differs. Owns taking them apart.

/// A frame's name, taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FrameName<'n> {
    /// `[DEDUPED] `, or nothing.
    pub(super) prefix: &'n str,
    pub(super) class: &'n str,
    /// `None` where several methods share the code.
    pub(super) method: Option<&'n str>,
    /// Types in the app, where the name has them.
    pub(super) types: Option<FrameTypes<'n>>,
}

/// Types in a frame's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FrameTypes<'n> {
    pub(super) returns: Option<&'n str>,
    pub(super) parameters: &'n str,
}

/// What ART calls code that several methods share.
const DEDUPED: &str = "[DEDUPED] ";
/// What it puts where they differ.
const UNKNOWN: &str = "?";

impl<'n> FrameName<'n> {
    /// `None` for what names no member of a class.
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

    /// The last part of it, `?` where that is not known.
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
