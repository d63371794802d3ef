//! Facts of a trace other than samples: packages, processes, the config, the system, the service's
//! buffer statistics. Each function reads one payload.

use std::collections::{BTreeMap, VecDeque};

use super::allowance::pay;
use super::wire::{Fields, WireError, each, each_message};
use heaptap_base::units::Allowance;
use heaptap_model::heap_graph::Device;
use heaptap_model::profile::{
    HeapRequest, MetadataValue, Package, Process, Recording, ServiceStats, SystemInfo,
};

/// Memory of a process, a package and a word of the config, without their texts.
const PROCESS: usize = 250;
const PACKAGE: usize = 100;
const WORD: usize = 48;

/// Reads `PackagesList` (47): the first entry of a name is used.
pub(super) fn read_packages(
    message: &[u8],
    recording: &mut Recording,
    allowance: &mut Allowance,
) -> Result<(), WireError> {
    let mut fields = Fields::new(message);
    while let Some((number, value)) = fields.next()? {
        match number {
            1 => {
                let package = read_package(value.bytes())?;
                pay(allowance, PACKAGE + package.name.len())?;
                recording.packages.push(package);
            }
            2 | 3 => recording.packages_incomplete |= value.flag(),
            _ => {}
        }
    }
    Ok(())
}

fn read_package(message: &[u8]) -> Result<Package, WireError> {
    let mut package = Package::default();
    let mut fields = Fields::new(message);
    while let Some((number, value)) = fields.next()? {
        match number {
            1 => package.name = value.text(),
            2 => package.uid = value.number(),
            3 => package.debuggable = value.flag(),
            4 => package.profileable_from_shell = value.flag(),
            5 => package.version_code = value.number() as i64,
            _ => {}
        }
    }
    Ok(package)
}

/// Reads `ProcessTree` (2): the name of a process is the first word of its command line.
pub(super) fn read_process_tree(
    message: &[u8],
    recording: &mut Recording,
    allowance: &mut Allowance,
) -> Result<(), WireError> {
    each_message(message, 1, |process| {
        let (mut pid, mut parent_pid, mut uid, mut start_ns) = (0, None, None, None);
        // The first word, the number of words, and all of them joined by spaces.
        let (mut first, mut words, mut cmdline) = (0, 0u32, String::new());
        let mut fields = Fields::new(process);
        while let Some((number, value)) = fields.next()? {
            match number {
                1 => pid = value.number(),
                2 => parent_pid = Some(value.number()),
                3 => {
                    if words > 0 {
                        cmdline.push(' ');
                    }
                    cmdline.push_str(&String::from_utf8_lossy(value.bytes()));
                    if words == 0 {
                        first = cmdline.len();
                    }
                    words += 1;
                }
                5 => uid = Some(value.number()),
                7 => start_ns = Some(value.number()),
                _ => {}
            }
        }
        if words > 0 {
            pay(allowance, PROCESS + 3 * cmdline.len())?;
            let first = &cmdline[..first];
            let name = match words {
                1 => first.split(' ').next().unwrap_or(first),
                _ => first,
            };
            // The first tree with the start time is used, as in Perfetto.
            let before = recording.processes.get(&pid);
            let start_ns = before.and_then(|before| before.start_ns).or(start_ns);
            recording.processes.insert(
                pid,
                Process {
                    name: name.to_owned(),
                    uid,
                    cmdline: Some(cmdline.clone()),
                    parent_pid,
                    start_ns,
                },
            );
        }
        Ok(())
    })
}

/// Reads `TraceConfig` (33), limited to heaps.
pub(super) fn read_config(
    message: &[u8],
    recording: &mut Recording,
    allowance: &mut Allowance,
) -> Result<(), WireError> {
    recording.has_config = true;
    each_message(message, 2, |source| {
        each_message(source, 1, |config| {
            let mut fields = Fields::new(config);
            let (mut name, mut request) = (String::new(), None);
            while let Some((number, value)) = fields.next()? {
                match number {
                    1 => name = value.text(),
                    105 => request = Some(read_heapprofd_config(value.bytes(), allowance)?),
                    110 => {
                        read_java_targets(value.bytes(), &mut recording.java_targets, allowance)?
                    }
                    _ => {}
                }
            }
            pay(allowance, WORD + name.len())?;
            if name == "android.heapprofd" {
                pay(allowance, size_of::<HeapRequest>() * 3 / 2)?;
                recording.requests.push(request.unwrap_or_default());
            }
            recording.data_sources.push(name);
            Ok(())
        })
    })?;
    let (mut msb, mut lsb) = (0, 0);
    each(message, |number, value| match number {
        22 => recording.set_metadata("unique_session_name", value.text()),
        27 => msb = value.number(),
        28 => lsb = value.number(),
        _ => {}
    })?;
    if !recording.metadata.contains_key(UUID) {
        set_uuid(recording, msb, lsb);
    }
    Ok(())
}

/// Reads the processes of a `JavaHprofConfig`.
fn read_java_targets(
    message: &[u8],
    targets: &mut Vec<String>,
    allowance: &mut Allowance,
) -> Result<(), WireError> {
    let mut fields = Fields::new(message);
    while let Some((number, value)) = fields.next()? {
        if matches!(number, 1 | 2) {
            pay(allowance, 2 * WORD + 36 * value.bytes().len())?;
        }
        match number {
            1 => targets.push(value.text()),
            2 => value.numbers(|pid| targets.push(format!("pid {pid}")))?,
            _ => {}
        }
    }
    Ok(())
}

fn read_heapprofd_config(
    message: &[u8],
    allowance: &mut Allowance,
) -> Result<HeapRequest, WireError> {
    let mut request = HeapRequest::default();
    let mut fields = Fields::new(message);
    while let Some((number, value)) = fields.next()? {
        if matches!(number, 2 | 4 | 20 | 27) {
            pay(allowance, WORD + 12 * value.bytes().len())?;
        }
        match number {
            1 => request.sampling_interval_bytes = value.number(),
            2 => request.process_cmdline.push(value.text()),
            4 => value.numbers(|pid| request.pids.push(pid))?,
            5 => request.all = value.flag(),
            6 => each(value.bytes(), |number, value| {
                if number == 6 {
                    request.dump_interval_ms = value.number();
                }
            })?,
            8 => request.shmem_size_bytes = value.number(),
            10 => request.no_startup = value.flag(),
            11 => request.no_running = value.flag(),
            13 => request.dump_at_max = value.flag(),
            15 => request.min_anonymous_memory_kb = value.number(),
            20 => request.heaps.push(value.text()),
            21 => request.all_heaps = value.flag(),
            27 => request.exclude_heaps.push(value.text()),
            _ => {}
        }
    }
    Ok(request)
}

const UUID: &str = "trace_uuid";

fn set_uuid(recording: &mut Recording, msb: u64, lsb: u64) {
    if (msb, lsb) != (0, 0) {
        let (a, b, c) = (msb >> 32, msb >> 16 & 0xffff, msb & 0xffff);
        let (d, e) = (lsb >> 48, lsb & 0xffff_ffff_ffff);
        recording.set_metadata(UUID, format!("{a:08x}-{b:04x}-{c:04x}-{d:04x}-{e:012x}"));
    }
}

/// Reads `TraceUuid` (89), which overrides that of the config.
pub(super) fn read_uuid(message: &[u8], recording: &mut Recording) -> Result<(), WireError> {
    let (mut msb, mut lsb) = (0, 0);
    each(message, |number, value| match number {
        1 => msb = value.number(),
        2 => lsb = value.number(),
        _ => {}
    })?;
    set_uuid(recording, msb, lsb);
    Ok(())
}

/// Reads the name of a `Trigger` (46, 113).
pub(super) fn read_trigger(message: &[u8]) -> Result<String, WireError> {
    let mut name = String::new();
    each(message, |number, value| {
        if number == 1 {
            name = value.text();
        }
    })?;
    Ok(name)
}

/// Reads `SystemInfo` (45).
pub(super) fn read_system_info(message: &[u8], recording: &mut Recording) -> Result<(), WireError> {
    let mut fields = Fields::new(message);
    while let Some((number, value)) = fields.next()? {
        let name = match number {
            1 => {
                each(value.bytes(), |number, value| {
                    let at = (number as usize).wrapping_sub(1);
                    if let Some(name) = SYSTEM_NAMES.get(at) {
                        recording.set_metadata(name, value.text());
                    }
                })?;
                continue;
            }
            2 => "android_build_fingerprint",
            4 => "tracing_service_version",
            5 => "android_sdk_version",
            7 => "timezone_off_mins",
            9 => "android_soc_model",
            10 => "android_hardware_revision",
            11 => "android_storage_model",
            12 => "android_ram_model",
            14 => "android_device_manufacturer",
            16 => "system_ram_bytes",
            _ => continue,
        };
        match number {
            5 | 7 | 16 => recording.set_metadata(name, value.number()),
            _ => recording.set_metadata(name, value.text()),
        }
    }
    Ok(())
}

/// Returns the system as the metadata describe it.
pub(super) fn system(metadata: &BTreeMap<&'static str, Vec<MetadataValue>>) -> SystemInfo {
    let text = |name| match metadata.get(name).map(Vec::as_slice) {
        Some([MetadataValue::Text(text)]) => text.clone(),
        _ => String::new(),
    };
    let sdk = match metadata.get("android_sdk_version").map(Vec::as_slice) {
        Some([MetadataValue::Number(sdk)]) => *sdk as u64,
        _ => 0,
    };
    SystemInfo {
        fingerprint: text("android_build_fingerprint"),
        manufacturer: text("android_device_manufacturer"),
        tracing_service: text("tracing_service_version"),
        sdk,
        machine: text("system_machine"),
    }
}

/// Names of the fields of `Utsname`, from field 1.
const SYSTEM_NAMES: [&str; 4] = [
    "system_name",
    "system_version",
    "system_release",
    "system_machine",
];

/// Brands that are not the name of their manufacturer.
const BRANDS: [(&str, &str); 5] = [
    ("honor", "HUAWEI"),
    ("iqoo", "vivo"),
    ("nokia", "HMD Global"),
    ("poco", "Xiaomi"),
    ("redmi", "Xiaomi"),
];

/// Returns the device of a trace. Older versions of Android record only its fingerprint:
/// `brand/product/device:release/ID/…`.
pub(super) fn device(system: &SystemInfo) -> Device {
    let fingerprint = system.fingerprint.as_str();
    let known = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    let (product, build) = fingerprint.split_once(':').unwrap_or_default();
    let mut build = build.split('/');
    // The release of Android 12 and 12L is 12; traces have the API level since Android 13.
    let sdk = match build.next().and_then(|release| release.parse::<i64>().ok()) {
        _ if system.sdk > 0 => i64::try_from(system.sdk).ok(),
        Some(release @ 9..=12) => Some(release + 19),
        _ => None,
    };
    let brand = product.split('/').next().unwrap_or_default();
    let maker = BRANDS
        .iter()
        .find(|(other, _)| brand.eq_ignore_ascii_case(other));
    Device {
        sdk,
        manufacturer: known(&system.manufacturer)
            .or_else(|| known(maker.map_or(brand, |(_, maker)| maker))),
        build: build.next().and_then(known),
    }
}

/// Reads `TraceStats` (35): the last one is final.
pub(super) fn read_stats(message: &[u8]) -> Result<ServiceStats, WireError> {
    let mut stats = ServiceStats::default();
    let mut fields = Fields::new(message);
    while let Some((number, value)) = fields.next()? {
        match number {
            1 => {
                let mut buffer = Fields::new(value.bytes());
                while let Some((number, value)) = buffer.next()? {
                    let sum = match number {
                        3 => &mut stats.chunks_overwritten,
                        18 => &mut stats.chunks_discarded,
                        6 => &mut stats.patches_failed,
                        9 => &mut stats.abi_violations,
                        19 => &mut stats.writer_packet_loss,
                        _ => continue,
                    };
                    *sum = sum.saturating_add(value.number());
                }
            }
            8 => stats.chunks_discarded = stats.chunks_discarded.saturating_add(value.number()),
            10 => stats.invalid_packets = value.number(),
            15 => stats.final_flush_failed = value.number() == 2,
            _ => {}
        }
    }
    Ok(stats)
}

/// Progress events of the tracing service (`ServiceEvent`, 69).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ServiceEvent {
    /// Tracing began.
    Started,
    /// All data sources began.
    AllStarted,
    /// The data sources were asked to flush. Older services do not write this event.
    FlushStarted,
    /// All data sources answered, or the service stopped waiting.
    Flushed,
    /// No more data is accepted.
    Disabled,
    /// The buffers were read: so far, or to their end after `Disabled`.
    BuffersRead,
    /// Any other.
    Other,
}

impl ServiceEvent {
    /// Adds the event at its time, ns, to the facts of a recording.
    pub(super) fn note(self, at: u64, recording: &mut Recording) {
        match self {
            ServiceEvent::Started => recording.set_metadata("tracing_started_ns", at),
            ServiceEvent::AllStarted => recording.set_metadata("all_data_source_started_ns", at),
            ServiceEvent::Disabled => recording.set_metadata("tracing_disabled_ns", at),
            ServiceEvent::Flushed => {
                let all = recording.metadata.entry(FLUSHED).or_default();
                all.push(at.into());
            }
            ServiceEvent::FlushStarted | ServiceEvent::BuffersRead | ServiceEvent::Other => {}
        }
    }
}

/// The only fact with several values.
const FLUSHED: &str = "all_data_source_flushed_ns";

pub(super) fn read_service_event(message: &[u8]) -> Result<ServiceEvent, WireError> {
    let mut event = ServiceEvent::Other;
    let mut fields = Fields::new(message);
    while let Some((number, value)) = fields.next()? {
        match number {
            1 if value.flag() => event = ServiceEvent::AllStarted,
            2 if value.flag() => event = ServiceEvent::Started,
            3 if value.flag() => event = ServiceEvent::Flushed,
            9 if value.flag() => event = ServiceEvent::FlushStarted,
            4 if value.flag() => event = ServiceEvent::BuffersRead,
            5 if value.flag() => event = ServiceEvent::Disabled,
            _ => {}
        }
    }
    Ok(event)
}

/// State of a trace's end. Since Android 11 the service reports it: disabled, then buffers read.
/// The service writes its config first, so a trace with a config but without service events and
/// statistics is cut off before them.
#[derive(Debug, Clone, Default)]
pub(super) struct Ending {
    has_config: bool,
    has_stats: bool,
    started: bool,
    said_more: bool,
    disabled: bool,
    complete: bool,
    /// An earlier trace in the file was cut off.
    cut_before: bool,
    /// This is not the first trace in the file.
    is_joined: bool,
    stop: Stop,
}

/// State of the service's wait for its data sources to stop. The service flushes them, asks them to
/// stop, waits for all or for `data_source_stop_timeout_ms`, and then reports that it is disabled.
/// Earlier flushes can end during this time.
#[derive(Debug, Clone, Default)]
struct Stop {
    /// Timeout of the config; 0 is the service's default.
    limit_ms: u64,
    /// Ends of flushes since the last flush began, if beginnings are reported.
    flushed_ns: VecDeque<u64>,
    /// Start of the stop that some data source did not answer in time.
    timed_out_ns: Option<u64>,
}

impl Stop {
    /// The service's default timeout.
    const DEFAULT_LIMIT_MS: u64 = 5_000;
    /// Maximum delay between the timeout, or a stop that all answered, and the service's report
    /// that it is disabled.
    const SOON_NS: u64 = 1_000_000_000;
    /// Maximum number of simultaneous flushes.
    const MAX_FLUSHES: usize = 64;

    fn event(&mut self, event: ServiceEvent, at: u64) {
        match event {
            // The last flush is that of the stop.
            ServiceEvent::FlushStarted => self.flushed_ns.clear(),
            ServiceEvent::Flushed => {
                self.flushed_ns.truncate(Stop::MAX_FLUSHES - 1);
                self.flushed_ns.push_front(at);
            }
            ServiceEvent::Disabled => self.timed_out_ns = self.began_before_limit(at),
            ServiceEvent::Started
            | ServiceEvent::AllStarted
            | ServiceEvent::BuffersRead
            | ServiceEvent::Other => {}
        }
    }

    /// Returns the flush that ended one timeout ago; `None` if another one ended just now: the
    /// stop's.
    fn began_before_limit(&self, disabled: u64) -> Option<u64> {
        let limit_ms = match self.limit_ms {
            0 => Stop::DEFAULT_LIMIT_MS,
            limit_ms => limit_ms,
        };
        let limit = limit_ms.saturating_mul(1_000_000);
        let ago = |at: u64| disabled.saturating_sub(at);
        let is_stop = |at: &&u64| (limit..limit.saturating_add(Stop::SOON_NS)).contains(&ago(**at));
        let newest = self.flushed_ns.front()?;
        let began = self.flushed_ns.iter().find(is_stop)?;
        (ago(*newest) >= Stop::SOON_NS.min(limit)).then_some(*began)
    }
}

impl Ending {
    /// Reads the timeout of a `TraceConfig` (33).
    pub(super) fn config(&mut self, message: &[u8]) {
        self.has_config = true;
        let mut fields = Fields::new(message);
        // `read_config` reports damage.
        while let Ok(Some((number, value))) = fields.next() {
            if number == 23 {
                self.stop.limit_ms = value.number();
            }
        }
    }

    /// Returns the start, trace time in ns, of the stop that some data source did not answer in
    /// time.
    pub(super) fn stop_timed_out_ns(&self) -> Option<u64> {
        // In a file of joined traces, the trace of the missing dump would be unknown.
        self.stop.timed_out_ns.filter(|_| !self.is_joined)
    }

    pub(super) fn stats(&mut self) {
        self.has_stats = true;
    }

    /// Adds an event at its time `at`, BOOTTIME in ns.
    pub(super) fn event(&mut self, event: ServiceEvent, at: Option<u64>) {
        if let Some(at) = at {
            self.stop.event(event, at);
        }
        match event {
            ServiceEvent::Started => {
                if self.started {
                    // Another trace in the same file.
                    *self = Ending {
                        has_config: true,
                        cut_before: self.cut_short(),
                        is_joined: true,
                        ..Ending::default()
                    };
                }
                self.started = true;
            }
            ServiceEvent::Disabled => self.disabled = true,
            ServiceEvent::BuffersRead => {
                self.said_more = true;
                self.complete |= self.disabled;
            }
            ServiceEvent::AllStarted
            | ServiceEvent::FlushStarted
            | ServiceEvent::Flushed
            | ServiceEvent::Other => {
                self.said_more = true;
            }
        }
    }

    /// Returns whether the end is missing.
    pub(super) fn cut_short(&self) -> bool {
        let expects_end = self.disabled || self.said_more;
        self.cut_before
            || (expects_end && !self.complete)
            || (!expects_end && self.has_config && !self.has_stats)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made::bytes as field;

    /// Returns the start in s of the stop that timed out, after events at times in s; the limit is
    /// 20 s.
    fn stop_timed_out(events: &[(ServiceEvent, u64)]) -> Option<u64> {
        let mut ending = Ending::default();
        ending.config(&[0xb8, 1, 0xa0, 0x9c, 1]);
        for (event, at) in events {
            ending.event(*event, Some(at * 1_000_000_000));
        }
        ending.stop_timed_out_ns().map(|at| at / 1_000_000_000)
    }

    #[test]
    fn a_stop_that_lasts_as_long_as_the_service_waits_has_timed_out() {
        use ServiceEvent::{Disabled, FlushStarted, Flushed, Started};
        let start = (Started, 0);
        let flush = |at| [(FlushStarted, at), (Flushed, at)];
        // The last of periodic flushes is used.
        let quick = [&[start], &flush(5)[..], &flush(30), &[(Disabled, 31)]].concat();
        assert_eq!(stop_timed_out(&quick), None);
        let slow = [&[start], &flush(5)[..], &flush(30), &[(Disabled, 50)]].concat();
        assert_eq!(stop_timed_out(&slow), Some(30));
        // A busy process: its final flush is slow, and others that began meanwhile end after it.
        let begun = [(FlushStarted, 3), (FlushStarted, 8)];
        let ended = [(Flushed, 13), (Flushed, 18), (Disabled, 33)];
        assert_eq!(stop_timed_out(&[&begun[..], &ended].concat()), Some(13));
        // Older services do not report the start of a flush.
        assert_eq!(stop_timed_out(&ended), Some(13));
        for disabled in [49, 52] {
            let other = [(Flushed, 5), (Flushed, 30), (Disabled, disabled)];
            assert_eq!(stop_timed_out(&other), None, "{disabled}");
        }
        // A periodic flush happens to end one timeout before a quick stop.
        let periodic = [(Flushed, 10), (Flushed, 30), (Disabled, 30)];
        assert_eq!(stop_timed_out(&periodic), None);
        // The client was killed: nothing was flushed.
        assert_eq!(stop_timed_out(&[(Flushed, 1), (Disabled, 5)]), None);
        let joined = [&[start], &flush(30)[..], &[(Disabled, 50), start]].concat();
        assert_eq!(stop_timed_out(&joined), None);
    }

    #[test]
    fn reads_the_device_of_new_and_old_traces() {
        let facts = |message: &[Vec<u8>]| {
            let mut recording = Recording::default();
            read_system_info(&message.concat(), &mut recording).unwrap();
            recording.system = system(&recording.metadata);
            let Device {
                sdk,
                manufacturer,
                build,
            } = device(&recording.system);
            (
                sdk,
                manufacturer.unwrap_or_default(),
                build.unwrap_or_default(),
            )
        };
        let told = |sdk, maker: &str, build: &str| (sdk, maker.to_owned(), build.to_owned());
        let fingerprint = |text: &str| field(2, text.as_bytes());
        assert_eq!(facts(&[]), told(None, "", ""));
        assert_eq!(facts(&[fingerprint("x")]), told(None, "", ""));
        for (text, sdk, maker, build) in [
            (
                "google/sdk/emu:11/RSR1.1/7:user/k",
                Some(30),
                "google",
                "RSR1.1",
            ),
            ("Redmi/p/d:12/SKQ1/V13:user/k", Some(31), "Xiaomi", "SKQ1"),
            (
                "Nokia/p/d:S/TPP2.220218.008/1:user/k",
                None,
                "HMD Global",
                "TPP2.220218.008",
            ),
        ] {
            assert_eq!(facts(&[fingerprint(text)]), told(sdk, maker, build));
        }
        // The API level and the manufacturer themselves are better.
        let both = [
            fingerprint("POCO/p/d:12/ID/1:user/k"),
            vec![0x28, 34],
            field(14, b"samsung"),
        ];
        assert_eq!(facts(&both), told(Some(34), "samsung", "ID"));
    }

    #[test]
    fn reads_packages() {
        let entry = [field(1, b"com.x"), vec![0x10, 0x94, 0x4e, 0x18, 1]].concat();
        let mut recording = Recording::default();
        let list = [field(1, &entry), vec![0x18, 1]].concat();
        read_packages(&list, &mut recording, &mut Allowance::default()).unwrap();
        assert_eq!(recording.packages.len(), 1);
        let package = &recording.packages[0];
        assert_eq!((package.name.as_str(), package.uid), ("com.x", 10004));
        assert!(package.debuggable && !package.profileable_from_shell);
        assert!(recording.packages_incomplete);
    }

    #[test]
    fn a_process_is_called_by_its_first_word() {
        let one = [vec![0x08, 5], field(3, b"app_process -x")].concat();
        let two = [vec![0x08, 6], field(3, b"/bin/a b"), field(3, b"-v")].concat();
        let none = vec![0x08, 7];
        let tree = [field(1, &one), field(1, &two), field(1, &none)].concat();
        let mut recording = Recording::default();
        let mut allowance = Allowance::default();
        read_process_tree(&tree, &mut recording, &mut allowance).unwrap();
        assert_eq!(recording.processes[&5].name, "app_process");
        assert_eq!(recording.processes[&6].name, "/bin/a b");
        assert!(!recording.processes.contains_key(&7));
        assert_eq!(recording.processes[&5].start_ns, None);
        // Started at 9; a later tree has 8.
        for start in [9, 8] {
            let again = [vec![0x08, 5, 0x38, start], field(3, b"app_process -x")].concat();
            let tree = field(1, &again);
            read_process_tree(&tree, &mut recording, &mut allowance).unwrap();
        }
        assert_eq!(recording.processes[&5].start_ns, Some(9));
    }

    #[test]
    fn facts_have_perfettos_names() {
        let mut recording = Recording::default();
        let message = [
            field(1, &[field(1, b"Linux"), field(4, b"aarch64")].concat()),
            field(2, b"g/f"),
            vec![0x28, 34],
        ];
        read_system_info(&message.concat(), &mut recording).unwrap();
        read_uuid(&[0x08, 1, 0x10, 2], &mut recording).unwrap();
        read_config(&[0xd8, 1, 3], &mut recording, &mut Allowance::default()).unwrap();
        for event in [
            ServiceEvent::Started,
            ServiceEvent::Flushed,
            ServiceEvent::Flushed,
        ] {
            event.note(5, &mut recording);
        }
        let text = |text: &str| vec![MetadataValue::Text(text.to_owned())];
        let expected = [
            (FLUSHED, vec![MetadataValue::Number(5); 2]),
            ("android_build_fingerprint", text("g/f")),
            ("android_sdk_version", vec![MetadataValue::Number(34)]),
            ("system_machine", text("aarch64")),
            ("system_name", text("Linux")),
            // That of the config comes later and is less current.
            (UUID, text("00000000-0000-0001-0000-000000000002")),
            ("tracing_started_ns", vec![MetadataValue::Number(5)]),
        ];
        assert_eq!(recording.metadata, expected.into());
        let system = &system(&recording.metadata);
        assert_eq!((system.machine.as_str(), system.sdk), ("aarch64", 34));
        assert_eq!(read_trigger(&field(1, b"oom")).unwrap(), "oom");
    }
}
