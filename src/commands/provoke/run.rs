//! `provoke`: scripted actions on an app, the phone put back afterwards, and each action as an
//! entry in a recording's timeline.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use crate::device::{Device, DeviceState, Selector, Server};
use crate::error::{ErrorClass, Failure};
use crate::provoke::{
    self, Cancel, Event, Journals, Plan, ProvokeError, PutBack, Report, Saved, Step,
};
use crate::recording::companion::TimelineFile;
use crate::results::whole_file::unless_link;
use crate::session::Store;
use crate::timeline::{self, Entry, HeaptapAction, Observation};

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
        seen: Observation::Ours(HeaptapAction {
            what: step.what(),
            until_ns: step.end_ns,
        }),
    }
}

/// A file, or that of a recording's folder: others may add to it at the same time.
fn open(path: &Path) -> Result<TimelineFile, Failure> {
    let path = match path.is_dir() {
        true => {
            let path = path.join(timeline::FILE);
            unless_link(&path).map_err(|error| unwritable(&path, &error))?;
            path
        }
        false => path.to_owned(),
    };
    if !is_timeline(&path).map_err(|error| unwritable(&path, &error))? {
        return Err(Failure::new(
            ErrorClass::Usage,
            "not-a-timeline",
            format!("{} is no timeline: nothing is added to it", path.display()),
        )
        .with_help(format!(
            "give --timeline a recording's folder, its {}, or a new file",
            timeline::FILE
        )));
    }
    TimelineFile::append(&path).map_err(|error| unwritable(&path, &error))
}

/// With what every entry of a timeline begins.
const BEGIN: &[u8] = b"{\"boot_ns\":";

/// Whether steps may be added to the file at `path`: there is none, it is empty, or begins with
/// an entry, which may be torn where its recording was killed.
fn is_timeline(path: &Path) -> io::Result<bool> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        Err(error) => return Err(error),
    };
    let mut head = Vec::new();
    file.take(BEGIN.len() as u64).read_to_end(&mut head)?;
    Ok(BEGIN.starts_with(&head))
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
    let timeline = timeline.map(open).transpose()?;
    let tell = |event: &Event| {
        if let (Some(timeline), Event::Step(step)) = (&timeline, event) {
            timeline.add(&entry(step));
        }
        tell(event);
    };
    let report = provoke::run(device, plan, journals, cancel, &tell).await?;
    let Some(timeline) = timeline else {
        return Ok(report);
    };
    // What a full disk did not take was tried again with each later step, and is once more.
    match timeline.finish() {
        Ok(0) => Ok(report),
        Ok(lost) => Err(unwritable(
            timeline.path(),
            &io::Error::other(format!("{lost} steps did not fit")),
        )),
        Err(error) => Err(unwritable(timeline.path(), &error)),
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
            again: false,
            begin_ns: 5,
            end_ns: 9,
            pid: Some(7),
            rss_anon: None,
            effects: Vec::new(),
        };
        let folder = tempfile::tempdir().unwrap();
        open(folder.path()).unwrap().add(&entry(&step));
        let text = std::fs::read_to_string(folder.path().join(timeline::FILE)).unwrap();
        let (read, strange) = timeline::Timeline::parse(&text);
        assert_eq!((read.entries.as_slice(), strange), (&[entry(&step)][..], 0));
        assert!(text.contains("provoke rotate:10 (3 of 10)"), "{text}");
    }

    #[test]
    fn nothing_is_added_to_what_is_no_timeline() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        for (held, is_taken) in [
            (&b"<html></html>"[..], false),
            (b"\x1f\x8b\x08", false),
            (b"\n", false),
            (b"{\"event\":1}\n", false),
            (b"", true),
            (b"{\"boot", true),
            (b"{\"boot_ns\":5,\"pid\":0", true),
        ] {
            std::fs::write(&path, held).unwrap();
            let opened = open(&path);
            assert_eq!(opened.is_ok(), is_taken, "{held:?}");
            if let Err(refused) = opened {
                assert_eq!(refused.kind, "not-a-timeline");
                assert_eq!(std::fs::read(&path).unwrap(), held);
            }
        }
    }
}
