//! Finding and checks, with ELF files made here.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use heaptap_base::error::{ErrorClass, Failure};

use super::*;

const X86_64: u16 = 62;
const ARM64: u16 = 183;

/// An ELF file of 64 bits to be written.
struct Elf<'a> {
    machine: u16,
    interpreter: Option<&'a str>,
    needed: &'a [&'a str],
    /// Needed version of libc.so.6.
    version: Option<&'a str>,
}

const PROGRAM: Elf<'static> = Elf {
    machine: X86_64,
    interpreter: Some("/lib64/no-such-linker.so"),
    needed: &["libc.so.6"],
    version: None,
};

impl Elf<'_> {
    /// Returns the bytes: header, segments, strings, dynamic section, versions, section headers.
    fn bytes(&self) -> Vec<u8> {
        fn u16(out: &mut Vec<u8>, value: u16) {
            out.extend(value.to_le_bytes());
        }
        fn u32(out: &mut Vec<u8>, value: u32) {
            out.extend(value.to_le_bytes());
        }
        fn u64(out: &mut Vec<u8>, value: usize) {
            out.extend((value as u64).to_le_bytes());
        }
        let mut strings = vec![0];
        let mut string = |text: &str| {
            let at = strings.len();
            strings.extend(text.as_bytes());
            strings.push(0);
            at
        };
        let mut dynamic = Vec::new();
        for name in self.needed {
            u64(&mut dynamic, 1); // DT_NEEDED
            u64(&mut dynamic, string(name));
        }
        dynamic.extend([0; 16]);
        let mut versions = Vec::new();
        if let Some(version) = self.version {
            u16(&mut versions, 1);
            u16(&mut versions, 1);
            u32(&mut versions, string("libc.so.6") as u32);
            u32(&mut versions, 16);
            u32(&mut versions, 0);
            u32(&mut versions, 0);
            u16(&mut versions, 0);
            u16(&mut versions, 2);
            u32(&mut versions, string(version) as u32);
            u32(&mut versions, 0);
        }
        let linker = self.interpreter.map(|path| format!("{path}\0"));
        let linker = linker.unwrap_or_default().into_bytes();
        const SEGMENTS: usize = 2;
        let data = 64 + SEGMENTS * 56;
        let (at_strings, at_dynamic) = (data + linker.len(), data + linker.len() + strings.len());
        let at_versions = at_dynamic + dynamic.len();
        let at_sections = at_versions + versions.len();
        let mut out = b"\x7fELF\x02\x01\x01".to_vec();
        out.resize(16, 0);
        u16(&mut out, 3); // ET_DYN
        u16(&mut out, self.machine);
        u32(&mut out, 1);
        u64(&mut out, 0);
        u64(&mut out, 64);
        u64(&mut out, at_sections);
        u32(&mut out, 0);
        for value in [64, 56, SEGMENTS as u16, 64, 4, 1] {
            u16(&mut out, value);
        }
        let mut segment = |kind: u32, start: usize, size: usize| {
            u32(&mut out, kind);
            u32(&mut out, 4);
            for value in [start, start, start, size, size, 1] {
                u64(&mut out, value);
            }
        };
        segment(1, 0, at_sections);
        // PT_INTERP, or PT_NULL.
        let kind = if linker.is_empty() { 0 } else { 3 };
        segment(kind, data, linker.len());
        for part in [&linker, &strings, &dynamic, &versions] {
            out.extend(part);
        }
        out.extend([0; 64]);
        let mut section = |kind: u32, start: usize, size: usize, link: u32| {
            u32(&mut out, 0);
            u32(&mut out, kind);
            u64(&mut out, 0);
            u64(&mut out, start);
            u64(&mut out, start);
            u64(&mut out, size);
            u32(&mut out, link);
            u32(&mut out, u32::from(size > 0));
            u64(&mut out, 1);
            u64(&mut out, 16);
        };
        section(3, at_strings, strings.len(), 0);
        section(6, at_dynamic, dynamic.len(), 1);
        match versions.is_empty() {
            true => section(1, at_versions, 0, 0),
            false => section(0x6fff_fffe, at_versions, versions.len(), 1),
        }
        out
    }
}

/// A directory with a Perfetto build and a place for programs.
struct Build(tempfile::TempDir);

impl Build {
    fn new() -> Build {
        let build = Build(tempfile::tempdir().unwrap());
        build.executable("traced", b"#!/bin/sh\n");
        build.executable("perfetto", b"#!/bin/sh\n");
        let library = Elf {
            interpreter: None,
            ..PROGRAM
        };
        build.library(&library.bytes());
        build
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn executable(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, bytes).unwrap();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        path
    }

    fn library(&self, bytes: &[u8]) {
        fs::write(self.path("libheapprofd_glibc_preload.so"), bytes).unwrap();
    }

    fn request(&self, program: &Path) -> Request {
        Request {
            command: vec![program.into()],
            perfetto_dir: Some(self.0.path().to_owned()),
            path: Some(self.0.path().into()),
            tmp: Some(self.0.path().to_owned()),
            ..Request::default()
        }
    }

    /// Checks a program of these bytes.
    fn check(&self, bytes: &[u8]) -> Result<Checked, Failure> {
        check(&self.request(&self.executable("program", bytes)))
    }
}

/// Returns the kind of an error, and its words.
fn refused(result: Result<Checked, Failure>) -> (&'static str, String) {
    let error = result.expect_err("refused");
    (error.kind, error.to_string())
}

#[test]
fn a_dynamic_program_of_the_librarys_kind_fits() {
    let build = Build::new();
    let checked = build.check(&PROGRAM.bytes()).unwrap();
    assert_eq!(checked.name, "program");
    assert!(checked.cautions.is_empty() && checked.interpreter.is_none());
}

#[test]
fn programs_that_cannot_load_the_library_are_refused_with_the_reason() {
    let build = Build::new();
    let needs = |needed| Elf { needed, ..PROGRAM };
    let mut narrow = PROGRAM.bytes();
    // No segment and no section of 32 bits.
    narrow.truncate(52);
    narrow[4] = 1;
    narrow[28..52].fill(0);
    let cases: [(Vec<u8>, &str); 8] = [
        (
            Elf {
                interpreter: None,
                ..PROGRAM
            }
            .bytes(),
            "statically linked",
        ),
        (
            Elf {
                interpreter: Some("/lib/ld-musl-x86_64.so.1"),
                ..PROGRAM
            }
            .bytes(),
            "musl",
        ),
        (
            Elf {
                machine: ARM64,
                ..PROGRAM
            }
            .bytes(),
            "arm64, and the preload library is for x86-64",
        ),
        (
            needs(&["libasan.so.8", "libc.so.6"]).bytes(),
            "AddressSanitizer",
        ),
        (needs(&["libtsan.so.2"]).bytes(), "ThreadSanitizer"),
        (needs(&["libjemalloc.so.2"]).bytes(), "jemalloc"),
        (narrow, "32-bit program"),
        (
            b"MZ no program of Linux".to_vec(),
            "neither an ELF program nor a script",
        ),
    ];
    for (bytes, why) in cases {
        let (kind, message) = refused(build.check(&bytes));
        assert_eq!(kind, "host-program-unsuitable", "{message}");
        assert!(message.contains(why), "{message}");
    }
}

#[test]
fn force_turns_a_refusal_into_a_caution() {
    let build = Build::new();
    let program = Elf {
        interpreter: None,
        ..PROGRAM
    };
    let program = build.executable("program", &program.bytes());
    let checked = check(&Request {
        force: true,
        ..build.request(&program)
    });
    let cautions = checked.unwrap().cautions;
    assert!(
        cautions[0].message.contains("statically linked"),
        "{cautions:?}"
    );
}

#[test]
fn an_allocator_that_hides_allocations_is_a_caution() {
    let build = Build::new();
    for name in ["libtcmalloc_minimal.so.4", "libmimalloc.so.2"] {
        let program = Elf {
            needed: &[name],
            ..PROGRAM
        };
        let cautions = build.check(&program.bytes()).unwrap().cautions;
        assert!(
            cautions[0].message.contains("C++ new is not"),
            "{cautions:?}"
        );
    }
}

/// The dynamic linker of this program, whose C library has versions.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[test]
fn a_library_that_needs_a_newer_c_library_is_refused() {
    let own = fs::read(std::env::current_exe().unwrap()).unwrap();
    let own = elf::read(&own).unwrap().unwrap();
    assert!(!own.version_needs.is_empty() && own.needed.iter().any(|n| n == "libc.so.6"));
    let build = Build::new();
    let program = Elf {
        machine: own.machine,
        interpreter: own.interpreter.as_deref(),
        ..PROGRAM
    };
    for (version, fits) in [("GLIBC_2.17", true), ("GLIBC_99.9", false)] {
        let library = Elf {
            machine: own.machine,
            interpreter: None,
            version: Some(version),
            ..PROGRAM
        };
        build.library(&library.bytes());
        match build.check(&program.bytes()) {
            Ok(_) => assert!(fits, "{version}"),
            refusal => {
                let (kind, message) = refused(refusal);
                assert!(!fits && message.contains("GLIBC_99.9"), "{message}");
                assert_eq!(kind, "host-program-unsuitable");
            }
        }
    }
}

#[test]
fn a_library_that_would_fail_silently_or_crash_is_refused() {
    let build = Build::new();
    let whole = Elf {
        interpreter: None,
        ..PROGRAM
    }
    .bytes();
    let cut = whole[..200].to_vec();
    for (bytes, why) in [
        (cut, "bytes are missing"),
        (b"text".to_vec(), "not an ELF file"),
        (PROGRAM.bytes(), "a program, not a library"),
    ] {
        build.library(&bytes);
        let (kind, message) = refused(build.check(&PROGRAM.bytes()));
        assert_eq!(kind, "host-library-unusable", "{message}");
        assert!(message.contains(why), "{message}");
    }
    // Headers of a damaged file decide nothing beyond its size.
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 0xff;
        let _ = elf::read(&bytes);
        let _ = elf::read(&whole[..at]);
    }
}

#[test]
fn the_interpreter_of_a_script_is_checked() {
    let build = Build::new();
    let interpreter = build.executable("interpreter", &PROGRAM.bytes());
    let line = format!("#!{} -u\nprint()\n", interpreter.display());
    let checked = build.check(line.as_bytes()).unwrap();
    assert_eq!(checked.interpreter.as_deref(), Some(interpreter.as_path()));
    let checked = build.check(b"#!/usr/bin/env -S interpreter -u\n").unwrap();
    assert_eq!(checked.interpreter.as_deref(), Some(interpreter.as_path()));
    let (_, message) = refused(build.check(b"#!/no/such/interpreter\n"));
    assert!(message.contains("/no/such/interpreter"), "{message}");
    let fixed = Elf {
        interpreter: None,
        ..PROGRAM
    };
    build.executable("interpreter", &fixed.bytes());
    let (_, message) = refused(build.check(line.as_bytes()));
    assert!(message.contains("its interpreter") && message.contains("statically"));
}

#[test]
fn what_is_missing_is_named_with_the_searched_places() {
    let build = Build::new();
    let (kind, message) = refused(check(&build.request(Path::new("./no-such-program"))));
    assert_eq!(kind, "host-program-missing", "{message}");
    let program = build.executable("program", &PROGRAM.bytes());
    let ring = Request {
        tmp: Some(build.path("no-such-directory")),
        ..build.request(&program)
    };
    assert_eq!(refused(check(&ring)).0, "host-ring-buffer");
    fs::remove_file(build.path("libheapprofd_glibc_preload.so")).unwrap();
    let (kind, message) = refused(check(&build.request(&program)));
    assert_eq!(kind, "host-tools-missing");
    assert!(
        message.contains("libheapprofd_glibc_preload.so; searched"),
        "{message}"
    );
    fs::remove_file(build.path("traced")).unwrap();
    let (_, message) = refused(check(&build.request(&program)));
    assert!(
        message.contains("tracebox, or traced and perfetto"),
        "{message}"
    );
    assert!(
        message.contains(&build.0.path().display().to_string()),
        "{message}"
    );
}

#[test]
fn the_newest_download_of_perfettos_scripts_is_used() {
    let build = Build::new();
    let home = tempfile::tempdir().unwrap();
    let prebuilts = home.path().join(".local/share/perfetto/prebuilts");
    fs::create_dir_all(&prebuilts).unwrap();
    for (hash, age) in [
        ("0123456789abcdef", 60),
        ("fedcba9876543210", 0),
        ("short", 0),
    ] {
        let path = prebuilts.join(format!("libheapprofd_glibc_preload-{hash}.so"));
        fs::copy(build.path("libheapprofd_glibc_preload.so"), &path).unwrap();
        let time = SystemTime::now() - Duration::from_secs(age);
        let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
        file.set_modified(time).unwrap();
    }
    fs::remove_file(build.path("libheapprofd_glibc_preload.so")).unwrap();
    let program = build.executable("program", &PROGRAM.bytes());
    let request = Request {
        home: Some(home.path().to_owned()),
        ..build.request(&program)
    };
    let tools = check(&request).unwrap().tools;
    assert!(
        tools
            .library
            .ends_with("libheapprofd_glibc_preload-fedcba9876543210.so")
    );
    assert_eq!(tools.traced, (build.path("traced"), None));
    // Parts of one build come first.
    build.executable("tracebox", b"#!/bin/sh\n");
    let tools = check(&request).unwrap().tools;
    assert_eq!(tools.perfetto, (build.path("tracebox"), Some("perfetto")));
}

#[test]
fn each_error_has_its_class_and_a_next_step() {
    let failure = super::error::unsupported("macos");
    assert_eq!(
        (failure.kind, failure.class),
        ("host-unsupported", ErrorClass::Usage)
    );
    assert!(failure.help.is_some());
    #[cfg(target_os = "linux")]
    {
        let failure = super::error::private_directory(std::io::Error::other("x"));
        assert_eq!(
            (failure.kind, failure.class),
            ("host-private-directory", ErrorClass::HostWrite)
        );
    }
    assert_eq!(supported().is_ok(), cfg!(target_os = "linux"));
}

#[test]
fn a_signal_is_reported_as_by_a_shell() {
    assert_eq!(ProgramEnd::Signaled(9).status(), 137);
    assert_eq!(ProgramEnd::Exited(3).status(), 3);
}
