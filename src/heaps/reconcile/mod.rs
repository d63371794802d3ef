//! Reconciliation of a process: values from a running device, or from a recording directory at each
//! label. `memory::reconcile` interprets them.

mod directory;
#[cfg(test)]
mod tests;
mod values;

pub use directory::{Moment, choose, of_directory};

use std::path::Path;
use std::time::Duration;

use crate::heaps::meminfo::{self, MeminfoError};
use crate::heaps::smaps::fetch::{self, FetchError};
use android_memory::malloc_info;
use android_memory::reconcile::{At, Figure, ReconcileInput, Table};
use android_memory::smaps;
use heaptap_adb::{Command, Device};
use heaptap_base::error::Classified;
use heaptap_base::untrusted::shell::quoted;
use heaptap_capture::config::Targets;
use heaptap_input::{ImportError, TextInput, is_directory};
use values::{
    MAX_SIZE, RECORD, note_missing, take_malloc_info, take_meminfo, take_smaps, take_status,
};

const STATUS_LIMIT: Duration = Duration::from_secs(10);

const STATUS: &str = "cat /proc/uptime /proc/$1/status";

/// Returns the values of a running process. The app is asked for its heap, for which it collects
/// garbage once. heapprofd's value needs a recording and is missing here.
///
/// # Errors
/// Returns an error if the process is not running, or the device is disconnected.
pub async fn of_phone(
    device: &Device,
    targets: &Targets,
    user: Option<u32>,
) -> Result<Table, FetchError> {
    let (pid, process) = fetch::only_process(device, targets, user).await?;
    let mut known = ReconcileInput {
        process: process.clone(),
        pid,
        ..ReconcileInput::default()
    };
    known.miss(
        Figure::Profiled,
        "heapprofd only profiles during a recording, and this is not a recording",
        Some(format!(
            "heaptap record -n {} --with meminfo,smaps, then heaptap meminfo DIR --reconcile",
            quoted(&process)
        )),
    );
    let number = pid.to_string();
    let status = Command::script(STATUS)
        .called("reading the memory of a process")
        .arg(&number);
    take_status(&mut known, &device.text(&status, STATUS_LIMIT).await?);
    // Mappings before meminfo, for which the app collects garbage.
    match fetch::proc_file(device, (pid, &process), "smaps").await {
        Ok(fetched) => {
            if let Ok(smaps) = smaps::parse(&fetched.text) {
                take_smaps(&mut known, &smaps, fetched.boot_ns);
            }
        }
        // meminfo has the same rows.
        Err(FetchError::Refused { .. } | FetchError::Gone { .. }) => {}
        Err(error) => return Err(error),
    }
    let told = match fetch::malloc_info(device, pid).await {
        Err(error) if !fetch::is_lost(&error) => Err(error.to_string()),
        told => told?,
    };
    match told {
        Ok(fetched) => take_malloc_info(&mut known, &fetched.text, fetched.boot_ns),
        Err(why) => known.miss(
            Figure::MallocInfo,
            why,
            Some("use a debug build of the app or a userdebug device".to_owned()),
        ),
    }
    ask_meminfo(device, &mut known).await?;
    known.boot_ns = known.resident.as_ref().and_then(|at| at.boot_ns);
    Ok(Table::from_input(&known))
}

/// Adds the values of meminfo; for an app that does not answer, those of the system alone.
async fn ask_meminfo(device: &Device, known: &mut ReconcileInput) -> Result<(), FetchError> {
    for local in [false, true] {
        let question = meminfo::Question {
            targets: Targets {
                pids: vec![known.pid],
                ..Targets::default()
            },
            all: true,
            local,
            ..meminfo::Question::default()
        };
        let error = match meminfo::ask(device, &question).await {
            Ok(answer) => {
                let boot_ms = answer.document.realtime_ms;
                let boot_ns = boot_ms.and_then(|ms| ms.checked_mul(1_000_000));
                let has_heap = take_meminfo(known, &String::from_utf8_lossy(&answer.text), boot_ns);
                if !has_heap && !local {
                    known.miss(
                        Figure::HeapAlloc,
                        "`dumpsys meminfo` returned no heap values",
                        None,
                    );
                }
                return Ok(());
            }
            Err(MeminfoError::Device(error)) if fetch::is_lost(&error) => return Err(error.into()),
            Err(error) => error,
        };
        if !local {
            known.miss(Figure::HeapAlloc, error.to_string(), error.help());
        }
        let silent = matches!(error, MeminfoError::Device(_));
        if silent || known.native_resident.is_some() {
            break;
        }
    }
    Ok(())
}

/// Returns the table of a saved allocator XML, in a file or on standard input (`-`); `None` for
/// other files. Blocks.
///
/// # Errors
/// Returns an error if its compression is damaged, or if standard input or a pipe contains
/// something else.
pub fn of_malloc_info(path: &Path) -> Result<Option<Table>, ImportError> {
    if is_directory(path) {
        return Ok(None);
    }
    let input = TextInput::typed(path)?;
    let (name, what, is_regular) = (input.name().to_owned(), input.kind(), input.is_regular());
    // Avoid reading a whole trace.
    let begin = input.head().trim_ascii_start();
    let is_xml =
        what.may_be_text() && (begin.starts_with(b"<malloc") || begin.starts_with(b"<?xml"));
    let value = match is_xml {
        true => {
            let text = input.whole(MAX_SIZE)?;
            if let Some(what) = text.damage {
                return Err(ImportError::Damaged { name, what });
            }
            malloc_info::parse(&text.bytes).ok()
        }
        false => None,
    };
    let Some(value) = value else {
        return match is_regular {
            true => Ok(None),
            false => Err(ImportError::NotAHeap { name, what }),
        };
    };
    let mut known = ReconcileInput {
        malloc_info: Some(At::new(value, path.display().to_string(), None)),
        ..ReconcileInput::default()
    };
    for (figure, why) in [
        (Figure::Profiled, "an allocator file has no profile"),
        (Figure::HeapAlloc, "an allocator file has no meminfo"),
    ] {
        note_missing(&mut known, figure, why.to_owned(), Some(RECORD.to_owned()));
    }
    Ok(Some(Table::from_input(&known)))
}
