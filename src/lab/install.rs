//! Installs the app of a scenario.

use std::io::{Cursor, Read as _};
use std::path::Path;
use std::time::Duration;

use heaptap_lab::scenario::Install;
use tokio::task::JoinHandle;
use zip::ZipArchive;

use super::failures::interrupted;
use heaptap_adb::{Command, Device, DeviceError, Output};
use heaptap_base::bytes::Bytes;
use heaptap_base::error::{ErrorClass, Failure};
use heaptap_base::untrusted::sanitize;
use heaptap_capture::provoke::Cancel;

/// Time limit of an installation; the device optimizes large apps.
const LIMIT: Duration = Duration::from_secs(600);
/// Time limit for removing the copies.
const CLEANUP: Duration = Duration::from_secs(30);
/// Permissions of the copies on the device: the package manager reads them as another user.
const MODE: u32 = 0o644;

/// Opens an APK, or the one in a set of `bundletool build-apks --mode=universal`.
///
/// # Errors
/// Returns an error if it cannot be read, or is something else.
pub fn open(path: &Path) -> Result<Bytes, Failure> {
    let unreadable = |message, help| {
        Failure::new(ErrorClass::BadInput, "app-unreadable", message).with_help(help)
    };
    let bytes = Bytes::map(path).map_err(|error| {
        let message = format!("cannot read {}: {error}", path.display());
        let help = "name an APK; a path in `install` is relative to the scenario's file";
        unreadable(message, help)
    })?;
    const BUILD: &str = "build an app bundle with `bundletool build-apks --mode=universal`, and \
                         name the `.apks` file";
    if !bytes.starts_with(b"PK") {
        let message = format!("{} is not an APK", path.display());
        return Err(unreadable(message, BUILD));
    }
    let Some(set) = ApkSet::from_bytes(&bytes) else {
        return Ok(bytes);
    };
    set.universal().map_err(|why| {
        let message = format!("cannot install {}: {why}", path.display());
        unreadable(message, BUILD)
    })
}

/// A ZIP file of bundletool: an app bundle, or a set of APKs.
struct ApkSet<'a> {
    zip: ZipArchive<Cursor<&'a [u8]>>,
    bytes: u64,
}

impl<'a> ApkSet<'a> {
    /// Name of the APK for all devices.
    const UNIVERSAL: &'static str = "universal.apk";
    /// Most bytes of an APK for each byte of its set. APKs are compressed already.
    const RATIO: u64 = 4;

    /// Returns the set; nothing if the file has a manifest, as an APK does, or is damaged, which the
    /// package manager reports.
    fn from_bytes(bytes: &'a [u8]) -> Option<ApkSet<'a>> {
        let zip = ZipArchive::new(Cursor::new(bytes)).ok()?;
        let has = |name: &str| zip.index_for_name(name).is_some();
        let is_set = has("toc.pb") || has("BundleConfig.pb") || has(Self::UNIVERSAL);
        (is_set && !has("AndroidManifest.xml")).then_some(ApkSet {
            bytes: bytes.len() as u64,
            zip,
        })
    }

    fn universal(mut self) -> Result<Bytes, String> {
        let entry = self.zip.by_name(Self::UNIVERSAL);
        let entry = entry.map_err(|_| format!("it has no {}", Self::UNIVERSAL))?;
        let most = self.bytes.saturating_mul(Self::RATIO);
        let mut apk = Vec::new();
        let read = entry.take(most + 1).read_to_end(&mut apk);
        read.map_err(|error| error.to_string())?;
        match apk.len() as u64 > most {
            true => Err(format!("{} is damaged", Self::UNIVERSAL)),
            false => Ok(Bytes::from(apk)),
        }
    }
}

/// Installs the APKs, one or the parts of a split app, and compiles the app as a store would.
///
/// # Errors
/// Returns an error if a file cannot be read, if the device refuses the app, or if the user
/// interrupts it.
pub(super) async fn install(
    device: &Device,
    app: &Install,
    base: &Path,
    package: &str,
    cancel: &Cancel,
) -> Result<(), Failure> {
    let mut left = Left::default();
    let installed = tokio::select! {
        installed = install_copies(device, app, base, package, &mut left) => installed,
        // The package manager completes or drops what it has begun.
        () = cancel.wait() => Err(interrupted()),
    };
    left.remove(device).await;
    installed?;
    let compile = Command::program("cmd").args(["package", "compile", "-m", "speed-profile", "-f"]);
    let compile = compile.arg(package);
    tokio::select! {
        // Before Android 7 there is nothing to compile.
        _ = device.run(&compile, LIMIT) => Ok(()),
        () = cancel.wait() => Err(interrupted()),
    }
}

/// What an installation leaves on the device.
#[derive(Default)]
struct Left {
    copies: Vec<String>,
    /// The device creates a session even if the wait for its ID is interrupted.
    created: Option<JoinHandle<Result<Output, DeviceError>>>,
    /// Session of the package manager with copies of the parts, until it is committed.
    session: Option<String>,
}

impl Left {
    /// Removes everything. The results do not depend on it.
    async fn remove(self, device: &Device) {
        let mut session = self.session;
        if let Some(created) = self.created {
            let created = created.await.ok().and_then(Result::ok);
            session = created.and_then(|created| session_of(&created));
        }
        if let Some(session) = session {
            let abandon = pm(&["install-abandon", &session]);
            let _ = device.run(&abandon, CLEANUP).await;
        }
        for copy in &self.copies {
            let _ = device
                .run(&Command::program("rm").args(["-f", copy]), CLEANUP)
                .await;
        }
    }

    /// Creates a session for the parts.
    async fn create(&mut self, device: &Device) -> Result<String, Failure> {
        let own = device.clone();
        let created = self.created.insert(tokio::spawn(async move {
            let create = pm(&["install-create", "-r", "-t", "-d"]);
            own.run(&create, CLEANUP).await
        }));
        let created = created.await;
        self.created = None;
        let created =
            created.map_err(|error| Failure::new(ErrorClass::Bug, "bug", error.to_string()))??;
        succeeded(device, &created)?;
        self.session = session_of(&created);
        self.session.clone().ok_or_else(|| {
            let said = String::from_utf8_lossy(&created.stdout);
            refused(device, &said)
        })
    }
}

/// Returns the ID in `Success: created install session [1405000001]`.
fn session_of(created: &Output) -> Option<String> {
    let text = String::from_utf8_lossy(&created.stdout);
    let (_, rest) = text.split_once('[')?;
    let (session, _) = rest.split_once(']')?;
    Some(session.to_owned())
}

fn pm(words: &[&str]) -> Command {
    Command::program("pm").args(words)
}

async fn install_copies(
    device: &Device,
    app: &Install,
    base: &Path,
    package: &str,
    left: &mut Left,
) -> Result<(), Failure> {
    let mut sizes = Vec::new();
    for (at, apk) in app.apk.iter().enumerate() {
        let bytes = open(&base.join(apk))?;
        // `--resume` removes the copies of a killed process, because it has the same names.
        let copy = format!("/data/local/tmp/heaptap-{package}-{at}.apk");
        left.copies.push(copy.clone());
        sizes.push(bytes.len());
        device.push(&bytes, &copy, MODE, LIMIT).await?;
    }
    if !app.keep_data {
        // It is not installed before the first run of a scenario.
        let _ = device.run(&pm(&["uninstall", package]), LIMIT).await?;
    }
    // `-d`: an older build keeps the data, too, if the device permits it.
    if let [only] = left.copies.as_slice() {
        let output = device
            .run(&pm(&["install", "-r", "-t", "-d", only]), LIMIT)
            .await?;
        return succeeded(device, &output);
    }
    let session = left.create(device).await?;
    for (at, (copy, size)) in left.copies.iter().zip(&sizes).enumerate() {
        let (size, name) = (size.to_string(), format!("part-{at}"));
        let write = pm(&["install-write", "-S", &size, &session, &name, copy]);
        succeeded(device, &device.run(&write, LIMIT).await?)?;
    }
    let commit = pm(&["install-commit", &session]);
    succeeded(device, &device.run(&commit, LIMIT).await?)?;
    left.session = None;
    Ok(())
}

/// The package manager says `Success`, and on some releases exits with 0 after a failure.
fn succeeded(device: &Device, output: &Output) -> Result<(), Failure> {
    let said = String::from_utf8_lossy(&output.stdout);
    if said.contains("Success") {
        return Ok(());
    }
    let complaint = String::from_utf8_lossy(&output.stderr);
    Err(refused(device, &format!("{said} {complaint}")))
}

fn refused(device: &Device, said: &str) -> Failure {
    let said: String = sanitize(said.trim()).chars().take(300).collect();
    let message = format!("{} refused the app: {said}", device.serial());
    let help = match said.contains("UPDATE_INCOMPATIBLE") || said.contains("VERSION_DOWNGRADE") {
        true => "use `data: remove` in `install`: it removes the installed app and its data first",
        false => "install it with `adb install` to see whether the APK fits the device",
    };
    Failure::new(ErrorClass::Device, "install-failed", message).with_help(help)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn zip_of(entries: &[(&str, &[u8])]) -> Vec<u8> {
        let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
        for (name, content) in entries {
            let options = zip::write::SimpleFileOptions::default();
            zip.start_file(*name, options).unwrap();
            zip.write_all(content).unwrap();
        }
        zip.finish().unwrap().into_inner()
    }

    #[test]
    fn an_apk_is_opened_as_it_is_or_from_its_set() {
        let directory = tempfile::tempdir().unwrap();
        let open = |bytes: &[u8]| {
            let path = directory.path().join("app");
            std::fs::write(&path, bytes).unwrap();
            super::open(&path).map(|bytes| bytes.to_vec())
        };
        let apk = zip_of(&[("AndroidManifest.xml", b"m"), ("universal.apk", b"x")]);
        assert_eq!(open(&apk).unwrap(), apk);
        let set = zip_of(&[("toc.pb", b""), ("universal.apk", &apk)]);
        assert_eq!(open(&set).unwrap(), apk);
        let zeros = vec![0; 1 << 20];
        for (bytes, why) in [
            (
                zip_of(&[("toc.pb", b""), ("splits/base.apk", &apk)]),
                "has no universal.apk",
            ),
            (zip_of(&[("BundleConfig.pb", b"")]), "has no universal.apk"),
            (
                zip_of(&[("universal.apk", &zeros)]),
                "universal.apk is damaged",
            ),
            (b"text".to_vec(), "is not an APK"),
        ] {
            let error = open(&bytes).unwrap_err();
            assert!(error.message.contains(why), "{}", error.message);
            assert_eq!(error.kind, "app-unreadable");
        }
    }
}
