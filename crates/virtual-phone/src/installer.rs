//! The package manager's installer: an APK's properties, and what installing and removing a package
//! does to files, the list of packages and processes. The commands are in another module.

use std::io::Read as _;

use super::clock::Now;
use super::fs::{FileData, Kind, Node, Tree, normalize};
use super::packages::{self, Package};
use super::screen::Why;
use super::spec::{BuildType, PhoneSpec};
use super::state::State;
use super::{foreground, installed};

/// File with the properties of an APK.
const PROPERTIES: &str = "virtual.properties";
const MAX_PROPERTIES_BYTES: u64 = 64 << 10;
const LIST: &str = "/data/system/packages.list";
/// State of the code after an installation: what the app runs most is not compiled yet.
pub(crate) const NOT_COMPILED: &str = "verify";

/// An APK: the package that it contains, as its `virtual.properties` describe it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Apk {
    package: String,
    version: u64,
    memory_percent: u64,
}

/// Reads the parts of an app, one of which has the properties.
///
/// # Errors
/// Returns the package manager's error.
pub(crate) fn read(parts: &[Vec<u8>]) -> Result<Apk, String> {
    let mut found = None;
    for part in parts {
        found = found.or(properties(part)?);
    }
    let text =
        found.ok_or("INSTALL_FAILED_INVALID_APK: Full install must include a base package")?;
    let value = |key: &str| value_of(&text, key);
    let number = |key: &str, default: u64| match value(key) {
        None => Ok(default),
        Some(text) => text
            .parse()
            .map_err(|_| format!("INSTALL_PARSE_FAILED_MANIFEST_MALFORMED: {key}={text}")),
    };
    let package = value("package");
    Ok(Apk {
        package: package
            .ok_or("INSTALL_PARSE_FAILED_MANIFEST_MALFORMED: no package")?
            .to_owned(),
        version: number("version", 1)?,
        memory_percent: number("memory", 100)?.clamp(1, 10_000),
    })
}

/// Returns how long the package manager reads a part, in seconds of the phone.
pub(crate) fn seconds(part: &[u8]) -> u64 {
    let text = properties(part).ok().flatten().unwrap_or_default();
    let seconds = value_of(&text, "seconds").and_then(|text| text.parse().ok());
    seconds.unwrap_or(0)
}

fn value_of<'a>(properties: &'a str, key: &str) -> Option<&'a str> {
    let lines = properties.lines().filter_map(|line| line.split_once('='));
    let mut values = lines.filter(|(name, _)| name.trim() == key);
    values.next().map(|(_, value)| value.trim())
}

fn properties(part: &[u8]) -> Result<Option<String>, String> {
    let not_apk = |error: String| format!("INSTALL_PARSE_FAILED_NOT_APK: {error}");
    let cursor = std::io::Cursor::new(part);
    let mut zip = zip::ZipArchive::new(cursor).map_err(|error| not_apk(error.to_string()))?;
    let Ok(file) = zip.by_name(PROPERTIES) else {
        return Ok(None);
    };
    let mut text = String::new();
    let read = file.take(MAX_PROPERTIES_BYTES).read_to_string(&mut text);
    read.map_err(|error| not_apk(error.to_string()))?;
    Ok(Some(text))
}

/// Installs or replaces a package. Its processes end, its data stay.
///
/// # Errors
/// Returns the package manager's error.
pub(crate) fn install(
    state: &mut State,
    spec: &PhoneSpec,
    apk: &Apk,
    downgrade: bool,
    now: Now,
) -> Result<(), String> {
    let known = packages::installed();
    let Some(mut package) = known.into_iter().find(|p| p.name == apk.package) else {
        return Err(format!(
            "INSTALL_FAILED_INTERNAL_ERROR: no code of {} on a virtual phone",
            apk.package
        ));
    };
    package.version = apk.version;
    package.installed = now.real;
    package.memory_percent = apk.memory_percent;
    package.compiled = NOT_COMPILED.to_owned();
    let place = state.packages.iter().position(|p| p.name == package.name);
    if let Some(old) = place.map(|at| &state.packages[at]) {
        // A release build does not go back, even with `-d`.
        let permitted = downgrade && (spec.build != BuildType::User || old.debuggable());
        if apk.version < old.version && !permitted {
            return Err(format!(
                "INSTALL_FAILED_VERSION_DOWNGRADE: Downgrade detected: Update version code {} is \
                 older than current {}",
                apk.version, old.version
            ));
        }
    }
    stop(state, spec, package.name, now);
    add_files(&mut state.tree, spec, &package);
    match place {
        Some(at) => state.packages[at] = package,
        None => state.packages.push(package),
    }
    write_list(&mut state.tree, &state.packages, spec);
    Ok(())
}

/// Removes a package with its data; returns false if it is not installed.
pub(crate) fn uninstall(state: &mut State, spec: &PhoneSpec, name: &str, now: Now) -> bool {
    let Some(at) = state
        .packages
        .iter()
        .position(|p| p.name == name && !p.system)
    else {
        return false;
    };
    stop(state, spec, name, now);
    let package = state.packages.remove(at);
    let users = package.users.iter();
    let data = users.map(|user| format!("/data/user/{user}/{name}"));
    for path in data.chain([package.code_path()]) {
        state.tree.remove(&normalize("/", &path));
    }
    write_list(&mut state.tree, &state.packages, spec);
    true
}

/// Ends the processes of a package that changes.
fn stop(state: &mut State, spec: &PhoneSpec, name: &str, now: Now) {
    let why = match spec.android >= 14 {
        true => Why::new(16, "PACKAGE UPDATED", "installPackageLI"),
        false => Why::new(13, "OTHER KILLS BY SYSTEM", "installPackageLI"),
    };
    foreground::stop(state, name, None, why, None, now);
}

/// Adds the code of a package and its data directories.
pub(crate) fn add_files(tree: &mut Tree, spec: &PhoneSpec, package: &Package) {
    installed::install_package(tree, spec, package);
    for user in package.users.iter().filter(|_| package.appid >= 10_000) {
        let dir = format!("/data/user/{user}/{}", package.name);
        let node = tree.directory(&dir);
        (node.uid, node.gid, node.mode) = (package.uid(*user), package.uid(*user), 0o700);
        node.label = "app_data_file";
    }
}

/// Writes the list of packages.
pub(crate) fn write_list(tree: &mut Tree, packages: &[Package], spec: &PhoneSpec) {
    let lines = packages.iter();
    let lines = lines.map(|package| format!("{}\n", package.list_line(spec.android)));
    let text: String = lines.collect();
    if let Some(Node { kind, .. }) = tree.node_mut(&normalize("/", LIST)) {
        *kind = Kind::File(FileData::new(text.into_bytes(), 1_707_120_000));
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn zip(name: &str, text: &str) -> Vec<u8> {
        let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
        zip.start_file(name, zip::write::SimpleFileOptions::default())
            .unwrap();
        zip.write_all(text.as_bytes()).unwrap();
        zip.finish().unwrap().into_inner()
    }

    #[test]
    fn the_base_of_a_split_app_has_the_properties() {
        let base = zip(PROPERTIES, "package=com.example.app\nversion=43\n");
        let split = zip("res/values.xml", "");
        let apk = read(&[split.clone(), base]).unwrap();
        assert_eq!((apk.version, apk.memory_percent), (43, 100));
        for (parts, why) in [
            (vec![split], "INSTALL_FAILED_INVALID_APK"),
            (vec![b"text".to_vec()], "INSTALL_PARSE_FAILED_NOT_APK"),
            (vec![zip(PROPERTIES, "version=x")], "MANIFEST_MALFORMED"),
        ] {
            let error = read(&parts).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }
}
