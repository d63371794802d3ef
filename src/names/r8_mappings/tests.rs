//! Tests of the selection of R8 mappings for a trace, and of findings about them.

use super::*;
use crate::names::options::MappingOption;
use heaptap_model::profile::{Frame, FrameId, Mapping, Process, StringId};
use std::fs;
use std::time::{Duration, SystemTime};

const MAP: &str = "# pg_map_id: 48ffd94\ncom.example.app.Main -> a:\n    void run() -> b\n";

/// A recording of one frame `a.b` of an app's own code, with a source file.
fn recording(package: &str, source_file: &str) -> (Recording, SeenIn) {
    let mut recording = Recording::default();
    let tables = &mut recording.tables;
    let mapping = Mapping {
        path: tables.intern_str(&format!("/data/app/{package}-1/base.apk")),
        ..Mapping::default()
    };
    let frame = Frame {
        mapping: Some(tables.intern_mapping(mapping)),
        rel_pc: 1,
        name: tables.intern_str("a.b"),
        file: tables.intern_str(source_file),
        line: 0,
    };
    let frame = tables.intern_frame(frame);
    let process = Process {
        name: package.to_owned(),
        uid: Some(10_007),
        ..Process::default()
    };
    recording.processes.insert(7, process);
    (recording, SeenIn::from([(frame, BTreeSet::from([7]))]))
}

struct Files(tempfile::TempDir);

impl Files {
    fn new() -> Self {
        Files(tempfile::tempdir().unwrap())
    }

    fn write(&self, path: &str, text: &str, age: u64) -> PathBuf {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000 - age);
        let file = fs::File::options().write(true).open(&path).unwrap();
        file.set_modified(time).unwrap();
        path
    }

    fn names(&self) -> NameOptions {
        NameOptions {
            directory: self.0.path().to_owned(),
            ..NameOptions::default()
        }
    }
}

fn given(path: &Path, package: Option<&str>) -> MappingOption {
    MappingOption {
        package: package.map(str::to_owned),
        path: path.to_owned(),
    }
}

fn kinds(findings: &[Finding]) -> Vec<&str> {
    findings.iter().map(|finding| finding.kind).collect()
}

#[test]
fn a_variable_without_a_package_is_an_error_that_says_so() {
    let files = Files::new();
    files.write("mapping.txt", MAP, 0);
    let mut names = files.names();
    let mut open = |value: &str| {
        names
            .variables
            .insert(VARIABLE.to_owned(), value.to_owned());
        R8Mappings::open(&names)
    };
    let error = open("mapping.txt").unwrap_err();
    assert_eq!(error.class(), ErrorClass::Usage);
    let message = error.to_string();
    assert!(message.contains("\"mapping.txt\" has no `=`"), "{message}");
    // A missing file is reported and skipped; relative paths are resolved in the directory.
    let list = format!("com.x=gone.txt{SEPARATOR}com.example.app=mapping.txt{SEPARATOR}");
    let maps = open(&list).unwrap();
    assert_eq!(kinds(&maps.findings), ["mapping-unreadable"]);
    let [map] = &maps.given[..] else {
        panic!("one map: {maps:?}");
    };
    assert_eq!(map.package.as_deref(), Some("com.example.app"));
    assert_eq!(map.origin, Origin::Variable);
}

#[test]
fn a_given_file_that_cannot_be_used_is_fatal_unless_the_work_goes_on() {
    let files = Files::new();
    let empty = files.write("mapping.txt", "nothing\n", 0);
    let mut names = files.names();
    names.mappings.push(given(&empty, None));
    let error = R8Mappings::open(&names).unwrap_err();
    assert_eq!(
        (error.class(), error.kind()),
        (ErrorClass::BadInput, "not-a-mapping")
    );
    let maps = R8Mappings::open_what_opens(&names);
    assert_eq!(maps.findings[0].class, None, "the recording is complete");
    assert!(R8Mappings::check(&names).is_err());
    assert_eq!(kinds(&maps.findings), ["not-a-mapping"]);
}

#[test]
fn what_is_wrong_with_a_file_is_told() {
    let text = format!(
        "# {{'id':'com.android.tools.r8.mapping','version':'2.9'}}\n{MAP}    broken\ny -> a:\n"
    );
    let files = Files::new();
    let path = files.write("mapping.txt", &text, 0);
    let mut names = files.names();
    names.mappings.push(given(&path, None));
    let maps = R8Mappings::open(&names).unwrap();
    let expected = ["mapping-bad-lines", "mapping-duplicates", "mapping-version"];
    assert_eq!(kinds(&maps.findings), expected);
    let bad = &maps.findings[0].message;
    assert!(
        bad.ends_with("invalid lines: line 5: missing `->`"),
        "{bad}"
    );
}

#[test]
fn a_map_of_another_build_is_used_and_told() {
    let files = Files::new();
    let path = files.write("mapping.txt", MAP, 0);
    let mut names = files.names();
    names.mappings.push(given(&path, None));
    let maps = R8Mappings::open(&names).unwrap();
    let (other, seen) = recording("com.example.app", "r8-map-id-0000000");
    let found = maps.for_trace(&other, &NameMaps::default(), &seen, &BTreeSet::new());
    assert_eq!(kinds(&found.findings), ["mapping-other-build"]);
    assert_eq!(
        found.maps[0].1,
        BTreeSet::from(["com.example.app".to_owned()])
    );
    let (same, seen) = recording("com.example.app", "r8-map-id-48ffd9478fda");
    let found = maps.for_trace(&same, &NameMaps::default(), &seen, &BTreeSet::new());
    assert!(found.findings.is_empty(), "{:?}", found.findings);
}

/// Returns the files discovered for a recording: paths, and whether a finding explains missing
/// ones.
fn discovered(files: &Files, recording: &(Recording, SeenIn)) -> (Vec<String>, Vec<&'static str>) {
    let maps = R8Mappings::open(&files.names()).unwrap();
    let found = maps.for_trace(
        &recording.0,
        &NameMaps::default(),
        &recording.1,
        &BTreeSet::new(),
    );
    let paths = found.maps.iter().map(|(map, _)| {
        let path = map.file.path().strip_prefix(files.0.path()).unwrap();
        path.to_string_lossy().replace('\\', "/")
    });
    (
        paths.collect(),
        found.findings.iter().map(|f| f.kind).collect(),
    )
}

const RELEASE: &str = "app/build/outputs/mapping/release/mapping.txt";
const BETA: &str = "app/build/outputs/mapping/beta/mapping.txt";

#[test]
fn a_project_has_the_map_with_the_id_else_the_newest_that_fits() {
    let files = Files::new();
    files.write("settings.gradle", "", 0);
    files.write(RELEASE, MAP, 9);
    files.write(BETA, &MAP.replace("48ffd94", "1111111"), 1);
    let none = Vec::<&str>::new();
    let app = |file| recording("com.example.app", file);
    let found = discovered(&files, &app(""));
    assert_eq!(found, (vec![BETA.to_owned()], none.clone()));
    let found = discovered(&files, &app("r8-map-id-48ffd94"));
    assert_eq!(found, (vec![RELEASE.to_owned()], none.clone()));
    let found = discovered(&files, &app("r8-map-id-2222222"));
    assert_eq!(found, (vec![], vec!["mapping-not-found"]));
    // Classes of another project's app.
    let found = discovered(&files, &recording("org.other", ""));
    assert_eq!(found, (vec![], none));
}

#[test]
fn a_build_that_names_its_app_is_for_that_alone() {
    let files = Files::new();
    files.write("settings.gradle", "", 0);
    files.write(RELEASE, MAP, 9);
    let note = "{\"applicationId\": \"com.renamed\", \"variantName\": \"release\"}";
    files.write(
        "app/build/outputs/apk/release/output-metadata.json",
        note,
        0,
    );
    let (paths, _) = discovered(&files, &recording("com.example.app", ""));
    assert!(paths.is_empty());
    let (paths, _) = discovered(&files, &recording("com.renamed", ""));
    assert_eq!(paths, [RELEASE]);
}

#[test]
fn nothing_is_discovered_beside_what_was_given_or_the_trace_says() {
    let files = Files::new();
    files.write("settings.gradle", "", 0);
    let path = files.write(RELEASE, MAP, 9);
    let (recording, seen) = recording("com.example.app", "");
    let count = |names: &NameOptions, own: &NameMaps| {
        let maps = R8Mappings::open(names).unwrap();
        maps.for_trace(&recording, own, &seen, &BTreeSet::new())
            .maps
            .len()
    };
    let mut own = NameMaps::default();
    assert_eq!(count(&files.names(), &own), 1);
    let mut names = files.names();
    names.mappings.push(given(&path, None));
    assert_eq!(count(&names, &own), 1);
    names.mappings[0].package = Some("com.example.app".to_owned());
    assert_eq!(count(&names, &own), 1);
    own.entry("com.example.app").add_class("a", "b");
    assert_eq!(count(&files.names(), &own), 0);
    let quiet = NameOptions {
        discover: false,
        ..files.names()
    };
    assert_eq!(count(&quiet, &NameMaps::default()), 0);
}

#[test]
fn a_frame_without_its_file_counts_as_java_where_it_lies_in_an_app() {
    let (mut recording, _) = recording("com.example.app", "");
    assert_eq!(deobfuscate::java_frames(&recording), 1);
    let frame = *recording.tables.frame(FrameId(0));
    let path = recording.tables.intern_str("/system/lib64/libc.so");
    let mapping = recording.tables.intern_mapping(Mapping {
        path,
        ..Mapping::default()
    });
    recording.tables.intern_frame(Frame {
        mapping: Some(mapping),
        file: StringId::default(),
        ..frame
    });
    assert_eq!(deobfuscate::java_frames(&recording), 1);
}

#[test]
fn no_more_heaps_are_needed_once_each_file_named_a_frame_or_a_class() {
    let files = Files::new();
    let path = files.write("mapping.txt", "com.example.App -> a:\n", 0);
    let map = || GivenMap {
        package: None,
        file: Arc::new(MapFile::open(&path).unwrap()),
        origin: Origin::Given,
    };
    let renamed = |frames: [u64; 2]| {
        let used = frames.map(|frames_named| UsedMap {
            map: map(),
            packages: BTreeSet::new(),
            frames_named,
            classes_named: 0,
        });
        let given = vec![(map(), BTreeSet::new()), (map(), BTreeSet::new())];
        Renamed {
            maps: used.into(),
            heaps: HeapMaps::new(given, Arc::default(), Vec::new()),
            ..Renamed::default()
        }
    };
    assert!(!renamed([0, 0]).have_all_named());
    assert!(
        !renamed([1, 0]).have_all_named(),
        "heaps may need the other"
    );
    assert!(renamed([1, 2]).have_all_named());
    assert!(Renamed::default().have_all_named());
}
