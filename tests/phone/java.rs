//! Java heap dumps of the phone: the data in a session on each Android release, the files of `am
//! dumpheap`, and that both describe the same heap.

use std::collections::BTreeMap;

use heaptap_proto::perfetto as pb;
use virtual_phone::{JavaDumpKind, VirtualPhone};

use crate::client::{config, phone, pull, record, run, text};
use crate::java_decode::{Dump, Hprof, heap_graphs};

/// A session as java_heap_dump starts it on this phone.
pub fn java_config(names: &[&str], android: u32) -> pb::TraceConfig {
    use pb::trace_config::buffer_config::FillPolicy;
    let mut config = config(names);
    config.buffers[0].fill_policy = Some(FillPolicy::Discard as i32);
    config.write_into_file = None;
    config.flush_period_ms = None;
    config.file_write_period_ms = None;
    config.duration_ms = Some(if android >= 12 { 1_000 } else { 20_000 });
    config.data_source_stop_timeout_ms = Some(if android >= 12 { 100_000 } else { 0 });
    let source = config.data_sources[0].config.as_mut().expect("one source");
    source.name = Some("android.java_hprof".to_owned());
    source.heapprofd_config = None;
    source.java_hprof_config = Some(pb::JavaHprofConfig {
        process_cmdline: names.iter().map(|n| (*n).to_owned()).collect(),
        ..Default::default()
    });
    config
}

fn java(config: &mut pb::TraceConfig) -> &mut pb::JavaHprofConfig {
    let source = config.data_sources[0].config.as_mut().expect("one source");
    source.java_hprof_config.as_mut().expect("made above")
}

pub const APP: &str = "com.example.app";

fn dump(phone: &VirtualPhone, config: &pb::TraceConfig) -> Vec<Dump> {
    heap_graphs(&record(phone, config))
}

#[test]
fn each_android_writes_what_it_knows() {
    for android in 11..=16 {
        let phone = phone(&format!("android={android},speed=40,java=2000"));
        let all = dump(&phone, &java_config(&[APP], android));
        let [dump] = &all[..] else {
            panic!("{android}: {} dumps", all.len());
        };
        let truth = phone.java_truth();
        let [truth] = &truth[..] else {
            panic!("{android}: {truth:?}");
        };
        assert!(dump.complete, "{android}");
        assert_eq!(
            (dump.pid, dump.timestamp),
            (u64::from(truth.pid), truth.boot_ns)
        );
        assert_eq!(dump.objects.len() as u64, truth.objects, "{android}");
        let bytes: u64 = dump.objects.values().map(|o| o.bytes).sum();
        assert_eq!(bytes, truth.shallow_bytes, "{android}");
        let activity = &dump.types["com.example.app.ui.DetailActivity"];
        assert_eq!(activity.superclass_id.is_some(), android >= 12);
        assert_eq!(activity.kind.is_some(), android >= 12);
        assert_eq!(!dump.registries.is_empty(), android >= 13);
        assert_eq!(dump.allocated.is_some(), android >= 15);
        assert_eq!(!dump.zygote.is_empty(), android >= 15);
        assert_eq!(dump.bitmaps > 0, android >= 16);
        // Every reference except those of arrays has a name.
        for object in dump.objects.values() {
            let array = object.class.ends_with("[]");
            for (name, target) in &object.references {
                assert_eq!(name.is_empty(), array, "{}: {name}", object.class);
                assert!(dump.objects.contains_key(target), "{}.{name}", object.class);
            }
        }
        for plant in &truth.planted {
            for address in &plant.addresses {
                assert!(dump.objects.contains_key(&(address / 4)), "{}", plant.what);
            }
        }
    }
}

/// The file that `am dumpheap` writes for a process.
fn hprof(phone: &VirtualPhone, options: &str, process: &str) -> Hprof {
    let file = "/data/local/tmp/x.hprof";
    let out = text(phone, &format!("am dumpheap {options} {process} {file}"));
    assert_eq!(
        out,
        format!("File: {file}\nWaiting for dump to finish...\n")
    );
    Hprof::read(&pull(phone, file).expect("the dump"))
}

#[test]
fn an_hprof_is_whole_and_every_id_in_it_leads_somewhere() {
    for android in [10, 12, 16] {
        let phone = phone(&format!("android={android},speed=40,java=2000"));
        let dump = hprof(&phone, "", APP);
        assert!(dump.ended && dump.segments > 10);
        let known = |id: u32| {
            id == 0
                || dump.classes.contains_key(&id)
                || dump.instances.contains_key(&id)
                || dump.arrays.contains_key(&id)
                || dump.primitives.contains_key(&id)
        };
        for (id, class) in &dump.classes {
            assert!(dump.names.contains_key(id));
            assert!(known(class.superclass) && known(class.loader));
            for (name, kind, value) in &class.statics {
                assert!(*kind != 2 || known(*value as u32), "{name}");
            }
        }
        for instance in dump.instances.values() {
            assert!(dump.classes.contains_key(&instance.class));
            for (name, kind, value) in dump.fields(instance) {
                assert!(kind != 2 || known(value as u32), "{name}");
            }
        }
        for (class, items) in dump.arrays.values() {
            assert!(dump.classes.contains_key(class));
            assert!(items.iter().all(|id| known(*id)));
        }
        assert!(dump.roots.keys().all(|id| known(*id)));
        // Objects from before the fork are roots.
        for (id, heap) in &dump.heaps {
            let rooted = dump.roots.get(id).is_some_and(|tags| tags.contains(&0x8d));
            assert!(*heap == b'A' || dump.made_up(*id) || rooted, "{id:#x}");
        }
        let truth = phone.java_truth().pop().expect("one dump");
        assert_eq!(truth.kind, JavaDumpKind::Hprof);
        // The tables of a class are not separate objects.
        let tables = dump.primitives.keys().filter(|id| *id % 2 == 1).count();
        let all = dump.instances.len() + dump.arrays.len() + dump.primitives.len();
        let all = all + dump.classes.len() - tables;
        assert_eq!(all as u64, truth.objects, "{android}");
    }
}

/// Objects by class: count, and their bytes in ART.
fn histogram(dump: &Hprof) -> BTreeMap<String, (u64, u64)> {
    let mut all: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    let mut add = |name: &str, bytes: u64| {
        let entry = all.entry(name.to_owned()).or_default();
        entry.0 += 1;
        entry.1 += bytes;
    };
    for (id, instance) in &dump.instances {
        let name = &dump.names[&instance.class];
        let of = &dump.classes[&instance.class];
        let text = match name.as_str() {
            "java.lang.String" => {
                let text = dump.text(*id);
                let one = text.bytes().all(|b| (1..0x80).contains(&b));
                text.encode_utf16().count() as u64 * if one { 1 } else { 2 }
            }
            _ => 0,
        };
        add(name, u64::from(of.instance_bytes) + text);
    }
    for (id, (class, items)) in &dump.arrays {
        if !dump.made_up(*id) {
            add(&dump.names[class], 12 + 4 * items.len() as u64);
        }
    }
    let kinds = [
        "boolean", "char", "float", "double", "byte", "short", "int", "long",
    ];
    for (id, (kind, data)) in &dump.primitives {
        if !dump.made_up(*id) {
            let header = if matches!(kind, 7 | 11) { 16 } else { 12 };
            let name = kinds[usize::from(*kind) - 4];
            add(&format!("{name}[]"), header + data.len() as u64);
        }
    }
    for (id, class) in &dump.classes {
        let bytes = class.statics.iter().map(|(name, kind, value)| {
            let tables = dump.primitives.get(&(*value as u32));
            let tables = tables.filter(|_| name == "$classOverhead" && *kind == 2);
            crate::java_decode::width(*kind) as u64 + tables.map_or(0, |(_, t)| t.len() as u64)
        });
        add(&format!("java.lang.Class<{}>", dump.names[id]), bytes.sum());
    }
    all
}

#[test]
fn both_forms_tell_the_same_of_one_heap() {
    // An app that does nothing has the same heap in both dumps.
    let phone = phone("android=16,speed=40,java=2000,app=idle,obfuscated=yes");
    let graphs = dump(&phone, &java_config(&[APP], 16));
    let [graph] = &graphs[..] else {
        panic!("{} dumps", graphs.len())
    };
    let hprof = hprof(&phone, "", APP);
    let mut of_graph: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for object in graph.objects.values() {
        let entry = of_graph.entry(object.class.clone()).or_default();
        entry.0 += 1;
        entry.1 += object.bytes;
    }
    let of_hprof = histogram(&hprof);
    for (class, numbers) in &of_graph {
        assert_eq!(of_hprof.get(class), Some(numbers), "{class}");
    }
    assert_eq!(of_graph.len(), of_hprof.len());
    // The references match, too: each of one is one of the other.
    let mut edges: Vec<(u64, u64)> = Vec::new();
    for (id, instance) in &hprof.instances {
        for (name, kind, value) in hprof.fields(instance) {
            let skip = name == "shadow$_klass_" || hprof.made_up(value as u32);
            if kind == 2 && value != 0 && !skip {
                edges.push((u64::from(*id) / 4, value / 4));
            }
        }
    }
    for (id, (_, items)) in &hprof.arrays {
        // Objects known only to the runtime belong to the preceding object.
        let from = id & !7;
        let items = items.iter().filter(|i| **i != 0);
        edges.extend(items.map(|i| (u64::from(from) / 4, u64::from(*i) / 4)));
    }
    for (id, class) in &hprof.classes {
        for (name, kind, value) in &class.statics {
            let skip = name == "$class$shadow$_klass_" || name == "$classOverhead";
            if *kind == 2 && *value != 0 && !skip {
                edges.push((u64::from(*id) / 4, value / 4));
            }
        }
    }
    let mut others: Vec<(u64, u64)> = graph
        .objects
        .iter()
        .flat_map(|(id, o)| o.references.iter().map(|(_, target)| (*id, *target)))
        .collect();
    edges.sort_unstable();
    others.sort_unstable();
    assert_eq!(edges, others);
    // The same seed gives the same bytes.
    let again = crate::client::phone("android=16,speed=40,java=2000,app=idle,obfuscated=yes");
    let again = dump(&again, &java_config(&[APP], 16));
    assert_eq!(again[0].objects, graph.objects);
}

#[test]
fn only_debuggable_processes_are_dumped_by_am() {
    let phone = phone("android=14,java=0");
    let refused = |process: &str| {
        let ran = run(&phone, &format!("am dumpheap {process} /data/local/tmp/y"));
        assert_eq!(ran.status, Some(255), "{ran:?}");
        ran.err
    };
    for process in [
        "com.example.profileable",
        "com.example.closed",
        "system_server",
    ] {
        assert!(refused(process).contains("java.lang.SecurityException: Process not debuggable"));
    }
    for process in ["no.such.process", "surfaceflinger", "1"] {
        assert!(refused(process).contains("IllegalArgumentException: Unknown process: "));
    }
    assert!(refused("-x com.example.app").contains("Error: Unknown option: -x"));
    assert!(refused("-b png com.example.app").contains("Error: Unknown option: -b"));
    assert!(
        refused("").contains("Process not debuggable") || refused("").contains("Unknown process")
    );
    let bare = run(&phone, "am dumpheap");
    assert!(bare.err.contains("Argument expected after"), "{bare:?}");
    let elsewhere = run(&phone, "am dumpheap com.example.app /sdcard/Download/x");
    assert_eq!(elsewhere.status, Some(255));
    assert!(
        elsewhere
            .err
            .contains("Error: Unable to open file: /sdcard/Download/x")
    );
    let made = text(&phone, "am dumpheap com.example.app");
    let file = made
        .lines()
        .next()
        .and_then(|l| l.strip_prefix("File: "))
        .expect("a file");
    assert!(file.starts_with("/data/local/tmp/heapdump-") && file.ends_with(".prof"));
    assert!(Hprof::read(&pull(&phone, file).expect("a dump")).ended);
    let native = text(
        &phone,
        "am dumpheap -n com.example.app /data/local/tmp/n; cat /data/local/tmp/n",
    );
    assert!(native.contains("Native heap dump not available"));
    let info = text(
        &phone,
        "am dumpheap -m com.example.app /data/local/tmp/m; cat /data/local/tmp/m",
    );
    assert!(info.contains("<malloc version=\"scudo-1\">"), "{info}");
}

#[test]
fn a_session_dumps_again_several_processes_and_what_may_be() {
    let phone = phone("android=14,speed=40,java=1000");
    let names = [
        APP,
        "com.example.app:service",
        "com.example.platform",
        "surfaceflinger",
    ];
    let mut config = java_config(&names, 14);
    config.duration_ms = Some(5_000);
    java(&mut config).continuous_dump_config = Some(pb::java_hprof_config::ContinuousDumpConfig {
        dump_phase_ms: None,
        dump_interval_ms: Some(2_000),
        scan_pids_only_on_start: None,
    });
    java(&mut config).dump_smaps = Some(true);
    let trace = record(&phone, &config);
    let all = heap_graphs(&trace);
    assert_eq!(all.len(), 6, "two processes, three times each");
    assert!(all.iter().all(|d| d.complete));
    let pids: std::collections::BTreeSet<u64> = all.iter().map(|d| d.pid).collect();
    assert_eq!(pids.len(), 2);
    let smaps = trace.packet.iter().filter(|p| p.smaps_packet.is_some());
    assert_eq!(smaps.count(), 6);
    let listeners: Vec<u64> = phone
        .java_truth()
        .iter()
        .filter_map(|d| d.planted.iter().find(|p| p.what == "listener-list"))
        .map(|p| p.count)
        .collect();
    assert_eq!(listeners.len(), 3);
    assert!(
        listeners.is_sorted() && listeners[0] < listeners[2],
        "{listeners:?}"
    );
    let log = text(&phone, "logcat -d -s perfetto");
    assert!(log.contains("(UID 10236) not profileable"), "{log}");
}

#[test]
fn a_buffer_that_is_too_small_cuts_the_dump() {
    let phone = phone("android=14,speed=40,java=60000");
    let mut config = java_config(&[APP], 14);
    config.buffers[0].size_kb = Some(512);
    let cut = dump(&phone, &config);
    let all: Vec<&Dump> = cut.iter().collect();
    assert_eq!(all.len(), 1);
    assert!(!all[0].complete);
    config.buffers[0].size_kb = Some(65_536);
    let whole = dump(&phone, &config);
    assert!(whole[0].complete && whole[0].packets > all[0].packets);
    assert_ne!(whole[0].sequence, 1, "a sequence of its own");
}

/// A session that waits for an app to run out of memory.
fn oom_config(name: &str, wait_ms: u32) -> pb::TraceConfig {
    use pb::trace_config::trigger_config::{Trigger, TriggerMode};
    let mut config = java_config(&[name], 14);
    config.duration_ms = None;
    config.trigger_config = Some(pb::trace_config::TriggerConfig {
        trigger_mode: Some(TriggerMode::StartTracing as i32),
        triggers: vec![Trigger {
            name: Some("com.android.telemetry.art-outofmemory".to_owned()),
            stop_delay_ms: Some(500),
            ..Default::default()
        }],
        trigger_timeout_ms: Some(wait_ms),
        ..Default::default()
    });
    let source = config.data_sources[0].config.as_mut().expect("one source");
    source.name = Some("android.java_hprof.oom".to_owned());
    config
}

#[test]
fn an_app_that_runs_out_of_memory_is_dumped_and_dies() {
    for android in [14, 16] {
        let phone = phone(&format!("android={android},speed=40,java=1000,oom=5"));
        let pid: u64 = text(&phone, "pidof com.example.app")
            .trim()
            .parse()
            .expect("a pid");
        let trace = record(&phone, &oom_config("*", 60_000));
        let dumps = heap_graphs(&trace);
        let [dump] = &dumps[..] else {
            panic!("{} dumps", dumps.len());
        };
        assert!(dump.complete && dump.pid == pid);
        assert!(trace.packet.iter().any(|p| p.trigger.is_some()));
        let told = trace
            .packet
            .iter()
            .find_map(|p| p.art_process_metadata.as_ref());
        assert_eq!(told.is_some(), android >= 16);
        if let Some(told) = told {
            assert_eq!((told.pid() as u64, told.process_name()), (pid, APP));
            assert!(told.oom_allocation_size() > told.oom_free_bytes_until_oom());
            let frames = &told.stack.as_ref().expect("a stack").frames;
            assert!(frames[0].method().contains("Arrays.copyOf"));
        }
        let gone = run(&phone, "pidof com.example.app");
        assert_eq!(gone.status, Some(1), "{gone:?}");
        let log = text(&phone, "logcat -d");
        assert!(log.contains("Throwing OutOfMemoryError \"Failed to allocate a "));
    }
}

#[test]
fn a_session_that_waits_in_vain_leaves_an_empty_file() {
    let phone = phone("android=14,speed=200,java=0");
    let pid = crate::client::start(&phone, &oom_config("com.example.chat", 60_000));
    let count = || text(&phone, "getprop traced.oome_heap_session.count");
    let armed = text(
        &phone,
        "while [ \"$(getprop traced.oome_heap_session.count)\" != 1 ]; do sleep 0.1; done; echo armed",
    );
    assert_eq!(armed, "armed\n");
    // A different app does not trigger it.
    text(&phone, "am broadcast -a com.example.app.RUN_OUT_OF_MEMORY");
    crate::client::wait_for(&phone, pid);
    assert_eq!(pull(&phone, crate::client::TRACE), Ok(Vec::new()));
    assert_eq!(count(), "0\n");
    assert_eq!(run(&phone, "pidof com.example.app").status, Some(1));
}

/// Android's own converter accepts it as a dump of ART.
#[test]
#[ignore = "needs hprof-conv: tests/run.sh runs it"]
fn judged_by_hprof_conv_it_is_a_dump_of_art() {
    let tool = crate::judge::hprof_conv();
    for (android, options) in [(10, ""), (16, "-b webp -g")] {
        let phone = phone(&format!("android={android},java=5000"));
        let file = "/data/local/tmp/x.hprof";
        text(&phone, &format!("am dumpheap {options} {APP} {file}"));
        let directory = tempfile::tempdir().expect("a temporary folder");
        let (from, to) = (directory.path().join("art"), directory.path().join("java"));
        std::fs::write(&from, pull(&phone, file).expect("a dump")).expect("room for it");
        let ran = std::process::Command::new(&tool)
            .arg(&from)
            .arg(&to)
            .output();
        let ran = ran.expect("it runs");
        assert!(ran.status.success(), "{ran:?}");
        let converted = std::fs::read(&to).expect("a file");
        assert!(converted.starts_with(b"JAVA PROFILE 1.0.2\0"));
        assert!(converted.ends_with(&[0x2c, 0, 0, 0, 0, 0, 0, 0, 0]));
    }
}

#[test]
fn bitmaps_are_drawn_into_the_dump_where_asked_for() {
    let phone = phone("android=15,speed=40,java=0");
    for (format, number, magic) in [
        ("png", 1, &b"\x89PNG"[..]),
        ("jpg", 0, b"\xff\xd8\xff"),
        ("webp", 2, b"RIFF"),
    ] {
        let dump = hprof(&phone, &format!("-b {format}"), APP);
        let class = |name: &str| {
            let found = dump.names.iter().find(|(_, n)| *n == name);
            *found.unwrap_or_else(|| panic!("no {name}")).0
        };
        let statics = &dump.classes[&class("android.graphics.Bitmap")].statics;
        let data = statics
            .iter()
            .find(|(n, _, _)| n == "dumpData")
            .expect("it has one");
        let fields = dump.fields(&dump.instances[&(data.2 as u32)]);
        let field = |name: &str| {
            let found = fields.iter().find(|(n, _, _)| n == name);
            found.unwrap_or_else(|| panic!("no {name}")).2 as u32
        };
        assert_eq!(field("format"), number);
        let (_, buffers) = &dump.arrays[&field("buffers")];
        let (_, natives) = &dump.primitives[&field("natives")];
        assert_eq!(
            (buffers.len(), natives.len()),
            (field("count") as usize, 8 * buffers.len())
        );
        for buffer in buffers {
            assert!(dump.primitives[buffer].1.starts_with(magic), "{format}");
        }
    }
    // Without a value, the option consumes the process name.
    let ran = run(&phone, &format!("am dumpheap -b {APP} /data/local/tmp/z"));
    assert_eq!(ran.status, Some(255));
    let unknown = hprof(&phone, "-b gif", APP);
    assert!(unknown.ended);
    assert!(text(&phone, "logcat -d").contains("Invalid bitmap format for heap dump: gif"));
}
