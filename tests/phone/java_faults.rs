//! Failures of Java heap dumps: apps that die, hang or freeze, full disks, lost packets, and the
//! result of each.

use virtual_phone::{Fault, FaultKind, VirtualPhone};

use crate::client::{open, phone, pull, read_shell, record, run, text};
use crate::java::{APP, java_config};
use crate::java_decode::heap_graphs;

const FILE: &str = "/data/local/tmp/x.hprof";

fn dump(phone: &VirtualPhone) -> crate::client::Ran {
    run(phone, &format!("am dumpheap {APP} {FILE}"))
}

/// Waits on the phone until the file has at least that many bytes.
fn wait_for_bytes(phone: &VirtualPhone, bytes: u64) {
    let size = format!("$(stat -c %s {FILE} 2>/dev/null || echo 0)");
    text(
        phone,
        &format!("while [ {size} -lt {bytes} ]; do sleep 0.2; done"),
    );
}

#[test]
fn a_full_disk_leaves_an_empty_file_and_says_nothing() {
    let phone = phone("android=14,speed=40,java=1000,fault=disk-full@20000");
    let ran = dump(&phone);
    assert_eq!((ran.status, ran.err.as_str()), (Some(0), ""));
    assert_eq!(pull(&phone, FILE), Ok(Vec::new()));
    let log = text(&phone, "logcat -d -s ActivityThread");
    assert!(log.contains("Managed heap dump failed on path"), "{log}");
}

#[test]
fn a_short_file_looks_like_a_whole_one() {
    let phone = phone("android=14,speed=40,java=1000,fault=dumpheap-short@5000");
    assert_eq!(dump(&phone).status, Some(0));
    assert_eq!(pull(&phone, FILE).expect("a file").len(), 5_000);
}

#[test]
fn an_app_that_dies_or_hangs_or_freezes_leaves_am_waiting() {
    for fault in ["dumpheap-dies@3000", "dumpheap-hang@3000"] {
        let phone = phone(&format!("android=14,speed=40,java=1000,fault={fault}"));
        let waiting = open(&phone, &format!("am dumpheap {APP} {FILE}"));
        wait_for_bytes(&phone, 3_000);
        text(&phone, "sleep 20");
        assert_eq!(pull(&phone, FILE).expect("a part").len(), 3_000);
        let dead = run(&phone, &format!("pidof {APP}")).status == Some(1);
        assert_eq!(dead, fault.starts_with("dumpheap-dies"));
        phone.shutdown();
        let ran = read_shell(waiting);
        assert!(ran.text().contains("Waiting for dump to finish..."));
        assert_ne!(ran.status, Some(0), "it never came back by itself");
    }
    let phone = phone("android=14,speed=40,java=1000");
    let waiting = open(&phone, &format!("am dumpheap com.example.frozen {FILE}"));
    text(
        &phone,
        &format!("while [ ! -f {FILE} ]; do sleep 0.1; done; sleep 20"),
    );
    assert_eq!(pull(&phone, FILE), Ok(Vec::new()));
    text(&phone, "am unfreeze com.example.frozen");
    assert_eq!(read_shell(waiting).status, Some(0));
    assert!(!pull(&phone, FILE).expect("thawed").is_empty());
}

#[test]
fn the_app_writes_on_when_am_is_gone() {
    let phone = phone("android=14,speed=40,java=1000,fault=dumpheap-slow@20000");
    let connection = open(&phone, &format!("am dumpheap {APP} {FILE}"));
    wait_for_bytes(&phone, 1);
    drop(connection);
    text(&phone, "sleep 25");
    let bytes = pull(&phone, FILE).expect("a file");
    assert!(crate::java_decode::Hprof::read(&bytes).ended);
}

#[test]
fn a_session_shows_what_was_lost_on_the_way() {
    let phone = phone("android=14,speed=40,java=40000");
    let one = |phone: &VirtualPhone| {
        let trace = record(phone, &java_config(&[APP], 14));
        let mut graphs = trace.packet.iter().filter_map(|p| p.heap_graph.as_ref());
        let indices: Vec<u64> = graphs.clone().map(|g| g.index()).collect();
        (indices, graphs.next_back().map(|g| g.continued()))
    };
    let (whole, end) = one(&phone);
    assert!(whole.len() > 1 && end == Some(false), "{whole:?}");
    for (fault, cut) in [("java-dump-cut", true), ("lose-packets", false)] {
        phone.faults().add(Fault::parse(fault).expect("a fault"));
        let (indices, end) = one(&phone);
        assert!(indices.len() < whole.len(), "{fault}: {indices:?}");
        assert!(!cut || end == Some(true), "{fault}");
        phone.faults().remove(FaultKind::JavaDumpCut);
        phone.faults().remove(FaultKind::LosePackets);
    }
    phone
        .faults()
        .add(Fault::parse("target-dies").expect("a fault"));
    assert_eq!(one(&phone).0, Vec::<u64>::new());
    assert_eq!(run(&phone, &format!("pidof {APP}")).status, Some(1));
}

#[test]
fn slow_dumps_are_waited_for_since_android_12() {
    for (android, complete) in [(11, false), (12, true)] {
        let spec = format!("android={android},speed=200,java=1000,fault=java-dump-slow@25000");
        let phone = phone(&spec);
        let trace = record(&phone, &java_config(&[APP], android));
        let dumps = heap_graphs(&trace);
        assert_eq!(dumps.iter().any(|d| d.complete), complete, "{android}");
    }
}
