//! What stays of a name from one build to the next: the rules by which functions and libraries
//! of two builds are taken for the same. Pure text; idempotent.
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

/// What a library is called in every build.
pub fn library(path: &str) -> Cow<'_, str> {
    let name = module(path);
    // `.so` ends the name, or a version follows.
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

/// What a function is called in every build. `is_java` tells whose rules hold: methods may be
/// called `cold`, functions of C++ may be called `lambda$f`.
pub fn function(name: &str, is_java: bool) -> Cow<'_, str> {
    let name = without_annotation(name);
    if is_java {
        return java(name);
    }
    let name = without_clones(name);
    let name = without_rust_hash(name);
    if !name.contains(['\'', '{', '$', '_', '[']) {
        return Cow::Borrowed(name);
    }
    native(name)
}

fn without_annotation(mut name: &str) -> &str {
    use Annotation::{Aot, CommonFrame, CommonFrameInterp, Interp, Jit};
    // A name that holds one by itself may hold several.
    while let Some(shorter) = [Interp, Jit, Aot, CommonFrame, CommonFrameInterp]
        .iter()
        .find_map(|annotation| name.strip_suffix(annotation.suffix()))
    {
        name = shorter;
    }
    name
}

/// What compilers append to copies of a function, each with numbers behind it.
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
    // No compiler appends more; a crafted name may.
    for _ in 0..16 {
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

/// The name before ` (.cold)` at its end.
fn enclosed<'a>(name: &'a str, open: &str, close: &str) -> Option<&'a str> {
    let inside = name.strip_suffix(close)?;
    let at = inside.rfind(open)?;
    let is_suffix = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_');
    let suffix = &inside[at + open.len()..];
    suffix.bytes().all(is_suffix).then(|| &name[..at])
}

/// The name before `.cold` or `.llvm.123` at its end.
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

/// Takes numbers of lambdas, versions of namespaces and ABI tags out.
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

/// `'lambda0'` or `{closure#1}` at the start of a text: what stands for it, and what follows.
fn numbered<'a>(text: &'a str, opens: &[&str], close: &str) -> Option<(Cow<'a, str>, &'a str)> {
    opens.iter().find_map(|open| {
        let rest = text.strip_prefix(open)?;
        let after = rest.trim_start_matches(|c: char| c.is_ascii_digit());
        let after = after.strip_prefix(close)?;
        let word = open.strip_suffix('#').unwrap_or(open);
        Some((Cow::Owned(format!("{word}{close}")), after))
    })
}

/// `{lambda(int)#2}` or `{unnamed type#2}` at the start of a text.
fn brace(text: &str) -> Option<(Cow<'_, str>, &str)> {
    let is_known = text.starts_with("{lambda(") || text.starts_with("{unnamed type");
    let (inside, after) = text.split_once('}').filter(|_| is_known)?;
    let (word, number) = inside.rsplit_once('#')?;
    let is_number = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
    // What is inside may hold more of them; they were numbered apart.
    (is_number && !word[1..].contains('{')).then(|| (Cow::Owned(format!("{word}}}")), after))
}

/// `$_3`, clang's word for a lambda without a name.
fn dollar(text: &str) -> Option<(Cow<'_, str>, &str)> {
    let rest = text.strip_prefix("$_")?;
    let after = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    (after.len() < rest.len()).then_some((Cow::Borrowed("$_"), after))
}

/// Words of D8 and javac behind which a lambda's number stands.
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
            // The method it stands in, then its number.
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
