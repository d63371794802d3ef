//! The log inside a bug report, and the limits of heaps from the sections outside the log.

use std::collections::BTreeMap;

use super::report::OfPhone;
use heaptap_base::units::ByteSize;
use heaptap_input::bugreport::{self, Section, Sections};
use heaptap_results::findings::Finding;

/// Maximum number of packages to store.
const MAX_PACKAGES: usize = 20_000;
/// Maximum length of a package name. The device does not install packages with longer names.
const MAX_PACKAGE_LENGTH: usize = 255;
/// Line-by-line parser of a bug report.
#[derive(Debug, Default)]
pub(super) struct Bugreport {
    year: Option<i32>,
    sections: Sections,
    /// Whether the log had any lines.
    had_log: bool,
    limits: [Option<u64>; 2],
    /// Package whose record is being read.
    package: Option<String>,
    large: BTreeMap<String, bool>,
}

/// Properties of the heap limits, without and with `android:largeHeap`.
const LIMITS: [&str; 2] = ["dalvik.vm.heapgrowthlimit", "dalvik.vm.heapsize"];

impl Bugreport {
    /// Returns a parser if `head` is the start of a bug report.
    pub(super) fn begins(head: &[u8]) -> Option<Bugreport> {
        Some(Bugreport {
            year: bugreport::year(head)?,
            ..Bugreport::default()
        })
    }

    /// Returns the year in which the report was created.
    pub(super) fn year(&self) -> Option<i32> {
        self.year
    }

    /// Parses the next line. Returns whether it belongs to the log.
    pub(super) fn is_log(&mut self, line: &str) -> bool {
        let in_log = self.sections.line(line.as_bytes()) == Some(Section::Log);
        if line.starts_with("------ ") {
            self.package = None;
        } else if !in_log {
            self.beside(line);
        }
        self.had_log |= in_log;
        in_log
    }

    /// Parses a line outside the log, such as `[dalvik.vm.heapsize]: [512m]`, or
    /// `Package [com.example] (1a2b):` followed by `flags=[ … ]`.
    fn beside(&mut self, line: &str) {
        let line = line.trim();
        if let Some(rest) = line.strip_prefix('[') {
            for (name, limit) in LIMITS.iter().zip(&mut self.limits) {
                let value = rest.strip_prefix(name).and_then(|rest| {
                    let value = rest.strip_prefix("]: [")?.strip_suffix(']')?;
                    ByteSize::parse(value).ok()
                });
                if let Some(value) = value.filter(|value| value.0 > 0) {
                    *limit = limit.or(Some(value.0));
                }
            }
        } else if let Some(rest) = line.strip_prefix("Package [") {
            let name = rest.split(']').next();
            let name = name.filter(|name| name.len() <= MAX_PACKAGE_LENGTH);
            self.package = name.map(str::to_owned);
        } else if line == "Hidden system packages:" {
            self.package = None;
        } else if let Some(flags) = line
            .strip_prefix("flags=[")
            .or_else(|| line.strip_prefix("pkgFlags=["))
            && let Some(package) = self.package.take()
            && self.large.len() < MAX_PACKAGES
        {
            let mut words = flags.split_whitespace();
            let large = words.any(|word| word.trim_end_matches(']') == "LARGE_HEAP");
            self.large.entry(package).or_insert(large);
        }
    }

    /// Returns a finding if the report does not contain a log.
    pub(super) fn finding(&self, name: &str) -> Option<Finding> {
        (!self.had_log).then(|| {
            let title = Section::Log.title();
            let message = format!("{name} is a bug report without the section {title}");
            Finding::new("bugreport-without-log", None, message)
                .with_help("take another with `adb bugreport`; this one is incomplete")
        })
    }

    /// Adds the facts from outside the log to `phone`.
    pub(super) fn tell(self, phone: &mut OfPhone) {
        let [growth, size] = self.limits;
        phone.known.limit = growth.or(size).or(phone.known.limit);
        phone.known.large_limit = size.or(phone.known.large_limit);
        phone.large.extend(self.large);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "========================================================\n\
        == dumpstate: 2025-12-31 23:59:58\n\
        ========================================================\n\
        ------ SYSTEM LOG (logcat -v threadtime -v printable -v uid -d *:v) ------\n\
        --------- beginning of main\n\
        line of the log\n\
        ------ 0.4s was the duration of 'SYSTEM LOG' ------\n\
        ------ LAST LOGCAT (logcat -L) ------\n\
        line of another boot\n\
        ------ SYSTEM PROPERTIES (getprop) ------\n\
        [dalvik.vm.heapgrowthlimit]: [256m]\n\
        [dalvik.vm.heapsize]: [512m]\n\
        ------ DUMPSYS (/system/bin/dumpsys) ------\n\
          Package [com.large] (1a):\n    flags=[ HAS_CODE LARGE_HEAP ]\n    pkgFlags=[ HAS_CODE ]\n\
          Package [com.plain] (2b):\n    pkgFlags=[ HAS_CODE ]\n";

    #[test]
    fn only_its_log_is_one_and_limits_are_known() {
        let mut report = Bugreport::begins(TEXT.as_bytes()).unwrap();
        assert_eq!(report.year(), Some(2025));
        let log: Vec<&str> = TEXT.lines().filter(|line| report.is_log(line)).collect();
        assert_eq!(log, ["--------- beginning of main", "line of the log"]);
        assert!(report.finding("a").is_none());
        let mut phone = OfPhone::default();
        report.tell(&mut phone);
        assert_eq!(phone.known.limit, Some(256 << 20));
        assert_eq!(phone.known.large_limit, Some(512 << 20));
        let of = |name| phone.of(Some(name), None).is_large;
        assert_eq!(of("com.large:remote"), Some(true));
        assert_eq!(of("com.plain"), Some(false));
        assert_eq!(of("com.other"), None);
    }

    #[test]
    fn a_name_that_no_package_has_is_not_kept() {
        let mut report = Bugreport::begins(b"== dumpstate: 2025\n").unwrap();
        for n in 0..100 {
            report.is_log(&format!("Package [{n}{}] (1a):", "x".repeat(60_000)));
            report.is_log("flags=[ LARGE_HEAP ]");
        }
        assert_eq!(report.large, BTreeMap::new());
        report.is_log("Package [com.example] (1a):");
        report.is_log("flags=[ LARGE_HEAP ]");
        assert_eq!(report.large.len(), 1);
    }

    #[test]
    fn what_has_no_head_is_no_report_and_one_without_a_log_is_told() {
        assert!(Bugreport::begins(b"01-02 03:04:05.000  1  1 I x: y\n").is_none());
        let report = Bugreport::begins(b"== dumpstate: x\n").unwrap();
        assert_eq!(report.year(), None);
        assert!(report.finding("a").is_some());
    }
}
