//! Injected faults: each takes effect at the requested place, and only there.

use heaptap_proto::perfetto as pb;
use prost::Message as _;
use virtual_phone::{Fault, FaultKind};

use crate::client::{
    TRACE, config, dumps, feed, host, phone, pull, run, sleep, start, text, wait_for,
};

fn lasting(ms: u32) -> pb::TraceConfig {
    pb::TraceConfig {
        duration_ms: Some(ms),
        ..config(&["com.example.app"])
    }
}

/// The flags of the first dump under a fault.
fn header(fault: &str) -> pb::profile_packet::ProcessHeapSamples {
    let phone = phone(&format!("speed=50,fault={fault}"));
    let trace = crate::client::record(&phone, &lasting(1_500));
    dumps(&trace)
        .first()
        .unwrap_or_else(|| panic!("{fault}: a dump"))
        .header
        .clone()
}

#[test]
fn flags_come_as_asked() {
    assert!(header("overrun@300").buffer_overran() && header("overrun@300").disconnected());
    assert_eq!(header("client-timeout@300").client_error() as i32, 1);
    assert_eq!(header("bad-stack@300").client_error() as i32, 2);
    assert!(header("corrupt@300").buffer_corrupted());
    assert!(header("guardrail@300").hit_guardrail() && !header("guardrail@300").disconnected());
    assert!(header("rejected").rejected_concurrent());
    assert!(header("target-dies@300").disconnected());
}

#[test]
fn pulls_break_as_asked() {
    let phone = phone("fault=pull-cut@10#2");
    let whole = pull(&phone, "/system/etc/hosts").expect("the first is whole");
    assert!(
        pull(&phone, "/system/etc/hosts").is_err(),
        "the second is cut"
    );
    assert_eq!(pull(&phone, "/system/etc/hosts"), Ok(whole.clone()));
    assert_eq!(phone.faults().struck(FaultKind::PullCut), 1);
    let arm = |text: &str| phone.faults().add(Fault::parse(text).expect("a fault"));
    arm("pull-short@5");
    assert_eq!(pull(&phone, "/system/etc/hosts"), Ok(whole[..5].to_vec()));
    phone.faults().remove(FaultKind::PullShort);
    arm("pull-flip@0");
    let flipped = pull(&phone, "/system/etc/hosts").expect("whole");
    assert_ne!(flipped, whole);
    assert_eq!(flipped[1..], whole[1..]);
    phone.faults().remove(FaultKind::PullFlip);
    arm("pull-fail");
    assert_eq!(
        pull(&phone, "/system/etc/hosts"),
        Err("read failed: I/O error".to_owned())
    );
}

#[test]
fn shells_break_as_asked() {
    let cut = phone("fault=shell-cut@3");
    let ran = run(&cut, "echo abcdef");
    assert_eq!((ran.text().as_str(), ran.status), ("abc", None));
    let silent = phone("fault=no-exit");
    let ran = run(&silent, "echo abc");
    assert_eq!((ran.text().as_str(), ran.status), ("abc\n", None));
    let slow = phone("fault=fragment");
    assert_eq!(text(&slow, "echo abc"), "abc\n");
    let full = phone("fault=disk-full@4");
    let ran = run(&full, "echo abcdef >/data/local/tmp/x");
    assert_eq!(ran.status, Some(1));
    assert!(ran.err.contains("No space left"), "{ran:?}");
    let stuck = phone("speed=50,fault=rm-fail");
    wait_for(&stuck, start(&stuck, &lasting(100)));
    assert!(
        run(&stuck, &format!("rm {TRACE}"))
            .err
            .contains("Permission denied")
    );
    let old = phone("fault=no-shell-v2+no-stat-v2");
    let features = host(&old, "host-serial:virtual-1:features").expect("features");
    assert!(!features.contains("shell_v2") && !features.contains("stat_v2"));
    let odd = phone("fault=old-server");
    assert_eq!(host(&odd, "host:version"), Ok("0028".to_owned()));
}

#[test]
fn perfetto_fails_as_asked() {
    let bytes = lasting(500).encode_to_vec();
    let command = format!("perfetto -c - -o {TRACE} -d");
    let with = |fault: &str| phone(&format!("speed=50,fault={fault}"));

    let failing = with("perfetto-fail");
    assert_eq!(feed(&failing, &command, &bytes).status, Some(1));
    let rejecting = with("perfetto-reject");
    let ran = feed(&rejecting, &command, &bytes);
    assert_eq!(ran.status, Some(0));
    wait_for(&rejecting, ran.text().trim().parse().expect("a pid"));
    assert!(!rejecting.has_file(TRACE));
    let noisy = with("perfetto-noise");
    assert!(
        feed(&noisy, &command, &bytes)
            .text()
            .contains("WARNING: linker")
    );
    let off = with("traced-off");
    let ran = feed(&off, &command, &bytes);
    assert_eq!(ran.status, Some(1));
    assert!(ran.err.contains("Could not connect to the traced socket"));
    text(&off, "setprop persist.traced.enable 1");
    assert_eq!(feed(&off, &command, &bytes).status, Some(0));
    let dying = with("traced-dies@300");
    let pid = start(&dying, &lasting(5_000));
    wait_for(&dying, pid);
    assert!(!dying.truth()[0].finished);
    let truncated = with("truncate");
    wait_for(&truncated, start(&truncated, &lasting(500)));
    let cut = pull(&truncated, TRACE).expect("a file");
    assert!(pb::Trace::decode(cut.as_slice()).is_err());
    let dead = with("heapprofd-dead");
    wait_for(&dead, start(&dead, &lasting(500)));
    assert!(dumps(&crate::client::decode(&dead)).is_empty());
    let late = with("stop-timeout");
    let pid = start(&late, &config(&["com.example.app"]));
    sleep(&late, 1.0);
    let before = late.boot_ns();
    text(&late, &format!("kill {pid}"));
    wait_for(&late, pid);
    assert!(late.boot_ns() - before >= 5_000_000_000);
    assert!(
        dumps(&crate::client::decode(&late)).is_empty(),
        "the final dump is lost"
    );
    let stuck = with("perfetto-stuck");
    let pid = start(&stuck, &config(&["com.example.app"]));
    sleep(&stuck, 0.5);
    text(&stuck, &format!("kill {pid}; sleep 2; [ -d /proc/{pid} ]"));
    text(&stuck, &format!("kill -9 {pid}"));
}

#[test]
fn a_reboot_ends_all_and_changes_the_boot_id() {
    let phone = phone("speed=50");
    let id = |p| text(p, "cat /proc/sys/kernel/random/boot_id");
    let before = id(&phone);
    assert_eq!(before.trim().len(), 36);
    let pid = start(&phone, &config(&["com.example.app"]));
    sleep(&phone, 3.0);
    phone.reboot(0);
    assert_ne!(id(&phone), before);
    assert_eq!(run(&phone, &format!("[ -d /proc/{pid} ]")).status, Some(1));
    assert!(phone.has_file(TRACE), "files stay");
    assert!(phone.boot_ns() < 3_600_000_000_000);
    assert!(run(&phone, "pidof com.example.app").status == Some(0));
    let stat = text(&phone, "cat /proc/$(pidof com.android.systemui)/stat");
    let started: u64 = stat
        .split(' ')
        .nth(21)
        .expect("ticks")
        .parse()
        .expect("a number");
    assert!(started * 10_000_000 <= phone.boot_ns(), "{stat}");
}

#[test]
fn devices_come_and_go() {
    let phone = phone("fault=vanish#2");
    assert_eq!(text(&phone, "echo 1"), "1\n");
    assert!(
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| text(&phone, "echo 2"))).is_err()
    );
    assert_eq!(host(&phone, "host:devices"), Ok(String::new()));
    phone.plug_in(0);
    assert_eq!(text(&phone, "echo 3"), "3\n");
}

#[test]
fn every_fault_is_described_and_every_key_stands_in_the_manual() {
    let manual = include_str!("../../docs/internals/virtual-phone.md");
    for kind in FaultKind::ALL {
        assert!(!kind.description().is_empty(), "{}", kind.name());
    }
    for (key, _) in virtual_phone::PhoneSpec::KEYS {
        assert!(manual.contains(&format!("`{key}`")), "{key}");
    }
}
