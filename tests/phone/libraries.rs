//! The libraries on the phone: every library mapped in a trace exists, is readable and has the same
//! build ID; every frame is in its code, with the name that heapprofd would find.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::sync::Arc;

use heaptap_proto::perfetto as pb;
use heaptap_symbols::symbolize::file::{Alone, Bytes, SourceLine, SymbolFile};
use object::{Object as _, ObjectSegment as _, SegmentFlags};
use virtual_phone::{Abi, VirtualPhone, unstripped_libraries};

use crate::client::{config, heapprofd, phone, pull, record, text};

struct Frame {
    path: String,
    build_id: Vec<u8>,
    start_offset: u64,
    exact_offset: u64,
    load_bias: u64,
    size: u64,
    function: String,
    rel_pc: u64,
}

/// Every frame of a recording of com.example.app.
fn frames(phone: &VirtualPhone) -> Vec<Frame> {
    let mut config = config(&["com.example.app"]);
    config.duration_ms = Some(6_000);
    heapprofd(&mut config).sampling_interval_bytes = Some(256);
    let trace = record(phone, &config);
    let mut all = pb::InternedData::default();
    for data in trace.packet.into_iter().filter_map(|p| p.interned_data) {
        all.mappings.extend(data.mappings);
        all.frames.extend(data.frames);
        all.function_names.extend(data.function_names);
        all.build_ids.extend(data.build_ids);
        all.mapping_paths.extend(data.mapping_paths);
    }
    let strings = |table: &[pb::InternedString]| -> BTreeMap<u64, Vec<u8>> {
        let entries = table.iter();
        entries.map(|s| (s.iid(), s.str().to_vec())).collect()
    };
    let (names, ids) = (strings(&all.function_names), strings(&all.build_ids));
    let parts = strings(&all.mapping_paths);
    let mappings: BTreeMap<u64, &pb::Mapping> = all.mappings.iter().map(|m| (m.iid(), m)).collect();
    let lossy = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let frame = |frame: &pb::Frame| {
        let m = mappings[&frame.mapping_id()];
        let path = m.path_string_ids.iter();
        Frame {
            path: path.map(|id| format!("/{}", lossy(&parts[id]))).collect(),
            build_id: ids[&m.build_id()].clone(),
            start_offset: m.start_offset(),
            exact_offset: m.exact_offset(),
            load_bias: m.load_bias(),
            size: m.end() - m.start(),
            function: lossy(&names[&frame.function_name_id()]),
            rel_pc: frame.rel_pc(),
        }
    };
    all.frames.iter().map(frame).collect()
}

#[test]
fn what_is_mapped_lies_on_the_phone_and_frames_stand_in_its_code() {
    for spec in [
        "speed=50",
        "speed=50,abi=armeabi-v7a,android=11",
        "speed=50,abi=x86_64,stripped=no",
        "speed=50,abi=x86,android=16",
    ] {
        let phone = phone(spec);
        let mut files: BTreeMap<String, Vec<u8>> = BTreeMap::new();
        for frame in frames(&phone).iter().filter(|f| !f.build_id.is_empty()) {
            let path = frame.path.split('!').next().expect("a part");
            let bytes = files
                .entry(frame.path.clone())
                .or_insert_with(|| pull(&phone, path).unwrap_or_else(|e| panic!("{path}: {e}")));
            let elf = object::File::parse(&bytes[frame.start_offset as usize..])
                .unwrap_or_else(|e| panic!("{spec} {}: {e}", frame.path));
            let id = elf.build_id().expect("notes").expect("a build id");
            assert_eq!(id, frame.build_id, "{spec} {}", frame.path);
            let code = elf
                .segments()
                .find(|s| matches!(s.flags(), SegmentFlags::Elf { p_flags, .. } if p_flags.0 & 1 != 0))
                .expect("code");
            assert!(
                (code.address()..code.address() + code.size()).contains(&frame.rel_pc),
                "{spec} {}+{:x}",
                frame.path,
                frame.rel_pc
            );
            // libunwindstack's arithmetic, backwards.
            assert_eq!(frame.load_bias, code.address() - code.file_range().0);
            let in_file = frame.rel_pc - frame.load_bias + frame.start_offset;
            let mapped = frame.exact_offset..frame.exact_offset + frame.size;
            assert!(mapped.contains(&in_file), "{spec} {}", frame.path);
        }
        // libandroidfw is used only at the start of the app.
        assert_eq!(files.len(), 12, "{spec}: {:?}", files.keys());
    }
}

#[test]
fn heapprofd_names_what_the_files_name() {
    let named = |spec: &str| -> (Vec<String>, Vec<String>) {
        let phone = phone(spec);
        let (mut named, mut nameless) = (Vec::new(), Vec::new());
        for frame in frames(&phone) {
            let module = frame.path.rsplit(['/', '!']).next().expect("a part");
            let row = format!("{module} {}", frame.function);
            match frame.function.is_empty() {
                true => nameless.push(module.to_owned()),
                false => named.push(row),
            }
        }
        nameless.sort();
        nameless.dedup();
        (named, nameless)
    };
    let append = "libexample.so _ZN7example9telemetry12EventHistory6AppendEPKhm".to_owned();
    let internal = "libc.so __start_thread".to_owned();
    let java = "base.odex com.example.app.feed.FeedPresenter.refresh".to_owned();

    let (all, nameless) = named("speed=50");
    assert_eq!(nameless, ["libengine.so", "libexample.so", "libjson.so"]);
    assert!(all.contains(&internal) && all.contains(&java), "{all:?}");
    assert!(!all.contains(&append), "{all:?}");
    let jni = "libexample.so Java_com_example_app_telemetry_Telemetry_subscribe";
    assert!(all.iter().any(|row| row == jni), "{all:?}");

    let (all, nameless) = named("speed=50,stripped=no,obfuscated=yes");
    assert_eq!(nameless, ["libengine.so"]);
    assert!(all.contains(&append), "{all:?}");
    assert!(all.contains(&"base.odex a.b.a".to_owned()), "{all:?}");
    assert!(!all.contains(&java), "{all:?}");

    let (all, nameless) = named("speed=50,names=exported");
    assert!(nameless.contains(&"libc.so".to_owned()), "{nameless:?}");
    assert!(all.contains(&"libc.so malloc".to_owned()), "{all:?}");
    assert!(!all.contains(&internal), "{all:?}");
}

#[test]
fn the_shell_sees_the_libraries() {
    let phone = phone("");
    assert!(text(&phone, "ls /system/lib64").contains("libbinder.so"));
    // The library of the system is that of the runtime's module.
    let sums = text(
        &phone,
        "sha256sum /system/lib64/libc.so /apex/com.android.runtime/lib64/bionic/libc.so",
    );
    let sums: Vec<&str> = sums
        .lines()
        .filter_map(|line| line.split(' ').next())
        .collect();
    assert!(sums.len() == 2 && sums[0] == sums[1], "{sums:?}");
    let code = text(&phone, "pm path com.example.app");
    let code = code
        .trim()
        .trim_start_matches("package:")
        .trim_end_matches("/base.apk");
    for name in [
        "base.apk",
        "lib/arm64/libexample.so",
        "oat/arm64/base.odex",
        "oat/arm64/base.vdex",
    ] {
        let path = format!("{code}/{name}");
        assert_eq!(
            text(&phone, &format!("ls -d '{path}'")),
            format!("{path}\n")
        );
    }
    let stat = text(
        &phone,
        &format!("stat -c '%u %s' '{code}/lib/arm64/libexample.so'"),
    );
    let library = phone.file(&format!("{code}/lib/arm64/libexample.so"));
    let size = library.expect("it is there").len();
    assert_eq!(stat, format!("1000 {size}\n"));
}

#[test]
fn the_archive_is_small_and_has_two_libraries_with_symbols() {
    let archive = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/crates/virtual-phone/image/libraries.tar.xz"
    );
    let bytes = std::fs::metadata(archive).expect("the archive").len();
    assert!(bytes < 80 << 10, "it is part of the program: {bytes}");
    assert_eq!(unstripped_libraries(Abi::Arm64).count(), 2);
}

#[test]
fn every_call_in_the_apps_libraries_has_the_lines_that_llvm_symbolizer_gives() {
    let table = include_str!("../../fixtures/phone/expected.tsv");
    let mut addresses = 0;
    for abi in Abi::ALL {
        for (name, bytes) in unstripped_libraries(abi) {
            let mut expected: Vec<(u64, &str)> = table
                .lines()
                .filter_map(|row| match row.split('\t').collect::<Vec<_>>()[..] {
                    [of, library, address, frames] if of == abi.name() && library == name => {
                        Some((u64::from_str_radix(address, 16).expect("hex"), frames))
                    }
                    _ => None,
                })
                .collect();
            expected.sort_unstable();
            let wanted: Vec<u64> = expected.iter().map(|(address, _)| *address).collect();
            let bytes = Bytes::from(bytes.to_vec());
            let file = SymbolFile::open(bytes, Arc::new(Alone)).expect("an ELF file");
            let mut found = vec![String::new(); wanted.len()];
            file.lookup(&wanted, NonZero::<usize>::MIN, &mut |at, lines| {
                let line = |l: &SourceLine<'_>| {
                    let file = l.file.rsplit('/').next().unwrap_or_default();
                    format!("{}@{file}:{}", l.linkage, l.line)
                };
                found[at] = lines.iter().map(line).collect::<Vec<_>>().join(" ");
            });
            for ((address, frames), found) in expected.iter().zip(&found) {
                assert_eq!(found, frames, "{} {name} {address:x}", abi.name());
            }
            addresses += wanted.len();
        }
    }
    assert_eq!(addresses, table.lines().count());
}
