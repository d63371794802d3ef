use super::*;
use crate::names::options::NameOptions;
use heaptap_base::error::ErrorClass;
use heaptap_model::stacks::Kind;
use heaptap_proto::pprof::Profile;
use prost::Message as _;

#[test]
fn descriptors_are_types_of_the_source() {
    for (descriptor, name) in [
        (Some("Ljava/lang/String;"), "java.lang.String"),
        (Some("[B"), "byte[]"),
        (Some("[[Lcom/example/Feed$1;"), "com.example.Feed$1[][]"),
        (Some("null"), "null"),
        (Some("L;;"), ";"),
        (None, "(unknown)"),
    ] {
        assert_eq!(java_type(descriptor), name);
    }
    let deep = "[".repeat(100_000) + "I";
    assert_eq!(java_type(Some(&deep)), deep);
}

#[test]
fn a_mapping_file_gives_names_lines_and_inlined_calls() {
    let text = "com.example.Feed -> a.a:\n\
                # {\"id\":\"sourceFile\",\"fileName\":\"Feed.kt\"}\n    \
                1:3:void helper():7:9 -> a\n    \
                1:3:void bind(int):21:21 -> a\n\
                com.example.Row -> a.b:\n";
    let bytes = text.as_bytes().to_vec();
    let file = MapFile::from_bytes(bytes.into(), Path::new("mapping.txt")).unwrap();
    let namer = Namer {
        retracers: vec![Retracer::new(&file)],
    };
    assert_eq!(namer.class(Some("[La/b;")).name, "com.example.Row[]");
    let frame = MethodFrame {
        class: Some("La/a;"),
        method: Some("a"),
        file: Some("SourceFile"),
        line: Some(2),
        native: false,
    };
    let (frames, _) = namer.frames(&frame, None);
    let told: Vec<(&str, &str, u32)> = frames
        .iter()
        .map(|f| (f.name.as_str(), f.file.as_str(), f.line))
        .collect();
    assert_eq!(
        told,
        [
            ("com.example.Feed.helper", "Feed.kt", 8),
            ("com.example.Feed.bind", "Feed.kt", 21)
        ]
    );
    assert_eq!(frames[0].system_name, "a.a.a");
    let other = MethodFrame {
        class: Some("Ljava/lang/Long;"),
        method: Some("valueOf"),
        file: Some("Long.java"),
        line: Some(12),
        native: false,
    };
    let (frames, _) = namer.frames(&other, None);
    assert_eq!(frames[0].name, "java.lang.Long.valueOf");
    assert_eq!((frames[0].file.as_str(), frames[0].line), ("Long.java", 12));
}

/// A list as a runtime sends it: classes, methods, files; entries of bytes, thread, class and
/// frames.
fn list(names: [&[&str]; 3], entries: &[(u32, u16, u16, &[[u16; 4]])]) -> Vec<u8> {
    let mut body = Vec::new();
    for (bytes, thread, class, frames) in entries {
        body.extend(bytes.to_be_bytes());
        body.extend([*thread, *class].map(u16::to_be_bytes).concat());
        body.push(u8::try_from(frames.len()).unwrap());
        body.extend(frames.iter().flatten().flat_map(|n| n.to_be_bytes()));
    }
    let mut all = vec![15, 9, 8];
    all.extend(u16::try_from(entries.len()).unwrap().to_be_bytes());
    all.extend(u32::try_from(15 + body.len()).unwrap().to_be_bytes());
    all.extend(
        names
            .iter()
            .flat_map(|of| u16::try_from(of.len()).unwrap().to_be_bytes()),
    );
    all.extend(body);
    for name in names.into_iter().flatten() {
        let units: Vec<u16> = name.encode_utf16().collect();
        all.extend(u32::try_from(units.len()).unwrap().to_be_bytes());
        all.extend(units.iter().flat_map(|unit| unit.to_be_bytes()));
    }
    all
}

fn decoded(summed: Summed) -> Profile {
    Profile::decode(summed.profile.finish(&[]).as_slice()).unwrap()
}

#[test]
fn allocations_of_one_place_are_one_sample_and_the_largest_is_the_first() {
    let long = "m".repeat(MAX_NAME_LENGTH + 10);
    let bind: &[[u16; 4]] = &[[1, 0, 0, 17]];
    let other: &[[u16; 4]] = &[[1, 1, 0, 18]];
    let bytes = list(
        [&["[B", "La/Feed;"], &["bind", &long], &["Feed.kt"]],
        &[
            (16, 7, 0, bind),
            (100, 7, 0, other),
            (16, 7, 0, bind),
            (16, 8, 0, bind),
        ],
    );
    let read = Allocations::read(&bytes).unwrap();
    let summed = Summed::new(&read, &[]);
    assert_eq!(summed.space, 148);
    let profile = decoded(summed);
    let told: Vec<(i64, &[i64])> = profile
        .sample
        .iter()
        .map(|sample| (sample.label[0].num, sample.value.as_slice()))
        .collect();
    assert_eq!(
        told,
        [(7, &[1, 100][..]), (7, &[2, 32][..]), (8, &[1, 16][..])]
    );
    let dir = tempfile::tempdir().unwrap();
    let packed = Gzip::default().compress(&bytes);
    std::fs::write(dir.path().join("01-a.real.gz"), packed).unwrap();
    let kept = List {
        number: None,
        file: "01-a.real.gz".to_owned(),
        pid: 42,
        process: "a".to_owned(),
        label: None,
        time_ns: 1,
    };
    let maps = R8Mappings::open_what_opens(&NameOptions::default());
    let written = write(dir.path(), dir.path(), vec![kept], &maps).unwrap();
    assert_eq!(written.warnings[0].kind, NAMES_CUT);
    assert_eq!(written.class(None, None), None, "all figures are there");
    let file = std::fs::File::open(dir.path().join("java_allocations.1.42.pb.gz")).unwrap();
    let mut packed = Vec::new();
    GzDecoder::new(file).read_to_end(&mut packed).unwrap();
    let read = heaptap_input::read_pprof(&packed).unwrap().profile;
    let kinds: Vec<(&str, Kind)> = read
        .table
        .functions()
        .iter()
        .map(|function| (read.table.text_of(function.name), function.kind))
        .collect();
    assert!(kinds.contains(&("byte[]", Kind::Class)), "{kinds:?}");
    assert!(kinds.contains(&("a.Feed.bind", Kind::Java)), "{kinds:?}");
    let threads: Vec<(&str, i64)> = read.dumps[0]
        .threads
        .iter()
        .map(|of| (of.name.as_str(), of.values.columns[1].iter().sum()))
        .collect();
    assert_eq!(threads, [("7", 132), ("8", 16)]);
}

#[test]
fn a_list_is_read_once_however_often_a_manifest_names_it() {
    let dir = tempfile::tempdir().unwrap();
    let packed = Gzip::default().compress(&list([&["[B"], &[], &[]], &[(16, 7, 0, &[])]));
    std::fs::create_dir(dir.path().join("a")).unwrap();
    std::fs::write(dir.path().join("a/1.gz"), packed).unwrap();
    let named = |number: u32, file: &str| List {
        number: Some(number),
        file: file.to_owned(),
        pid: 42,
        process: "a".to_owned(),
        label: None,
        time_ns: 1,
    };
    let maps = R8Mappings::open_what_opens(&NameOptions::default());
    let write = |lists| write(dir.path(), dir.path(), lists, &maps).unwrap();
    let twice = write(
        ["a/1.gz", "a//1.gz", "a/./1.gz"]
            .map(|f| named(0, f))
            .to_vec(),
    );
    assert_eq!(twice.section.dumps.len(), 1);
    assert_eq!(twice.warnings.len(), 1, "{:?}", twice.warnings);
    assert!(twice.warnings[0].message.contains("skipped 2 lists"));
    assert_eq!(twice.class(None, None), Some(ErrorClass::Incomplete));
    // None of them exists; beyond the limit they are not even opened.
    let many = (0..LISTED as u32 + 7).map(|n| named(n, &format!("{n}.gz")));
    let many = write(many.collect());
    assert_eq!(many.warnings.len(), LISTED + 1);
    assert!(many.warnings[LISTED].message.contains("skipped 7 lists"));
}

#[test]
fn frames_beyond_the_room_for_them_are_one_place_and_no_figure_is_lost() {
    let frames: Vec<[u16; 4]> = (0..100).map(|line| [0, 0, 0, line]).collect();
    let entries: Vec<(u32, u16, u16, &[[u16; 4]])> =
        (0..10).map(|n| (16, n, 0, frames.as_slice())).collect();
    let bytes = list([&["La/A;"], &["run"], &["A.java"]], &entries);
    let read = Allocations::read(&bytes).unwrap();
    let within = |frames: usize, bytes: usize, places: usize| {
        let room = Room {
            frames,
            bytes,
            places,
        };
        let summed = Summed::within(&read, &[], room);
        assert_eq!(summed.space, 160);
        let left_out = summed.profile.left_out();
        let profile = decoded(summed);
        let space: i64 = profile.sample.iter().map(|sample| sample.value[1]).sum();
        assert_eq!((profile.sample.len(), space), (10, 160));
        let stacked: usize = profile.sample.iter().map(|s| s.location_id.len()).sum();
        (left_out, profile.location.len(), stacked)
    };
    let all = usize::MAX;
    assert_eq!(within(all, all, all), (0, 101, 1010));
    assert_eq!(within(40, all, all), (600, 42, 1010));
    assert_eq!(within(all, 1, all), (990, 3, 1010));
    // Two stacks and a half; then each has its class and a frame for the rest.
    assert_eq!(within(all, all, 250), (750, 102, 250 + 10 + 8));
    assert_eq!(within(all, all, 0), (1000, 3, 20));
}

#[test]
fn inlined_calls_take_the_room_of_each() {
    let inlined = "    1:1:void helper():7:7 -> a\n".repeat(200);
    let text = format!("com.example.Feed -> a.a:\n{inlined}    1:1:void bind():9:9 -> a\n");
    let file = MapFile::from_bytes(text.into_bytes().into(), Path::new("m.txt")).unwrap();
    let frames: &[[u16; 4]] = &[[0, 0, 0, 1]; 50];
    let bytes = list([&["La/a;"], &["a"], &["SourceFile"]], &[(16, 7, 0, frames)]);
    let read = Allocations::read(&bytes).unwrap();
    let room = Room {
        places: 1000,
        ..Room::WHOLE
    };
    let summed = Summed::within(&read, &[&file], room);
    assert!(summed.profile.left_out() >= 45);
    let profile = decoded(summed);
    let stacked = profile.sample[0].location_id.len();
    assert!((800..=1002).contains(&stacked), "{stacked}");
}

#[test]
fn the_line_of_an_outline_is_that_of_its_caller() {
    let text = "# {'id':'com.android.tools.r8.mapping','version':'2.2'}\n\
                x.Outline -> a:\n    1:2:int o():0:0 -> a\n\
                # {'id':'com.android.tools.r8.outline'}\n\
                x.Feed -> b:\n    4:4:int bind(int):98:98 -> c\n    \
                5:5:int bind(int):120:120 -> c\n    27:27:int bind(int):0:0 -> c\n\
                # {'id':'com.android.tools.r8.outlineCallsite','positions':{'1':4,'2':5},\
                'outline':'La;a()I'}\n";
    let file = MapFile::from_bytes(text.as_bytes().to_vec().into(), Path::new("m.txt")).unwrap();
    let stacks: [&[[u16; 4]]; 3] = [
        &[[0, 0, 0, 1], [1, 1, 0, 27]],
        &[[0, 0, 0, 2], [1, 1, 0, 27]],
        &[[1, 1, 0, 27]],
    ];
    let sizes = [64, 32, 16];
    let entries: Vec<_> = sizes
        .into_iter()
        .zip(stacks)
        .map(|(bytes, stack)| (bytes, 0, 0, stack))
        .collect();
    let bytes = list([&["La;", "Lb;"], &["a", "c"], &["SourceFile"]], &entries);
    let read = Allocations::read(&bytes).unwrap();
    let profile = decoded(Summed::new(&read, &[&file]));
    let text = |at: i64| profile.string_table[at as usize].as_str();
    let named = |id: &u64| {
        let line = profile.location[*id as usize - 1].line[0];
        let function = &profile.function[line.function_id as usize - 1];
        format!("{}:{}", text(function.name), line.line)
    };
    let told: Vec<Vec<String>> = profile
        .sample
        .iter()
        .map(|sample| sample.location_id[1..].iter().map(named).collect())
        .collect();
    assert_eq!(
        told,
        [["x.Feed.bind:98"], ["x.Feed.bind:120"], ["x.Feed.bind:0"]]
    );
}

#[test]
fn long_names_and_deep_stacks_stay_small() {
    // Each frame's name would have 16 KiB: a gigabyte in all.
    let long = ["c".repeat(MAX_NAME_LENGTH), "m".repeat(MAX_NAME_LENGTH)];
    let frames: Vec<[u16; 4]> = (0..250).map(|line| [0, 0, 0, line]).collect();
    let entries: Vec<(u32, u16, u16, &[[u16; 4]])> =
        (0..500).map(|n| (16, n, 0, frames.as_slice())).collect();
    let bytes = list([&[&long[0]], &[&long[1]], &[]], &entries);
    let read = Allocations::read(&bytes).unwrap();
    let profile = decoded(Summed::new(&read, &[]));
    assert_eq!((profile.sample.len(), profile.function.len()), (500, 2));
    let names: usize = profile.string_table.iter().map(String::len).sum();
    assert!(names < 20_000, "{names}");
}
