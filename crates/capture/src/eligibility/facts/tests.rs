//! Tests of the facts and their parsing.

use super::*;

fn read(text: &str) -> DeviceFacts {
    DeviceFacts::read("SERIAL", text.as_bytes())
}

#[test]
fn memory_is_read_in_kilobytes() {
    assert_eq!(memory_bytes("MemTotal:  7831084 kB"), Some(7_831_084 << 10));
    for line in ["", "MemTotal:", "MemTotal: x kB", "MemFree: 5 kB"] {
        assert_eq!(memory_bytes(line), None, "{line}");
    }
}

#[test]
fn a_production_phone_is_read_whatever_its_line_ends() {
    let text = "\
WARNING: linker: libfoo.so: unused DT entry
@@heaptap getprop
[init.svc.traced]: [running]
[libc.debug.malloc.options]: []
[ro.build.fingerprint]: [acme/one/one:14/UQ1A/7:user/release-keys]
[ro.build.type]: [user]
[ro.build.version.codename]: [REL]
[ro.build.version.release]: [14]
[ro.build.version.sdk]: [34]
[ro.debuggable]: [0]
[ro.product.cpu.abilist]: [arm64-v8a,armeabi-v7a]
[ro.product.model]: [One\u{1b}]0;x]
[wrap.com.example]: [LIBC_DEBUG_MALLOC_OPTIONS=backtrace]

@@heaptap id
2000

@@heaptap boot_id
6d1a7c55-8a8e-4d24-9d1d-0a2f4a5fbb10

@@heaptap uptime
12345.67 98765.43

@@heaptap date
1707120000

@@heaptap getenforce
Enforcing

@@heaptap df
Filesystem       1K-blocks     Used Available Use% Mounted on
/dev/block/dm-44 112000000 40000000  71000000  37% /data/user/0
";
    for text in [text.to_owned(), text.replace('\n', "\r\n")] {
        let f = read(&text);
        assert_eq!(f.model.as_deref(), Some("One\u{fffd}]0;x"));
        assert_eq!(f.api(), Some(34));
        assert_eq!(f.is_user_build(), Some(true));
        assert_eq!(f.debuggable, Some(false));
        assert_eq!(f.abis, ["arm64-v8a", "armeabi-v7a"]);
        assert_eq!(f.is_64_bit(), Some(true));
        assert_eq!(f.selinux, Some(Selinux::Enforcing));
        assert_eq!(f.shell_uid, Some(2000));
        assert_eq!(f.root, None);
        assert_eq!(f.tracing_on, Some(true));
        assert_eq!(f.malloc_debug, None);
        assert_eq!(f.wraps[0].0, "com.example");
        assert_eq!(f.uptime, Some(Duration::from_secs_f64(12345.67)));
        assert_eq!(f.clock_s, Some(1_707_120_000));
        assert_eq!(f.free_bytes, Some(71_000_000 * 1024));
        assert!(f.boot_id.is_some());
        assert_eq!(f.system(), "Android 14 (SDK 34, user)");
    }
}

#[test]
fn a_phone_that_answers_nothing_leaves_everything_unknown() {
    for text in [
        "",
        "@@heaptap getprop\n/system/bin/sh: getprop: not found\n@@heaptap id\n",
        "@@heaptap boot_id\ncat: /proc: Permission denied\n@@heaptap df\nbroken 100%\n",
    ] {
        let f = read(text);
        assert_eq!(f.api(), None);
        assert_eq!(f.is_user_build(), None);
        assert_eq!(f.tracing_on, None);
        assert_eq!(f.free_bytes, None);
        assert_eq!(f.boot_id, None);
        assert!(f.abis.is_empty());
    }
}

#[test]
fn no_build_type_counts_as_user_and_a_preview_as_the_next_level() {
    let f = read(
        "@@heaptap getprop\n[ro.build.version.sdk]: [35]\n\
         [ro.build.version.codename]: [Baklava]\n[ro.product.cpu.abi]: [x86]\n\
         [ro.product.cpu.abi2]: [armeabi-v7a]\n",
    );
    assert_eq!(f.is_user_build(), Some(true));
    assert_eq!((f.sdk, f.api()), (Some(35), Some(36)));
    assert_eq!(f.preview.as_deref(), Some("Baklava"));
    assert_eq!(f.abis, ["x86", "armeabi-v7a"]);
    assert_eq!(f.is_64_bit(), Some(false));
    let other = read("@@heaptap getprop\n[ro.build.type]: [qa\u{1b}]\n");
    assert_eq!(
        other.build_type,
        Some(BuildType::Other("qa\u{fffd}".into()))
    );
    assert_eq!(other.is_user_build(), Some(false));
}

#[test]
fn the_tracing_daemon_is_off_by_its_state_or_its_switch() {
    let on = |props: &str| read(&format!("@@heaptap getprop\n{props}")).tracing_on;
    assert_eq!(
        on("[init.svc.traced]: [stopped]\n[persist.traced.enable]: [1]"),
        Some(false)
    );
    assert_eq!(
        on("[init.svc.traced]: [running]\n[persist.traced.enable]: [0]"),
        Some(true)
    );
    assert_eq!(on("[persist.traced.enable]: [0]"), Some(false));
    assert_eq!(on("[persist.traced.enable]: [2]"), Some(true));
    assert_eq!(on("[a]: [b]"), None);
}

#[test]
fn services_tell_users_screen_version_and_sessions() {
    let mut f = read("");
    f.read_services(
        b"@@heaptap users\nUsers:\n\tUserInfo{0:Owner:c13} running\n\
          \tUserInfo{10:Work: a}b:1030}\n@@heaptap current_user\n10\n\
          @@heaptap screen\n  mWakefulness=Dozing\n\
          @@heaptap version\nPerfetto v45.0-8fa6a5c (8fa6a5c)\n",
    );
    assert_eq!(f.users.len(), 2);
    assert_eq!((f.users[0].id, f.users[0].running), (0, true));
    assert_eq!(
        (f.users[1].name.as_str(), f.users[1].running),
        ("Work: a}b", false)
    );
    assert_eq!(f.current_user, Some(10));
    assert_eq!(f.screen_on, Some(false));
    assert_eq!(f.perfetto_version.as_deref(), Some("45.0"));

    use heaptap_proto::perfetto::{TracingServiceState, tracing_service_state as t};
    use prost::Message as _;
    let state = TracingServiceState {
        tracing_sessions: vec![t::TracingSession {
            id: Some(7),
            consumer_uid: Some(2000),
            state: Some("STARTED".into()),
            unique_session_name: Some("x\u{1b}".into()),
            start_realtime_ns: Some(5),
        }],
        ..TracingServiceState::default()
    };
    f.read_query(&state.encode_to_vec());
    assert_eq!(f.tracing_on, Some(true));
    assert_eq!(
        f.sessions.as_ref().map(|s| s[0].name.as_str()),
        Some("x\u{fffd}")
    );
    let before = f.clone();
    f.read_query(b"Usage: perfetto");
    assert_eq!(f, before);
}

#[test]
fn root_is_what_su_proves() {
    let mut f = read("@@heaptap id\n2000\n");
    f.read_su(b"/system/bin/sh: su: not found\n");
    assert_eq!(f.root, None);
    f.read_su(b"WARNING: linker: x\r\n0\r\n");
    assert_eq!(f.root, Some(Root::Su));
    assert_eq!(read("@@heaptap id\n0\n").root, Some(Root::Shell));
}

#[test]
fn df_is_found_by_its_percent_sign() {
    for (text, kib) in [
        (
            "Filesystem 1K-blocks Used Available Use% Mounted on\n/dev/fuse 10 4 6 40% /data",
            Some(6),
        ),
        (
            "/dev/block/a/very/long/name\n 10 4 6 40% /data with blanks",
            Some(6),
        ),
        ("df: /data: Permission denied", None),
        ("40% x", None),
    ] {
        let lines = super::super::sections::text_lines(text.as_bytes());
        assert_eq!(free_bytes(&lines), kib.map(|k: u64| k * 1024), "{text}");
    }
}
