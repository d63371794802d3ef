//! Libraries from the phone: which ones heaptap fetches, which parts and how often, and the
//! handling of every failure.

use std::sync::Mutex;

use heaptap::names::device_libs::{DeviceLibs, Fetched, LibraryRequest, Outcome, PullLibs};
use heaptap_adb::{Address, Selector, Server};
use heaptap_base::units::BuildId;
use heaptap_symbols::symbolize::cache::{Cache, Origin};
use heaptap_symbols::symbolize::file::identify;
use heaptap_symbols::symbolize::find::RejectReason;
use virtual_phone::{Fault, PhoneSpec, VirtualPhone};

const UTILS: &str = "/system/lib64/libutils.so";
const HWUI: &str = "/system/lib64/libhwui.so";

struct Lab {
    phone: VirtualPhone,
    cache: tempfile::TempDir,
    runtime: tokio::runtime::Runtime,
}

impl Lab {
    fn new(spec: &str) -> Lab {
        let spec = PhoneSpec::parse(spec).expect("a valid spec");
        Lab {
            phone: VirtualPhone::start(spec).expect("a phone"),
            cache: tempfile::tempdir().expect("a folder"),
            runtime: tokio::runtime::Builder::new_multi_thread()
                .worker_threads(1)
                .enable_all()
                .build()
                .expect("a runtime"),
        }
    }

    fn cache(&self) -> Cache {
        Cache::in_directory(self.cache.path()).expect("a cache")
    }

    fn source(&self, how: PullLibs) -> DeviceLibs {
        let address = self.phone.addr();
        let address = Address::new(address.ip().to_string(), address.port());
        self.runtime.block_on(async {
            let device = Server::at(address).select(&Selector::Only).await;
            DeviceLibs::new(device.expect("the phone"), how)
        })
    }

    fn fetch(&self, how: PullLibs, requests: Vec<LibraryRequest>) -> Vec<Fetched> {
        self.source(how).fetch(&self.cache(), requests, &|_| {})
    }

    fn outcome(&self, how: PullLibs, request: LibraryRequest) -> Outcome {
        let fetched = self.fetch(how, vec![request]);
        assert_eq!(fetched.len(), 1, "{fetched:?}");
        fetched[0].outcome.clone()
    }

    /// A request for an existing library of the phone.
    fn library_request(&self, path: &str) -> LibraryRequest {
        let bytes = self.phone.file(path).expect("it is there");
        let build_id = identify(&bytes).expect("an ELF file").build_id;
        LibraryRequest {
            path: path.to_owned(),
            build_id,
            start_offset: 0,
            nameless: 1,
            without_lines: 0,
        }
    }

    /// The APK of com.example.app.
    fn apk(&self) -> String {
        let inside = self.phone.list("/data/app/~~kQ3bZr34Ttq8Wm2vYdN1g==");
        format!("/data/app/~~kQ3bZr34Ttq8Wm2vYdN1g==/{}/base.apk", inside[0])
    }

    /// A request for a library stored in the APK, and its bytes.
    fn library_request_in_apk(&self, name: &str) -> (LibraryRequest, Vec<u8>) {
        let apk = self.apk();
        let bytes = self.phone.file(&apk).expect("an APK");
        let mut archive = zip::ZipArchive::new(std::io::Cursor::new(&bytes)).expect("a ZIP");
        let member = archive
            .by_name(&format!("lib/arm64-v8a/{name}"))
            .expect("it is there");
        let start = member.data_start().expect("it has data");
        let library = bytes[start as usize..][..member.size() as usize].to_vec();
        let request = LibraryRequest {
            path: format!("{apk}!{name}"),
            build_id: identify(&library).expect("an ELF file").build_id,
            start_offset: start,
            nameless: 1,
            without_lines: 0,
        };
        (request, library)
    }

    /// Requests to the phone about files.
    fn asked(&self) -> Vec<String> {
        let of_files = |r: &String| {
            ["STA2", "STAT", "RECV", "dd "]
                .iter()
                .any(|what| r.contains(what))
        };
        self.phone.requests().into_iter().filter(of_files).collect()
    }
}

fn kept(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Kept(bytes) if *bytes > 0)
}

#[test]
fn a_library_comes_once_and_is_kept() {
    let lab = Lab::new("");
    let requests = || vec![lab.library_request(UTILS), lab.library_request(HWUI)];
    let events = Mutex::new(Vec::new());
    let tell = |event| events.lock().expect("no panic").push(event);
    let fetched = lab
        .source(PullLibs::Cheap)
        .fetch(&lab.cache(), requests(), &tell);
    assert!(fetched.iter().all(|f| kept(&f.outcome)), "{fetched:?}");
    assert_eq!(events.lock().expect("no panic").len(), 4, "{events:?}");
    for request in requests() {
        let (_, bytes) = lab
            .cache()
            .libraries()
            .get(&request.build_id, Origin::Device)
            .expect("kept");
        assert_eq!(*bytes, *lab.phone.file(&request.path).expect("it is there"));
    }
    let asked = lab.asked();
    assert_eq!(asked.len(), 4, "{asked:?}");
    let again = lab.fetch(PullLibs::Always, requests());
    assert!(
        again.iter().all(|f| f.outcome == Outcome::Cached),
        "{again:?}"
    );
    assert_eq!(lab.asked(), asked, "nothing more is asked of the phone");
}

#[test]
fn what_costs_most_comes_first_and_what_is_not_worth_it_only_on_demand() {
    let lab = Lab::new("");
    let request = |path: &str, nameless, without_lines| LibraryRequest {
        nameless,
        without_lines,
        ..lab.library_request(path)
    };
    let requests = || {
        vec![
            request("/system/lib64/libsqlite.so", 0, 50),
            request(UTILS, 1, 0),
            request(HWUI, 7, 0),
            LibraryRequest {
                path: "/[vdso]".to_owned(),
                ..request(HWUI, 9, 0)
            },
            LibraryRequest {
                build_id: BuildId::default(),
                ..request("/system/lib64/libbinder.so", 9, 0)
            },
        ]
    };
    let paths =
        |fetched: Vec<Fetched>| -> Vec<String> { fetched.into_iter().map(|f| f.path).collect() };
    assert!(lab.fetch(PullLibs::Never, requests()).is_empty());
    assert_eq!(lab.asked(), Vec::<String>::new());
    assert_eq!(paths(lab.fetch(PullLibs::Cheap, requests())), [HWUI, UTILS]);
    let all = paths(lab.fetch(PullLibs::Always, requests()));
    assert_eq!(all, [HWUI, UTILS, "/system/lib64/libsqlite.so"]);
}

#[test]
fn of_an_apk_only_the_library_comes() {
    let lab = Lab::new("stripped=no");
    let (request, library) = lab.library_request_in_apk("libjson.so");
    let id = request.build_id.clone();
    let Outcome::Kept(bytes) = lab.outcome(PullLibs::Cheap, request) else {
        panic!("it is readable");
    };
    assert!(bytes < library.len() as u64 + 2 * 4096, "{bytes}");
    assert!(lab.asked().iter().all(|r| !r.starts_with("RECV")));
    let (_, found) = lab
        .cache()
        .libraries()
        .get(&id, Origin::Device)
        .expect("kept");
    assert_eq!(*found, *library);
}

#[test]
fn a_phone_that_cannot_read_parts_gives_the_whole_apk() {
    let lab = Lab::new("fault=no-shell-v2");
    let (request, library) = lab.library_request_in_apk("libengine.so");
    let id = request.build_id.clone();
    let apk = lab.phone.file(&lab.apk()).expect("an APK");
    assert_eq!(
        lab.outcome(PullLibs::Cheap, request),
        Outcome::Kept(apk.len() as u64)
    );
    let (_, found) = lab
        .cache()
        .libraries()
        .get(&id, Origin::Device)
        .expect("kept");
    assert_eq!(*found, *library);
}

#[test]
fn another_build_is_refused_and_remembered_until_the_file_changes() {
    let lab = Lab::new("");
    let request = || LibraryRequest {
        build_id: BuildId(vec![7; 20]),
        ..lab.library_request(UTILS)
    };
    let there = lab.library_request(UTILS).build_id;
    let outcome = lab.outcome(PullLibs::Always, request());
    assert_eq!(outcome, Outcome::Not(RejectReason::OtherBuildId(there)));
    let before = lab.asked().len();
    let outcome = lab.outcome(PullLibs::Always, request());
    assert!(
        matches!(outcome, Outcome::Not(RejectReason::Device(_))),
        "{outcome:?}"
    );
    let after = lab.asked();
    assert_eq!(after[before..], [format!("STA2:{UTILS}")]);
    let other = lab.phone.file(HWUI).expect("it is there");
    lab.phone.put_file(UTILS, &other, 0o644);
    let id = identify(&other).expect("an ELF file").build_id;
    let outcome = lab.outcome(PullLibs::Always, request());
    assert_eq!(outcome, Outcome::Not(RejectReason::OtherBuildId(id)));
}

#[test]
fn what_is_no_readable_library_is_said() {
    let lab = Lab::new("");
    let why = |request: LibraryRequest| match lab.outcome(PullLibs::Always, request) {
        Outcome::Not(why) => why,
        other => panic!("{other:?}"),
    };
    let at = |path: &str| LibraryRequest {
        path: path.to_owned(),
        ..lab.library_request(UTILS)
    };
    assert_eq!(why(at("/vendor/lib64/libgone.so")), RejectReason::NotThere);
    assert_eq!(why(at("/system/lib64")), RejectReason::NotAFile);
    lab.phone
        .put_file("/system/lib64/libsecret.so", b"\x7fELF", 0o600);
    let denied = RejectReason::Unreadable(std::io::ErrorKind::PermissionDenied);
    assert_eq!(why(at("/system/lib64/libsecret.so")), denied);
    lab.phone
        .put_file("/system/lib64/libtext.so", b"no library", 0o644);
    assert!(matches!(
        why(at("/system/lib64/libtext.so")),
        RejectReason::Damaged(_)
    ));
    let (inside, _) = lab.library_request_in_apk("libjson.so");
    let beside = LibraryRequest {
        start_offset: inside.start_offset + 4096,
        ..inside.clone()
    };
    assert!(matches!(why(beside), RejectReason::Damaged(_)));
    let beyond = LibraryRequest {
        start_offset: 1 << 40,
        ..inside
    };
    assert!(matches!(why(beyond), RejectReason::Damaged(_)));
}

#[test]
fn too_much_is_left_there_unless_it_is_asked_for() {
    let lab = Lab::new("fault=stat-lies@100000000");
    let outcome = lab.outcome(PullLibs::Cheap, lab.library_request(UTILS));
    let Outcome::Not(RejectReason::OverBudget(text)) = outcome else {
        panic!("{outcome:?}");
    };
    assert!(
        text.contains("64.0 MiB") && text.contains("--pull-libs"),
        "{text}"
    );
    assert!(lab.asked().iter().all(|r| !r.starts_with("RECV")));
    assert!(kept(
        &lab.outcome(PullLibs::Always, lab.library_request(UTILS))
    ));
}

#[test]
fn a_phone_that_goes_is_asked_no_more() {
    for fault in ["pull-cut#1", "transport-fail#4", "vanish@4"] {
        let lab = Lab::new("");
        let source = lab.source(PullLibs::Cheap);
        let requests = vec![
            lab.library_request(UTILS),
            lab.library_request(HWUI),
            lab.library_request("/system/lib64/libsqlite.so"),
        ];
        lab.phone
            .faults()
            .add(Fault::parse(fault).expect("a fault"));
        let fetched = source.fetch(&lab.cache(), requests, &|_| {});
        let gone = fetched
            .iter()
            .filter(|f| matches!(f.outcome, Outcome::Not(RejectReason::Device(_))))
            .count();
        assert!(gone >= 1, "{fault}: {fetched:?}");
        let last = &fetched.last().expect("three").outcome;
        assert!(
            matches!(last, Outcome::Not(RejectReason::Device(_))),
            "{fault}: {fetched:?}"
        );
    }
}

#[test]
fn whoever_does_not_want_to_wait_goes_on_without() {
    let lab = Lab::new("fault=pull-hang@0");
    let source = lab.source(PullLibs::Always);
    let interrupt = source.interrupt();
    assert!(!interrupt.skip(), "nothing is under way");
    let requests = vec![lab.library_request(UTILS), lab.library_request(HWUI)];
    let fetched = std::thread::scope(|scope| {
        let fetching = scope.spawn(|| source.fetch(&lab.cache(), requests, &|_| {}));
        while !lab.asked().iter().any(|r| r.starts_with("RECV")) {
            std::thread::yield_now();
        }
        assert!(interrupt.skip());
        fetching.join().expect("no panic")
    });
    let interrupted = Outcome::Not(RejectReason::Device("interrupted".to_owned()));
    assert!(
        fetched.iter().all(|f| f.outcome == interrupted),
        "{fetched:?}"
    );
    assert_eq!(fetched.len(), 2);
    assert!(!interrupt.skip(), "it is over");
}
