//! Compares synthetic traces with recorded ones: the same fields in the same places, packets in the
//! same order, numbers in the same encoding.

use std::collections::{BTreeMap, BTreeSet};

use heaptap_proto::{DESCRIPTORS, perfetto as pb};
use prost::Message as _;
use prost_reflect::{DescriptorPool, DynamicMessage, Value};
use virtual_phone::VirtualPhone;

use crate::client::{TRACE, config, heapprofd, phone, pull, sleep, start, text, wait_for};

fn recorded(name: &str) -> Vec<u8> {
    let path = format!(
        "{}/fixtures/conversions/{name}.pftrace",
        env!("CARGO_MANIFEST_DIR")
    );
    std::fs::read(&path).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// Kind of a packet.
fn kind(packet: &pb::TracePacket) -> &'static str {
    match packet {
        p if p.clock_snapshot.is_some() => "clocks",
        p if p.synchronization_marker.is_some() => "sync",
        p if p.trace_config.is_some() => "config",
        p if p.trace_uuid.is_some() => "uuid",
        p if p.trace_provenance.is_some() => "provenance",
        p if p.system_info.is_some() => "system",
        p if p.service_event.is_some() => "event",
        p if p.trace_stats.is_some() => "stats",
        p if p.profile_packet.is_some() => "profile",
        p if p.packages_list.is_some() => "packages",
        p if p.process_tree.is_some() => "tree",
        p if p.process_stats.is_some() => "processes",
        p if p.interned_data.is_some() => "first",
        _ => "other",
    }
}

/// Kinds in order, without repetitions.
fn order(bytes: &[u8]) -> Vec<&'static str> {
    let trace = pb::Trace::decode(bytes).expect("a trace");
    let mut kinds: Vec<&str> = trace.packet.iter().map(kind).collect();
    kinds.retain(|k| *k != "other");
    kinds.dedup();
    kinds
}

/// Field paths by kind of packet, if set, with the number of values.
fn paths(bytes: &[u8]) -> BTreeMap<&'static str, BTreeSet<String>> {
    let pool = DescriptorPool::decode(DESCRIPTORS).expect("our own");
    let descriptor = pool
        .get_message_by_name("perfetto.protos.TracePacket")
        .expect("known");
    let mut all: BTreeMap<&'static str, BTreeSet<String>> = BTreeMap::new();
    for packet in pb::Trace::decode(bytes).expect("a trace").packet {
        let encoded = packet.encode_to_vec();
        let message = DynamicMessage::decode(descriptor.clone(), encoded.as_slice()).expect("ours");
        let mut found = BTreeSet::new();
        walk("", &message, &mut found);
        all.entry(kind(&packet)).or_default().extend(found);
    }
    all
}

fn walk(prefix: &str, message: &DynamicMessage, out: &mut BTreeSet<String>) {
    for (field, value) in message.fields() {
        let path = format!("{prefix}{}", field.name());
        let values: Vec<&Value> = match value {
            Value::List(list) => list.iter().collect(),
            one => vec![one],
        };
        for value in values {
            match value {
                Value::Message(inner) => walk(&format!("{path}."), inner, out),
                _ => {
                    out.insert(path.clone());
                }
            }
        }
    }
}

/// Records for two seconds and pulls.
fn synthetic(phone: &VirtualPhone, config: &pb::TraceConfig) -> Vec<u8> {
    let pid = start(phone, config);
    sleep(phone, 2.2);
    text(phone, &format!("kill {pid}; true"));
    wait_for(phone, pid);
    pull(phone, TRACE).expect("a trace")
}

fn plain() -> pb::TraceConfig {
    pb::TraceConfig {
        write_into_file: None,
        file_write_period_ms: None,
        flush_period_ms: None,
        ..config(&["com.example.app"])
    }
}

/// A phone with the Perfetto version of the recordings.
fn modern() -> VirtualPhone {
    phone("android=16,perfetto=58,speed=20")
}

#[test]
fn packets_come_in_the_order_of_real_ones() {
    let ours = order(&synthetic(&modern(), &plain()));
    assert_eq!(ours, order(&recorded("c_max")));
    let mut none = plain();
    heapprofd(&mut none).process_cmdline = vec!["no.such.process".to_owned()];
    assert_eq!(
        order(&synthetic(&modern(), &none)),
        order(&recorded("no_target"))
    );
    let mut idle = plain();
    heapprofd(&mut idle).process_cmdline = vec!["com.example.idle".to_owned()];
    assert_eq!(
        order(&synthetic(&modern(), &idle)),
        order(&recorded("idle"))
    );
}

#[test]
fn dumps_set_the_fields_that_real_ones_set() {
    let continuous = {
        let mut config = plain();
        heapprofd(&mut config).continuous_dump_config =
            Some(pb::heapprofd_config::ContinuousDumpConfig {
                dump_phase_ms: Some(500),
                dump_interval_ms: Some(500),
            });
        config
    };
    let at_max = {
        let mut config = plain();
        heapprofd(&mut config).dump_at_max = Some(true);
        config
    };
    for (name, config) in [("c_cont", &continuous), ("c_max", &at_max)] {
        let real = paths(&recorded(name));
        let ours = paths(&synthetic(&modern(), config));
        for kind in [
            "profile",
            "first",
            "clocks",
            "event",
            "sync",
            "uuid",
            "provenance",
        ] {
            let lacking: Vec<_> = real[kind].difference(&ours[kind]).collect();
            let invented: Vec<_> = ours[kind].difference(&real[kind]).collect();
            // Newer services repeat the trace's default clock on each of their packets.
            let lacking: Vec<_> = lacking
                .into_iter()
                .filter(|p| *p != "timestamp_clock_id" && *p != "trusted_pid")
                .collect();
            assert!(lacking.is_empty(), "{name} {kind}: lacking {lacking:?}");
            assert!(invented.is_empty(), "{name} {kind}: invented {invented:?}");
        }
    }
}

#[test]
fn a_rejected_process_has_only_its_flag() {
    let phone = phone("android=16,perfetto=58,speed=20,fault=rejected");
    let ours = pb::Trace::decode(synthetic(&phone, &plain()).as_slice()).expect("a trace");
    let real = pb::Trace::decode(recorded("c_rejected_second").as_slice()).expect("a trace");
    let only = |trace: &pb::Trace| {
        let mut all: Vec<pb::ProfilePacket> = trace
            .packet
            .iter()
            .filter_map(|p| p.profile_packet.clone())
            .collect();
        assert_eq!(all.len(), 1);
        all[0].process_dumps[0].pid = Some(1);
        all.remove(0)
    };
    assert_eq!(only(&ours), only(&real));
}

#[test]
fn process_lists_have_the_fields_of_real_ones() {
    let mut config = plain();
    config.data_sources.push(pb::trace_config::DataSource {
        config: Some(pb::DataSourceConfig {
            name: Some("linux.process_stats".to_owned()),
            process_stats_config: Some(pb::ProcessStatsConfig {
                proc_stats_poll_ms: Some(250),
                ..Default::default()
            }),
            ..Default::default()
        }),
        ..Default::default()
    });
    let ours = paths(&synthetic(&modern(), &config));
    let real = paths(&recorded("phone_procstats"));
    for kind in ["tree", "processes"] {
        let wanted = |p: &&String| p.starts_with("process_");
        let lacking: Vec<_> = real[kind].difference(&ours[kind]).filter(wanted).collect();
        assert!(lacking.is_empty(), "{kind}: {lacking:?}");
    }
}

#[test]
fn numbers_are_given_as_heapprofd_gives_them() {
    for bytes in [
        recorded("c_cont"),
        recorded("real_sqlite"),
        synthetic(&modern(), &plain()),
    ] {
        let trace = pb::Trace::decode(bytes.as_slice()).expect("a trace");
        let mut strings: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
        let (mut frames, mut stacks) = (BTreeSet::new(), BTreeSet::new());
        let mut mappings = BTreeSet::new();
        let mut index = 0;
        for packet in &trace.packet {
            if let Some(interned) = &packet.interned_data {
                let tables = [
                    &interned.function_names,
                    &interned.build_ids,
                    &interned.mapping_paths,
                ];
                for s in tables.into_iter().flatten() {
                    // One counter for strings of all tables.
                    let before = strings.insert(s.iid(), s.str().to_vec());
                    assert!(
                        before.is_none_or(|b| b == s.str()),
                        "{} stands for two strings",
                        s.iid()
                    );
                }
                for m in &interned.mappings {
                    assert!(mappings.insert(m.iid()), "mapping {} twice", m.iid());
                    assert!(m.end() > m.start() && m.exact_offset() >= m.start_offset());
                    assert!(strings.contains_key(&m.build_id()));
                    assert!(m.path_string_ids.iter().all(|p| strings.contains_key(p)));
                }
                for f in &interned.frames {
                    assert!(frames.insert(f.iid()), "frame {} twice", f.iid());
                    assert!(mappings.contains(&f.mapping_id()));
                    assert!(strings.contains_key(&f.function_name_id()));
                }
                for c in &interned.callstacks {
                    assert!(stacks.insert(c.iid()), "callstack {} twice", c.iid());
                    assert!(c.frame_ids.iter().all(|f| frames.contains(f)));
                }
            }
            if let Some(profile) = &packet.profile_packet {
                assert_eq!(profile.index(), index, "no packet is missing");
                index += 1;
                for sample in profile.process_dumps.iter().flat_map(|d| &d.samples) {
                    // The tables can follow in a later packet of the chain, never of the next.
                    assert!(sample.callstack_id() > 0);
                }
            }
        }
        assert!(index >= 2 && !stacks.is_empty());
    }
}

#[test]
fn clocks_are_those_of_a_phone_that_slept() {
    let trace = synthetic(&modern(), &plain());
    let trace = pb::Trace::decode(trace.as_slice()).expect("a trace");
    let snapshots: Vec<BTreeMap<u32, u64>> = trace
        .packet
        .iter()
        .filter_map(|p| p.clock_snapshot.as_ref())
        .map(|s| {
            s.clocks
                .iter()
                .map(|c| (c.clock_id(), c.timestamp()))
                .collect()
        })
        .collect();
    assert!(snapshots.len() >= 2);
    for clocks in &snapshots {
        assert!(
            clocks[&6] > clocks[&3] + 1_000_000_000,
            "boot time counts the sleep"
        );
        assert!(clocks[&3] - clocks[&4] < 4_000_000 && clocks[&4] % 4_000_000 == 0);
    }
    let last = &snapshots[snapshots.len() - 1];
    for dump in trace
        .packet
        .iter()
        .filter_map(|p| p.profile_packet.as_ref())
        .flat_map(|p| &p.process_dumps)
    {
        assert!(dump.timestamp() <= last[&4] && dump.timestamp() + 3_000_000_000 > last[&4]);
        assert!(dump.start_timestamp() < dump.timestamp());
    }
}
