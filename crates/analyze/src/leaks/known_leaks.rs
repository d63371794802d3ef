//! Leaks for which the app is not to blame: references through which Android, changes of
//! manufacturers, and libraries leak. `known_leaks.txt` lists them with their releases; it also
//! lists references that are never followed, and packages of libraries.

use std::sync::OnceLock;

use heaptap_model::heap_graph::Device;
use heaptap_model::names::platform::is_platform;

/// Table of references and packages; its first lines describe the format.
const TABLE: &str = include_str!("known_leaks.txt");

/// Form of a reference in the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Instance field.
    Instance,
    /// Static field.
    Static,
    /// Instance of a class as a JNI global root.
    JniGlobal,
    /// Field that is never followed.
    Ignored,
    /// Field of a weak reference whose referent is followed at the lowest level.
    WeakTarget,
}

/// Reference of the table.
#[derive(Debug, PartialEq, Eq)]
pub struct Pattern {
    pub form: Form,
    /// Class with the field; `#` is a number, a final `*` any text.
    pub class: &'static str,
    /// Field; `*` is any field that the class declares.
    pub field: &'static str,
    releases: &'static str,
    makers: &'static str,
    library: &'static str,
    /// Reason of the leak, as a sentence without a period.
    pub what: &'static str,
    /// What an app can do, as an imperative without a period.
    pub remedy: Option<&'static str>,
}

/// Package of a library and the library's name.
type Package = (&'static str, &'static str);

fn table() -> &'static (Vec<Pattern>, Vec<Package>) {
    static READ: OnceLock<(Vec<Pattern>, Vec<Package>)> = OnceLock::new();
    READ.get_or_init(|| {
        let lines = TABLE.lines();
        let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
        let (mut patterns, mut packages) = (Vec::new(), Vec::new());
        for line in lines {
            let columns: Vec<&str> = line.split(" | ").collect();
            let column = |at: usize| columns.get(at).copied().unwrap_or("-");
            let form = match column(0) {
                "I" => Form::Instance,
                "S" => Form::Static,
                "N" => Form::JniGlobal,
                "X" => Form::Ignored,
                "W" => Form::WeakTarget,
                _ => {
                    packages.push((column(1), column(2)));
                    continue;
                }
            };
            let releases = column(3);
            patterns.push(Pattern {
                form,
                class: column(1),
                field: column(2),
                releases: if releases == "-" { "*" } else { releases },
                makers: column(4),
                library: column(5),
                what: column(6),
                remedy: Some(column(7)).filter(|&remedy| remedy != "-"),
            });
        }
        (patterns, packages)
    })
}

/// Returns all patterns of the table.
pub(super) fn patterns() -> &'static [Pattern] {
    &table().0
}

/// Range of API levels, both ends included, and the ID of the only affected build.
type Releases = (i64, Option<i64>, Option<&'static str>);

impl Pattern {
    /// Returns the display name: `android.os.Message.obj`; for a root, its class.
    pub fn name(&self) -> String {
        match self.form {
            Form::JniGlobal => self.class.to_owned(),
            _ => format!("{}.{}", self.class, self.field),
        }
    }

    /// Returns the first and the last affected API level.
    pub fn api(&self) -> (i64, Option<i64>) {
        let (first, last) = (self.releases().next(), self.releases().last());
        (first.map_or(1, |r| r.0), last.and_then(|r| r.1))
    }

    /// Returns the affected versions of the library, if they are known.
    pub fn versions(&self) -> Option<&'static str> {
        self.library.split_once(" (")?.1.strip_suffix(')')
    }

    fn releases(&self) -> impl Iterator<Item = Releases> {
        self.releases.split(',').map(|part| {
            let (range, build) = match part.split_once('@') {
                Some((range, build)) => (range, Some(build)),
                None => (part, None),
            };
            let (from, to) = range.split_once('-').unwrap_or((range, range));
            (from.parse().unwrap_or(1), to.parse().ok(), build)
        })
    }

    /// Returns the affected releases in words; empty for all.
    fn releases_in_words(&self) -> String {
        let ranges = self.releases().map(|(from, to, build)| {
            let range = match to {
                None => format!("{from} and later"),
                Some(to) if from == to => to.to_string(),
                Some(to) if from == 1 => format!("{to} and earlier"),
                Some(to) => format!("{from} to {to}"),
            };
            range + &build.map_or_else(String::new, |build| format!(" (build {build})"))
        });
        match self.releases {
            "*" => String::new(),
            _ => format!(" (API {})", ranges.collect::<Vec<_>>().join(", ")),
        }
    }

    /// Returns the pattern with the conditions that a device leaves unknown; `None` if the device
    /// is not affected.
    fn on(&'static self, device: &Device) -> Option<Known> {
        let mut unknown = Vec::new();
        let in_range = |&(from, to, _): &Releases| {
            let sdk = device.sdk;
            sdk.is_none_or(|sdk| sdk >= from && to.is_none_or(|to| sdk <= to))
        };
        let is_build = |release: &Releases| match (release.2, &device.build) {
            (Some(wanted), Some(build)) => wanted == build,
            _ => true,
        };
        let hits = || self.releases().filter(in_range).filter(is_build);
        hits().next()?;
        if self.releases != "*" && device.sdk.is_none() {
            unknown.push("release");
        } else if device.build.is_none() && hits().all(|release| release.2.is_some()) {
            unknown.push("build");
        }
        if self.makers != "-" {
            let (makers, is_other) = match self.makers.strip_prefix('!') {
                Some(makers) => (makers, true),
                None => (self.makers, false),
            };
            match &device.manufacturer {
                Some(maker) if maker.eq_ignore_ascii_case(makers) == is_other => return None,
                Some(_) => {}
                None => unknown.push("manufacturer"),
            }
        }
        if self.versions().is_some() {
            unknown.push("version");
        }
        let whose = match (self.library, self.makers, &device.manufacturer) {
            ("-", "-", _) => {
                let release = device.sdk.map(|sdk| format!(" {}", release(sdk)));
                format!("Android{}", release.unwrap_or_default())
            }
            ("-", maker, None) if maker.starts_with('!') => "the device's manufacturer".to_owned(),
            ("-", maker, Some(found)) if maker.starts_with('!') => format!("{found}'s Android"),
            ("-", maker, _) => format!("{maker}'s Android"),
            (library, ..) => library.to_owned(),
        };
        Some(Known {
            pattern: self,
            whose,
            unknown,
        })
    }
}

/// Known leak on the device of a dump.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    pub pattern: &'static Pattern,
    /// Owner of the code that leaks: `Android 12`, `samsung's Android`, `Glide (before 4.13.0)`.
    pub whose: String,
    /// Conditions that the dump does not tell, so that the reference decides: `release`, `build`,
    /// `manufacturer`, `version`.
    pub unknown: Vec<&'static str>,
}

impl Known {
    /// Returns the patterns that apply to a device.
    pub(super) fn on(device: &Device) -> Vec<Known> {
        let patterns = patterns().iter();
        patterns.filter_map(|pattern| pattern.on(device)).collect()
    }

    /// Returns a title such as `known leak of Android 12, not yours`.
    pub fn title(&self) -> String {
        title(&self.whose)
    }

    /// Returns the reason, the affected releases and the next step, as sentences.
    pub(super) fn advice(&self) -> String {
        let pattern = self.pattern;
        let remedy = match pattern.remedy {
            Some(remedy) => format!("To avoid it, {remedy}."),
            None => "App code cannot fix it; the leak ends when its owner clears the reference."
                .to_owned(),
        };
        let unknown = match &self.unknown[..] {
            [] => String::new(),
            all => {
                let mut all = all.join(" and ");
                all[..1].make_ascii_uppercase();
                format!(" {all} unknown: the reference alone decides.")
            }
        };
        let releases = pattern.releases_in_words();
        let what = pattern.what;
        format!("This leak is not yours{releases}: {what}. {remedy}{unknown}")
    }
}

/// Returns the title of a known leak of that owner: `known leak of Android 12, not yours`.
pub fn title(whose: &str) -> String {
    format!("known leak of {whose}, not yours")
}

/// Returns the version of Android with an API level.
fn release(sdk: i64) -> String {
    match sdk {
        21 => "5.0".to_owned(),
        22 => "5.1".to_owned(),
        23 => "6".to_owned(),
        24 => "7.0".to_owned(),
        25 => "7.1".to_owned(),
        26 => "8.0".to_owned(),
        27 => "8.1".to_owned(),
        28..=31 => (sdk - 19).to_string(),
        32 => "12L".to_owned(),
        33.. => (sdk - 20).to_string(),
        _ => format!("of API {sdk}"),
    }
}

/// Returns whether a class name matches that of a pattern.
pub(super) fn matches(pattern: &str, class: &str) -> bool {
    if let Some(start) = pattern.strip_suffix('*') {
        return class.starts_with(start);
    }
    match pattern
        .strip_suffix('#')
        .and_then(|start| class.strip_prefix(start))
    {
        Some(number) => !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()),
        None => pattern == class,
    }
}

/// Returns whether a class is not the app's: it belongs to the platform or to a library, by its
/// package.
pub(super) fn is_library(class: &str) -> bool {
    is_platform(class)
        || table()
            .1
            .iter()
            .any(|(package, _)| class.starts_with(package))
}
