//! Java names for the frames of a trace: by the maps that it holds, and by mapping files.

use crate::deobfuscate::{self, AppMap, Applied, MapSource, Scope};
use crate::trace::{Surveyed, TraceError};
use std::sync::Arc;

/// Names frames by what the trace itself says was renamed. Reads its samples where it says
/// anything.
///
/// # Errors
/// Where the trace can't be read.
pub fn name_frames(surveyed: &mut Surveyed) -> Result<Applied, TraceError> {
    let packets = Arc::clone(surveyed.name_maps());
    let maps: Vec<AppMap> = packets
        .iter()
        .filter(|(package, _)| !package.is_empty())
        .map(|(package, map)| AppMap {
            scope: Scope::Package(package.to_owned()),
            source: MapSource::Packets(map),
        })
        .collect();
    if maps.is_empty() {
        return Ok(Applied::default());
    }
    let seen = surveyed.frames_by_process()?;
    let recording = surveyed.recording_mut();
    Ok(deobfuscate::apply(recording, &seen, &maps))
}
