//! Libraries of a recording that need symbolization: each mapped library with a frame without
//! lines, with the addresses of these frames.

use heaptap_base::units::BuildId;
use heaptap_model::names::java_code;
use heaptap_model::profile::{FrameId, Line, MappingId, Recording, StringId};
use std::collections::BTreeMap;

/// Library with frames to symbolize. Several memory mappings of a file are one library if they
/// agree on the location of its code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Library {
    /// Recorded path on the device: `/system/lib64/libc.so`,
    /// `/data/app/…/base.apk!libfoo.so`, `/[vdso]`.
    pub path: String,
    /// GNU build ID; empty if the recording does not have one.
    pub build_id: BuildId,
    /// Offset of the code in the ELF (`exact_offset - start_offset`), in bytes.
    pub offset: u64,
    /// Load bias computed by the unwinder.
    pub load_bias: u64,
    /// Sorted `rel_pc` values of the frames, without duplicates.
    pub addresses: Vec<u64>,
}

/// Returns the libraries with frames without lines, in order of path and build ID. This includes
/// frames named only by the unwinder, because their lines and inlined calls are still missing, and
/// frames whose symbolizer did not find a name. Named frames of compiled Java are left out: files
/// do not have lines for them, and their names are for an R8 mapping to translate.
pub fn wanted(recording: &Recording) -> Vec<Library> {
    with_frames(recording, |lines| {
        lines.iter().all(|l| l.function == StringId::default())
    })
}

/// Returns these libraries, and those with frames whose lines do not have a file: they were
/// symbolized with less information than might be available now.
pub fn improvable(recording: &Recording) -> Vec<Library> {
    with_frames(recording, |lines| {
        lines.iter().all(|l| l.file == StringId::default())
    })
}

/// Returns the libraries of frames whose lines satisfy the condition.
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
        // A Java frame named by the runtime.
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
