//! Report of the allocator about itself: the XML of `malloc_info(3)`, which `am dumpheap -m`
//! writes. Its elements nest at most three deep and contain only numbers, so a scanner of tags and
//! text is enough. It stores only the names of open elements.
//!
//! | version | allocator | live memory |
//! |---|---|---|
//! | `jemalloc-1` | jemalloc (up to Android 10, and on low-memory devices) | large, huge and bins of each heap; `<bin>`s are part of the bins |
//! | `scudo-1` | Scudo (Android 11) | sizes times counts, only of its primary allocator: larger allocations have their own mappings and are not listed |
//! | `debug-malloc-1` | malloc debug | sizes times totals of each allocation |
//! | `1` | glibc, of programs on a host | memory from the system, less the free chunks of each arena, and large allocations with their own mappings |

use serde::{Deserialize, Serialize};

use heaptap_base::untrusted::sanitize;

/// Allocator that wrote the text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Version {
    Jemalloc,
    Scudo,
    Debug,
    Glibc,
    /// Another allocator; only the elements shared with the known ones are read.
    Other(String),
}

impl Version {
    /// Returns the version string in the text, that of glibc with its name.
    pub fn name(&self) -> &str {
        match self {
            Version::Jemalloc => "jemalloc-1",
            Version::Scudo => "scudo-1",
            Version::Debug => "debug-malloc-1",
            Version::Glibc => "glibc-1",
            Version::Other(name) => name,
        }
    }
}

/// Contents of a malloc_info text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MallocInfo {
    pub version: Version,
    /// Bytes allocated and not freed.
    pub live: u64,
    /// Number of live allocations, if reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// Number of heaps (arenas).
    pub heaps: u64,
    /// Part of `live` that jemalloc counts as large and huge, and glibc maps apart.
    pub large: u64,
    /// True if the text ended before its elements were closed; `live` is then too low.
    #[serde(rename = "truncated")]
    pub cut: bool,
    /// Number of invalid numbers, which are skipped.
    #[serde(rename = "invalid_numbers")]
    pub strange: u64,
}

impl MallocInfo {
    /// Returns whether `live` excludes large allocations.
    pub fn is_of_small_only(&self) -> bool {
        self.version == Version::Scudo
    }
}

/// Error when a text is not a malloc_info.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MallocInfoError {
    /// The text is empty: the allocator does not support malloc_info (HWASan does not).
    #[error("the text is empty")]
    Empty,
    /// The version is unknown, and no element that the known ones have was found.
    #[error("it is of an unknown allocator, version {version:?}")]
    UnknownVersion {
        /// Version string, sanitized.
        version: String,
    },
    /// The text does not have a `<malloc>` element.
    #[error("no <malloc> element found; the text begins with {begin:?}")]
    NotMallocInfo {
        /// Start of the text, sanitized.
        begin: String,
    },
}

/// Maximum depth of open elements. Known elements nest only three deep.
const MAX_DEPTH: usize = 16;
const MAX_NAME_LENGTH: usize = 64;

#[derive(Default)]
struct Scan {
    open: Vec<String>,
    /// Number of open elements below [`MAX_DEPTH`].
    deeper: usize,
    version: Option<Version>,
    live: u64,
    count: u64,
    large: u64,
    heaps: u64,
    strange: u64,
    /// Free bytes of glibc's arenas.
    free: u64,
    /// True if a figure was read.
    has_figures: bool,
    /// `<size>` and `<total>` of the open `<allocation>`.
    allocation: (Option<u64>, Option<u64>),
    closed: bool,
}

/// Parses the XML.
///
/// # Errors
/// Returns an error if the text is empty or does not have a `<malloc>` element.
pub fn parse(text: &[u8]) -> Result<MallocInfo, MallocInfoError> {
    let text = String::from_utf8_lossy(text);
    if text.trim().is_empty() {
        return Err(MallocInfoError::Empty);
    }
    let mut scan = Scan::default();
    let mut rest = &*text;
    let mut torn = false;
    while let Some(at) = rest.find('<') {
        scan.text(rest[..at].trim());
        rest = &rest[at..];
        let end = match rest.strip_prefix("<!--") {
            Some(comment) => comment.find("-->").map(|end| end + "<!--".len() + 2),
            None => rest.find('>'),
        };
        let Some(end) = end else {
            torn = true;
            break;
        };
        let tag = &rest[1..end];
        rest = &rest[end + 1..];
        if !tag.starts_with(['?', '!']) {
            scan.tag(tag);
        }
        if scan.closed {
            break;
        }
    }
    let Some(version) = scan.version else {
        let begin = text.trim_start().chars().take(60).collect::<String>();
        return Err(MallocInfoError::NotMallocInfo {
            begin: sanitize(&begin).into_owned(),
        });
    };
    if let (Version::Other(version), false) = (&version, scan.has_figures) {
        let version = version.clone();
        return Err(MallocInfoError::UnknownVersion { version });
    }
    let counts = matches!(version, Version::Scudo | Version::Debug) || scan.count > 0;
    Ok(MallocInfo {
        version,
        live: scan.live.saturating_sub(scan.free),
        count: counts.then_some(scan.count),
        heaps: scan.heaps,
        large: scan.large,
        cut: torn || !scan.closed,
        strange: scan.strange,
    })
}

impl Scan {
    fn tag(&mut self, tag: &str) {
        if let Some(name) = tag.strip_prefix('/') {
            self.close(name.trim());
            return;
        }
        let (tag, is_empty) = match tag.strip_suffix('/') {
            Some(tag) => (tag, true),
            None => (tag, false),
        };
        let tag = tag.trim();
        let end = tag.find(char::is_whitespace).unwrap_or(tag.len());
        let (name, attributes) = tag.split_at(end);
        self.element(name, attributes);
        if is_empty {
            if self.open.is_empty() && name == "malloc" {
                self.closed = true;
            }
            return;
        }
        match self.open.len() < MAX_DEPTH {
            true => self.open.push(name.chars().take(MAX_NAME_LENGTH).collect()),
            false => self.deeper += 1,
        }
    }

    fn element(&mut self, name: &str, attributes: &str) {
        if self.open.is_empty() && name == "malloc" && self.version.is_none() {
            self.version = Some(match attribute(attributes, "version").unwrap_or_default() {
                "jemalloc-1" => Version::Jemalloc,
                "scudo-1" => Version::Scudo,
                "debug-malloc-1" => Version::Debug,
                "1" => Version::Glibc,
                other => {
                    let name = other.chars().take(MAX_NAME_LENGTH).collect::<String>();
                    Version::Other(sanitize(&name).into_owned())
                }
            });
        }
        if self.version.is_none() {
            return;
        }
        self.has_figures |= matches!(
            name,
            "alloc" | "allocation" | "current_allocated" | "heap" | "summary"
        );
        let number = |name| attribute(attributes, name)?.trim().parse::<u64>().ok();
        if self.version == Some(Version::Glibc) {
            self.of_glibc(name, attribute(attributes, "type"), number("size"));
        }
        match (self.open.len(), name) {
            (1, "heap") => self.heaps += 1,
            (1, "allocation") => self.allocation = (None, None),
            (1, "alloc") => match (number("size"), number("count")) {
                (Some(size), Some(count)) => self.add(size, count),
                _ => self.strange += 1,
            },
            // Sum from another allocator.
            (1, "summary") => {
                if let Some(live) = attribute(attributes, "allocated") {
                    match live.trim().parse() {
                        Ok(live) => self.live = self.live.saturating_add(live),
                        Err(_) => self.strange += 1,
                    }
                }
            }
            _ => {}
        }
    }

    /// Adds an element of glibc: `<total>` and `<system>` are in each arena, and outside of the
    /// arenas once more as sums, except for the large allocations.
    fn of_glibc(&mut self, name: &str, kind: Option<&str>, size: Option<u64>) {
        let is_of_heap = matches!(&self.open[..], [_, heap] if heap == "heap");
        let sum = match (is_of_heap, name, kind) {
            (true, "system", Some("current")) => &mut self.live,
            (true, "total", Some("fast" | "rest")) => &mut self.free,
            (false, "total", Some("mmap")) => {
                self.large = self.large.saturating_add(size.unwrap_or(0));
                &mut self.live
            }
            _ => return,
        };
        match size {
            Some(size) => *sum = sum.saturating_add(size),
            None => self.strange += 1,
        }
    }

    fn add(&mut self, size: u64, count: u64) {
        self.live = self.live.saturating_add(size.saturating_mul(count));
        self.count = self.count.saturating_add(count);
    }

    fn text(&mut self, text: &str) {
        if text.is_empty() || self.version.is_none() || self.deeper > 0 {
            return;
        }
        let mut open = self.open.iter().map(String::as_str);
        let path = (open.next(), open.next(), open.next(), open.next());
        let what = match path {
            (_, Some("heap"), Some(what), None) => what,
            (_, Some("allocation"), Some(what @ ("size" | "total")), None) => what,
            (_, Some(what @ "current_allocated"), None, None) => what,
            _ => return,
        };
        let is_wanted = matches!(
            what,
            "allocated-large"
                | "allocated-huge"
                | "allocated-bins"
                | "size"
                | "total"
                | "current_allocated"
        );
        if !is_wanted {
            return;
        }
        let Ok(number) = text.parse::<u64>() else {
            self.strange += 1;
            return;
        };
        match what {
            "size" => self.allocation.0 = Some(number),
            "total" => self.allocation.1 = Some(number),
            _ => {
                self.live = self.live.saturating_add(number);
                if matches!(what, "allocated-large" | "allocated-huge") {
                    self.large = self.large.saturating_add(number);
                }
            }
        }
    }

    fn close(&mut self, name: &str) {
        if self.deeper > 0 {
            self.deeper -= 1;
            return;
        }
        // A closing tag that does not match closes everything up to the element of its name, if
        // that element is open.
        let Some(at) = self.open.iter().rposition(|open| open == name) else {
            self.strange += 1;
            return;
        };
        self.open.truncate(at);
        if at == 1 && name == "allocation" {
            match std::mem::take(&mut self.allocation) {
                (Some(size), Some(total)) => self.add(size, total),
                _ => self.strange += 1,
            }
        }
        self.closed |= at == 0 && name == "malloc" && self.version.is_some();
    }
}

/// Returns the value of an attribute: `name="value"`, or with single quotes.
fn attribute<'a>(attributes: &'a str, name: &str) -> Option<&'a str> {
    let mut rest = attributes;
    loop {
        rest = rest.trim_start();
        let (key, after) = rest.split_once('=')?;
        let after = after.trim_start();
        let quote = after.chars().next().filter(|c| matches!(c, '"' | '\''))?;
        let (value, after) = after[1..].split_once(quote)?;
        if key.trim() == name {
            return Some(value);
        }
        rest = after;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jemalloc_counts_large_huge_and_bins_and_not_each_bin_again() {
        let text = br#"<malloc version="jemalloc-1"><heap nr="0">
            <allocated-large>4096</allocated-large><allocated-huge>0</allocated-huge>
            <allocated-bins>1500</allocated-bins><bins-total>2</bins-total>
            <bin nr="0"><allocated>500</allocated><nmalloc>70</nmalloc><ndalloc>8</ndalloc></bin>
            <bin nr="1"><allocated>1000</allocated><nmalloc>9</nmalloc><ndalloc>1</ndalloc></bin>
            </heap><heap nr="1"><allocated-large>0</allocated-large>
            <allocated-huge>2097152</allocated-huge><allocated-bins>4</allocated-bins></heap>
            </malloc>"#;
        let info = parse(text).unwrap();
        assert_eq!(info.version, Version::Jemalloc);
        assert_eq!(info.live, 4096 + 1500 + 2_097_152 + 4);
        assert_eq!((info.heaps, info.large), (2, 4096 + 2_097_152));
        assert_eq!(info.count, None);
        assert!(!info.cut);
        assert_eq!(info.strange, 0);
    }

    #[test]
    fn scudo_counts_sizes_times_counts() {
        let text = "<malloc version=\"scudo-1\">\n<alloc size=\"16\" count=\"3\"/>\n\
                    <alloc size='100' count='2'/>\n</malloc>\n";
        let info = parse(text.as_bytes()).unwrap();
        assert_eq!((info.live, info.count), (248, Some(5)));
        assert!(info.is_of_small_only() && !info.cut);
    }

    #[test]
    fn malloc_debug_counts_sizes_times_totals() {
        let text = "<malloc version=\"debug-malloc-1\"><allocation nr=\"0\"><size>32</size>\
                    <total>10</total></allocation><allocation nr=\"1\"><size>8</size>\
                    <total>1</total></allocation></malloc>";
        let info = parse(text.as_bytes()).unwrap();
        assert_eq!((info.live, info.count), (328, Some(11)));
    }

    #[test]
    fn glibc_counts_the_system_s_memory_less_free_chunks_and_mapped_allocations() {
        let heap = |system: u64, fast: u64, rest: u64| {
            format!(
                "<heap nr=\"0\">\n<sizes>\n  <size from=\"17\" to=\"32\" total=\"64\" count=\"2\"/>\n\
                 </sizes>\n<total type=\"fast\" count=\"0\" size=\"{fast}\"/>\n\
                 <total type=\"rest\" count=\"1\" size=\"{rest}\"/>\n\
                 <system type=\"current\" size=\"{system}\"/>\n<system type=\"max\" size=\"9999999\"/>\n\
                 <aspace type=\"total\" size=\"{system}\"/>\n</heap>\n"
            )
        };
        let sums = "<total type=\"fast\" count=\"0\" size=\"64\"/>\n\
                    <total type=\"rest\" count=\"1\" size=\"131072\"/>\n\
                    <total type=\"mmap\" count=\"1\" size=\"200704\"/>\n\
                    <system type=\"current\" size=\"135168\"/>\n</malloc>\n";
        let one = format!(
            "<malloc version=\"1\">\n{}{sums}",
            heap(135_168, 0, 131_072)
        );
        let info = parse(one.as_bytes()).unwrap();
        assert_eq!(
            (info.version, info.live, info.large),
            (Version::Glibc, 204_800, 200_704)
        );
        assert!(!info.cut && info.heaps == 1 && info.count.is_none());
        let two = format!(
            "<malloc version=\"1\">\n{}{}{sums}",
            heap(135_168, 64, 131_072),
            heap(8192, 0, 4096)
        );
        assert_eq!(parse(two.as_bytes()).unwrap().live, 204_800 - 64 + 4096);
    }

    #[test]
    fn an_unknown_allocator_is_not_an_empty_heap() {
        let error = parse(b"<malloc version=\"mi-3\"><arena used=\"5\"/></malloc>").unwrap_err();
        assert_eq!(
            error.to_string(),
            "it is of an unknown allocator, version \"mi-3\""
        );
        let shared = b"<malloc version=\"mi-3\"><summary allocated=\"5\"/></malloc>";
        assert_eq!(parse(shared).unwrap().live, 5);
    }

    #[test]
    fn what_is_cut_off_says_so_and_what_is_none_is_refused() {
        let info = parse(b"<malloc version=\"scudo-1\"><alloc size=\"16\" count=\"3\"/><alloc si");
        let info = info.unwrap();
        assert!(info.cut);
        assert_eq!(info.live, 48);
        assert_eq!(parse(b" \n"), Err(MallocInfoError::Empty));
        let none = parse(b"Error: Unknown option: -m\x1b[31m").unwrap_err();
        assert!(
            matches!(none, MallocInfoError::NotMallocInfo { begin } if begin.contains("-m\u{fffd}"))
        );
    }

    #[test]
    fn numbers_beyond_all_bounds_and_depths_do_no_harm() {
        let huge = u64::MAX;
        let text = format!(
            "<malloc version=\"scudo-1\"><alloc size=\"{huge}\" count=\"{huge}\"/>\
             <alloc size=\"-1\" count=\"1\"/><alloc/>{}",
            "<a>".repeat(100_000)
        );
        let info = parse(text.as_bytes()).unwrap();
        assert_eq!(info.live, u64::MAX);
        assert_eq!(info.strange, 2);
        assert!(info.cut);
    }
}
