//! Stable parts of names across builds: the rules that match functions and libraries of two builds.
//! Pure text; idempotent.
//!
//! | of a library | becomes |
//! |---|---|
//! | `/data/app/~~x==/com.x-y==/base.apk!libfoo.so`, `/data/…/libfoo.so (deleted)` | `libfoo.so` |
//! | `libfoo.so.1.2.3`, `libfoo-1.2.3.so`, `libfoo-0123456789abcdef.so` | `libfoo.so` |
//!
//! | of a function | becomes |
//! |---|---|
//! | `f() (.cold)`, `f() [clone .part.0]`, `f.llvm.123` | without what the compiler appended |
//! | `a::f::h0123456789abcdef` | `a::f` |
//! | `'lambda0'(int)`, `{lambda(int)#2}`, `$_3`, `{closure#1}` | without the number |
//! | `std::__1::f[abi:ne180000]()` | `std::f()` |
//! | `run [jit]` | `run` |
//! | `Main$$ExternalSyntheticLambda4.run`, `Main.lambda$onCreate$0` | without the number |

use super::annotation::Annotation;
use crate::names::module;
use std::borrow::Cow;

/// Returns the name of a library that is equal in every build.
pub fn library(path: &str) -> Cow<'_, str> {
    let name = module(path);
    // `.so` ends the name or precedes a version.
    let ends_there = |at: usize| {
        let rest = &name[at + 3..];
        rest.is_empty() || rest.starts_with('.') && is_version(&rest[1..])
    };
    let ends = name.match_indices(".so").map(|(at, _)| at);
    let Some(end) = ends.into_iter().find(|&at| ends_there(at)) else {
        return name;
    };
    let mut stem = &name[..end];
    while let Some((shorter, version)) = stem.rsplit_once('-') {
        let is_hash = version.len() == 16 && version.bytes().all(|b| b.is_ascii_hexdigit());
        if shorter.is_empty() || !(is_hash || is_version(version) && version.contains('.')) {
            break;
        }
        stem = shorter;
    }
    if stem.len() + 3 == name.len() {
        return name;
    }
    Cow::Owned(format!("{stem}.so"))
}

fn is_version(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_digit() || b == b'.')
}

/// Returns the name of a function that is equal in every build. `is_java` selects the rules:
/// methods can be called `cold`, C++ functions can be called `lambda$f`.
pub fn function(name: &str, is_java: bool) -> Cow<'_, str> {
    let mut folded = once(name, is_java);
    // A removal can expose another part to remove; in a crafted name this repeats many times.
    for _ in 0..ROUNDS {
        let next = match once(&folded, is_java) {
            next if next.len() == folded.len() => break,
            next => next.into_owned(),
        };
        folded = Cow::Owned(next);
    }
    folded
}

/// No compiler nests more.
const ROUNDS: usize = 16;

fn once(name: &str, is_java: bool) -> Cow<'_, str> {
    let name = without_annotation(name);
    if is_java {
        return java(name);
    }
    let name = without_rust_hash(without_clones(name));
    if !name.contains(['\'', '{', '$', '_', '[']) {
        return Cow::Borrowed(name);
    }
    native(name)
}

fn without_annotation(name: &str) -> &str {
    let suffix = Annotation::of_name(name).map_or("", Annotation::suffix);
    name.strip_suffix(suffix).unwrap_or(name)
}

/// Suffixes that compilers append to copies of a function, each followed by numbers.
const CLONES: [&str; 9] = [
    ".llvm.",
    ".cold",
    ".part.",
    ".isra.",
    ".constprop.",
    ".lto_priv.",
    ".localalias",
    ".clone.",
    ".warm",
];

fn without_clones(mut name: &str) -> &str {
    for _ in 0..ROUNDS {
        let shorter = None
            .or_else(|| enclosed(name, " (.", ")"))
            .or_else(|| enclosed(name, " [clone ", "]"))
            .or_else(|| appended(name));
        match shorter {
            Some(shorter) if !shorter.is_empty() => name = shorter,
            _ => break,
        }
    }
    name
}

/// Returns the name before ` (.cold)` at its end.
fn enclosed<'a>(name: &'a str, open: &str, close: &str) -> Option<&'a str> {
    let inside = name.strip_suffix(close)?;
    let at = inside.rfind(open)?;
    let is_suffix = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_');
    let suffix = &inside[at + open.len()..];
    suffix.bytes().all(is_suffix).then(|| &name[..at])
}

/// Returns the name before `.cold` or `.llvm.123` at its end.
fn appended(name: &str) -> Option<&str> {
    CLONES.iter().find_map(|clone| {
        let at = name.rfind(clone)?;
        let rest = &name[at + clone.len()..];
        let is_number = rest.bytes().all(|b| b.is_ascii_digit() || b == b'.');
        (is_number && at > 0).then(|| &name[..at])
    })
}

fn without_rust_hash(mut name: &str) -> &str {
    while let Some((shorter, hash)) = name.rsplit_once("::h") {
        if hash.len() != 16 || !hash.bytes().all(|b| b.is_ascii_hexdigit()) || shorter.is_empty() {
            break;
        }
        name = shorter;
    }
    name
}

/// Removes numbers of lambdas, versions of namespaces and ABI tags.
fn native(name: &str) -> Cow<'_, str> {
    let mut made = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(first) = rest.chars().next() {
        let next = match first {
            '\'' => numbered(rest, &["'lambda", "'unnamed"], "'"),
            '{' => numbered(rest, &["{closure#"], "}").or_else(|| brace(rest)),
            '$' => dollar(rest),
            '_' if made.ends_with("std::") => ["__1::", "__ndk1::", "__cxx11::"]
                .iter()
                .find_map(|inline| Some((Cow::Borrowed(""), rest.strip_prefix(inline)?))),
            '[' => rest
                .strip_prefix("[abi:")
                .and_then(|tag| tag.split_once(']'))
                .map(|(_, after)| (Cow::Borrowed(""), after)),
            _ => None,
        };
        if let Some((text, after)) = next {
            made.push_str(&text);
            rest = after;
        } else {
            made.push(first);
            rest = &rest[first.len_utf8()..];
        }
    }
    if made == name {
        return Cow::Borrowed(name);
    }
    Cow::Owned(made)
}

/// Parses `'lambda0'` or `{closure#1}` at the start of a text; returns its replacement and the
/// rest.
fn numbered<'a>(text: &'a str, opens: &[&str], close: &str) -> Option<(Cow<'a, str>, &'a str)> {
    opens.iter().find_map(|open| {
        let rest = text.strip_prefix(open)?;
        let after = rest.trim_start_matches(|c: char| c.is_ascii_digit());
        let after = after.strip_prefix(close)?;
        let word = open.strip_suffix('#').unwrap_or(open);
        Some((Cow::Owned(format!("{word}{close}")), after))
    })
}

/// Parses `{lambda(int)#2}` or `{unnamed type#2}` at the start of a text.
fn brace(text: &str) -> Option<(Cow<'_, str>, &str)> {
    let is_known = text.starts_with("{lambda(") || text.starts_with("{unnamed type");
    let (inside, after) = text.split_once('}').filter(|_| is_known)?;
    let (word, number) = inside.rsplit_once('#')?;
    let is_number = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
    // The content can have more of them, which have their own numbers.
    (is_number && !word[1..].contains('{')).then(|| (Cow::Owned(format!("{word}}}")), after))
}

/// Parses `$_3`, clang's name of a lambda.
fn dollar(text: &str) -> Option<(Cow<'_, str>, &str)> {
    let rest = text.strip_prefix("$_")?;
    let after = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    (after.len() < rest.len()).then_some((Cow::Borrowed("$_"), after))
}

/// Words of D8 and javac that precede a lambda's number.
const SYNTHETIC: [&str; 3] = [
    "$$ExternalSyntheticLambda",
    "$$ExternalSyntheticOutline",
    "$$InternalSyntheticLambda",
];

fn java(name: &str) -> Cow<'_, str> {
    if !name.contains('$') {
        return Cow::Borrowed(name);
    }
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let mut made = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(first) = rest.chars().next() {
        if let Some(word) = SYNTHETIC.iter().find(|word| rest.starts_with(**word)) {
            made.push_str(word);
            rest = &rest[word.len()..];
            rest = &rest[digits(rest)..];
            continue;
        }
        if let Some(after) = rest.strip_prefix("lambda$") {
            made.push_str("lambda$");
            rest = after;
            // The enclosing method, then its number.
            let end = rest.find(['.', '(', ' ']).unwrap_or(rest.len());
            let (method, after) = rest.split_at(end);
            if let Some((method, number)) = method.rsplit_once('$')
                && !number.is_empty()
                && digits(number) == number.len()
            {
                made.push_str(method.trim_end_matches(|c: char| c.is_ascii_digit() || c == '$'));
                rest = after;
            }
            continue;
        }
        made.push(first);
        rest = &rest[first.len_utf8()..];
    }
    if made == name {
        return Cow::Borrowed(name);
    }
    Cow::Owned(made)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn libraries_keep_no_version_and_no_place() {
        for (path, folded) in [
            (
                "/data/app/~~q_8==/com.x-9w==/base.apk!libfoo.so",
                "libfoo.so",
            ),
            (
                "/data/app/com.x-1/lib/arm64/libfoo.so (deleted)",
                "libfoo.so",
            ),
            ("/apex/com.android.art@33/lib64/libart.so", "libart.so"),
            ("/usr/lib/libssl.so.1.1", "libssl.so"),
            ("/usr/lib/libc-2.31.so", "libc.so"),
            ("/opt/libstd-0123456789abcdef.so", "libstd.so"),
            ("liba-1.2-3.4.so.5", "liba.so"),
            ("libfoo-v8a.so", "libfoo-v8a.so"),
            ("lib.software.so.2", "lib.software.so"),
            ("-1.2.so", "-1.2.so"),
            ("/system/bin/app_process64", "app_process64"),
            ("/[vdso]", "[vdso]"),
            ("", ""),
        ] {
            assert_eq!(library(path), folded, "{path}");
        }
    }

    #[test]
    fn functions_keep_no_number_that_a_compiler_gave() {
        for (name, folded) in [
            ("A::f() (.cold)", "A::f()"),
            ("A::f() (.isra.0.part.1)", "A::f()"),
            ("A::f() [clone .part.0] [clone .cold]", "A::f()"),
            ("f.llvm.123", "f"),
            ("f.part.0.cold", "f"),
            ("alloc::vec::foo::h0123456789abcdef", "alloc::vec::foo"),
            ("a::h0123456789", "a::h0123456789"),
            (
                "f()::'lambda0'(int)::operator()(int) const",
                "f()::'lambda'(int)::operator()(int) const",
            ),
            (
                "f()::{lambda(int)#2}::operator()",
                "f()::{lambda(int)}::operator()",
            ),
            ("'unnamed12'::f()", "'unnamed'::f()"),
            ("main::{closure#3}", "main::{closure}"),
            (
                "foo::$_12::operator()() const",
                "foo::$_::operator()() const",
            ),
            (
                "std::__1::vector<std::__ndk1::string>::at[abi:ne180000](int)",
                "std::vector<std::string>::at(int)",
            ),
            ("my__1::f", "my__1::f"),
            ("malloc [common-frame]", "malloc"),
            ("f(.cold)", "f(.cold)"),
            (".cold", ".cold"),
        ] {
            assert_eq!(function(name, false), folded, "{name}");
        }
        for (name, folded) in [
            ("com.x.Main.run [jit]", "com.x.Main.run"),
            ("com.x.Weather.cold", "com.x.Weather.cold"),
            ("com.x.Main$1.run", "com.x.Main$1.run"),
            (
                "com.x.Main$$ExternalSyntheticLambda14.run",
                "com.x.Main$$ExternalSyntheticLambda.run",
            ),
            ("com.x.Main.lambda$onCreate$0", "com.x.Main.lambda$onCreate"),
            (
                "com.x.Main.lambda$onCreate$0$Main",
                "com.x.Main.lambda$onCreate$0$Main",
            ),
            (
                "void com.x.Main.lambda$a$1(int)",
                "void com.x.Main.lambda$a(int)",
            ),
        ] {
            assert_eq!(function(name, true), folded, "{name}");
        }
    }

    proptest! {
        /// Folding once is enough for any name.
        #[test]
        fn folding_twice_is_folding_once(
            parts in prop::collection::vec(
                prop::sample::select(vec![
                    "f", "::", "std::", "__1::", "[abi:cxx11]", "'lambda", "0", "'", "{lambda(", ")#",
                    "}", "$_", "7", ".cold", ".llvm.", " (.", ")", " [clone ", "]", " [jit]", "::h",
                    "0123456789abcdef", "lambda$", "$", ".", "$$ExternalSyntheticLambda", "é", ".so",
                    "-", "1.2", "lib", "{closure#", "/", "!",
                ]),
                0..12,
            ),
            is_java: bool,
        ) {
            let name = parts.concat();
            let once = function(&name, is_java).into_owned();
            prop_assert_eq!(&function(&once, is_java), &once);
            let once = library(&name).into_owned();
            prop_assert_eq!(&library(&once), &once);
        }
    }
}
