//! Mapping names that are stable across runs. Random parts added by the installer and the kernel
//! are removed, so that two runs can be compared.

use std::borrow::Cow;

/// Removes the parts of a name that differ between runs: random directories of installed packages,
/// numbers of processes, threads and buffers, and addresses.
pub fn stable(name: &str) -> Cow<'_, str> {
    let mut name = Cow::Borrowed(name);
    for (begin, separator) in [("/app/", '/'), ("@app@", '@')] {
        if name.contains(begin) {
            name = Cow::Owned(without_install_directories(&name, begin, separator));
        }
    }
    const NUMBERED: [&str; 9] = [
        "/dev/ashmem",
        "/memfd:",
        "/dmabuf:",
        "anon_inode:",
        "socket:",
        "pipe:",
        "[anon:stack_and_tls:",
        "[stack:",
        "/proc/",
    ];
    let is_numbered = NUMBERED.iter().any(|begin| name.starts_with(begin));
    if is_numbered || name.contains("0x") {
        let folded = without_numbers(&name, is_numbered);
        if folded != *name {
            name = Cow::Owned(folded);
        }
    }
    name
}

/// Shortens `/data/app/~~RANDOM==/com.example.app-RANDOM==/base.apk` and the older
/// `/data/app/com.example.app-1/base.apk` to `/data/app/com.example.app/base.apk`.
fn without_install_directories(name: &str, begin: &str, separator: char) -> String {
    let mut out = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(at) = rest.find(begin) {
        let (before, after) = rest.split_at(at + begin.len());
        out += before;
        rest = after;
        if rest.starts_with("~~")
            && let Some(end) = rest.find(separator)
        {
            rest = &rest[end + 1..];
        }
        let end = rest.find(separator).unwrap_or(rest.len());
        let (package, after) = rest.split_at(end);
        // Package names do not contain hyphens; the installer adds the hyphen and the rest.
        out += package.split('-').next().unwrap_or(package);
        rest = after;
    }
    out + rest
}

/// Replaces addresses (`0x7f…`) by `0xN`. If `all` is set, also replaces other runs of digits, and
/// identifiers of at least eight hexadecimal digits, by `N`.
fn without_numbers(name: &str, all: bool) -> String {
    let mut out = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(first) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("0x") {
            let digits = run(after, |c| c.is_ascii_hexdigit());
            if digits > 0 {
                out += "0xN";
                rest = &after[digits..];
                continue;
            }
        }
        if all && first.is_ascii_alphanumeric() {
            let word = run(rest, |c| c.is_ascii_alphanumeric());
            let (word, after) = rest.split_at(word);
            let is_id = word.len() >= 8
                && word.bytes().all(|b| b.is_ascii_hexdigit())
                && word.bytes().any(|b| b.is_ascii_digit());
            match is_id || word.bytes().all(|b| b.is_ascii_digit()) {
                true => out.push('N'),
                false => out += word,
            }
            rest = after;
            continue;
        }
        out.push(first);
        rest = &rest[first.len_utf8()..];
    }
    out
}

fn run(text: &str, is_in: impl Fn(char) -> bool) -> usize {
    text.find(|c| !is_in(c)).unwrap_or(text.len())
}

/// Name of unnamed memory in sums.
pub(super) const NAMELESS: &str = "[no name]";

/// Returns the file or area of a mapping in sums by library.
pub fn library_name(name: &str) -> Cow<'_, str> {
    match name {
        "" => Cow::Borrowed(NAMELESS),
        name => stable(name),
    }
}
