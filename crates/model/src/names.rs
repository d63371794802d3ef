//! Names of functions: demangled, deobfuscated, or, for functions without a name, module and
//! offset.

mod itanium;
pub mod platform;

use std::borrow::Cow;
use std::fmt::Write as _;

/// Maximum length of a mangled name that is demangled, in bytes: the result can be many times
/// longer.
const MAX_LENGTH: usize = 16 << 10;

/// Returns whether a process can belong to an app, by its name, which is empty if unknown: names of
/// packages and of their processes contain a dot. Other processes are native programs, or part of
/// the system.
pub fn could_be_app(process: &str) -> bool {
    process.is_empty() || process.contains('.') && !process.starts_with('/')
}

/// Demangles a recorded name for display. Names that are not mangled or cannot be demangled stay.
/// Rust's legacy names that were demangled as C++ lose their escapes and hash.
pub fn demangle(name: &str) -> Cow<'_, str> {
    if name.len() > MAX_LENGTH {
        return Cow::Borrowed(name);
    }
    if (name.starts_with("_R") || is_legacy_rust(name))
        && let Ok(demangled) = rustc_demangle::try_demangle(name)
    {
        let mut bounded = Bounded::for_name(name);
        return match write!(bounded, "{demangled:#}") {
            Ok(()) => Cow::Owned(bounded.text),
            Err(_) => Cow::Borrowed(name),
        };
    }
    if (name.starts_with("_Z") || name.starts_with("__Z"))
        && let Some(demangled) = itanium::demangle(name, max_bytes(name))
    {
        return Cow::Owned(unescape_rust(&demangled).unwrap_or(demangled));
    }
    unescape_rust(name).map_or(Cow::Borrowed(name), Cow::Owned)
}

/// Decodes a legacy Rust name that was demangled as C++, as by Perfetto:
/// `alloc::boxed::Box$LT$T$GT$::new::h0123456789abcdef` becomes `alloc::boxed::Box<T>::new`. The
/// parts of a mangled name do not contain `::`, so it can be restored.
fn unescape_rust(name: &str) -> Option<String> {
    let (path, suffix) = split_suffix(name);
    // Every demangled name comes here: this looks at its end and searches for nothing.
    let parents = path.get(..path.len().checked_sub(RUST_HASH_BYTES)?)?;
    if !parents.ends_with("::") || !is_rust_hash(&path[parents.len()..]) {
        return None;
    }
    let mut mangled = String::with_capacity(2 * path.len());
    mangled.push_str("_ZN");
    for part in path.split("::") {
        mangled.push_str(&part.len().to_string());
        mangled.push_str(part);
    }
    mangled.push('E');
    let mut decoded = format!("{:#}", rustc_demangle::try_demangle(&mangled).ok()?);
    if decoded.is_empty() {
        return None;
    }
    // The number of a promoted function differs from build to build, and `.cold` behind it does not.
    match suffix.strip_prefix(" (.llvm.") {
        Some(promoted) => {
            let rest = promoted.trim_start_matches(|c: char| c.is_ascii_digit());
            match rest.strip_prefix(')') {
                Some(rest) => decoded.push_str(rest),
                None => decoded.extend([" (", rest]),
            }
        }
        None => decoded.push_str(suffix),
    }
    Some(decoded)
}

/// Splits the suffixes of a clone from a demangled name: ` (.cold)`, ` (.llvm.1234) (.cold)`.
fn split_suffix(name: &str) -> (&str, &str) {
    let mut at = name.len();
    while name[..at].ends_with(')')
        && let Some(opening) = name[..at].rfind('(')
        && name[opening..].starts_with("(.")
        && name[..opening].ends_with(' ')
    {
        at = opening - 1;
    }
    name.split_at(at)
}

/// Returns the maximum length of a demangled name, in bytes: it follows the name's length, so that
/// many names stay within their file's share of memory. Templates of the standard library grow about
/// 15 times.
fn max_bytes(name: &str) -> usize {
    const MAX_GROWTH_FACTOR: usize = 32;
    const MIN_LIMIT_BYTES: usize = 1 << 10;
    const LIMIT_BYTES: usize = 256 << 10;
    LIMIT_BYTES.min(MIN_LIMIT_BYTES + MAX_GROWTH_FACTOR * name.len())
}

/// Text with a length limit: demangling writes out each back reference, so every few letters can
/// double the length.
struct Bounded {
    text: String,
    most_bytes: usize,
    pieces: usize,
}

impl Bounded {
    const MAX_PIECES: usize = 1 << 17;

    fn for_name(name: &str) -> Bounded {
        Bounded {
            text: String::new(),
            most_bytes: max_bytes(name),
            pieces: 0,
        }
    }
}

impl std::fmt::Write for Bounded {
    fn write_str(&mut self, piece: &str) -> std::fmt::Result {
        self.pieces += 1;
        let is_within = self.text.len() + piece.len() <= self.most_bytes;
        if !is_within || self.pieces > Self::MAX_PIECES {
            return Err(std::fmt::Error);
        }
        self.text.push_str(piece);
        Ok(())
    }
}

/// Returns whether a name uses Rust's legacy mangling: that of C++ with a hash of 16 digits as the
/// last part. LLVM numbers functions that it makes visible across modules.
fn is_legacy_rust(name: &str) -> bool {
    // Names of C++ hardly ever have a dot, which is quick to look for.
    let name = match name.contains('.') {
        true => name.split_once(".llvm.").map_or(name, |(name, _)| name),
        false => name,
    };
    let name = name.strip_suffix('E');
    name.and_then(|name| name.get(name.len().checked_sub(2 + RUST_HASH_BYTES)?..))
        .and_then(|tail| tail.strip_prefix("17"))
        .is_some_and(is_rust_hash)
}

/// Bytes of `h0123456789abcdef`.
const RUST_HASH_BYTES: usize = 17;

/// Returns whether a part of a name is the hash of a legacy Rust name, such as `h0123456789abcdef`.
fn is_rust_hash(part: &str) -> bool {
    let digits = part.strip_prefix('h');
    part.len() == RUST_HASH_BYTES
        && digits.is_some_and(|hash| hash.bytes().all(|b| b.is_ascii_hexdigit()))
}

/// Returns the last part of a path: `libc.so` of `/system/lib64/libc.so`.
pub fn basename(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Returns the name of a mapping for its path as Perfetto composes it:
///
/// | path | name |
/// |---|---|
/// | `/system/lib64/libc.so` | `libc.so` |
/// | `/data/app/…/base.apk!libfoo.so`, `…/base.apk!lib/arm64-v8a/libfoo.so` | `libfoo.so` |
/// | `/data/app/…/lib/arm64/libfoo.so (deleted)` | `libfoo.so` |
/// | `/memfd:jit-cache (deleted)` | `jit-cache` |
/// | `/[anon:dalvik-classes.dex extracted in memory from /data/app/…/base.apk!classes2.dex]` | `[anon:dalvik-classes.dex extracted in memory from base.apk!classes2.dex]` |
/// | `/[vdso]` | `[vdso]` |
pub fn module(path: &str) -> Cow<'_, str> {
    let path = path.strip_suffix(" (deleted)").unwrap_or(path);
    let bare = path.strip_prefix('/').unwrap_or(path);
    if bare.starts_with('[') {
        // Inside the brackets is the file that the mapping was made from.
        return match (bare.find(" /"), bare.rfind('/')) {
            (Some(before), Some(last)) => {
                Cow::Owned(format!("{} {}", &bare[..before], &bare[last + 1..]))
            }
            _ => Cow::Borrowed(bare),
        };
    }
    let name = basename(path);
    let name = name.rsplit('!').next().unwrap_or(name);
    Cow::Borrowed(name.strip_prefix("memfd:").unwrap_or(name))
}

/// Execution mode of a mapping's Java code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum JavaCode {
    /// A dex file, alone or in an archive, which the interpreter executes.
    Interpreted,
    /// Compiled at run time.
    JustInTime,
    /// Compiled at installation or with the system.
    AheadOfTime,
}

/// Mapping of the frames of an OutOfMemoryError's stack, with Perfetto's name.
pub const ART_METADATA: &str = "art_process_metadata";

/// Returns the execution mode of a mapping's Java code, by its path; `None` if it is not Java code.
/// The rules are those of Perfetto's importer: only the start of an extension is compared, because
/// dex files in memory end in `.apk]` and more.
pub fn java_code(path: &str) -> Option<JavaCode> {
    if path == ART_METADATA {
        return Some(JavaCode::Interpreted);
    }
    if path.starts_with("/memfd:jit-cache") || path.starts_with("/memfd:jit-zygote-cache") {
        return Some(JavaCode::JustInTime);
    }
    let extension = path.rfind('.').map_or("", |at| &path[at..]);
    let starts = |known: &[&str]| known.iter().any(|start| extension.starts_with(start));
    if starts(&[".oat", ".odex"]) {
        Some(JavaCode::AheadOfTime)
    } else if starts(&[".dex", ".vdex", ".jar", ".apk"]) {
        Some(JavaCode::Interpreted)
    } else {
        None
    }
}

/// Returns the name of a frame without a function name.
pub fn nameless(path: &str, rel_pc: u64) -> String {
    match file_name(&module(path)) {
        "" => format!("0x{rel_pc:x}"),
        module => format!("{module}+0x{rel_pc:x}"),
    }
}

/// Returns a module's name cut to the maximum length of a file name, because it is repeated before
/// every address.
fn file_name(module: &str) -> &str {
    const MAX_LENGTH: usize = 255;
    let mut ends = (0..=MAX_LENGTH.min(module.len())).rev();
    let end = ends.find(|&end| module.is_char_boundary(end));
    &module[..end.unwrap_or(0)]
}

/// Returns the name of a frame whose address is unknown or meaningless: `libfoo.so+?`.
pub fn nowhere(module: &str) -> String {
    match file_name(module) {
        "" => "?".to_owned(),
        module => format!("{module}+?"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_grows_without_end_stays_mangled() {
        // Each tuple has the one before it four times, and each pair twice.
        let rust = "_RINvC6x000011fTTtttttttttETttttttttttEETBc_Bc_Bc_Bc_ETBB_BB_BB_BB_E";
        let again = "TBP_BP_BP_BP_ETB13_B13_B13_B13_ETB1h_B1h_B1h_B1h_ETB1z_B1z_B1z_B1z_E";
        let cpp: String = (2..12)
            .map(|n| format!("S0_IS{0}_S{0}_E", b"0123456789A"[n - 1] as char))
            .collect();
        let cpp = format!("_Z1f6x000011pIS_S_E{cpp}");
        assert!(demangle(&format!("{rust}E")).starts_with("x00001::f::<"));
        for name in [format!("{rust}{again}E"), cpp] {
            assert_eq!(demangle(&name), name);
        }
    }

    #[test]
    fn demangles_cpp_and_both_manglings_of_rust() {
        for (raw, shown) in [
            ("_ZN3foo3barEv", "foo::bar()"),
            ("_ZN5alloc3vec3foo17h0123456789abcdefE", "alloc::vec::foo"),
            ("_ZN5alloc3foo17h0123456789abcdefE.llvm.4033", "alloc::foo"),
            (
                "_ZN5alloc3foo17h0123456789abcdefE.cold",
                "alloc::foo (.cold)",
            ),
            ("_RNvCs1234_7mycrate3foo", "mycrate::foo"),
            ("malloc", "malloc"),
            ("a::h0123456789", "a::h0123456789"),
            ("h0123456789abcdef", "h0123456789abcdef"),
            ("_Zbroken", "_Zbroken"),
            ("com.example.Main.run", "com.example.Main.run"),
            ("", ""),
        ] {
            assert_eq!(demangle(raw), shown, "{raw}");
        }
    }

    #[test]
    fn rust_names_demangled_as_cpp_are_decoded() {
        for (name, shown) in [
            (
                "alloc::boxed::Box$LT$T$GT$::new::h05859df7b08d4c3c",
                "alloc::boxed::Box<T>::new",
            ),
            (
                "a::build_tree::_$u7b$$u7b$closure$u7d$$u7d$::h17401ac3633c44e1",
                "a::build_tree::{{closure}}",
            ),
            (
                "_$LT$T$u20$as$u20$alloc..string..ToString$GT$::to_string::h6aaa1622f4cab8db",
                "<T as alloc::string::ToString>::to_string",
            ),
            (
                "a::Vec$LT$T$C$A$GT$::grow::h659c6733c5c9bab2 (.llvm.403368967318959666)",
                "a::Vec<T,A>::grow",
            ),
            ("a::b::h0123456789abcdef (.cold)", "a::b (.cold)"),
            (
                "a::b::h0123456789abcdef (.llvm.12.cold.1)",
                "a::b (.cold.1)",
            ),
            ("a::b::h0123456789abcdef (.llvm.12) (.cold)", "a::b (.cold)"),
        ] {
            assert_eq!(demangle(name), shown, "{name}");
            assert_eq!(demangle(shown), shown, "{shown}");
        }
        for name in [
            "::h0123456789abcdef",
            "ü::h0123456789abcdef",
            "$LT$T$GT$::f",
        ] {
            assert_eq!(demangle(name), name, "{name}");
        }
    }

    #[test]
    fn mappings_are_called_by_what_is_in_them() {
        for (path, called) in [
            ("/system/lib64/libc.so", "libc.so"),
            ("/data/app/~~x==/a-b==/base.apk!libfoo.so", "libfoo.so"),
            (
                "/data/app/a-1/base.apk!lib/arm64-v8a/libfoo.so",
                "libfoo.so",
            ),
            ("/data/app/a-1/split_x.apk", "split_x.apk"),
            ("/data/app/a-1/oat/arm64/base.odex", "base.odex"),
            ("/data/app/a-1/lib/arm64/libfoo.so (deleted)", "libfoo.so"),
            ("/memfd:jit-cache (deleted)", "jit-cache"),
            ("/memfd:/jit-cache (deleted)", "jit-cache"),
            (
                "/dev/ashmem/dalvik-jit-code-cache (deleted)",
                "dalvik-jit-code-cache",
            ),
            ("/[vdso]", "[vdso]"),
            ("[heap]", "[heap]"),
            (
                "/[anon:dalvik-classes.dex extracted in memory from /data/app/a-1/base.apk]",
                "[anon:dalvik-classes.dex extracted in memory from base.apk]",
            ),
            ("/kernel", "kernel"),
            ("", ""),
            ("/", ""),
        ] {
            assert_eq!(module(path), called, "{path}");
        }
    }

    #[test]
    fn cpp_is_spelled_as_llvm_does() {
        for (raw, shown) in [
            ("_Z1fSt6vectorIS_IiEE", "f(std::vector<std::vector<int>>)"),
            ("_Z1gILm402438ELj5ELln3EEvv", "void g<402438ul, 5u, -3l>()"),
            ("_ZN1A1fEv.cold", "A::f() (.cold)"),
            ("_ZN1A1fEv.isra.0.part.1", "A::f() (.isra.0.part.1)"),
            ("_ZThn8_N1A1fEv", "non-virtual thunk to A::f()"),
            (
                "_ZZ1fvENKUliE_clEi",
                "f()::'lambda'(int)::operator()(int) const",
            ),
            (
                "_ZZ1fvENKUljE0_clEj",
                "f()::'lambda0'(unsigned int)::operator()(unsigned int) const",
            ),
            ("_ZN1AgtIiEEbv", "bool A::operator><int>()"),
        ] {
            assert_eq!(demangle(raw), shown, "{raw}");
        }
    }

    #[test]
    fn a_name_that_doubles_without_end_stays_mangled() {
        // A pair of ints, a pair of such pairs, and so on.
        let mut name = "_Z1fSt4pairIiiE".to_owned();
        for at in 0..60 {
            let digit = |n: u32| char::from_digit(n, 36).unwrap().to_ascii_uppercase();
            let number = |n: u32| match n {
                0..36 => format!("S{}_", digit(n)),
                _ => format!("S{}{}_", digit(n / 36), digit(n % 36)),
            };
            let last = number(at);
            name.push_str(&format!("S_I{last}{last}E"));
        }
        assert_eq!(demangle(&name), name);
    }

    #[test]
    fn a_nameless_frame_is_its_module_and_offset() {
        assert_eq!(
            nameless("/system/lib64/libart.so", 0x1f0),
            "libart.so+0x1f0"
        );
        assert_eq!(nameless("", 16), "0x10");
        assert_eq!(nowhere("libart.so"), "libart.so+?");
        assert_eq!(nowhere(""), "?");
    }
}
