//! Data of a process that only its own user, or root, can read: memory mappings and allocator
//! output. Implements the access methods, and the errors if none works.

use std::time::Duration;

use serde::Serialize;

use android_memory::status;
use heaptap_adb::{Command, Device, DeviceError, Output};
use heaptap_base::error::{Classified, ErrorClass, ErrorFacts};
use heaptap_base::untrusted::sanitize_bytes;
use heaptap_base::untrusted::shell::quoted;
use heaptap_capture::config::Targets;
use heaptap_capture::eligibility::{self, AbsentTarget};

/// Time limit: the kernel walks all pages of the process, and a large app has gigabytes.
const LIMIT: Duration = Duration::from_secs(60);
/// Time limit: the allocator stops all threads and walks its blocks; a frozen app never starts.
const MALLOC_LIMIT: Duration = Duration::from_secs(60);

/// Access method of a file of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AccessMethod {
    /// As the shell, which is root.
    Shell,
    /// As the app's own user, for debuggable apps.
    RunAs,
    /// `su root`.
    Su,
}

/// Error of reading data of a process.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    /// The device is disconnected, or does not answer.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The device could not list its processes.
    #[error(transparent)]
    Eligibility(#[from] heaptap_capture::error::CaptureError),
    /// No running process has that name.
    #[error(transparent)]
    NotRunning(AbsentTarget),
    /// Several do.
    #[error("{target} matches {count} processes on {serial}: {there}")]
    Several {
        /// Target as typed.
        target: String,
        serial: String,
        /// Number of processes.
        count: usize,
        /// Readable list of the processes.
        there: String,
    },
    /// The process ended during the request.
    #[error("{process} ({pid}) ended before heaptap read its mappings")]
    Gone { process: String, pid: u32 },
    /// The device denied access.
    #[error(
        "on {serial}, only root and the app itself can read the memory mappings of {process} \
         ({pid}): {said}"
    )]
    Refused {
        serial: String,
        process: String,
        pid: u32,
        /// Output of the device.
        said: String,
    },
}

impl Classified for FetchError {
    fn facts(&self) -> ErrorFacts {
        match self {
            FetchError::Device(error) => error.facts(),
            FetchError::Eligibility(error) => error.facts(),
            FetchError::NotRunning(absent) => {
                ErrorFacts::new(ErrorClass::NotEligible, "target-not-running")
                    .with_help(&*absent.help)
            }
            FetchError::Several { .. } => ErrorFacts::new(ErrorClass::Usage, "several-processes")
                .with_help("select one by its pid"),
            FetchError::Gone { .. } => ErrorFacts::new(ErrorClass::Device, "target-gone")
                .with_help("start the app and try again"),
            FetchError::Refused { process, .. } => {
                ErrorFacts::new(ErrorClass::NotEligible, "mappings-refused")
                    .with_help(refused_help(process))
            }
        }
    }
}

/// Returns help about the requirements, and alternatives.
pub(crate) fn refused_help(process: &str) -> String {
    let process = quoted(process);
    format!(
        "use a debug build of the app (android:debuggable) or `adb root` on a userdebug device. \
         Otherwise, `heaptap meminfo -n {process} --local` has the same rows, and \
         `heaptap meminfo -n {process} --every 1s` the totals. For a profileable app, `heaptap dump -n {process} \
         --dump-smaps` has sizes, RSS and swap by mapping."
    )
}

/// Data of a process, as written by the device.
#[derive(Debug, Clone)]
pub(crate) struct Fetched {
    pub(crate) method: AccessMethod,
    pub(crate) text: Vec<u8>,
    /// Start time, BOOTTIME in ns, if known.
    pub(crate) boot_ns: Option<u64>,
}

/// Returns the only process that matches `target`, a pid or a name.
///
/// # Errors
/// Returns an error if no process or several match, or the device is disconnected.
pub(crate) async fn only_process(
    device: &Device,
    targets: &Targets,
    user: Option<u32>,
) -> Result<(u32, String), FetchError> {
    let facts = eligibility::facts(device).await?;
    let mut found = eligibility::resolve_pids(device, &facts, targets, user).await?;
    match (found.pop(), found.len()) {
        (Some(only), 0) => Ok(only),
        (None, _) => {
            let absent = eligibility::absent_target(device, &facts, targets, user).await;
            Err(FetchError::NotRunning(absent))
        }
        (Some(last), others) => {
            found.push(last);
            let words = found
                .iter()
                .map(|(pid, name)| format!("{pid} ({})", sanitize_bytes(name.as_bytes())));
            Err(FetchError::Several {
                target: targets.to_string(),
                serial: device.serial().to_owned(),
                count: others + 1,
                there: heaptap_results::lists::join_list(words),
            })
        }
    }
}

/// Returns the package of a process: the part before the name of a service process.
fn package_of(process: &str) -> Option<&str> {
    let package = process.split(':').next().unwrap_or(process);
    let is_name = |b: u8| b.is_ascii_alphanumeric() || b"._".contains(&b);
    (package.contains('.') && package.bytes().all(is_name)).then_some(package)
}

/// Reads a file below `/proc/$1`, between two readings of the clock.
const SHELL: &str = "cat /proc/uptime; cat /proc/$1/$2";
/// Reads it as the user or profile of the process, according to its uid.
const RUN_AS: &str = r#"cat /proc/uptime
u=$(stat -c %u /proc/$1 2>/dev/null)
if [ "${u:-0}" -ge 100000 ]; then
  run-as "$3" --user $((u/100000)) cat /proc/$1/$2
else
  run-as "$3" cat /proc/$1/$2
fi"#;
const SU: &str = "cat /proc/uptime; su root cat /proc/$1/$2";

/// Reads a file below `/proc/PID` that only the process's user and root can read.
///
/// # Errors
/// Returns an error if the device denies all methods, the process has ended, or the device is
/// disconnected.
pub(crate) async fn proc_file(
    device: &Device,
    (pid, process): (u32, &str),
    file: &'static str,
) -> Result<Fetched, FetchError> {
    let number = pid.to_string();
    let script = |script| {
        Command::script(script)
            .called("reading the mappings of a process")
            .arg(&number)
            .arg(file)
    };
    let mut methods = vec![(AccessMethod::Shell, script(SHELL))];
    if let Some(package) = package_of(process) {
        methods.push((AccessMethod::RunAs, script(RUN_AS).arg(package)));
    }
    methods.push((AccessMethod::Su, script(SU)));
    let mut said = String::new();
    for (method, command) in methods {
        let output = device.run(&command, LIMIT).await?;
        match read(output) {
            Ok((boot_ns, text)) => {
                return Ok(Fetched {
                    method,
                    text,
                    boot_ns,
                });
            }
            // Prefer the refusal of the shell, and the reason of run-as.
            Err(words) if method == AccessMethod::Shell => said = words,
            Err(words) if method == AccessMethod::RunAs && !words.is_empty() => {
                said = format!("{said}; {words}");
            }
            Err(_) => {}
        }
    }
    let there = Command::program("ls").arg("-d").arg(format!("/proc/{pid}"));
    let there = device.run(&there, LIMIT).await?;
    let process = process.to_owned();
    if !there.stdout.starts_with(b"/proc/") {
        return Err(FetchError::Gone { process, pid });
    }
    Err(FetchError::Refused {
        serial: device.serial().to_owned(),
        process,
        pid,
        said: match said.as_str() {
            "" => "no output".to_owned(),
            said => said.to_owned(),
        },
    })
}

/// Returns the clock and the text after it, or the error output.
fn read(output: Output) -> Result<(Option<u64>, Vec<u8>), String> {
    let mut text = output.stdout;
    let end = text.iter().position(|byte| *byte == b'\n');
    let end = end.map_or(text.len(), |end| end + 1);
    let clock: Vec<u8> = text.drain(..end).collect();
    let boot_ns = status::uptime_ns(&String::from_utf8_lossy(&clock));
    // Without the shell protocol, errors are part of the text.
    let is_mapping = text
        .split(|byte| *byte == b'\n')
        .take(8)
        .any(|line| line.iter().take(17).any(|byte| *byte == b'-') && looks_mapped(line));
    if is_mapping {
        return Ok((boot_ns, text));
    }
    let words = match output.stderr.trim_ascii() {
        b"" => text.trim_ascii().to_vec(),
        words => words.to_vec(),
    };
    let line = words
        .split(|byte| *byte == b'\n')
        .next()
        .unwrap_or_default();
    Err(sanitize_bytes(line))
}

/// Returns whether a line begins like a mapping: `7b6c2e3000-7b6c37f000 `.
fn looks_mapped(line: &[u8]) -> bool {
    let word = line.split(|byte| *byte == b' ').next().unwrap_or_default();
    let mut ends = word.splitn(2, |byte| *byte == b'-');
    let is_hex = |end: Option<&[u8]>| {
        end.is_some_and(|end| !end.is_empty() && end.iter().all(u8::is_ascii_hexdigit))
    };
    is_hex(ends.next()) && is_hex(ends.next())
}

/// A separate program, so that it does not inherit the connection. `$3` is the shell that waits for
/// it. `am` can write after that shell has removed the files, so this program removes them once more.
const DUMPHEAP: &str = r#"am dumpheap -m $1 "$2" >"$2.said" 2>&1
echo heaptap-end >>"$2.said"
n=0
while [ $n -lt 300 ] && kill -0 $3 2>/dev/null; do n=$((n+1)); sleep 0.1; done
rm -f "$2" "$2.said""#;

/// `$1` pid, `$2` file, `$3` [`DUMPHEAP`]. Newer versions of `am` wait for the app, which might be
/// frozen or stuck; older ones return before the file exists. Both waits are limited, and
/// everything is cleaned up, also when the connection ends.
const MALLOC_INFO: &str = r#"cat /proc/uptime
rm -f "$2" "$2.said"
trap "rm -f \"\$2\" \"\$2.said\"; exit 129" HUP
sh -c "$3" heaptap-malloc-info $1 "$2" $$ </dev/null >/dev/null 2>&1 &
n=0
while [ $n -lt 200 ] && ! grep -q "^heaptap-end" "$2.said" 2>/dev/null; do
  n=$((n+1)); sleep 0.1
done
n=0
while [ $n -lt 50 ] && [ -s "$2" ] && ! grep -q "</malloc>" "$2"; do
  n=$((n+1)); sleep 0.1
done
cat "$2.said"
echo
echo "heaptap: the file"
cat "$2" 2>/dev/null
rm -f "$2" "$2.said""#;

/// Marker before the file.
const THE_FILE: &[u8] = b"heaptap: the file\n";

/// Returns whether an error of [`malloc_info`] is about the connection, not about an unresponsive
/// app.
pub(crate) fn is_lost(error: &DeviceError) -> bool {
    error.is_connection() && !matches!(error, DeviceError::Deadline { .. })
}

/// Returns the allocator output of a process, by `am dumpheap -m`, or a sentence about why there is
/// none.
///
/// # Errors
/// Returns an error if the device is disconnected.
pub(crate) async fn malloc_info(
    device: &Device,
    pid: u32,
) -> Result<Result<Fetched, String>, DeviceError> {
    let file = format!(
        "/data/local/tmp/heaptap-{pid}-{:08x}.malloc_info.xml",
        fastrand::u32(..)
    );
    let command = Command::script(MALLOC_INFO)
        .called("asking the allocator of a process")
        .arg(pid.to_string())
        .arg(file)
        .arg(DUMPHEAP);
    let output = device.run(&command, MALLOC_LIMIT).await?;
    let text = output.stdout;
    let at = memchr::memmem::find(&text, THE_FILE);
    let (before, body) = match at {
        Some(at) => (&text[..at], &text[at + THE_FILE.len()..]),
        None => (&text[..], &b""[..]),
    };
    let mut lines = before.split(|byte| *byte == b'\n');
    let clock = lines.next().unwrap_or_default();
    if memchr::memmem::find(body, b"<malloc").is_some() {
        return Ok(Ok(Fetched {
            method: AccessMethod::Shell,
            text: body.to_vec(),
            boot_ns: status::uptime_ns(&String::from_utf8_lossy(clock)),
        }));
    }
    let said = lines.map(|line| sanitize_bytes(line.trim_ascii()));
    let of_error = |line: &String| {
        ["Exception", "Error", "rror:"]
            .iter()
            .any(|word| line.contains(word))
    };
    // The first line of `am` only announces the exception.
    let mut complaints = said.filter(of_error).peekable();
    let first = complaints.peek().cloned();
    let complaint = complaints
        .find(|line| !line.starts_with("Exception occurred while executing"))
        .or(first);
    let ended = memchr::memmem::find(before, b"heaptap-end").is_some();
    Ok(Err(match complaint {
        Some(line) => format!("`am dumpheap -m` failed: {line}"),
        None if !ended => {
            "the app did not respond to `am dumpheap -m`; it is frozen or stuck".to_owned()
        }
        None => {
            "`am dumpheap -m` wrote nothing (it needs Android 10 or later and a debuggable app or \
             build)"
                .to_owned()
        }
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_said_instead_of_mappings_is_no_text() {
        let text = "12.50 90.1\n7f00-8f00 rw-p 0 0:0 0\nRss: 4 kB\n";
        let (boot_ns, mapped) = read(Output::said(text, "")).unwrap();
        assert_eq!(boot_ns, Some(12_500_000_000));
        assert!(mapped.starts_with(b"7f00-"));
        for (stdout, stderr) in [
            ("1.0 2.0\n", "cat: /proc/7/smaps: Permission denied\n"),
            ("1.0 2.0\ncat: /proc/7/smaps: Permission denied\n", ""),
        ] {
            let said = read(Output::said(stdout, stderr)).unwrap_err();
            assert_eq!(said, "cat: /proc/7/smaps: Permission denied");
        }
        assert_eq!(read(Output::said("", "")).unwrap_err(), "");
    }

    #[test]
    fn only_names_of_packages_are_given_to_run_as() {
        assert_eq!(
            package_of("com.example.app:remote"),
            Some("com.example.app")
        );
        assert_eq!(package_of("com.example.app"), Some("com.example.app"));
        for none in [
            "surfaceflinger",
            "/system/bin/netd",
            "a.b;reboot",
            "",
            "a.b c",
        ] {
            assert_eq!(package_of(none), None, "{none}");
        }
    }
}
