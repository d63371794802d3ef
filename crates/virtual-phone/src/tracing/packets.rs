//! Packets of the service: clocks, config, system, events, statistics.

use super::buffer::TraceBuffer;
use super::oom::Activation;
use crate::clock::ClockValues;
use crate::kernel::Kernel;
use crate::memory::Ledger;
use heaptap_proto::perfetto as pb;

/// Sequence of the service itself.
pub(super) const SERVICE: u32 = 1;

/// Marker by which a reader resynchronizes in a damaged file.
const SYNC: [u8; 16] = [
    0x82, 0x47, 0x7a, 0x76, 0xb2, 0x8d, 0x42, 0xba, 0x81, 0xdc, 0x33, 0x32, 0x6d, 0x57, 0xa0, 0x79,
];

fn service() -> pb::TracePacket {
    pb::TracePacket {
        trusted_uid: Some(9999),
        trusted_packet_sequence_id: Some(SERVICE),
        ..Default::default()
    }
}

pub(super) fn sync_marker() -> pb::TracePacket {
    pb::TracePacket {
        synchronization_marker: Some(SYNC.to_vec()),
        ..service()
    }
}

pub(super) fn config(config: &pb::TraceConfig) -> pb::TracePacket {
    pb::TracePacket {
        trace_config: Some(config.clone()),
        ..service()
    }
}

/// Returns all clocks at one time.
pub(super) fn clocks(values: ClockValues, android: u32) -> pb::TracePacket {
    let clock = |id, timestamp| pb::clock_snapshot::Clock {
        clock_id: Some(id),
        timestamp: Some(timestamp),
        ..Default::default()
    };
    pb::TracePacket {
        clock_snapshot: Some(pb::ClockSnapshot {
            clocks: vec![
                clock(6, values.boot),
                clock(2, values.real_coarse),
                clock(4, values.monotonic_coarse),
                clock(1, values.real),
                clock(3, values.monotonic),
                clock(5, values.monotonic_raw),
            ],
            primary_trace_clock: (android >= 11).then_some(6),
        }),
        ..service()
    }
}

pub(super) fn uuid(msb: i64, lsb: i64) -> pb::TracePacket {
    pb::TracePacket {
        trace_uuid: Some(pb::TraceUuid {
            msb: Some(msb),
            lsb: Some(lsb),
        }),
        ..service()
    }
}

pub(super) fn provenance(now: u64, buffers: usize) -> pb::TracePacket {
    pb::TracePacket {
        timestamp: Some(now),
        trace_provenance: Some(pb::TraceProvenance {
            buffers: vec![pb::trace_provenance::Buffer {}; buffers],
        }),
        ..service()
    }
}

pub(super) fn system_info(kernel: &Kernel) -> pb::TracePacket {
    let fingerprint = {
        let state = kernel.state();
        state.properties.get("ro.build.fingerprint").cloned()
    };
    let (android, version) = (kernel.spec.android, kernel.spec.perfetto_version());
    pb::TracePacket {
        system_info: Some(pb::SystemInfo {
            utsname: Some(pb::system_info::Utsname {
                sysname: Some("Linux".to_owned()),
                version: Some("#1 SMP PREEMPT".to_owned()),
                release: Some(kernel.spec.release().kernel.to_owned()),
                machine: Some("aarch64".to_owned()),
            }),
            android_build_fingerprint: fingerprint,
            tracing_service_version: (android >= 12)
                .then(|| format!("Perfetto v{version}.0 (N/A)")),
            android_sdk_version: (android >= 13).then_some(u64::from(kernel.spec.sdk())),
            page_size: (android >= 14).then_some(4096),
            timezone_off_mins: (android >= 15).then_some(0),
            num_cpus: (android >= 15).then_some(8),
        }),
        ..service()
    }
}

/// Returns an event of the session, which `set` selects.
pub(super) fn event(now: u64, set: impl FnOnce(&mut pb::ServiceEvent)) -> pb::TracePacket {
    let mut event = pb::ServiceEvent::default();
    set(&mut event);
    pb::TracePacket {
        timestamp: Some(now),
        service_event: Some(event),
        ..service()
    }
}

pub(super) fn stats(buffers: &[TraceBuffer], sources: usize, flushes: u64) -> pb::TracePacket {
    let one = |b: &TraceBuffer| pb::trace_stats::BufferStats {
        bytes_written: Some(b.written),
        chunks_written: Some(b.written.div_ceil(4096)),
        buffer_size: Some(b.capacity() as u64),
        bytes_overwritten: (b.overwritten > 0).then_some(b.overwritten),
        chunks_overwritten: (b.overwritten > 0).then_some(b.overwritten.div_ceil(4096)),
        write_wrap_count: (b.overwritten > 0).then_some(1),
        chunks_discarded: (b.discarded > 0).then_some(b.discarded),
        bytes_read: Some(b.read),
        chunks_read: Some(b.read.div_ceil(4096)),
        ..Default::default()
    };
    pb::TracePacket {
        trace_stats: Some(pb::TraceStats {
            buffer_stats: buffers.iter().map(one).collect(),
            producers_connected: Some(3),
            producers_seen: Some(3),
            data_sources_registered: Some(42),
            data_sources_seen: Some(sources as u64),
            tracing_sessions: Some(1),
            total_buffers: Some(buffers.len() as u32),
            chunks_discarded: Some(0),
            patches_discarded: Some(0),
            invalid_packets: Some(0),
            flushes_requested: Some(flushes),
            flushes_succeeded: Some(flushes),
            flushes_failed: Some(0),
        }),
        ..service()
    }
}

/// Returns the service's packet about the trigger that started a session.
pub(super) fn trigger(kernel: &Kernel, activation: &Activation) -> pb::TracePacket {
    let (producer, uid) = match activation.oom {
        Some(oom) => {
            let state = kernel.state();
            let uid = state.processes.get(oom.pid).map(|p| p.uid as i32);
            (format!("perfetto.hprof-{}", oom.pid), uid)
        }
        None => ("trigger_perfetto".to_owned(), Some(2000)),
    };
    pb::TracePacket {
        timestamp: Some(activation.at),
        trigger: Some(pb::Trigger {
            trigger_name: Some(activation.name.clone()),
            producer_name: Some(producer),
            trusted_producer_uid: uid,
            stop_delay_ms: None,
        }),
        ..service()
    }
}

/// `android.packages_list`.
pub(super) fn packages_list(
    kernel: &Kernel,
    config: &pb::PackagesListConfig,
    sequence: u32,
) -> pb::TracePacket {
    let state = kernel.state();
    let filter = &config.package_name_filter;
    let packages = state
        .packages
        .iter()
        .filter(|p| filter.is_empty() || filter.iter().any(|f| f == p.name))
        .map(|p| pb::packages_list::PackageInfo {
            name: Some(p.name.to_owned()),
            uid: Some(u64::from(p.appid)),
            debuggable: Some(p.debuggable()),
            profileable_from_shell: Some(p.profileable_from_shell()),
            version_code: Some(p.version as i64),
        })
        .collect();
    pb::TracePacket {
        timestamp: Some(kernel.clock.boot()),
        packages_list: Some(pb::PackagesList {
            packages,
            ..Default::default()
        }),
        ..of_producer(sequence)
    }
}

/// Returns the common fields of a producer's packets.
pub(super) fn of_producer(sequence: u32) -> pb::TracePacket {
    pb::TracePacket {
        trusted_packet_sequence_id: Some(sequence),
        ..service()
    }
}

/// Returns the `linux.process_stats` packet with the requested processes of the tree.
pub(super) fn process_tree(
    kernel: &Kernel,
    sequence: u32,
    wanted: impl Fn(u32) -> bool,
) -> pb::TracePacket {
    let state = kernel.state();
    let processes = state
        .processes
        .iter()
        .filter(|p| wanted(p.pid))
        .map(|p| pb::process_tree::Process {
            pid: Some(p.pid as i32),
            ppid: Some(p.ppid as i32),
            cmdline: p.argv.clone(),
            uid: Some(p.uid as i32),
            process_start_from_boot: None,
            is_kthread: Some(p.role == crate::process::Role::Kernel),
        })
        .collect();
    pb::TracePacket {
        timestamp: Some(kernel.clock.boot()),
        process_tree: Some(pb::ProcessTree { processes }),
        ..of_producer(sequence)
    }
}

/// Returns a forked child's /proc/self/smaps: the mappings of its parent, with all of the parent's
/// own pages shared.
pub(super) fn smaps(pid: u32, ledger: Option<&Ledger>) -> pb::SmapsPacket {
    let mappings = ledger.map_or(&[][..], |ledger| &ledger.mappings);
    let entries = mappings.iter().map(|mapping| {
        let pages = &mapping.pages;
        pb::SmapsEntry {
            path: Some(mapping.name.clone()),
            size_kb: Some(mapping.size_kb()),
            private_dirty_kb: Some(0),
            swap_kb: Some(pages.swap),
            private_clean_resident_kb: Some(0),
            shared_dirty_resident_kb: Some(pages.shared_dirty + pages.private_dirty),
            shared_clean_resident_kb: Some(pages.shared_clean + pages.private_clean),
            locked_kb: Some(0),
            // Each page of only the parent is now shared by two processes.
            proportional_resident_kb: Some(pages.pss - pages.uss().min(pages.pss) / 2),
            ..Default::default()
        }
    });
    pb::SmapsPacket {
        pid: Some(pid),
        entries: entries.collect(),
        recording_type: Some(pb::smaps_packet::RecordingType::ArtHprofPostfork as i32),
    }
}
