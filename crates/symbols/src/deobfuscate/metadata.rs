//! What R8 writes as JSON comments beside the entries of a mapping file: versions, source
//! files, and notes on how code was moved. Owns their meaning and which version of the format
//! knows which; where they stand is [`super::block`]'s and [`super::index`]'s.
//!
//! | id | from version | on |
//! |---|---|---|
//! | `com.android.tools.r8.mapping` | | the file: version of all that follows |
//! | `sourceFile` | any | class |
//! | `…r8.synthesized` | 1.0 | class, field, method |
//! | `…r8.rewriteFrame`, `…r8.outline`, `…r8.outlineCallsite` | 2.0 | entry of a method |
//! | `…r8.residualsignature` | 2.2 | member |
//! | `…r8.mergedClasses` | 2.3 | class |
//!
//! Without a header only source files count. A newer 2.x is read as far as it is known.

use super::json::Json;

/// Version of the format that rules a part of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Version {
    major: u32,
    minor: u32,
}

impl Version {
    /// No header, or one that nobody knows: only source files count.
    pub const NONE: Version = Version { major: 0, minor: 0 };
    /// The newest that is known.
    const NEWEST: Version = Version { major: 2, minor: 3 };

    fn parse(text: &str) -> Option<Version> {
        if text == "experimental" {
            return Some(Version {
                major: 2,
                minor: u32::MAX,
            });
        }
        let (major, minor) = text.split_once('.')?;
        Some(Version {
            major: major.parse().ok()?,
            minor: minor.parse().ok()?,
        })
    }

    const fn of(major: u32, minor: u32) -> Version {
        Version { major, minor }
    }
}

/// What one line of metadata says.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Metadata {
    /// The version of what follows, and whether it is one that is not known in full.
    Version { version: Version, foreign: bool },
    /// File that the class was written in.
    SourceFile(String),
    /// Made by the compiler.
    Synthesized,
    /// Code that was taken out of several methods.
    Outline,
    /// A call of such code: its lines to lines of this method.
    OutlineCallsite(Vec<(u32, u32)>),
    /// Frames to leave out of a stack trace.
    RewriteFrame(Rewrite),
    /// Descriptor in the app, where it is not the original with classes renamed.
    ResidualSignature(String),
    /// Classes that were merged into one.
    MergedClasses(MergedClasses),
}

/// A rule on which inner frames of an entry to leave out.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Rewrite {
    /// Descriptors of exceptions in the app: all must be what was thrown.
    pub(super) throws: Vec<String>,
    /// A condition that is not known never holds.
    pub(super) unknown_condition: bool,
    /// How many, innermost first.
    pub(super) remove: u32,
}

/// Classes that a compiler merged into one: which of them an object is, a field of it tells.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MergedClasses {
    /// Name in the app of the field with the class's id, where it is said.
    pub id_field: Option<String>,
    /// The classes, with their ids where they have some; nested ones among them.
    pub classes: Vec<(String, Option<u32>)>,
}

/// Everything that metadata says of one entry.
#[derive(Debug, Clone, Default)]
pub(super) struct Notes {
    pub(super) synthesized: bool,
    pub(super) outline: bool,
    pub(super) callsite: Option<Vec<(u32, u32)>>,
    pub(super) rewrites: Vec<Rewrite>,
    pub(super) residual: Option<String>,
}

impl Notes {
    /// Takes a line that stands below an entry of a member.
    pub(super) fn add(&mut self, metadata: Metadata) {
        match metadata {
            Metadata::Synthesized => self.synthesized = true,
            Metadata::Outline => self.outline = true,
            Metadata::OutlineCallsite(positions) => self.callsite = Some(positions),
            Metadata::RewriteFrame(rewrite) => self.rewrites.push(rewrite),
            Metadata::ResidualSignature(signature) => self.residual = Some(signature),
            Metadata::Version { .. } | Metadata::SourceFile(_) | Metadata::MergedClasses(_) => {}
        }
    }
}

const PREFIX: &str = "com.android.tools.r8.";

/// A longer line is no metadata that a compiler wrote.
const LONGEST: usize = 1 << 20;

/// The JSON of a comment, given from behind its `#`; `None` where it is words.
pub(super) fn json_of(comment: &str) -> Option<&str> {
    let text = comment.trim();
    (text.starts_with('{') && text.len() <= LONGEST).then_some(text)
}

impl Metadata {
    /// Reads the JSON of a comment under the version that rules there. `None` for what is no
    /// JSON, is not known, or not known to that version.
    pub(super) fn parse(json: &str, version: Version) -> Option<Metadata> {
        let json = Json::parse(json)?;
        let id = json.get("id")?.text()?;
        if id == "sourceFile" {
            let name = json.get("fileName")?.text()?;
            return Some(Metadata::SourceFile(name.to_owned()));
        }
        let from = |major, minor| version >= Version::of(major, minor);
        Some(match id.strip_prefix(PREFIX)? {
            "mapping" => {
                let written = json.get("version").and_then(Json::text);
                let version = written.and_then(Version::parse);
                let known = version.filter(|version| version.major <= Version::NEWEST.major);
                Metadata::Version {
                    version: known.unwrap_or(Version::NONE),
                    foreign: known.is_none_or(|version| version > Version::NEWEST),
                }
            }
            "synthesized" if from(1, 0) => Metadata::Synthesized,
            "outline" if from(2, 0) => Metadata::Outline,
            "outlineCallsite" if from(2, 0) => {
                let positions = json.get("positions")?.entries().iter();
                Metadata::OutlineCallsite(
                    positions
                        .filter_map(|(from, to)| Some((from.trim().parse().ok()?, to.number()?)))
                        .collect(),
                )
            }
            "rewriteFrame" if from(2, 0) => Metadata::RewriteFrame(rewrite(&json)),
            "residualsignature" if from(2, 2) => {
                Metadata::ResidualSignature(json.get("signature")?.text()?.to_owned())
            }
            "mergedClasses" if from(2, 3) => {
                let mut merged = MergedClasses::default();
                merged.read(&json);
                Metadata::MergedClasses(merged)
            }
            _ => return None,
        })
    }
}

fn rewrite(json: &Json) -> Rewrite {
    let mut rewrite = Rewrite::default();
    /// `name(argument)`.
    fn call<'a>(text: &'a str, name: &str) -> Option<&'a str> {
        text.strip_prefix(name)?
            .strip_prefix('(')?
            .strip_suffix(')')
    }
    let texts = |key| json.get(key).map_or(&[][..], Json::items).iter();
    for condition in texts("conditions") {
        match condition.text().and_then(|text| call(text, "throws")) {
            Some(class) => rewrite.throws.push(class.to_owned()),
            None => rewrite.unknown_condition = true,
        }
    }
    for action in texts("actions") {
        let removed = action
            .text()
            .and_then(|text| call(text, "removeInnerFrames"));
        if let Some(count) = removed.and_then(|count| count.parse::<u32>().ok()) {
            rewrite.remove = rewrite.remove.saturating_add(count);
        }
    }
    rewrite
}

impl MergedClasses {
    /// The keys are not settled (`classIdField`, `class_id_field`, …), so classes are told by
    /// their shape: texts in arrays, and objects with a name and maybe an id.
    fn read(&mut self, json: &Json) {
        for (key, value) in json.entries() {
            match value {
                Json::Text(text) if key.to_ascii_lowercase().ends_with("field") => {
                    self.id_field.get_or_insert_with(|| text.clone());
                }
                Json::Array(items) => items.iter().for_each(|item| self.read_class(item)),
                Json::Object(_) if key.to_ascii_lowercase().contains("merged") => self.read(value),
                _ => {}
            }
        }
    }

    fn read_class(&mut self, json: &Json) {
        if let Some(name) = json.text() {
            self.classes.push((class_name(name), None));
            return;
        }
        let name = ["name", "class", "className", "original", "type"]
            .iter()
            .find_map(|key| json.get(key)?.text());
        let id = ["id", "classId", "class_id"]
            .iter()
            .find_map(|key| json.get(key)?.number());
        if let Some(name) = name {
            self.classes.push((class_name(name), id));
        }
        self.read(json);
    }
}

/// A class as the source names it, also from `La/b;`.
fn class_name(text: &str) -> String {
    let descriptor = text.strip_prefix('L').and_then(|t| t.strip_suffix(';'));
    descriptor.map_or_else(|| text.to_owned(), |class| class.replace('/', "."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(json: &str, major: u32, minor: u32) -> Option<Metadata> {
        Metadata::parse(json, Version::of(major, minor))
    }

    #[test]
    fn each_id_counts_from_its_version_on() {
        for (id, more, major, minor) in [
            ("synthesized", "", 1, 0),
            ("outline", "", 2, 0),
            (
                "outlineCallsite",
                ",'positions':{'1':4},'outline':'La;f()I'",
                2,
                0,
            ),
            (
                "rewriteFrame",
                ",conditions:['throws(Le;)'],actions:['removeInnerFrames(1)']",
                2,
                0,
            ),
            ("residualsignature", ",'signature':'()V'", 2, 2),
            ("mergedClasses", ",'classes':['x.A']", 2, 3),
        ] {
            let json = format!("{{'id':'com.android.tools.r8.{id}'{more}}}");
            assert!(parse(&json, major, minor).is_some(), "{id}");
            assert!(parse(&json, 2, 7).is_some(), "{id} in what is newer");
            let (major, minor) = if minor > 0 {
                (major, minor - 1)
            } else {
                (major - 1, 9)
            };
            assert!(parse(&json, major, minor).is_none(), "{id} before it");
        }
        let file = r#"{"id":"sourceFile","fileName":"A.kt"}"#;
        assert_eq!(
            parse(file, 0, 0),
            Some(Metadata::SourceFile("A.kt".to_owned()))
        );
        assert_eq!(parse(r#"{"id":"com.android.tools.r8.news"}"#, 2, 2), None);
        assert_eq!(parse("{'fileName':'x'}", 2, 2), None);
    }

    #[test]
    fn versions_are_known_newer_or_foreign() {
        let read = |text: &str| {
            let json = format!("{{'id':'com.android.tools.r8.mapping','version':{text}}}");
            match parse(&json, 0, 0) {
                Some(Metadata::Version { version, foreign }) => (version, foreign),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(read("'1.0'"), (Version::of(1, 0), false));
        assert_eq!(read("'2.2'"), (Version::of(2, 2), false));
        assert_eq!(read("'2.9'"), (Version::of(2, 9), true));
        assert_eq!(read("'3.0'"), (Version::NONE, true));
        assert_eq!(read("'moon'"), (Version::NONE, true));
        assert_eq!(read("2"), (Version::NONE, true));
        assert!(read("'experimental'").0 > Version::NEWEST);
    }

    #[test]
    fn rewrites_have_conditions_and_actions() {
        let json = "{'id':'com.android.tools.r8.rewriteFrame',\
            'conditions':['throws(Ljava/lang/Error;)','moon()'],\
            'actions':['removeInnerFrames(1)','removeInnerFrames(2)','dance()']}";
        let Some(Metadata::RewriteFrame(rewrite)) = parse(json, 2, 0) else {
            panic!("a rewrite");
        };
        assert_eq!(rewrite.throws, ["Ljava/lang/Error;"]);
        assert!(rewrite.unknown_condition);
        assert_eq!(rewrite.remove, 3);
    }

    #[test]
    fn merged_classes_are_found_under_any_key() {
        for json in [
            "{'id':'com.android.tools.r8.mergedClasses','classIdField':'a',\
              'classes':[{'name':'x.A','id':0},{'name':'Lx/B;','id':1}]}",
            "{'id':'com.android.tools.r8.mergedClasses','class_id_field':'a',\
              'merged':[{'class':'x.A','class_id':0,'note':'n'},{'class':'x.B','classId':'1'}]}",
        ] {
            let Some(Metadata::MergedClasses(merged)) = parse(json, 2, 3) else {
                panic!("merged classes");
            };
            assert_eq!(merged.id_field.as_deref(), Some("a"));
            let expected = [("x.A".to_owned(), Some(0)), ("x.B".to_owned(), Some(1))];
            assert_eq!(merged.classes, expected);
        }
    }
}
