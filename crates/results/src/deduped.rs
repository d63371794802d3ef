//! Java frames marked `[DEDUPED]`: ART stores identical machine code of several methods once, under
//! the name of one of them. Finds such frames in dumps and reports them once.

use super::findings::{DEDUPED_FRAMES, Finding, describe};
use heaptap_model::profile::{CallsiteId, FrameId, HeapDump, Recording};

/// ART's mark: a prefix of the name, in old releases a suffix.
const MARK: &str = "[DEDUPED]";

/// Callsites of a recording with frames that several methods share.
#[derive(Debug, Default)]
pub struct Deduped {
    /// Indexed by callsite; empty if there are no such frames.
    through: Vec<bool>,
}

impl Deduped {
    /// Checks the names of all frames, and marks the callsites that contain a deduplicated one.
    pub fn from_recording(recording: &Recording) -> Deduped {
        let tables = &recording.tables;
        let is_marked = |at: u32| {
            let id = FrameId(at);
            let recorded = tables.string(tables.frame(id).name);
            recorded.contains(MARK)
        };
        let marked: Vec<bool> = (0..tables.frames().len() as u32).map(is_marked).collect();
        if !marked.contains(&true) {
            return Deduped::default();
        }
        let leads_through = |callsite| {
            let mut frames = tables.callsite(CallsiteId(callsite));
            frames.any(|frame| marked[frame.0 as usize])
        };
        Deduped {
            through: (0..tables.callsite_count() as u32)
                .map(leads_through)
                .collect(),
        }
    }

    /// Returns the finding for a dump; `None` if it has no such callsite.
    pub fn finding(&self, dump: &HeapDump) -> Option<Finding> {
        if self.through.is_empty() {
            return None;
        }
        let mut callsites = dump.samples.iter().map(|(callsite, _)| callsite);
        callsites.any(|callsite| self.through[callsite.0 as usize]).then(|| {
            let message = format!(
                "{}: callstacks contain frames marked {MARK}. ART stores identical machine code of \
                 several methods once, under the name of one of them, which might not be the \
                 method that was called.",
                describe(dump),
            );
            Finding::new(DEDUPED_FRAMES, None, message).with_pid(dump.pid)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use heaptap_model::profile::{Figures, Frame, StringId};

    #[test]
    fn shared_code_is_told_of_where_a_dump_leads_through_it() {
        let mut recording = Recording::default();
        let tables = &mut recording.tables;
        let mut frame = |name: &str| {
            let name = tables.intern_str(name);
            let frame = Frame {
                mapping: None,
                rel_pc: 0,
                name,
                file: StringId::default(),
                line: 0,
            };
            tables.intern_frame(frame).0
        };
        let (shared, plain) = (frame("[DEDUPED] a.B.?"), frame("a.B.c"));
        let through = tables.intern_callsite(&[plain, shared]);
        let past = tables.intern_callsite(&[plain]);
        let deduped = Deduped::from_recording(&recording);
        let figures = |space| Figures {
            space,
            ..Figures::default()
        };
        let mut dump = HeapDump {
            pid: 7,
            heap: "libc.malloc".to_owned(),
            samples: vec![(through, figures(1_000)), (past, figures(3_000))],
            ..HeapDump::default()
        };
        let said = deduped.finding(&dump).unwrap().message;
        assert!(
            said.starts_with("process 7: ") && said.contains("[DEDUPED]"),
            "{said}"
        );
        dump.samples.remove(0);
        assert_eq!(deduped.finding(&dump), None);
        assert_eq!(
            Deduped::from_recording(&Recording::default()).finding(&dump),
            None
        );
    }
}
