//! Requests meminfo from a device: finds the processes, queries them one by one, and measures the
//! cost of each query.

use std::time::Duration;

use super::document::Document;
use super::error::MeminfoError;
use android_memory::meminfo::Meminfo;
use android_memory::status;
use heaptap_adb::{Command, Device, DeviceError};
use heaptap_base::untrusted::sanitize_bytes;
use heaptap_capture::config::Targets;
use heaptap_capture::eligibility;
use heaptap_model::timeline::{Cost, Source};

/// A request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Question {
    /// Names, pids, packages; empty for the whole device.
    pub targets: Targets,
    /// User or profile; `None` matches the processes of all users.
    pub user: Option<u32>,
    pub all: bool,
    /// Parts of the Dalvik rows.
    pub details: bool,
    /// Without asking the app.
    pub local: bool,
}

/// Output of the device.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// Parsed output.
    pub document: Document,
    /// Unmodified output.
    pub text: Vec<u8>,
}

const ASK: &str = "cat /proc/uptime; dumpsys -t 60 meminfo \"$@\"; echo; cat /proc/uptime";
/// dumpsys waits for a frozen or hanging app until its timeout; the whole device takes seconds.
pub(crate) const LIMIT: Duration = Duration::from_secs(75);

/// Requests meminfo.
///
/// # Errors
/// Returns an error if no target is running, or the device or the app does not answer.
pub async fn ask(device: &Device, question: &Question) -> Result<Answer, MeminfoError> {
    let mut answer = Answer {
        document: Document::new(
            &Meminfo::default(),
            device.serial().to_owned(),
            Source::Meminfo,
        ),
        text: Vec::new(),
    };
    let whole = question.targets.is_empty();
    answer.document.collected_garbage = Some(false);
    if whole {
        let said = once(device, question, None).await?;
        let document = said.read(device, Source::Meminfo);
        if document.phone.is_none() {
            return Err(strange(&said));
        }
        answer.add(said, document);
        return Ok(answer);
    }
    let facts = eligibility::facts(device).await?;
    let resolved =
        eligibility::resolve_each(device, &facts, &question.targets, question.user).await?;
    if resolved.found.is_empty() {
        let (targets, user) = (&question.targets, question.user);
        let absent = eligibility::absent_target(device, &facts, targets, user).await;
        return Err(MeminfoError::NotFound(absent));
    }
    let mut failed = None;
    let missing = resolved.missing.iter();
    let mut troubles: Vec<String> = missing.map(eligibility::no_running_process).collect();
    for (pid, name) in resolved.found {
        let called = format!("{name} ({pid})");
        let said = match once(device, question, Some(pid)).await {
            Ok(said) => said,
            // Other processes would time out as well; keep the earlier output.
            Err(MeminfoError::Device(error @ DeviceError::Deadline { .. })) => {
                let error = MeminfoError::Unanswered {
                    target: called,
                    said: error.to_string(),
                    local: question.local,
                };
                troubles.push(error.to_string());
                failed.get_or_insert(error);
                break;
            }
            Err(error) => return Err(error),
        };
        let meminfo = said.meminfo();
        let source = match question.local {
            true => Source::MeminfoLocal,
            false => Source::Meminfo,
        };
        let mut document = Document::new(&meminfo, device.serial().to_owned(), source);
        let told = document.processes.first();
        let told = told.is_some_and(|process| !process.rows.is_empty() || process.parts.is_some());
        if !told {
            let error = match (meminfo.no_process(), meminfo.trouble()) {
                (Some(_), _) => MeminfoError::Gone {
                    target: called,
                    said: said.first_line(),
                },
                (None, Some(trouble)) => unanswered(called, trouble, question.local),
                (None, None) => strange(&said),
            };
            troubles.push(error.to_string());
            // The first error is that of the process with the given name.
            failed.get_or_insert(error);
            continue;
        }
        // The device does not print these for native programs.
        for process in &mut document.processes {
            process.pid = process.pid.or(Some(pid));
            process.name.get_or_insert_with(|| name.clone());
        }
        answer.add(said, document);
    }
    match failed {
        Some(error) if answer.document.processes.is_empty() => Err(error),
        // Others of the package are there.
        _ => {
            answer.document.troubles.extend(troubles);
            Ok(answer)
        }
    }
}

impl Answer {
    fn add(&mut self, said: Said, document: Document) {
        let all = &mut self.document;
        all.realtime_ms = all.realtime_ms.or(document.realtime_ms);
        // Only processes that count objects were queried themselves: native programs do not.
        let called = document
            .processes
            .iter()
            .any(|process| !process.objects.is_empty());
        all.collected_garbage = all.collected_garbage.map(|before| before || called);
        all.processes.extend(document.processes);
        all.phone = all.phone.take().or(document.phone);
        all.troubles.extend(document.troubles);
        all.unknown.extend(document.unknown);
        let cost = all.cost.get_or_insert(Cost {
            device_ns: 0,
            bytes: 0,
        });
        cost.device_ns = cost.device_ns.saturating_add(said.took_ns.unwrap_or(0));
        cost.bytes = cost.bytes.saturating_add(said.bytes);
        self.text.extend(said.text);
    }
}

/// Converts the device's reason for a missing answer. A RemoteException means that the app died, an
/// IoException that it timed out.
fn unanswered(target: String, said: &str, local: bool) -> MeminfoError {
    let said = sanitize_bytes(said.trim().as_bytes());
    match said.starts_with("Got RemoteException") {
        true => MeminfoError::Gone { target, said },
        false => MeminfoError::Unanswered {
            target,
            said,
            local,
        },
    }
}

fn strange(said: &Said) -> MeminfoError {
    MeminfoError::Strange {
        said: said.first_line(),
    }
}

/// Result of one query.
struct Said {
    text: Vec<u8>,
    took_ns: Option<u64>,
    bytes: u64,
}

/// Returns the command that prints meminfo between two lines of `/proc/uptime`.
pub(crate) fn command(args: impl IntoIterator<Item = impl Into<String>>) -> Command {
    let args = args.into_iter().map(Into::into);
    Command::script(ASK).called("reading meminfo").args(args)
}

async fn once(
    device: &Device,
    question: &Question,
    pid: Option<u32>,
) -> Result<Said, MeminfoError> {
    let flags = [
        (question.all, "-a"),
        (question.details && !question.all, "-d"),
        (question.local, "--local"),
        // Swapped memory in the lists of the whole device.
        (pid.is_none(), "-S"),
    ];
    let flags = flags
        .iter()
        .filter(|(given, _)| *given)
        .map(|(_, flag)| (*flag).to_owned())
        .chain(pid.map(|pid| pid.to_string()));
    let output = device.run(&command(flags), LIMIT).await?;
    let (from, text, until) = between_clocks(&output.stdout);
    Ok(Said {
        // dumpsys reports a missing service on stderr.
        text: match text.is_empty() {
            true => output.stderr.clone(),
            false => text.to_vec(),
        },
        took_ns: from
            .zip(until)
            .and_then(|(from, until)| until.checked_sub(from)),
        bytes: (output.stdout.len() + output.stderr.len()) as u64,
    })
}

impl Said {
    fn meminfo(&self) -> Meminfo {
        Meminfo::parse(&String::from_utf8_lossy(&self.text))
    }

    fn read(&self, device: &Device, source: Source) -> Document {
        Document::new(&self.meminfo(), device.serial().to_owned(), source)
    }

    fn first_line(&self) -> String {
        let text = String::from_utf8_lossy(&self.text);
        let line = text.lines().map(str::trim).find(|line| !line.is_empty());
        sanitize_bytes(line.unwrap_or("nothing").as_bytes())
    }
}

/// Returns the text between two lines of `/proc/uptime`, and their times; a device whose shell
/// cannot read it returns only the text.
pub(crate) fn between_clocks(mut bytes: &[u8]) -> (Option<u64>, &[u8], Option<u64>) {
    let clock = |line: &[u8]| status::uptime_ns(&String::from_utf8_lossy(line));
    let last = bytes.trim_ascii_end();
    let begin = last
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |at| at + 1);
    let until = clock(&last[begin..]);
    if until.is_some() {
        // The script printed the preceding newline.
        bytes = &bytes[..begin.saturating_sub(1)];
    }
    let first = bytes.iter().position(|byte| *byte == b'\n');
    let from = first.and_then(|end| clock(&bytes[..end]));
    if let (Some(_), Some(end)) = (from, first) {
        bytes = &bytes[end + 1..];
    }
    (from, bytes, until)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_are_taken_off_where_they_are() {
        let bytes = b"12.50 3.1\nApplications\n \xff\n\n14.00 4.0\n";
        let (from, text, until) = between_clocks(bytes);
        assert_eq!(text, b"Applications\n \xff\n");
        assert_eq!((from, until), (Some(12_500_000_000), Some(14_000_000_000)));
        for (bytes, rest) in [
            (&b""[..], &b""[..]),
            (b"No process found for: 3\n", b"No process found for: 3\n"),
            (b"1.0 2.0\ntext\n", b"text\n"),
            (b"text\n1.0 2.0\n", b"text"),
            (b"1.0 2.0\n", b""),
        ] {
            let (from, text, until) = between_clocks(bytes);
            assert_eq!(text, rest);
            assert!(from.is_none() || until.is_none());
        }
    }
}
