//! Names of frames from packets: R8 mappings, entries and limits.

use super::*;
use crate::deobfuscate::app_map::{MapSource, Scope};
use crate::deobfuscate::lookup::OR;
use heaptap_model::profile::{Frame, FrameId, Mapping, NameMaps, Package, PacketLines, Process};
use std::collections::BTreeSet;

/// A recording of frames, each seen in process 7.
struct Scene {
    recording: Recording,
    seen: SeenIn,
    maps: NameMaps,
}

impl Scene {
    fn new() -> Self {
        Scene {
            recording: Recording::default(),
            seen: SeenIn::new(),
            maps: NameMaps::default(),
        }
    }

    fn frame_at(&mut self, path: &str, name: &str, rel_pc: u64) -> FrameId {
        let tables = &mut self.recording.tables;
        let mapping = Mapping {
            path: tables.intern_str(path),
            ..Mapping::default()
        };
        let mapping = Some(tables.intern_mapping(mapping));
        let frame = Frame {
            mapping,
            rel_pc,
            name: tables.intern_str(name),
            file: StringId::default(),
            line: 0,
        };
        let id = tables.intern_frame(frame);
        self.seen.entry(id).or_default().insert(7);
        id
    }

    fn frame(&mut self, path: &str, name: &str) -> FrameId {
        self.frame_at(path, name, 0)
    }

    fn line(&mut self, frame: FrameId, lines: &[(&str, u32)]) {
        let tables = &mut self.recording.tables;
        let lines: Vec<Line> = lines
            .iter()
            .map(|&(function, line)| Line {
                function: tables.intern_str(function),
                linkage: StringId::default(),
                file: StringId::default(),
                line,
            })
            .collect();
        let row = self.recording.symbols.add_lines(&lines).unwrap();
        self.recording.symbols.set_lines(frame, row);
    }

    fn apply(&mut self) -> Vec<u64> {
        let maps: Vec<AppMap> = self
            .maps
            .iter()
            .map(|(package, map)| AppMap {
                scope: Scope::Package(package.to_owned()),
                source: MapSource::Packets(map),
            })
            .collect();
        apply(&mut self.recording, &self.seen, &maps)
    }

    fn name(&self, frame: FrameId) -> &str {
        let name = self.recording.symbols.name(frame);
        let name = name.unwrap_or(self.recording.tables.frame(frame).name);
        self.recording.tables.string(name)
    }

    fn lines(&self, frame: FrameId) -> Vec<(&str, u32)> {
        let lines = self.recording.symbols.lines(frame).iter();
        let text = |id| self.recording.tables.string(id);
        lines.map(|line| (text(line.function), line.line)).collect()
    }
}

fn lines(first: u32, last: u32, source: u32) -> PacketLines {
    PacketLines {
        obfuscated_start: Some(first),
        obfuscated_end: Some(last),
        source_start: Some(source),
        source_end: None,
    }
}

const APK: &str = "/data/app/com.x-Ab1==/base.apk";

#[test]
fn a_method_has_its_name_and_an_unknown_one_that_of_its_class() {
    let mut scene = Scene::new();
    let map = scene.maps.entry("com.x");
    map.add_class("a", "com.x.Main");
    map.add_method("f", "run", PacketLines::default());
    let known = scene.frame(APK, "a.f");
    let unknown = scene.frame(APK, "a.g");
    let foreign = scene.frame(APK, "b.f");
    let deduped = scene.frame(APK, "[DEDUPED] a.?");
    let typed = scene.frame("/data/app/com.x-A/oat/arm64/base.odex", "int a.f(b, int[])");
    let native = scene.frame("/data/app/com.x-A/base.apk!libx.so", "a.cold");
    let other = scene.frame("/data/app/com.y-A/base.apk", "a.f");
    let applied = scene.apply();
    assert_eq!(scene.name(known), "com.x.Main.run");
    assert_eq!(scene.name(unknown), "com.x.Main.g");
    assert_eq!(scene.name(foreign), "b.f");
    assert_eq!(scene.name(deduped), "[DEDUPED] com.x.Main.?");
    assert_eq!(scene.name(typed), "com.x.Main.run");
    assert_eq!(scene.name(native), "a.cold");
    assert_eq!(scene.name(other), "a.f");
    assert_eq!(applied, [4]);
}

#[test]
fn without_a_line_inlined_calls_are_no_candidates() {
    let mut scene = Scene::new();
    let map = scene.maps.entry("com.x");
    map.add_class("a", "A");
    map.add_method("f", "U.inlined", lines(1, 1, 7));
    map.add_method("f", "real", lines(1, 1, 20));
    map.add_method("f", "other", lines(2, 2, 30));
    let frame = scene.frame(APK, "a.f");
    scene.apply();
    assert_eq!(scene.name(frame), "A.other | A.real");
}

#[test]
fn a_line_gives_the_calls_that_were_inlined_there() {
    let mut scene = Scene::new();
    let map = scene.maps.entry("com.x");
    map.add_class("a", "A");
    map.add_method("f", "U.inlined", lines(1, 1, 7));
    map.add_method("f", "real", lines(1, 1, 20));
    map.add_method("g", "one", PacketLines::default());
    map.add_method("g", "two", PacketLines::default());
    let frame = scene.frame_at(APK, "a.f", 1);
    scene.line(frame, &[("a.f", 1), ("a.g", 3), ("native", 5)]);
    let outside = scene.frame_at(APK, "a.f", 2);
    scene.line(outside, &[("a.f", 9)]);
    scene.apply();
    let expected = [
        ("U.inlined", 7),
        ("A.real", 20),
        ("A.one | A.two", 0),
        ("native", 5),
    ];
    assert_eq!(scene.lines(frame), expected);
    assert_eq!(scene.lines(outside), [("A.real", 0)]);
}

#[test]
fn code_compiled_in_memory_is_first_of_all_the_apps_it_runs_in() {
    let mut scene = Scene::new();
    for package in ["com.a", "com.x"] {
        let map = scene.maps.entry(package);
        map.add_class("a", package);
        map.add_method("f", "run", PacketLines::default());
    }
    let jit = scene.frame("/memfd:jit-cache (deleted)", "a.f");
    scene.apply();
    assert_eq!(scene.name(jit), "com.a.run");
    let process = Process {
        name: "com.x:remote".to_owned(),
        uid: None,
        ..Process::default()
    };
    scene.recording.processes.insert(7, process);
    scene.apply();
    assert_eq!(scene.name(jit), "com.x.run");
    // R8 mappings of other apps do not apply to it.
    let foreign = scene.frame("/memfd:jit-cache (deleted)", "a.g");
    scene.seen.insert(foreign, BTreeSet::from([8]));
    let process = Process {
        name: "com.y".to_owned(),
        uid: None,
        ..Process::default()
    };
    scene.recording.processes.insert(8, process);
    scene.apply();
    assert_eq!(scene.name(foreign), "a.g");
}

#[test]
fn many_frames_of_one_method_cost_no_more_than_one() {
    let mut scene = Scene::new();
    let map = scene.maps.entry("com.x");
    map.add_class("a", "C");
    for n in 0..20_000 {
        map.add_method("b", &format!("m{n}"), PacketLines::default());
    }
    let frames: Vec<FrameId> = (0..20_000)
        .map(|n| scene.frame(APK, &format!("void a.b(t{n})")))
        .collect();
    scene.apply();
    assert!(scene.name(frames[19_999]).starts_with("C.m0 | C.m1 | "));
}

#[test]
fn code_of_an_unknown_place_is_of_the_packages_of_its_processes() {
    let mut scene = Scene::new();
    let map = scene.maps.entry("com.system");
    map.add_class("a", "com.system.Main");
    map.add_method("f", "run", PacketLines::default());
    let frame = scene.frame("/system/priv-app/System/System.apk", "a.f");
    scene.apply();
    assert_eq!(scene.name(frame), "a.f");
    let process = Process {
        name: "anything".to_owned(),
        uid: Some(10_037),
        ..Process::default()
    };
    scene.recording.processes.insert(7, process);
    scene.recording.packages = vec![Package {
        name: "com.system".to_owned(),
        uid: 1_010_037,
        ..Package::default()
    }];
    scene.apply();
    assert_eq!(scene.name(frame), "com.system.Main.run");
}

#[test]
fn open_ranges_do_not_multiply() {
    let mut scene = Scene::new();
    let map = scene.maps.entry("com.x");
    map.add_class("a", "C");
    for n in 0..1000 {
        map.add_method("b", &format!("m{n}"), lines(1, 9, 1));
        map.add_method("c", &format!("m{n}"), PacketLines::default());
    }
    let frames: Vec<FrameId> = (0..500).map(|n| scene.frame_at(APK, "a.b", n)).collect();
    for &frame in &frames {
        scene.line(frame, &[("a.b", 3); 9]);
    }
    let many = scene.frame(APK, "a.c");
    let before = scene.recording.symbols.held();
    scene.apply();
    assert_eq!(scene.recording.symbols.held() - before, MAX_COUNT);
    assert_eq!(scene.lines(frames[499]).len(), MAX_COUNT);
    let name = scene.name(many);
    assert!(name.starts_with("C.m0 | C.m1 | C.m10 | "), "{name}");
    assert_eq!(name.split(OR).count(), MAX_COUNT);
}
