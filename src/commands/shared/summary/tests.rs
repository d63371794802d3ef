//! The page of a recording, line for line.

use super::*;
use heaptap_model::profile::{Figures, HeapDump};
use heaptap_results::manifest::{CompanionFile, CompanionTimeline, Companions};
use heaptap_results::summary::NamedFrame;

fn plain() -> Console {
    Console::from_raw_args(&["heaptap".into(), "--color=never".into()])
}

fn site(space: i64, frames: &[&str]) -> TopCallsite {
    TopCallsite {
        figures: Figures {
            space,
            objects: space / 4096,
            alloc_space: space * 3,
            alloc_objects: space * 3 / 4096,
        },
        frames: frames
            .iter()
            .map(|f| NamedFrame {
                function: (*f).to_owned(),
                module: "libapp.so".to_owned(),
                recursive: false,
            })
            .collect(),
    }
}

fn example() -> (Manifest, HeapSummary) {
    let dump = |number: u32, space: i64, label: Option<&str>| {
        let mut dump = manifest::Dump::new(
            number,
            &HeapDump {
                pid: 4242,
                process: "com.example.app".to_owned(),
                heap: "libc.malloc".to_owned(),
                ..HeapDump::default()
            },
            Some(format!("heap_dump.{number}.4242.libc.malloc.pb.gz")),
        );
        dump.totals.space = Some(space);
        dump.label = label.map(|name| manifest::BoundLabel {
            name: name.to_owned(),
            lag_ms: 3,
        });
        dump
    };
    let manifest = Manifest {
        dumps: manifest::Dumps {
            native: vec![
                dump(1, 1 << 20, None),
                dump(2, 5 << 20, Some("after-login")),
                dump(3, 12 << 20, None),
            ],
            java: Vec::new(),
        },
        ..Manifest::default()
    };
    let heap = HeapSummary {
        pid: 4242,
        process: "com.example.app".to_owned(),
        heap: "libc.malloc".to_owned(),
        kind: DumpKind::Cumulative,
        dumps: 3,
        totals: Figures {
            space: 12 << 20,
            objects: 3021,
            alloc_space: 88 << 20,
            alloc_objects: 1_021_332,
        },
        interval_bytes: 4096,
        callsites: 215,
        top: vec![
            site(
                9 << 20,
                &[
                    "LeakyCache::put(Key const&, std::string)",
                    "ImageLoader::decode(int)",
                    "Activity.onCreate",
                    "main",
                ],
            ),
            site(
                1 << 20,
                &[
                    "a::very::long::function::name::of::somebody::who::likes::them::so::much<int>(int)",
                ],
            ),
        ],
    };
    (manifest, heap)
}

#[test]
fn the_page_of_a_heap() {
    let (manifest, heap) = example();
    let console = plain();
    let page = |width| {
        Page {
            console: &console,
            width,
        }
        .heaps(&manifest, std::slice::from_ref(&heap))
        .remove(0)
        .join("\n")
    };
    assert_eq!(
        page(Some(72)),
        "\
com.example.app  pid 4242  libc.malloc
  unreleased    12.0 MiB  in 3,021 sampled allocations
  allocated     88.0 MiB  in 1,021,332 sampled allocations
  3 dumps: first 1.0 MiB, after-login 5.0 MiB, last 12.0 MiB

  unreleased  share  sampled  callsite
     9.0 MiB  75.0%    2,304  LeakyCache::put  ← ImageLoader::decode …
     1.0 MiB   8.3%      256  …so::much<…>
     2.0 MiB  16.7%           in other callsites"
    );
    // In a pipe nothing is cut.
    let piped = page(None);
    assert!(
        piped.contains("LeakyCache::put  ← ImageLoader::decode ← Activity.onCreate ← main\n"),
        "{piped}"
    );
    assert!(piped.contains("likes::them::so::much<…>\n"), "{piped}");
}

#[test]
fn a_rejected_heap_has_no_block_and_one_allocation_no_plural() {
    let (mut manifest, mut heap) = example();
    let console = plain();
    let page = Page {
        console: &console,
        width: None,
    };
    heap.totals.objects = 1;
    let block = page.heap(&manifest, &heap);
    assert!(
        block[1].ends_with("in 1 sampled allocation"),
        "{}",
        block[1]
    );
    manifest.dumps.native[0].flags.rejected_concurrent = true;
    let heaps = [heap];
    assert_eq!(page.heaps(&manifest, &heaps).len(), 1);
    let [mut heap] = heaps;
    heap.callsites = 0;
    assert!(page.heaps(&manifest, &[heap]).is_empty());
}

#[test]
fn a_cause_of_several_processes_is_in_the_singular_for_each() {
    let idle = |name: &str| {
        let message = format!("{name}: no samples: it is frozen (it runs later)");
        manifest::Warning::new("frozen", message).with_pid(Some(1))
    };
    let messages = |all: &[manifest::Warning]| -> Vec<String> {
        grouped(all).into_iter().map(|said| said.message).collect()
    };
    let one = "a: no samples: it is frozen (it runs later)";
    assert_eq!(messages(&[idle("a")]), [one]);
    let both = "a, b: no samples: each is frozen (it runs later)";
    assert_eq!(messages(&[idle("a"), idle("b")]), [both]);
}

#[test]
fn of_many_heaps_a_page_is_shown() {
    let (manifest, heap) = example();
    let console = plain();
    let page = Page {
        console: &console,
        width: None,
    };
    let blocks = page.heaps(&manifest, &vec![heap; 30_000]);
    let last = blocks.last().unwrap();
    assert_eq!(last.len(), OTHER_HEAPS + 1);
    assert_eq!(last.last().unwrap(), "… and 29,976 more heaps");
}

#[test]
fn every_width_is_kept() {
    let (manifest, heap) = example();
    let console = plain();
    for width in 60..200 {
        let page = Page {
            console: &console,
            width: Some(width),
        };
        for line in page.heap(&manifest, &heap) {
            assert!(
                console::measure_text_width(&line) <= width,
                "{width}: {line}"
            );
        }
    }
}

#[test]
fn the_next_commands_fit_the_recording() {
    let (mut manifest, heap) = example();
    let commands = |manifest: &Manifest, heap: &HeapSummary| -> Vec<String> {
        next_commands(
            Path::new("my out"),
            manifest,
            std::slice::from_ref(heap),
            false,
        )
        .into_iter()
        .map(|(what, command)| format!("{what} {command}"))
        .collect()
    };
    assert_eq!(
        commands(&manifest, &heap)[..3],
        [
            "growth from dump to dump, and leaks: heaptap leaks 'my out'",
            "growth from \"after-login\" to the last: heaptap diff 'my out@after-login' 'my out@3'",
            "where the memory went: heaptap top 'my out'",
        ]
    );
    // A written page is opened, and not written again.
    let heaps = std::slice::from_ref(&heap);
    let paged = next_commands(Path::new("my out"), &manifest, heaps, true);
    assert!(paged[0].1.starts_with("heaptap open "), "{paged:?}");
    assert!(!paged.iter().any(|(_, command)| command.contains("report ")));
    // A repeated label selects the last dump; the other one is selected by its number.
    let mut twice = manifest.clone();
    for dump in &mut twice.dumps.native {
        dump.label = manifest
            .dumps
            .native
            .iter()
            .find_map(|dump| dump.label.clone());
    }
    let compared = &commands(&twice, &heap)[1];
    assert!(
        compared.ends_with("heaptap diff 'my out@1' 'my out@after-login'"),
        "{compared}"
    );
    // Companion data has its own commands and files.
    let seen = Manifest {
        companion: Some(Companions {
            timeline: Some(CompanionTimeline {
                file: "memory.jsonl".to_owned(),
                collections_by_heaptap: 1,
                ..CompanionTimeline::default()
            }),
            files: vec![CompanionFile {
                what: "smaps".to_owned(),
                file: "smaps/01-end.smaps.gz".to_owned(),
                pid: 4242,
                label: None,
                number: 1,
                time_ns: 1,
            }],
            ..Companions::default()
        }),
        ..manifest.clone()
    };
    let more = companion::commands(&seen, "out");
    assert_eq!(more[0].1, "heaptap gc out");
    assert_eq!(more[1].1, "heaptap meminfo out --reconcile");
    let wrote = written(Path::new("my out"), &seen, &Wrote::recording(&[], false));
    assert!(
        wrote.contains("memory.jsonl, 1 smaps, manifest.json"),
        "{wrote}"
    );
    // Unreleased bytes of heaps without frees cannot be compared.
    let art = HeapSummary {
        kind: DumpKind::AllocationsOnly,
        ..heap.clone()
    };
    assert!(commands(&manifest, &art)[0].ends_with("heaptap top 'my out'"));
    manifest.dumps.native.truncate(1);
    let one = commands(&manifest, &heap);
    assert!(one[0].ends_with("heaptap top 'my out'"), "{one:?}");
    assert!(
        one[1].ends_with("heaptap report 'my out' --open"),
        "{one:?}"
    );
    assert!(one[2].contains("go tool pprof"), "{one:?}");
    manifest.dumps.native.clear();
    assert_eq!(commands(&manifest, &heap), Vec::<String>::new());
}

#[test]
fn long_names_are_shortened_but_stay_recognizable() {
    for (name, expected) in [
        ("foo(int, char)", "foo"),
        ("a::b<int, c<d> >::e(f) const", "a::b<…>::e"),
        ("(anonymous namespace)::f()", "(anonymous namespace)::f"),
        ("com.example.Main.<init>", "com.example.Main.<init>"),
        ("<T as core::Trait>::f", "<T as core::Trait>::f"),
        ("S::operator()(int)", "S::operator()"),
        (
            "std::vector<int>::push_back(int&&)",
            "std::vector<…>::push_back",
        ),
        ("libapp.so+0x1f0", "libapp.so+0x1f0"),
        ("malloc", "malloc"),
        ("", ""),
    ] {
        assert_eq!(short(name), expected);
    }
}

#[test]
fn what_is_said_of_several_is_said_once() {
    let warning = |pid: Option<u64>, message: &str| {
        manifest::Warning::new("k", message)
            .with_help("h")
            .with_pid(pid)
    };
    let said: Vec<String> = grouped(&[
        warning(Some(1), "a (1): it left"),
        warning(None, "the trace: it is cut"),
        warning(Some(2), "a:b (2): it left"),
        warning(Some(3), "c (3): it came"),
    ])
    .into_iter()
    .map(|said| said.message)
    .collect();
    assert_eq!(
        said,
        [
            "a (1), a:b (2): it left",
            "the trace: it is cut",
            "c (3): it came"
        ]
    );
    let many: Vec<_> = (0..9)
        .map(|n| warning(Some(n), &format!("p{n}: x")))
        .collect();
    let said = grouped(&many);
    assert_eq!(said.len(), 1);
    assert_eq!(said[0].message, "p0, p1, p2, p3, p4, p5 and 3 more: x");
}

#[test]
fn hooking_late_is_one_note() {
    let (mut manifest, _) = example();
    assert!(
        hooked_late(&manifest).is_some_and(|n| n.starts_with("com.example.app: attached after it"))
    );
    manifest.dumps.native[1].pid = 7;
    assert!(
        hooked_late(&manifest).is_some_and(|n| n.starts_with("2 processes: attached after they"))
    );
    for dump in &mut manifest.dumps.native {
        dump.flags.from_startup = true;
    }
    assert_eq!(hooked_late(&manifest), None);
}

#[test]
fn small_shares_are_not_nothing() {
    assert_eq!(share(1, 1_000_000), "<0.1%");
    assert_eq!(share(0, 10), "0.0%");
    assert_eq!(share(5, 10), "50.0%");
    assert_eq!(share(5, 0), "");
}
