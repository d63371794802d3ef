//! `provoke`: scripted actions on an app, the phone put back afterwards, and each action as an
//! entry in a recording's timeline.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::device::{Device, DeviceState, Selector, Server};
use crate::error::{ErrorClass, Failure};
use crate::memory::timeline::{self, Entry, Ours, Seen};
use crate::provoke::{
    self, Cancel, Event, Journals, Plan, ProvokeError, PutBack, Report, Saved, Step,
};
use crate::session::Store;

/// The notes of what is to be put back, beside the journals of recordings.
///
/// # Errors
/// Where their folder cannot be created.
pub fn journals(store: &Store) -> Result<Journals, Failure> {
    let folder = store.folder();
    Ok(Journals::in_folder(folder.parent().unwrap_or(folder))?)
}

/// A doing of an action as an entry of a timeline.
pub fn entry(step: &Step) -> Entry {
    Entry {
        boot_ns: step.begin_ns,
        pid: step.pid.unwrap_or(0),
        cost: None,
        seen: Seen::Ours(Ours {
            what: step.what(),
            until_ns: step.end_ns,
        }),
    }
}

/// A timeline that grows line by line; others may add to it at the same time.
struct Timeline {
    path: PathBuf,
    file: Mutex<Option<File>>,
}

impl Timeline {
    /// A file, or that of a recording's folder.
    fn open(path: &Path) -> Result<Timeline, Failure> {
        let path = match path.is_dir() {
            true => path.join(timeline::FILE),
            false => path.to_owned(),
        };
        match OpenOptions::new().append(true).create(true).open(&path) {
            Ok(file) => Ok(Timeline {
                path,
                file: Mutex::new(Some(file)),
            }),
            Err(error) => Err(unwritable(&path, &error)),
        }
    }

    /// Writes one line in one go; what goes wrong is told at the end.
    fn add(&self, step: &Step) -> Option<Failure> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let line = entry(step).line();
        let written = file.as_mut()?.write_all(line.as_bytes());
        let error = written.err()?;
        *file = None;
        Some(unwritable(&self.path, &error))
    }
}

fn unwritable(path: &Path, error: &io::Error) -> Failure {
    Failure::new(
        ErrorClass::HostWrite,
        "timeline-unwritable",
        format!("cannot write {}: {error}", path.display()),
    )
    .with_help("make room there, or leave out --timeline")
}

/// Does what a plan says, and writes its steps into a timeline where one is named.
///
/// # Errors
/// What ended it early; the phone is as it was, unless the failure says otherwise.
pub async fn run(
    device: &Device,
    journals: &Journals,
    plan: &Plan,
    timeline: Option<&Path>,
    cancel: &Cancel,
    tell: &(dyn Fn(&Event) + Send + Sync),
) -> Result<Report, Failure> {
    let timeline = timeline.map(Timeline::open).transpose()?;
    let failed: Mutex<Option<Failure>> = Mutex::new(None);
    let tell = |event: &Event| {
        if let (Some(timeline), Event::Step(step)) = (&timeline, event)
            && let Some(failure) = timeline.add(step)
        {
            *failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(failure);
        }
        tell(event);
    };
    let report = provoke::run(device, plan, journals, cancel, &tell).await?;
    match failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(failure) => Err(failure),
        None => Ok(report),
    }
}

/// Puts back what earlier runs left: on the phone that is named, else on all that are noted.
///
/// # Errors
/// The first phone's that could not be put back; what is noted of it stays.
pub async fn restore(
    server: &Server,
    selector: &Selector,
    journals: &Journals,
) -> Result<Vec<PutBack>, Failure> {
    if *selector != Selector::Only {
        let device = server.select(selector).await?;
        return Ok(restore_one(&device, journals).await?.into_iter().collect());
    }
    let mut done = Vec::new();
    let mut failed = None;
    for saved in journals.all() {
        let put_back = match find(server, &saved).await {
            Ok(device) => restore_one(&device, journals).await,
            Err(failure) => Err(failure),
        };
        match put_back {
            Ok(put_back) => done.extend(put_back),
            Err(failure) => failed = failed.or(Some(failure)),
        }
    }
    match failed {
        Some(failure) => Err(failure),
        None => Ok(done),
    }
}

/// The phone of a note: by the serial that it had, else by its own on any other cable.
async fn find(server: &Server, saved: &Saved) -> Result<Device, Failure> {
    let noted = Selector::Serial(saved.serial.clone());
    let why = match server.select(&noted).await {
        Ok(device) if is_of(&device, saved).await? => return Ok(device),
        Ok(device) => ProvokeError::OtherPhone {
            serial: device.serial().to_owned(),
            noted: saved.hardware_serial.clone(),
        }
        .into(),
        Err(error) => Failure::from(error),
    };
    let devices = server.devices().await?;
    let ready = devices.iter().filter(|d| d.state == DeviceState::Device);
    for listed in ready.filter(|d| d.serial != saved.serial) {
        let device = server.device(listed, &devices);
        // Another phone's trouble is not this one's.
        if is_of(&device, saved).await.unwrap_or(false) {
            return Ok(device);
        }
    }
    Err(why)
}

async fn is_of(device: &Device, saved: &Saved) -> Result<bool, ProvokeError> {
    let own = provoke::hardware_serial(device).await?;
    Ok(provoke::identity(device.serial(), &own) == saved.phone())
}

async fn restore_one(device: &Device, journals: &Journals) -> Result<Option<PutBack>, Failure> {
    let own = provoke::hardware_serial(device).await?;
    let phone = provoke::identity(device.serial(), &own);
    let _lock = journals.lock(phone)?;
    match journals.of(phone)? {
        Some(saved) => Ok(Some(provoke::put_back(device, journals, &saved).await?)),
        None => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_ours_in_a_timeline() {
        let step = Step {
            round: 1,
            action: "rotate:10".to_owned(),
            time: 3,
            of: 10,
            begin_ns: 5,
            end_ns: 9,
            pid: Some(7),
            rss_anon: None,
            effects: Vec::new(),
        };
        let folder = tempfile::tempdir().unwrap();
        let timeline = Timeline::open(folder.path()).unwrap();
        assert!(timeline.add(&step).is_none());
        let text = std::fs::read_to_string(folder.path().join(timeline::FILE)).unwrap();
        let (read, strange) = timeline::Timeline::parse(&text);
        assert_eq!((read.entries.as_slice(), strange), (&[entry(&step)][..], 0));
        assert!(text.contains("provoke rotate:10 (3 of 10)"), "{text}");
    }
}
