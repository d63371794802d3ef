//! Contents of a booted phone: directories, files, processes.

use std::collections::BTreeMap;

use super::clock::{BootNs, Clock, MILLI, Now, SECOND};
use super::faults::Faults;
use super::fs::{FileData, Kind, Node, Tree, normalize};
use super::init::{boot_process, main_process, start_package, start_traced};
use super::logcat::Log;
use super::packages::{self, APP};
use super::process::{Processes, ROOT, Role};
use super::screen::{self, Screen};
use super::spec::{AppState, PhoneSpec, ScreenState};
use super::state::State;
use super::traced::Tracing;
use super::{foreground, installed, installer, properties};

/// Directories: path, mode, UID, GID and SELinux type.
const DIRECTORIES: &str = "\
/acct 755 0 0 rootfs
/dev 755 0 0 device
/dev/socket 755 0 0 socket_device
/proc 555 0 0 proc
/sys 755 0 0 sysfs
/apex/com.android.runtime/lib64/bionic 755 0 0 system_file
/system/bin 755 0 2000 system_file
/system/framework 755 0 0 system_file
/vendor/bin 755 0 2000 vendor_file
/data 771 1000 1000 system_data_root_file
/data/app 771 1000 1000 apk_data_file
/data/anr 775 1000 1000 anr_data_file
/data/local 751 0 0 system_data_root_file
/data/local/tmp 771 2000 2000 shell_data_file
/data/misc 1771 1000 9998 system_data_root_file
/data/misc/perfetto-traces 773 0 2000 perfetto_traces_data_file
/data/system 775 1000 1000 system_data_file
/data/tombstones 771 1000 1000 tombstone_data_file
/data/user 711 1000 1000 system_userdir_file
/storage/emulated/0/Download 770 0 1015 fuse
/tmp 1777 2000 2000 shell_data_file";

/// Daemons: PID, UID, SELinux domain and command line.
const DAEMONS: &str = "\
1 0 init /system/bin/init second_stage
238 0 ueventd /system/bin/ueventd
301 1036 logd /system/bin/logd
302 1000 servicemanager /system/bin/servicemanager
303 1000 hwservicemanager /system/bin/hwservicemanager
311 0 vold /system/bin/vold --blkid_context=u:r:blkid:s0
402 0 apexd /system/bin/apexd
431 1017 keystore /system/bin/keystore2 /data/misc/keystore
455 0 hal_configstore_default /vendor/bin/hw/android.hardware.configstore@1.1-service
502 1000 surfaceflinger /system/bin/surfaceflinger
511 1041 audioserver /system/bin/audioserver
523 1047 cameraserver /system/bin/cameraserver
531 1013 mediaserver /system/bin/mediaserver
540 1066 statsd /system/bin/statsd
551 0 netd /system/bin/netd
560 1069 lmkd /system/bin/lmkd
572 0 installd /system/bin/installd
590 1010 wificond /system/bin/wificond
604 1040 mediaextractor media.extractor aextractor
611 1046 mediacodec media.codec hw/android.hardware.media.omx@1.0-service
640 1073 traced_perf /system/bin/traced_perf
702 2000 adbd /apex/com.android.adbd/bin/adbd --root_seclabel=u:r:su:s0";

/// Creates the state of a booted phone.
pub(crate) fn boot(
    spec: &PhoneSpec,
    serial: &str,
    clock: &Clock,
    faults: &Faults,
    programs: &[&str],
) -> State {
    let mut state = State {
        processes: Processes::default(),
        tree: tree(spec, programs),
        properties: properties::at_boot(spec, serial, faults),
        packages: packages::installed(),
        enforcing: spec.enforcing,
        boot_id: String::new(),
        log: Log::default(),
        tracing: Tracing::default(),
        foreground: screen::LAUNCHER.to_owned(),
        screen_on: spec.screen == ScreenState::On,
        screen: Screen::new(spec),
        installs: BTreeMap::new(),
    };
    for package in &state.packages {
        installer::add_files(&mut state.tree, spec, package);
    }
    installer::write_list(&mut state.tree, &state.packages, spec);
    start_all(&mut state, spec, clock);
    state
}

/// Recreates the state that a reboot resets; files and packages stay.
pub(crate) fn reboot(
    state: &mut State,
    spec: &PhoneSpec,
    serial: &str,
    clock: &Clock,
    faults: &Faults,
) {
    state.processes.clear();
    state.properties = properties::at_boot(spec, serial, faults);
    state.enforcing = spec.enforcing;
    state.log = Log::default();
    state.tracing.reboot();
    state.screen.reboot();
    state.foreground = screen::LAUNCHER.to_owned();
    start_all(state, spec, clock);
}

/// Computes a boot ID from the seed and the previous ID.
fn boot_id(seed: u64, before: &str) -> String {
    let mix = before
        .bytes()
        .fold(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15), |h, b| {
            (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3)
        });
    let mut random = fastrand::Rng::with_seed(mix);
    let (a, b) = (random.u64(..), random.u64(..));
    format!(
        "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
        a >> 32,
        a >> 16 & 0xffff,
        a & 0xfff,
        0x8000 | b >> 48 & 0x3fff,
        b & 0xffff_ffff_ffff
    )
}

fn file(tree: &mut Tree, path: &str, mode: u32, uid: u32, bytes: &[u8]) {
    let data = FileData::new(bytes.to_vec(), 1_707_120_000);
    tree.install(path, Node::new(Kind::File(data), mode, uid, uid));
}

fn tree(spec: &PhoneSpec, programs: &[&str]) -> Tree {
    let mut tree = Tree::new();
    for row in DIRECTORIES.lines() {
        let [path, mode, uid, gid, label] = row.split(' ').collect::<Vec<_>>()[..] else {
            panic!("a directory has five words: {row}");
        };
        let number = |text, radix| u32::from_str_radix(text, radix).expect("a number");
        let node = tree.directory(path);
        node.mode = number(mode, 8);
        (node.uid, node.gid, node.label) = (number(uid, 10), number(gid, 10), label);
    }
    if spec.android >= 12 {
        let node = tree.directory("/data/misc/perfetto-configs");
        (node.mode, node.uid, node.gid) = (0o775, 0, 2000);
        node.label = "perfetto_configs_data_file";
    }
    for path in ["/storage/emulated/0", "/storage/emulated"] {
        let node = tree.directory(path);
        (node.mode, node.gid, node.label) = (0o771, 1015, "fuse");
    }
    for (path, to) in [
        ("/bin", "/system/bin"),
        ("/etc", "/system/etc"),
        ("/sdcard", "/storage/self/primary"),
        ("/storage/self/primary", "/storage/emulated/0"),
        ("/data/data", "/data/user/0"),
    ] {
        tree.install(path, Node::new(Kind::Link(to.to_owned()), 0o777, 0, 0));
    }
    for name in ["null", "zero", "tty"] {
        let mut device = Node::new(Kind::Device(name), 0o666, 0, 0);
        device.label = "null_device";
        tree.install(&format!("/dev/{name}"), device);
    }
    for name in programs {
        let path = format!("/system/bin/{name}");
        file(&mut tree, &path, 0o755, 0, b"\x7fELF\x02\x01\x01");
    }
    installed::install_system(&mut tree, spec);
    let properties = b"# begin common build properties\n";
    file(&mut tree, "/system/build.prop", 0o600, 0, properties);
    let hosts = b"127.0.0.1       localhost\n::1             ip6-localhost\n";
    file(&mut tree, "/system/etc/hosts", 0o644, 0, hosts);
    let list = "/data/system/packages.list";
    file(&mut tree, list, 0o640, 1000, b"");
    if let Some(node) = tree.node_mut(&normalize("/", list)) {
        node.gid = 1032;
        node.label = "packages_list_file";
    }
    tree
}

fn start_all(state: &mut State, spec: &PhoneSpec, clock: &Clock) {
    state.boot_id = boot_id(spec.seed, &state.boot_id);
    for (pid, name) in [
        (2, "kthreadd"),
        (3, "rcu_gp"),
        (14, "ksoftirqd/0"),
        (61, "kswapd0"),
        (88, "kworker/u17:0"),
    ] {
        let parent = if pid == 2 { 0 } else { 2 };
        let p = boot_process(pid, parent, ROOT, name, "kernel", Role::Kernel);
        state.processes.insert(p);
    }
    for row in DAEMONS.lines() {
        let [pid, uid, domain, argv] = row.splitn(4, ' ').collect::<Vec<_>>()[..] else {
            panic!("a daemon has four words: {row}");
        };
        let number = |text: &str| text.parse().expect("a number");
        let (pid, uid) = (number(pid), number(uid));
        let mut p = boot_process(pid, u32::from(pid != 1), uid, argv, domain, Role::Native);
        p.idle = !["surfaceflinger", "mediaserver", "audioserver", "statsd"].contains(&domain);
        state.processes.insert(p);
    }
    let enabled = state.properties.get("persist.traced.enable");
    if enabled.is_some_and(|v| v == "1") {
        start_traced(state);
    }
    let zygote = |pid, name: &str| boot_process(pid, 1, ROOT, name, "zygote", Role::Zygote);
    if spec.abi.is_64_bit() {
        state.processes.insert(zygote(811, "zygote64"));
        let mut second = zygote(812, "zygote");
        second.bits_32 = true;
        state.processes.insert(second);
    } else {
        state.processes.insert(zygote(811, "zygote"));
    }
    for (pid, uid, name, role) in [
        (1_322, 1053, "webview_zygote", Role::Zygote),
        (1_204, 1000, "system_server", Role::SystemServer),
    ] {
        let p = boot_process(pid, 811, uid, name, name, role);
        state.processes.insert(p);
    }
    state.processes.skip_to(1_400);
    let all = state.packages.clone();
    let now = clock.boot();
    for package in all.iter().filter(|p| p.system && !p.processes.is_empty()) {
        // After a reboot, the clock is not there yet.
        start_package(state, package, 0, now.min(40 * SECOND));
    }
    state.processes.skip_to(6_200);
    for package in all.iter().filter(|p| !p.system) {
        if package.name == "com.example.stopped"
            || (package.name == APP && spec.app == AppState::Stopped)
        {
            continue;
        }
        for user in package.users {
            let started =
                now.saturating_sub(900 * SECOND - u64::from(package.appid % 100) * SECOND);
            start_package(state, package, *user, started);
            let uid = package.uid(*user);
            let is = |name, app| package.name == name || (package.name == APP && spec.app == app);
            for p in state.processes.iter_mut().filter(|p| p.uid == uid) {
                p.idle = is("com.example.idle", AppState::Idle);
                p.frozen = is("com.example.frozen", AppState::Frozen);
                if p.frozen {
                    p.oom_score_adj = 905;
                }
            }
        }
    }
    if spec.app != AppState::Stopped {
        state.foreground = APP.to_owned();
        if let Some(p) = main_process(state, APP, 0).and_then(|p| state.processes.get_mut(p)) {
            p.oom_score_adj = if p.frozen { 905 } else { 0 };
        }
    }
    foreground::begin(state);
    state.processes.skip_to(9_100);
    let real = clock.at(0).real;
    let mut log = |boot: BootNs, tag: &str, text: &str| {
        let real = real + boot;
        state
            .log
            .add(Now { boot, real }, (1_204, 1_000), 'I', tag, text);
    };
    log(9_120 * MILLI, "SystemServiceManager", "Starting phase 100");
    log(14_310 * MILLI, "ActivityManager", "System now ready");
    log(21_004 * MILLI, "BootReceiver", "boot completed");
    for p in state.processes.iter().filter(|p| p.app().is_some()) {
        let text = format!("Start proc {}:{} for top-activity", p.pid, p.name());
        log(p.started, "ActivityManager", &text);
    }
}
