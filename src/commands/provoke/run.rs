//! `provoke`: runs scripted actions on an app, restores the device afterwards, and adds each action
//! to the timeline of a recording.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use crate::recording::companion::TimelineFile;
use heaptap_adb::{Address, Device, DeviceState, Selector, Server};
use heaptap_base::error::{ErrorClass, Failure};
use heaptap_capture::provoke::{
    self, Cancel, CaptureError, Event, Journals, Plan, PutBack, Report, Saved, Step,
};
use heaptap_capture::session;
use heaptap_model::timeline::{self, Entry, HeaptapAction, Observation};
use heaptap_results::whole_file::unless_link;

/// Returns the timeline entry of a step.
pub fn entry(step: &Step) -> Entry {
    Entry {
        boot_ns: step.begin_ns,
        pid: step.pid.unwrap_or(0),
        cost: None,
        seen: Observation::HeaptapAction(HeaptapAction {
            what: step.what(),
            until_ns: step.end_ns,
        }),
    }
}

/// Opens a timeline file, or that of a recording directory. Others can append to it concurrently.
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
            format!("cannot add to {}: it is not a timeline", path.display()),
        )
        .with_help(format!(
            "name a recording directory, its {}, or a new file with `--timeline`",
            timeline::FILE
        )));
    }
    TimelineFile::append(&path).map_err(|error| unwritable(&path, &error))
}

/// Start of every timeline entry.
const BEGIN: &[u8] = b"{\"boot_ns\":";

/// Returns whether steps can be added to the file at `path`: it does not exist, is empty, or begins
/// with an entry, which might be incomplete if its recording was killed.
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
    .with_help("name a file in a writable directory with free space, or leave out `--timeline`")
}

/// Runs a plan, and adds its steps to `timeline` if one is given.
///
/// # Errors
/// Returns the error that ended the plan. The device is restored unless the failure says otherwise.
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
    // Steps that did not fit on a full disk were retried with each later step; retry once more.
    match timeline.finish() {
        Ok(0) => Ok(report),
        Ok(lost) => Err(unwritable(
            timeline.path(),
            &io::Error::other(format!(
                "{} did not fit",
                heaptap_base::units::counted(lost, "step", "steps")
            )),
        )),
        Err(error) => Err(unwritable(timeline.path(), &error)),
    }
}

/// Restores what earlier runs changed, on the selected device or on all devices with journals.
///
/// # Errors
/// Returns the error of the first device that cannot be restored. Its journal stays.
pub async fn restore(
    server: &Server,
    selector: &Selector,
    journals: &Journals,
) -> Result<Vec<PutBack>, Failure> {
    if *selector != Selector::Only {
        let device = server.select(selector).await?;
        return Ok(provoke::restore(&device, journals).await?);
    }
    let mut done = Vec::new();
    let mut failed = None;
    // A device can have two journals, which are restored together.
    let mut left = journals.all();
    left.sort_by_key(Saved::phone);
    left.dedup_by(|a, b| a.phone() == b.phone());
    for saved in left {
        let put_back = match find(server, &saved).await {
            Ok(device) => provoke::restore(&device, journals)
                .await
                .map_err(Failure::from),
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

/// Finds the device of a journal: by its former serial, otherwise by its hardware serial on any
/// connection. An emulator of another server is looked for there.
async fn find(server: &Server, saved: &Saved) -> Result<Device, Failure> {
    let own;
    let server = match saved.phone() == format!("{}@{}", saved.serial, saved.server) {
        true => {
            own = Server::at(Address::parse(&saved.server, "the journal")?);
            &own
        }
        false => server,
    };
    let noted = Selector::Serial(saved.serial.clone());
    let why = match server.select(&noted).await {
        Ok(device) if is_of(&device, saved).await? => return Ok(device),
        Ok(device) => CaptureError::other_device(device.serial(), &saved.phone()).into(),
        Err(error) => Failure::from(error),
    };
    let devices = server.devices().await?;
    let ready = devices.iter().filter(|d| d.state == DeviceState::Device);
    for listed in ready.filter(|d| d.serial != saved.serial) {
        let device = server.device(listed, &devices);
        // An error of another device does not matter here.
        if is_of(&device, saved).await.unwrap_or(false) {
            return Ok(device);
        }
    }
    Err(why)
}

async fn is_of(device: &Device, saved: &Saved) -> Result<bool, CaptureError> {
    let own = provoke::hardware_serial(device).await?;
    let server = device.server().address();
    Ok(session::identity(device.serial(), &own, &server) == saved.phone())
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
        let directory = tempfile::tempdir().unwrap();
        open(directory.path()).unwrap().add(&entry(&step));
        let text = std::fs::read_to_string(directory.path().join(timeline::FILE)).unwrap();
        let (read, strange) = timeline::Timeline::parse(&text);
        assert_eq!((read.entries.as_slice(), strange), (&[entry(&step)][..], 0));
        assert!(text.contains("provoke rotate:10 (3 of 10)"), "{text}");
    }

    #[test]
    fn nothing_is_added_to_what_is_no_timeline() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
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
