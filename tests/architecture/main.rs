//! Checks the code against the rules of docs/internals/architecture.md: which modules may import
//! which, print, open sockets, or use serde_yaml.

mod circles;
mod fixtures;
mod sources;
mod tables;
mod weight;
mod words;

use sources::{Source, directory_of, first_word, imports, names_at, packages, root, sources};
use std::collections::BTreeSet;
use std::fs;
use tables::{CRATES, MODULES, PAGE, table};

/// The crates of this workspace that a crate depends on, by directory.
fn dependencies(package: &str) -> BTreeSet<String> {
    let manifest = directory_of(package).join("Cargo.toml");
    let text = fs::read_to_string(manifest).expect("a crate has its manifest");
    let all = packages();
    // Sections of tests are left out, other sections are not.
    let sections = text
        .split("\n[")
        .filter(|section| !section.contains("dev-dependencies]"));
    let lines = sections.flat_map(str::lines);
    let names = lines.filter_map(|line| line.split_once(['.', ' ']).map(|(name, _)| name));
    let short = |name: &str| name.strip_prefix("heaptap-").unwrap_or(name).to_owned();
    names.map(short).filter(|name| all.contains(name)).collect()
}

#[test]
fn crates_depend_only_on_what_the_table_allows() {
    let table = table(CRATES);
    let mut wrong = Vec::new();
    for package in packages() {
        let Some(allowed) = table.get(&package) else {
            panic!("docs/internals/architecture.md has no row for `{package}`");
        };
        let depends = dependencies(&package);
        let more = depends.difference(allowed);
        wrong.extend(more.map(|other| format!("{package} depends on {other}")));
        let less = allowed.difference(&depends);
        wrong.extend(less.map(|other| format!("{package} does not depend on {other}")));
    }
    assert!(
        wrong.is_empty(),
        "docs/internals/architecture.md has it otherwise:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn modules_of_the_program_import_only_what_the_table_allows() {
    let table = table(MODULES);
    let own: BTreeSet<String> = sources().iter().map(Source::module).collect();
    let mut wrong = Vec::new();
    for source in sources() {
        let module = source.module();
        if matches!(&*module, "" | "lib" | "main") {
            continue;
        }
        let Some(allowed) = table.get(&module) else {
            panic!("docs/internals/architecture.md has no row for `{module}`");
        };
        for import in imports(&source.code) {
            if import != module && own.contains(&import) && !allowed.contains(&import) {
                wrong.push(format!("{} imports {import}", source.place));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "docs/internals/architecture.md forbids:\n{}",
        wrong.join("\n")
    );
}

/// `tests/fuzz_corpus.rs` compiles the targets with the program's dependencies, not with these.
#[test]
fn fuzzing_has_the_crates_that_its_targets_use() {
    let fuzz = root().join("fuzz");
    let manifest = fs::read_to_string(fuzz.join("Cargo.toml")).expect("it is there");
    let targets = fs::read_dir(fuzz.join("targets")).expect("it is there");
    let paths = targets.map(|entry| entry.expect("it can be read").path());
    let code: String = paths
        .map(|path| fs::read_to_string(path).expect("UTF-8"))
        .collect();
    let mut used = 0;
    for package in packages() {
        for name in [package.clone(), format!("heaptap-{package}")] {
            let is_used = code.contains(&format!("{}::", name.replace('-', "_")));
            let is_listed = manifest.contains(&format!("\n{name}"));
            let is_crate = name.contains('-') && is_used;
            assert!(!is_crate || is_listed, "fuzz/Cargo.toml lacks {name}");
            used += usize::from(is_crate);
        }
    }
    assert!(used > 5, "crates were found");
}

#[test]
fn every_row_of_the_tables_exists() {
    for name in table(CRATES).keys() {
        assert!(directory_of(name).is_dir(), "there is no crate {name}");
    }
    for name in table(MODULES).keys() {
        let directory = root().join("src").join(name);
        let is_there = directory.is_dir() || directory.with_extension("rs").is_file();
        assert!(is_there, "there is no module {name} in src/");
    }
}

#[test]
fn tables_of_modules_name_each_module() {
    let names = regex::Regex::new(r"`(?:mod@)?(\w+)").expect("a pattern");
    let modules = r"(?m)^(#\[cfg\(test\)\]\n)?(?:pub(?:\([a-z]+\))? )?mod (\w+);";
    let modules = regex::Regex::new(modules).expect("a pattern");
    let mut missing = Vec::new();
    for source in sources() {
        let text = fs::read_to_string(root().join(&source.place)).expect("it is there");
        let docs: String = text.lines().filter(|l| l.starts_with("//!")).collect();
        if !docs.contains("//! | module |") && !docs.contains("//! | file |") {
            continue;
        }
        let named: BTreeSet<&str> = names
            .captures_iter(&docs)
            .filter_map(|name| Some(name.get(1)?.as_str()))
            .collect();
        let all = modules.captures_iter(&source.code);
        let all = all.filter(|module| module.get(1).is_none());
        let all = all.filter_map(|module| Some(module.get(2)?.as_str()));
        let left = all.filter(|module| !named.contains(module));
        missing.extend(left.map(|module| format!("{}: {module}", source.place)));
    }
    assert!(missing.is_empty(), "tables lack modules: {missing:#?}");
}

#[test]
fn every_place_that_the_page_names_exists() {
    let words = PAGE.split('`').skip(1).step_by(2);
    let tops = [
        "src/",
        "crates/",
        "proto/",
        "viewer/",
        "configs/",
        "fixtures/",
        "tests/",
        "fuzz/",
    ];
    let places: Vec<&str> = words
        .filter(|word| tops.iter().any(|top| word.starts_with(top)))
        .collect();
    assert!(places.len() > 20, "{places:?}");
    for place in places {
        assert!(root().join(place).exists(), "there is no {place}");
    }
}

/// Fails for every file outside `allowed` that contains one of `words`.
fn only_in(words: &[&str], allowed: impl Fn(&Source) -> bool, rule: &str) {
    let mut wrong = Vec::new();
    for source in sources() {
        if allowed(&source) {
            continue;
        }
        for word in words {
            if source.code.contains(word) {
                wrong.push(format!("{} has {word}", source.place));
            }
        }
    }
    assert!(wrong.is_empty(), "{rule}:\n{}", wrong.join("\n"));
}

#[test]
fn directories_of_the_program_import_each_other_in_no_circle() {
    let table = table(MODULES);
    let own: BTreeSet<String> = sources().iter().map(Source::module).collect();
    for module in own.iter().filter(|name| table.contains_key(*name)) {
        let mut seen: BTreeSet<&str> = BTreeSet::new();
        let mut next: Vec<&str> = vec![module];
        while let Some(at) = next.pop() {
            for other in table.get(at).into_iter().flatten() {
                let is_new = own.contains(other) && other != at && seen.insert(other);
                next.extend(is_new.then_some(other.as_str()));
            }
        }
        assert!(!seen.contains(module.as_str()), "{module} imports itself");
    }
}

#[test]
fn the_program_has_no_other_names_for_its_crates() {
    let lib = sources()
        .into_iter()
        .find(|source| source.place == "src/lib.rs");
    let code = lib.expect("src/lib.rs is there").code;
    assert!(!code.contains("use "), "src/lib.rs only lists modules");
}

/// Maximum number of consecutive `super::` in `code`.
fn most_supers(code: &str) -> usize {
    let runs = code.split("super::").skip(1);
    let (mut most, mut run) = (0, 0);
    for after in runs {
        run += 1;
        most = most.max(run);
        if !after.is_empty() {
            run = 0;
        }
    }
    most
}

#[test]
fn no_command_imports_another() {
    assert_eq!(most_supers("use super::super::a; super::b"), 2);
    let mut wrong = Vec::new();
    for source in sources().iter().filter(|s| s.module() == "commands") {
        let parts: Vec<&str> = source.path.split('/').skip(1).collect();
        let [command, .., file] = parts[..] else {
            continue;
        };
        for (at, path) in source.code.match_indices("crate::commands::") {
            let other = first_word(&source.code[at + path.len()..]);
            if other != command && other != "shared" {
                wrong.push(format!("{} imports {other}", source.place));
            }
        }
        let below = parts.len() - usize::from(file == "mod.rs");
        if most_supers(&source.code) >= below {
            wrong.push(format!("{} leaves its folder by super::", source.place));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// True if the file is a command's use case, or below one.
fn is_use_case(path: &str) -> bool {
    let inside = path.strip_prefix("commands/");
    let inside = inside.and_then(|path| path.find('/').map(|at| &path[at..]));
    inside.is_some_and(|path| path.ends_with("/run.rs") || path.contains("/run/"))
}

/// True if the file defines a command's flags.
fn is_args(path: &str) -> bool {
    path.starts_with("commands/") && path.ends_with("/args.rs")
}

/// Fails if a source for which `is_held` imports one of `directories` of the program, or one of
/// `files`.
fn assert_apart(is_held: fn(&str) -> bool, directories: &[&str], files: &[&str], rule: &str) {
    let all = sources();
    let held = || {
        all.iter()
            .filter(|s| s.package.is_empty() && is_held(&s.path))
    };
    assert!(held().count() > 10, "they were found");
    let mut wrong = Vec::new();
    for source in held() {
        let code = &source.code;
        let imported = imports(code);
        wrong.extend(
            directories
                .iter()
                .filter(|f| imported.contains(**f))
                .map(|f| (&source.place, f)),
        );
        let named = ["super::", "crate::commands::"]
            .into_iter()
            .flat_map(|start| {
                let at = code
                    .match_indices(start)
                    .map(|(at, _)| &code[at + start.len()..]);
                at.flat_map(|code| names_at(code, 2))
            });
        let named: BTreeSet<String> = named.collect();
        wrong.extend(
            files
                .iter()
                .filter(|f| named.contains(**f))
                .map(|f| (&source.place, f)),
        );
    }
    assert!(wrong.is_empty(), "{rule}: {wrong:?}");
}

#[test]
fn use_cases_know_neither_flags_nor_the_terminal() {
    assert_apart(
        is_use_case,
        &[
            "console",
            "console/exit",
            "console/flags",
            "commands/shared",
        ],
        &["args", "view"],
        "what a command does is apart from what is typed and what is seen",
    );
    only_in(
        &["clap::", "use clap"],
        |source| {
            let typed = [
                "cli",
                "commands",
                "commands/shared",
                "console",
                "console/exit",
                "console/flags",
            ];
            let other = !source.package.is_empty() || matches!(&*source.module(), "lib" | "main");
            other || (typed.contains(&&*source.module()) && !is_use_case(&source.path))
        },
        "flags end where a use case begins",
    );
}

#[test]
fn flags_of_commands_show_nothing() {
    assert_apart(
        is_args,
        &["console", "commands/shared"],
        &["view"],
        "a command shows what it does in its view",
    );
}

#[test]
fn only_the_console_prints() {
    only_in(
        &["println!(", "eprintln!(", "print!(", "eprint!(", "dbg!("],
        |source| source.module() == "console",
        "only `console` prints; views hand it what people see",
    );
}

#[test]
fn only_one_file_knows_serde_yaml() {
    only_in(
        &["serde_yaml"],
        |source| source.place == "crates/capture/src/config/yaml.rs",
        "serde_yaml is deprecated and stays in one file",
    );
}

#[test]
fn only_adb_virtual_phone_and_net_open_sockets() {
    only_in(
        &[
            "TcpStream",
            "TcpListener",
            "UdpSocket",
            "UnixStream",
            "UnixListener",
        ],
        |source| {
            matches!(&*source.package, "adb" | "virtual-phone") || source.module() == "page/net"
        },
        "only `adb`, `virtual-phone` and `page/net` open sockets",
    );
}

#[test]
fn only_net_serves() {
    only_in(
        &["hyper::", "hyper_util::"],
        |source| source.module() == "page/net",
        "only `page/net` speaks HTTP as a server",
    );
}

#[test]
fn only_debuginfod_talks_to_servers_and_only_where_the_environment_names_some() {
    only_in(
        &["ureq"],
        |source| source.place == "crates/symbols/src/symbolize/debuginfod/client.rs",
        "heaptap is offline: only debuginfod servers that the user names are asked",
    );
}

#[test]
fn the_decoder_shares_nothing_with_the_encoder() {
    only_in(
        &["prost::", "heaptap_proto"],
        |source| !matches!(&*source.package, "perfetto-heap" | "input"),
        "the virtual phone encodes with prost, so the decoder reads the wire itself",
    );
}

#[test]
fn files_open_with_what_they_own_and_stay_readable() {
    let mut wrong = Vec::new();
    for source in sources() {
        let text = fs::read_to_string(root().join(&source.place)).expect("it is there");
        if !text.starts_with("//!") {
            wrong.push(format!("{} does not say what it owns", source.place));
        }
        let lines = source.code.lines().count();
        if lines > 700 {
            wrong.push(format!("{} has {lines} lines of code", source.place));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_is_printed_holds_no_line_end() {
    let calls = r#"\.(data|say|warn|complain|detail|laid_out|hanging|warn_with_help)\(\s*"#;
    let literal = r#"(format_args!\(|format!\()?\s*"([^"\\]|\\[^n])*\\n"#;
    let ends_lines = regex::Regex::new(&format!("{calls}{literal}")).expect("a pattern");
    assert!(ends_lines.is_match("console.data(format_args!(\n  \"\\n{}\", x))"));
    assert!(!ends_lines.is_match("console.data(\"a \\\n  b\"); \"\\n\""));
    let wrong: Vec<String> = sources()
        .into_iter()
        .filter(|source| source.package.is_empty() && ends_lines.is_match(&source.code))
        .map(|source| source.place)
        .collect();
    assert!(
        wrong.is_empty(),
        "the console takes line ends for foreign ones, print each line by itself: {wrong:?}"
    );
}

/// The bodies of the functions that suggest the next step.
fn help_bodies(code: &str) -> Vec<String> {
    let mut bodies = Vec::new();
    let mut lines = code.lines();
    while let Some(line) = lines.next() {
        let trimmed = line.trim_start();
        if !["fn help(", "fn facts(&self) -> ErrorFacts {"]
            .iter()
            .any(|f| trimmed.starts_with(f))
            || trimmed.ends_with(';')
        {
            continue;
        }
        let end = format!("{}}}", &line[..line.len() - trimmed.len()]);
        let body = lines.by_ref().take_while(|line| **line != end);
        bodies.push(body.collect::<Vec<_>>().join("\n"));
    }
    bodies
}

#[test]
fn help_holds_no_line_end() {
    let code = "impl X {\n    fn facts(&self) -> ErrorFacts {\n        \"a\\nb\"\n    }\n    fn f() {\n        \"\\n\"\n    }\n}\n";
    assert_eq!(help_bodies(code), ["        \"a\\nb\""]);
    let wrong: Vec<String> = sources()
        .into_iter()
        .filter(|source| {
            help_bodies(&source.code)
                .iter()
                .any(|body| body.contains("\\n"))
        })
        .map(|source| format!("src/{}", source.path))
        .collect();
    assert!(
        wrong.is_empty(),
        "the console takes line ends for foreign ones, give further lines as hints: {wrong:?}"
    );
}

/// Variables that a test may ask for by itself: they choose how much it does, or add to it.
const OF_TESTS: [&str; 10] = [
    "HEAPTAP_BENCH",
    "HEAPTAP_BENCH_DIR",
    "HEAPTAP_DEVICE_TEXTS",
    "HEAPTAP_FAULTS",
    "HEAPTAP_HPROF",
    "HEAPTAP_MAPPINGS",
    "HEAPTAP_RECORDINGS",
    "HEAPTAP_ROUNDS",
    "HEAPTAP_SIMULATE",
    "HEAPTAP_STORM",
];

/// Variables of ours that a source asks for by name, apart from [`OF_TESTS`].
fn asked_variables(text: &str) -> Vec<&str> {
    let calls = [concat!("env::", "var(\""), concat!("env::", "var_os(\"")];
    let names = calls.iter().flat_map(|call| text.split(call).skip(1));
    let names = names.filter_map(|rest| rest.split('"').next());
    names
        .filter(|name| name.starts_with("HEAPTAP_") && !OF_TESTS.contains(name))
        .collect()
}

#[test]
fn no_test_passes_without_what_it_needs() {
    let call = concat!(
        "std::env::",
        "var_os(\"HEAPTAP_A\"); env::",
        "var(\"PATH\")"
    );
    assert_eq!(asked_variables(call), ["HEAPTAP_A"]);
    let mut wrong = Vec::new();
    let mut directories = vec![
        root().join("tests"),
        root().join("src"),
        root().join("crates"),
        root().join("proto"),
    ];
    let judges = root().join("tests/common/judge.rs");
    let says = concat!("\"skip", "ped: ");
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory).expect("it can be read") {
            let path = entry.expect("it can be read").path();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") && path != judges {
                let text = fs::read_to_string(&path).expect("sources are UTF-8");
                if text.contains(says) || !asked_variables(&text).is_empty() {
                    wrong.push(path);
                }
            }
        }
    }
    assert!(wrong.is_empty(), "see tests/common/judge.rs: {wrong:?}");
}
