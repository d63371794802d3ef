//! Programs and data of other projects that check heaptap's output. `cargo test` ignores a test
//! that needs one, and gives the reason; the test's name has the program. `tests/run.sh` runs those
//! whose program is installed, and fails in CI if one is missing. If run without it, such a test
//! fails.
#![allow(dead_code, reason = "each suite has judges of its own")]

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

/// Installation directory of Debian's packages.
const HPROF_CONV: &str = "/usr/lib/android-sdk/platform-tools/hprof-conv";
const VISUALVM: &str =
    "/usr/share/visualvm/visualvm/modules/org-graalvm-visualvm-lib-jfluid-heap.jar";

/// The name of the missing program, for the test that needs it or for a list.
type Missing = String;

fn runs(program: &str, argument: &str) -> bool {
    Command::new(program).arg(argument).output().is_ok()
}

fn program(name: &str, argument: &str) -> Result<(), Missing> {
    match runs(name, argument) {
        true => Ok(()),
        false => Err(format!("{name} is not installed")),
    }
}

/// A Python with a module, from a variable.
fn python_with(variable: &str, module: &str) -> Result<String, Missing> {
    let python = std::env::var(variable).map_err(|_| format!("{variable} names no Python"))?;
    let asked = Command::new(&python)
        .args(["-c", &format!("import {module}")])
        .output();
    match asked.is_ok_and(|output| output.status.success()) {
        true => Ok(python),
        false => Err(format!("{python} ({variable}) has no module {module}")),
    }
}

fn found_hprof_conv() -> Result<PathBuf, Missing> {
    if let Some(path) = std::env::var_os("HEAPTAP_HPROF_CONV") {
        return Ok(path.into());
    }
    let debian = || Some(PathBuf::from(HPROF_CONV)).filter(|path| path.is_file());
    let found = which::which("hprof-conv").ok().or_else(debian);
    found.ok_or_else(|| "hprof-conv is not installed".to_owned())
}

fn found_visualvm() -> Result<PathBuf, Missing> {
    let jar = std::env::var_os("HEAPTAP_JFLUID_HEAP").unwrap_or_else(|| VISUALVM.into());
    let jar = PathBuf::from(jar);
    if !jar.is_file() {
        return Err(format!("VisualVM's library {} is missing", jar.display()));
    }
    let java = Command::new("java").arg("--list-modules").output();
    let java = java.map_err(|_| "java is not installed".to_owned())?;
    match String::from_utf8_lossy(&java.stdout).contains("jdk.compiler") {
        true => Ok(jar),
        false => Err("this Java has no compiler".to_owned()),
    }
}

fn found_spark() -> Result<String, Missing> {
    program("java", "-version")?;
    python_with("HEAPTAP_EXPORT_PYTHON", "pyspark")
}

fn found_jdk() -> Result<(), Missing> {
    let tools = ["javac", "java", "jmap"].map(|tool| program(tool, "-version"));
    tools.into_iter().collect()
}

/// The newest installed llvm-symbolizer. Versions differ; the expected answers are from 19.
fn found_llvm_symbolizer() -> Result<String, Missing> {
    let versions = [19, 20, 21, 22, 18, 17, 16, 15, 14];
    let names = versions.map(|version| format!("llvm-symbolizer-{version}"));
    let mut names = names.into_iter().chain(["llvm-symbolizer".to_owned()]);
    let found = names.find(|name| runs(name, "--version"));
    found.ok_or_else(|| "llvm-symbolizer is not installed".to_owned())
}

/// The newest installed llvm-cxxfilt. Before 19 it does not know all that compilers write.
fn found_llvm_cxxfilt() -> Result<String, Missing> {
    let mut names = [19, 20, 21, 22]
        .map(|version| format!("llvm-cxxfilt-{version}"))
        .into_iter();
    let found = names.find(|name| runs(name, "--version"));
    found.ok_or_else(|| "llvm-cxxfilt 19 or newer is not installed".to_owned())
}

fn found_ci_readers() -> Result<CiReaders, Missing> {
    let variable = "HEAPTAP_CI_PYTHON";
    let python = python_with(variable, "check_jsonschema, junitparser, xmlschema")?;
    let variable = "HEAPTAP_JUNIT_XSD";
    let directory = std::env::var(variable).map_err(|_| format!("{variable} names no folder"))?;
    let versions =
        std::fs::read_dir(&directory).map_err(|error| format!("{directory}: {error}"))?;
    let paths = versions
        .flatten()
        .map(|version| version.path().join("junit-10.xsd"));
    let mut junit_xsds: Vec<PathBuf> = paths.filter(|path| path.is_file()).collect();
    junit_xsds.sort();
    match junit_xsds.is_empty() {
        true => Err(format!("{directory} ({variable}) has no junit-10.xsd")),
        false => Ok(CiReaders { python, junit_xsds }),
    }
}

fn needed<T>(found: Result<T, Missing>) -> T {
    found.unwrap_or_else(|missing| panic!("its judge is missing: {missing}"))
}

/// Go, whose pprof reads profiles.
pub fn go() {
    needed(program("go", "version"));
}

/// adb.
pub fn adb() -> PathBuf {
    needed(which::which("adb").map_err(|_| "adb is not installed".to_owned()))
}

/// sqlite3, the shell.
pub fn sqlite3() {
    needed(program("sqlite3", "-version"));
}

/// javac, java and jmap.
pub fn jdk() {
    needed(found_jdk());
}

/// Android's hprof-conv.
pub fn hprof_conv() -> PathBuf {
    needed(found_hprof_conv())
}

/// VisualVM's library of heap dumps, and a JDK.
pub fn visualvm() -> PathBuf {
    needed(found_visualvm())
}

/// llvm-symbolizer.
pub fn llvm_symbolizer() -> String {
    needed(found_llvm_symbolizer())
}

/// llvm-cxxfilt.
pub fn llvm_cxxfilt() -> String {
    needed(found_llvm_cxxfilt())
}

/// A Python with DuckDB.
pub fn duckdb() -> String {
    needed(python_with("HEAPTAP_EXPORT_PYTHON", "duckdb"))
}

/// A Python with Spark, and Java for it.
pub fn spark() -> String {
    needed(found_spark())
}

/// Readers of what CI systems read.
pub struct CiReaders {
    /// A Python with junitparser, xmlschema and check-jsonschema.
    pub python: String,
    /// Jenkins' schemas of JUnit files, by version of its xUnit plugin.
    pub junit_xsds: Vec<PathBuf>,
}

/// Readers of what CI systems read.
pub fn ci_readers() -> CiReaders {
    needed(found_ci_readers())
}

/// A Python with Perfetto's protos.
pub fn perfetto_protos() -> String {
    needed(python_with("HEAPTAP_PERFETTO_PYTHON", "perfetto.protos"))
}

/// Data from outside the repository, from a variable.
pub fn given(variable: &str) -> PathBuf {
    let directory: Option<OsString> = std::env::var_os(variable);
    needed(directory.ok_or_else(|| format!("{variable} names no folder"))).into()
}

/// Those of `tests/run.sh` that are not installed; `tests/run.sh all` looks for Spark itself.
pub fn missing() -> Vec<Missing> {
    [
        program("go", "version"),
        program("adb", "version"),
        program("sqlite3", "-version"),
        found_jdk(),
        found_hprof_conv().map(drop),
        found_visualvm().map(drop),
        found_llvm_symbolizer().map(drop),
        found_llvm_cxxfilt().map(drop),
        python_with("HEAPTAP_EXPORT_PYTHON", "duckdb").map(drop),
        python_with("HEAPTAP_PERFETTO_PYTHON", "perfetto.protos").map(drop),
        found_ci_readers().map(drop),
    ]
    .into_iter()
    .filter_map(Result::err)
    .collect()
}
