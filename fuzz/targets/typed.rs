//! What a user writes: SQL, scenarios, configs, arguments.

use super::results::in_directory;
use heaptap::commands::gc::run::Stretch;
use heaptap::commands::query::run::{QueryFile, QueryOptions, open};
use heaptap::commands::run::with_actions;
use heaptap::heaps::java::ProgressReporter;
use heaptap::heaps::selector::{DumpSelector, JavaInput, check_label};
use heaptap_adb::{Address, Selector};
use heaptap_base::units::{ByteSize, parse_duration, parse_time};
use heaptap_capture::config::{ConfigFile, DeviceLimits, Options, parse_text, print_text, resolve};
use heaptap_capture::session::SessionId;
use heaptap_lab::scenario::{MAX_BYTES, Scenario};
use heaptap_query::{Limits, Sink, Value, prepass};
use std::ffi::OsStr;
use std::fs;
use std::ops::ControlFlow;
use std::time::Duration;
use virtual_phone::PhoneSpec;

/// A recording of native and Java heaps.
const TRACE: &[u8] = include_bytes!("../recording.pftrace");

/// Counts rows, and stops after some.
#[derive(Default)]
struct Few(usize);

impl Sink for Few {
    fn columns(&mut self, names: &[&str]) -> ControlFlow<()> {
        assert!(!names.is_empty());
        ControlFlow::Continue(())
    }

    fn row(&mut self, row: &[Value<'_>]) -> ControlFlow<()> {
        self.0 += row.len();
        match self.0 > 2000 {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }

    fn end(&mut self) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// Bytes as statements on a small recording: the places of errors are in the text.
pub fn sql(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    for range in prepass::statements(text) {
        assert!(text.get(range).is_some(), "statements end between letters");
    }
    prepass::is_complete(text);
    in_directory(|directory| {
        let path = directory.join("r.pftrace");
        fs::write(&path, TRACE).expect("a writable directory");
        let options = QueryOptions {
            limits: Limits {
                time: Some(Duration::from_millis(200)),
                memory_bytes: 32 << 20,
            },
            ..QueryOptions::default()
        };
        let input = JavaInput::parse(path.as_os_str());
        let opened = open(&input, options, &ProgressReporter::default());
        let Ok(QueryFile { mut database, .. }) = opened else {
            panic!("the recording can be read");
        };
        let mut rows = Few::default();
        let _ = database.run(text, &mut rows);
        let _ = database.tables();
        let left = fs::read_dir(directory).expect("a directory").count();
        assert_eq!(left, 1, "a statement wrote a file");
    });
}

/// Bytes as a scenario, its variables and matrix.
pub fn scenario(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    assert!(text.len() <= MAX_BYTES);
    let environment = |name: &str| (name != "NONE").then(|| format!("value of {name}"));
    match with_actions(|actions| Scenario::parse(text, "fuzz", &environment, actions)) {
        Ok(scenarios) => assert!(!scenarios.is_empty()),
        Err(problems) => {
            assert!(!problems.list.is_empty());
            assert!(problems.to_string().starts_with("fuzz"));
        }
    }
}

/// Bytes as `--config FILE`, encoded for several versions; a text is printed and read again.
pub fn trace_config(bytes: &[u8]) {
    let Ok(file) = ConfigFile::parse(bytes, "fuzz") else {
        return;
    };
    if let ConfigFile::Template(config) = &file {
        let text = print_text(config);
        let again = parse_text(&text).expect("heaptap reads what it prints");
        assert_eq!(print_text(&again), text);
    }
    let Ok(resolved) = resolve(Some(&file), &Options::default()) else {
        return;
    };
    let device = DeviceLimits {
        free_bytes: Some(1 << 30),
        memory_bytes: Some(1 << 32),
    };
    let _ = resolved.spec.notices();
    let _ = resolved.spec.encode(&device);
    for sdk in [29, 30, 31, 33, 36] {
        if let Ok((spec, _)) = resolved.spec.for_sdk(sdk) {
            let _ = spec.encode(&device);
        }
    }
}

/// Bytes as each argument that has a grammar: what is shown of a value gives the value.
pub fn arguments(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let which = DumpSelector::parse(text);
    assert_eq!(DumpSelector::parse(&which.to_string()), which);
    let input = JavaInput::parse(OsStr::new(text));
    if check_label(text).is_ok() {
        assert_eq!(input.which, None, "a label has no `@`");
        let typed = format!("/nowhere/at/all@{text}");
        let found = JavaInput::parse(OsStr::new(&typed));
        assert_eq!(found.which, Some(which), "PATH@LABEL finds it");
    }
    if let Ok(size) = ByteSize::parse(text) {
        // The units of larger sizes are only printed.
        let again = ByteSize::parse(&size.to_string());
        assert!(again.is_ok() || size.0 >> 49 > 0);
    }
    let _ = parse_duration(text, Duration::from_secs(1));
    let _ = parse_time(text);
    let _ = Address::parse(text, "fuzz");
    Selector::parse(text);
    let _ = Stretch::parse(text);
    let _ = PhoneSpec::parse(text);
    if let Ok(id) = text.parse::<SessionId>() {
        assert_eq!(id.to_string(), text);
    }
}
