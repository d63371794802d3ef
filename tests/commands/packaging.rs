//! Packages: the licenses in the program, man pages, the installer on a small release, manifests
//! and workflows. `packaging/test.sh` tests the files of a release.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::judge;
use crate::program::heaptap;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn succeeded(output: &Output) -> String {
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout)
}

/// Crates that are linked into the program on this system, as `NAME VERSION`.
fn linked() -> BTreeSet<String> {
    let target = Command::new(env!("CARGO")).arg("-vV").output();
    let target = succeeded(&target.expect("cargo runs"));
    let host = target.lines().find_map(|line| line.strip_prefix("host: "));
    let tree = Command::new(env!("CARGO"))
        .args(["tree", "--locked", "--offline", "-p", "heaptap"])
        .args(["-e", "normal,no-proc-macro", "--prefix", "none"])
        .args(["--format", "{p}", "--target", host.expect("a target")])
        .current_dir(root())
        .output();
    let tree = succeeded(&tree.expect("cargo runs"));
    let lines = tree.lines().map(|line| line.trim_end_matches(" (*)"));
    // Crates of the workspace have a path.
    let others = lines.filter(|line| !line.contains('('));
    others.map(|line| line.replacen(" v", " ", 1)).collect()
}

#[test]
fn licenses_has_each_crate_of_the_program() {
    let printed = heaptap().args(["licenses", "--json"]).output();
    let printed = succeeded(&printed.expect("heaptap runs"));
    let licenses: Value = serde_json::from_str(&printed).expect("JSON");
    let parts = licenses["parts"].as_array().expect("parts");
    let texts = licenses["texts"].as_array().expect("texts");
    let has: BTreeSet<String> = parts
        .iter()
        .map(|part| format!("{} {}", part["name"], part["version"]).replace('"', ""))
        .collect();
    let linked = linked();
    assert!(linked.len() > 150, "{linked:?}");
    let lacks: Vec<_> = linked.difference(&has).collect();
    assert!(lacks.is_empty(), "{lacks:?}: run packaging/licenses.py");
    for part in parts {
        let of = part["texts"].as_array().expect("texts").iter();
        let of = of.map(|index| &texts[index.as_u64().expect("an index") as usize]);
        let longest = of.filter_map(|text| text.as_str().map(str::len)).max();
        assert!(longest > Some(200), "{part}");
    }
    // Libraries in C, of which Cargo knows nothing.
    for library in ["SQLite 3.", "libdeflate 1.", "Zstandard 1."] {
        assert!(
            has.iter().any(|part| part.starts_with(library)),
            "{library}"
        );
    }
}

#[test]
fn licenses_prints_each_text_once() {
    let printed = succeeded(&heaptap().arg("licenses").output().expect("heaptap runs"));
    for words in [
        "zstd-sys 2.",
        "May you do good and not evil.",
        "The Rust Project Contributors",
    ] {
        assert!(printed.contains(words), "{words}");
    }
    let once = "May you find forgiveness for yourself and forgive others.";
    assert_eq!(printed.matches(once).count(), 1);
}

#[test]
fn man_writes_a_page_for_each_command() {
    let directory = tempfile::tempdir().expect("a directory");
    let pages = directory.path().join("man1");
    let output = heaptap().arg("man").arg("-o").arg(&pages).output();
    succeeded(&output.expect("heaptap runs"));
    let names: BTreeSet<String> = fs::read_dir(&pages)
        .expect("pages")
        .map(|entry| entry.expect("a page").file_name().display().to_string())
        .collect();
    let mut expected = BTreeSet::from(["heaptap.1".to_owned()]);
    for command in heaptap::cli::tree().get_subcommands() {
        expected.insert(format!("heaptap-{}.1", command.get_name()));
        for inner in command.get_subcommands() {
            let name = format!("heaptap-{}-{}.1", command.get_name(), inner.get_name());
            expected.insert(name);
        }
    }
    assert_eq!(names, expected);
    let record = fs::read_to_string(pages.join("heaptap-record.1")).expect("the page");
    // Examples, an option that `-h` hides, a global option.
    for words in [
        ".SH EXAMPLES",
        "heaptap record \\-n com.example.app",
        "\\-\\-shmem\\-size",
        "\\-\\-adb\\-server",
    ] {
        assert!(record.contains(words), "{words}:\n{record}");
    }
    let notes = |page: &str| {
        let page = fs::read_to_string(pages.join(page)).expect("the page");
        let (_, notes) = page.split_once(".SH NOTES\n").expect("notes");
        notes.to_owned()
    };
    // Sentences are filled, the table of exit codes is not.
    assert!(!notes("heaptap-smaps.1").contains(".nf"));
    assert!(notes("heaptap.1").contains("\n.nf\n  0  done\n"));
}

#[test]
fn man_without_a_directory_fails() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let output = heaptap().arg("man").arg("-o").arg(file.path()).output();
    let output = output.expect("heaptap runs");
    assert_eq!(output.status.code(), Some(11));
    assert!(text(&output.stderr).contains("cannot write"), "{output:?}");
}

/// The installer, on releases with a shell script as the program.
#[cfg(unix)]
mod installer {
    use std::io::Write as _;
    use std::path::PathBuf;

    use sha2::{Digest as _, Sha256};

    use super::*;
    use crate::program::cleaned;

    const TARGETS: [&str; 3] = [
        "x86_64-unknown-linux-musl",
        "aarch64-unknown-linux-musl",
        "universal-apple-darwin",
    ];
    const FILES: [&str; 14] = [
        "completions/heaptap.bash",
        "completions/_heaptap",
        "completions/heaptap.fish",
        "man/heaptap.1",
        "man/heaptap-top.1",
        "LICENSE-APACHE",
        "LICENSE-MIT",
        "THIRD-PARTY-LICENSES.txt",
        "README.md",
        "CONTRIBUTING.md",
        "benches/README.md",
        "docs/README.md",
        "docs/guide/ci.md",
        "configs/peak.yaml",
    ];

    struct Release {
        directory: tempfile::TempDir,
    }

    impl Release {
        fn new(versions: &[&str]) -> Release {
            let directory = tempfile::tempdir().expect("a directory");
            let mut sums = String::new();
            fs::create_dir(directory.path().join("release")).expect("a directory");
            for version in versions {
                for target in TARGETS {
                    let name = format!("heaptap-{version}-{target}");
                    let bytes = archive(&name, version);
                    let digest = Sha256::digest(&bytes);
                    let hex: String = digest.iter().map(|b| format!("{b:02x}")).collect();
                    sums += &format!("{hex}  {name}.tar.gz\n");
                    let path = format!("release/{name}.tar.gz");
                    fs::write(directory.path().join(path), bytes).expect("a file");
                }
            }
            fs::write(directory.path().join("release/SHA256SUMS"), sums).expect("a file");
            Release { directory }
        }

        fn path(&self, name: &str) -> PathBuf {
            self.directory.path().join(name)
        }

        fn install(&self, args: &[&str]) -> Output {
            cleaned("sh")
                .arg(root().join("install.sh"))
                .args(["--prefix", "a prefix"])
                .args(args)
                .env_remove("PREFIX")
                .current_dir(self.directory.path())
                .output()
                .expect("sh runs")
        }
    }

    fn archive(name: &str, version: &str) -> Vec<u8> {
        let packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        let mut archive = tar::Builder::new(packed);
        let program = format!("#!/bin/sh\necho heaptap {version}\n");
        let program = ("heaptap", program.as_str(), 0o755);
        let others = FILES.map(|file| (file, "text\n", 0o644));
        for (file, text, mode) in [program].into_iter().chain(others) {
            let mut header = tar::Header::new_gnu();
            header.set_size(text.len() as u64);
            header.set_mode(mode);
            let path = format!("{name}/{file}");
            let added = archive.append_data(&mut header, path, text.as_bytes());
            added.expect("packed");
        }
        let packed = archive.into_inner().expect("packed");
        packed.finish().expect("packed")
    }

    fn files(directory: &Path) -> usize {
        let entries = fs::read_dir(directory).expect("a directory");
        let paths = entries.map(|entry| entry.expect("an entry").path());
        paths
            .map(|path| match path.is_dir() {
                true => files(&path),
                false => 1,
            })
            .sum()
    }

    #[test]
    fn install_places_the_files_and_uninstall_removes_them() {
        let release = Release::new(&["1.2.3"]);
        let prefix = release.path("a prefix");
        let printed = succeeded(&release.install(&["--from", "release"]));
        assert!(printed.contains("installed: heaptap 1.2.3"), "{printed}");
        for file in [
            "bin/heaptap",
            "share/man/man1/heaptap-top.1",
            "share/bash-completion/completions/heaptap",
            "share/zsh/site-functions/_heaptap",
            "share/fish/vendor_completions.d/heaptap.fish",
            "share/doc/heaptap/THIRD-PARTY-LICENSES.txt",
            "share/doc/heaptap/docs/guide/ci.md",
        ] {
            assert!(prefix.join(file).is_file(), "{file}");
        }
        // The program, the other files, and the list of them.
        assert_eq!(files(&prefix), 1 + FILES.len() + 1);
        succeeded(&release.install(&["--uninstall"]));
        assert!(!prefix.exists());
        let again = release.install(&["--uninstall"]);
        assert_eq!(again.status.code(), Some(1));
    }

    #[test]
    fn an_install_that_ends_in_the_middle_can_be_uninstalled() {
        let release = Release::new(&["1.2.3"]);
        let prefix = release.path("a prefix");
        // A file in the way of a directory ends it after the program.
        fs::create_dir_all(prefix.join("share")).expect("a directory");
        fs::write(prefix.join("share/man"), "").expect("a file");
        let cut = release.install(&["--from", "release"]);
        assert!(!cut.status.success(), "{cut:?}");
        assert!(prefix.join("bin/heaptap").is_file());
        succeeded(&release.install(&["--uninstall"]));
        assert_eq!(files(&prefix), 1);
        assert!(!prefix.join("bin").exists());
    }

    #[test]
    fn uninstall_keeps_what_others_placed() {
        let release = Release::new(&["1.2.3"]);
        let bin = release.path("a prefix/bin");
        fs::create_dir_all(&bin).expect("a directory");
        fs::write(bin.join("other"), "").expect("a file");
        fs::create_dir(release.path("a prefix/share")).expect("a directory");
        succeeded(&release.install(&["--from=release", "--no-completions"]));
        // A newer one replaces it.
        succeeded(&release.install(&["--from=release"]));
        succeeded(&release.install(&["--uninstall"]));
        assert!(bin.join("other").is_file());
        assert!(release.path("a prefix/share").is_dir());
        assert_eq!(files(&release.path("a prefix")), 1);
    }

    #[test]
    fn install_refuses_a_changed_archive() {
        let release = Release::new(&["1.2.3"]);
        for target in TARGETS {
            let path = release.path(&format!("release/heaptap-1.2.3-{target}.tar.gz"));
            let file = fs::File::options().append(true).open(path);
            file.expect("the archive").write_all(b"x").expect("written");
        }
        let output = release.install(&["--from", "release"]);
        assert_eq!(output.status.code(), Some(1));
        let words = text(&output.stderr);
        assert!(words.contains("was changed: its SHA-256 is"), "{words}");
        assert!(!release.path("a prefix").exists());
    }

    #[test]
    fn install_chooses_the_version() {
        let release = Release::new(&["1.2.3", "1.3.0"]);
        let several = release.install(&["--from", "release"]);
        let words = text(&several.stderr);
        assert!(words.contains("several versions; choose one"), "{words}");
        let printed = succeeded(&release.install(&["--from", "release", "--version", "v1.2.3"]));
        assert!(printed.contains("installed: heaptap 1.2.3"), "{printed}");
        let absent = release.install(&["--from", "release", "--version", "9.9.9"]);
        let words = text(&absent.stderr);
        assert!(words.contains("no archive of heaptap 9.9.9"), "{words}");
        fs::rename(release.path("release"), release.path("v1.3.0")).expect("renamed");
        let printed = succeeded(&release.install(&["--from", "v{version}", "--version", "1.3.0"]));
        assert!(printed.contains("installed: heaptap 1.3.0"), "{printed}");
    }

    #[test]
    fn install_refuses_wrong_options() {
        let release = Release::new(&[]);
        for args in [
            &["--frobnicate"][..],
            &["--from"],
            &["--version", "../1"],
            &["--version", "1.0.0"],
            &["--from", "v{version}"],
        ] {
            let output = release.install(args);
            assert_eq!(output.status.code(), Some(2), "{args:?}: {output:?}");
        }
        assert!(!release.path("a prefix").exists());
    }
}

/// The manifests of a release whose archives are their own names.
#[test]
#[ignore = "needs Python with check-jsonschema"]
fn judged_by_ci_readers_manifests_of_a_release() {
    let judge = judge::ci_readers().python;
    let directory = tempfile::tempdir().expect("a directory");
    let targets = [
        ("x86_64-unknown-linux-musl.tar.gz", '1'),
        ("aarch64-unknown-linux-musl.tar.gz", '2'),
        ("universal-apple-darwin.tar.gz", '3'),
        ("x86_64-pc-windows-msvc.zip", 'a'),
    ];
    let sums = targets.map(|(target, digit)| {
        let digest = digit.to_string().repeat(64);
        format!("{digest}  heaptap-1.2.3-{target}\n")
    });
    fs::write(directory.path().join("SHA256SUMS"), sums.concat()).expect("a file");
    let made = |address: &str, directory: &Path| {
        Command::new(&judge)
            .arg(root().join("packaging/manifests.py"))
            .args(["--version", "1.2.3", "--publisher", "example"])
            .args(["--address", address, "--homepage", "https://example.com"])
            .arg(directory)
            .output()
            .expect("Python runs")
    };
    let address = "https://example.com/v{version}";
    succeeded(&made(address, directory.path()));
    let mut all = String::new();
    for name in [
        "heaptap.rb",
        "heaptap.json",
        "winget/example.heaptap.yaml",
        "winget/example.heaptap.installer.yaml",
        "winget/example.heaptap.locale.en-US.yaml",
    ] {
        let text = fs::read_to_string(directory.path().join(name)).expect("a manifest");
        all += &format!("== {name}\n{text}\n");
    }
    let installer = fs::read_to_string(directory.path().join("install.sh")).expect("install.sh");
    assert!(installer.contains("address='https://example.com/v{version}'\nversion='1.2.3'\n"));
    insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
        insta::assert_snapshot!("manifests", all);
    });
    // What would be code in a script.
    let quoted = made("https://example.com/'; rm -rf ~ #", directory.path());
    assert_eq!(quoted.status.code(), Some(1), "{quoted:?}");
    fs::write(directory.path().join("SHA256SUMS"), &sums[0]).expect("a file");
    let lacks = made(address, directory.path());
    assert!(text(&lacks.stderr).contains("SHA256SUMS lacks heaptap-1.2.3-"));
}

#[test]
#[ignore = "needs Python with check-jsonschema"]
fn judged_by_ci_readers_workflows_follow_the_schema_of_github() {
    let judge = judge::ci_readers().python;
    let directory = root().join(".github/workflows");
    let check = |files: &[&Path]| {
        Command::new(&judge)
            .args(["-m", "check_jsonschema", "--builtin-schema"])
            .arg("vendor.github-workflows")
            .args(files)
            .output()
            .expect("Python runs")
    };
    let files = ["ci.yml", "release.yml"].map(|name| directory.join(name));
    succeeded(&check(&[&files[0], &files[1]]));
    let wrong = tempfile::NamedTempFile::with_suffix(".yml").expect("a file");
    let text = fs::read_to_string(&files[0]).expect("a workflow");
    fs::write(wrong.path(), text.replace("runs-on", "runs_on")).expect("a file");
    assert_eq!(check(&[wrong.path()]).status.code(), Some(1));
}
