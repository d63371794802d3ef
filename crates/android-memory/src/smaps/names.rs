//! Names of mappings that are the same in the next run: what the installer and the kernel put
//! into them by chance is folded away, so that two runs can be compared.

use std::borrow::Cow;

/// The name without what differs from run to run: the random folders of installed packages,
/// numbers of processes, threads and buffers, addresses.
pub fn stable(name: &str) -> Cow<'_, str> {
    let mut name = Cow::Borrowed(name);
    for (begin, separator) in [("/app/", '/'), ("@app@", '@')] {
        if name.contains(begin) {
            name = Cow::Owned(without_install_folders(&name, begin, separator));
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

/// `/data/app/~~RANDOM==/com.example.app-RANDOM==/base.apk` and the older
/// `/data/app/com.example.app-1/base.apk` as `/data/app/com.example.app/base.apk`.
fn without_install_folders(name: &str, begin: &str, separator: char) -> String {
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
        // Package names have no hyphen; what follows one is the installer's.
        out += package.split('-').next().unwrap_or(package);
        rest = after;
    }
    out + rest
}

/// Runs of digits as `N` where all numbers are somebody's, and addresses (`0x7f…`) as `0xN`;
/// identifiers of eight and more hexadecimal digits likewise.
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

/// What memory without a name is called in sums.
pub(super) const NAMELESS: &str = "[no name]";

/// The file or area that a mapping counts for in sums by library.
pub fn library_name(name: &str) -> Cow<'_, str> {
    match name {
        "" => Cow::Borrowed(NAMELESS),
        name => stable(name),
    }
}
