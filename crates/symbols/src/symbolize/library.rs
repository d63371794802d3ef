//! What a recording wants names for: each mapped library with a frame that has no lines yet,
//! and the addresses of those frames.

use heaptap_model::names::java_code;
use heaptap_model::profile::{FrameId, Line, MappingId, Recording, StringId};
use heaptap_model::units::BuildId;
use std::collections::BTreeMap;

/// A library some of whose frames want names. Several mappings of one file make one library as
/// long as they agree on where its code lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Library {
    /// Path on the device as the recording has it: `/system/lib64/libc.so`,
    /// `/data/app/…/base.apk!libfoo.so`, `/[vdso]`.
    pub path: String,
    /// GNU build ID; empty where the recording has none.
    pub build_id: BuildId,
    /// Offset of the code in the ELF (`exact_offset - start_offset`), in bytes.
    pub offset: u64,
    /// The load bias that the unwinder computed.
    pub load_bias: u64,
    /// `rel_pc` of the frames, sorted, each once.
    pub addresses: Vec<u64>,
}

/// The libraries with frames without lines, in order of path and build ID. A frame that the
/// unwinder named but nobody symbolized is among them: lines and inlined calls are still to be
/// had. So is one whose symbolizer found no name. A named frame of compiled Java is not: no file
/// of it tells lines, and its name there is the one that a mapping file is to translate.
pub fn wanted(recording: &Recording) -> Vec<Library> {
    with_frames(recording, |lines| {
        lines.iter().all(|l| l.function == StringId::default())
    })
}

/// The same, and frames whose lines tell no file: what somebody symbolized with less than there
/// may be now.
pub fn improvable(recording: &Recording) -> Vec<Library> {
    with_frames(recording, |lines| {
        lines.iter().all(|l| l.file == StringId::default())
    })
}

/// The libraries of frames with such lines.
fn with_frames(recording: &Recording, are_wanted: impl Fn(&[Line]) -> bool) -> Vec<Library> {
    let tables = &recording.tables;
    let is_java: Vec<bool> = tables
        .mappings()
        .iter()
        .map(|mapping| java_code(tables.string(mapping.path)).is_some())
        .collect();
    let mut found: BTreeMap<(&str, &[u8], u64, u64), Vec<u64>> = BTreeMap::new();
    for (at, frame) in tables.frames().iter().enumerate() {
        let Some(MappingId(mapping)) = frame.mapping else {
            continue;
        };
        let is_named_java = is_java[mapping as usize] && frame.name != StringId::default();
        if is_named_java || !are_wanted(recording.symbols.lines(FrameId(at as u32))) {
            continue;
        }
        let mapping = &tables.mappings()[mapping as usize];
        let key = (
            tables.string(mapping.path),
            mapping.build_id.0.as_slice(),
            mapping.exact_offset.wrapping_sub(mapping.start_offset),
            mapping.load_bias,
        );
        found.entry(key).or_default().push(frame.rel_pc);
    }
    let libraries = found.into_iter();
    libraries
        .map(|((path, build_id, offset, load_bias), mut addresses)| {
            addresses.sort_unstable();
            addresses.dedup();
            Library {
                path: path.to_owned(),
                build_id: BuildId(build_id.to_vec()),
                offset,
                load_bias,
                addresses,
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use heaptap_model::profile::{Frame, Mapping};

    #[test]
    fn a_library_is_wanted_once_with_the_addresses_that_have_no_lines() {
        let mut recording = Recording::default();
        let tables = &mut recording.tables;
        let path = tables.intern_str("/lib/liba.so");
        let mut mapping = Mapping {
            path,
            build_id: BuildId(vec![1, 2]),
            start: 0x1000,
            end: 0x9000,
            exact_offset: 0x3000,
            start_offset: 0x1000,
            load_bias: 0x10,
        };
        let first = tables.intern_mapping(mapping.clone());
        mapping.start = 0x5000;
        let second = tables.intern_mapping(mapping);
        let frame = |mapping, rel_pc| Frame {
            mapping: Some(mapping),
            rel_pc,
            name: StringId::default(),
            file: StringId::default(),
            line: 0,
        };
        let known = tables.intern_frame(frame(first, 0x40));
        for (mapping, rel_pc) in [(second, 0x30), (first, 0x20), (second, 0x20)] {
            tables.intern_frame(frame(mapping, rel_pc));
        }
        tables.intern_frame(Frame {
            mapping: None,
            ..frame(first, 1)
        });
        // Java that the runtime named.
        let name = tables.intern_str("a.b.c");
        let path_of_java = tables.intern_str("/data/app/x/oat/arm64/base.odex");
        let java = tables.intern_mapping(Mapping {
            path: path_of_java,
            build_id: BuildId(vec![3]),
            ..Mapping::default()
        });
        tables.intern_frame(Frame {
            name,
            ..frame(java, 0x50)
        });
        let line = Line {
            function: path,
            linkage: path,
            file: path,
            line: 1,
        };
        let row = recording.symbols.add_lines(&[line]).unwrap();
        recording.symbols.set_lines(known, row);
        let unknown = Line {
            function: StringId::default(),
            ..line
        };
        let row = recording.symbols.add_lines(&[unknown]).unwrap();
        recording.symbols.set_lines(FrameId(1), row);
        let expected = Library {
            path: "/lib/liba.so".to_owned(),
            build_id: BuildId(vec![1, 2]),
            offset: 0x2000,
            load_bias: 0x10,
            addresses: vec![0x20, 0x30],
        };
        assert_eq!(wanted(&recording), [expected]);
    }
}
