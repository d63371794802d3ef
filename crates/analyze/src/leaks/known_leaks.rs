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
    /// Ranges of API levels.
    releases: Vec<Releases>,
    makers: &'static str,
    library: &'static str,
    /// Reason of the leak, as a sentence without a period.
    pub what: &'static str,
    /// What an app can do, as an imperative without a period.
    pub remedy: Option<&'static str>,
}

/// Range of API levels, both ends included, and the ID of the only affected build.
type Releases = (i64, Option<i64>, Option<&'static str>);

/// All API levels.
const ALL: Releases = (1, None, None);

/// Returns the patterns of the table, and the packages of libraries.
fn table() -> &'static (Vec<Pattern>, Vec<&'static str>) {
    static READ: OnceLock<(Vec<Pattern>, Vec<&'static str>)> = OnceLock::new();
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
                    packages.push(column(1));
                    continue;
                }
            };
            patterns.push(Pattern {
                form,
                class: column(1),
                field: column(2),
                releases: column(3).split(',').map(releases).collect(),
                makers: column(4),
                library: column(5),
                what: column(6),
                remedy: Some(column(7)).filter(|&remedy| remedy != "-"),
            });
        }
        (patterns, packages)
    })
}

/// Parses `19-27`, `29`, `31-`, `-23`, `32@BUILD` or `*`.
fn releases(text: &'static str) -> Releases {
    let (range, build) = match text.split_once('@') {
        Some((range, build)) => (range, Some(build)),
        None => (text, None),
    };
    let (from, to) = range.split_once('-').unwrap_or((range, range));
    (from.parse().unwrap_or(ALL.0), to.parse().ok(), build)
}

/// Returns all patterns of the table.
pub(super) fn patterns() -> &'static [Pattern] {
    &table().0
}

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
        let (first, last) = (self.releases.first(), self.releases.last());
        (first.map_or(ALL.0, |r| r.0), last.and_then(|r| r.1))
    }

    /// Returns the affected versions of the library, if they are known.
    pub fn versions(&self) -> Option<&'static str> {
        self.library.split_once(" (")?.1.strip_suffix(')')
    }

    /// Returns the affected releases in words; empty for all.
    fn releases_in_words(&self) -> String {
        let ranges = self.releases.iter().map(|&(from, to, build)| {
            let range = match to {
                None => format!("{from} and later"),
                Some(to) if from == to => to.to_string(),
                Some(to) if from == ALL.0 => format!("{to} and earlier"),
                Some(to) => format!("{from} to {to}"),
            };
            range + &build.map_or_else(String::new, |build| format!(" (build {build})"))
        });
        match self.releases == [ALL] {
            true => String::new(),
            false => format!(" (API {})", ranges.collect::<Vec<_>>().join(", ")),
        }
    }

    /// Returns the pattern with the conditions that a device leaves unknown; `None` if the device
    /// is not affected.
    fn on(&'static self, device: &Device) -> Option<Known> {
        let mut unknown = Vec::new();
        let is_hit = |&&(from, to, wanted): &&Releases| {
            let in_range = |sdk| sdk >= from && to.is_none_or(|to| sdk <= to);
            let build = wanted.zip(device.build.as_deref());
            device.sdk.is_none_or(in_range) && build.is_none_or(|(wanted, build)| wanted == build)
        };
        let mut hits = self.releases.iter().filter(is_hit).peekable();
        hits.peek()?;
        if self.releases != [ALL] && device.sdk.is_none() {
            unknown.push("release");
        } else if device.build.is_none() && hits.all(|release| release.2.is_some()) {
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
        let (from_api, to_api) = self.api();
        Some(Known {
            pattern: self,
            reference: self.name(),
            whose,
            versions: self.versions(),
            from_api,
            to_api,
            what: self.what,
            workaround: self.remedy,
            unknown,
        })
    }
}

/// Known leak on the device of a dump.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Known {
    #[serde(skip)]
    pub pattern: &'static Pattern,
    /// Display name of the reference.
    pub reference: String,
    /// Owner of the code that leaks: `Android 12`, `samsung's Android`, `Glide (before 4.13.0)`.
    pub whose: String,
    /// Affected versions of a library, if they are known.
    pub versions: Option<&'static str>,
    /// First API level.
    pub from_api: i64,
    /// Last affected API level; `None` if not fixed.
    pub to_api: Option<i64>,
    /// Reason of the leak.
    pub what: &'static str,
    /// What an app can do; `None` if nothing.
    pub workaround: Option<&'static str>,
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
        format!("known leak of {}, not yours", self.whose)
    }

    /// Returns the reason, the affected releases and the next step, as sentences.
    pub(super) fn advice(&self) -> String {
        let remedy = match self.workaround {
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
        let releases = self.pattern.releases_in_words();
        let what = self.what;
        format!("This leak is not yours{releases}: {what}. {remedy}{unknown}")
    }
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
    let mut packages = table().1.iter();
    is_platform(class) || packages.any(|package| class.starts_with(package))
}
