//! Interned data: from the producer's IDs to entries of [`Tables`], at once if all parts are known,
//! and at the end of the trace for late ones.
//!
//! IDs are valid within a *scope*: one generation of one sequence (`InternedData`, Android 11 and
//! later), or one chain of profile packets with its own tables (Android 10, one string table for
//! all). Within a scope the first definition of an ID is used; 0 means "none".

use super::allowance::pay;
use super::callstacks::{CallstackIds, Callstacks};
use super::iids::{IidMap, ScopeId};
use super::raw_strings::RawStrings;
use super::wire::{Fields, Value, WireError};
use heaptap_base::units::Allowance;
use heaptap_base::units::BuildId;
use heaptap_model::profile::{
    CallsiteId, Frame, FrameId, Health, Mapping, MappingId, StringId, Tables,
};
use std::collections::HashMap;

/// Format of the tables in their message.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    /// `InternedData`: a table for each kind of string.
    #[default]
    InternedData,
    /// `ProfilePacket` of Android 10: one string table for all kinds.
    ProfilePacket,
}

/// Content of a field of either message.
enum Table {
    Strings(usize),
    Mappings,
    Frames,
    Callstacks,
}

/// Memory of definitions and their lookup entries; a string takes more for each byte, and a
/// callstack for each frame.
const STRING: usize = 56;
const PER_BYTE_OF_STRING: usize = 3;
const MAPPING: usize = 160;
const FRAME: usize = 90;
const CALLSTACK: usize = 60;
const PER_FRAME: usize = 3;
/// A frame of a packed list takes one byte, and can become a node of the tree of stacks.
const PER_PACKED_FRAME: usize = 24;
/// Additional memory of a definition that waits for its parts.
const LATE: usize = 160;
/// Unwinders stop at a thousand frames, and no file path is longer than `PATH_MAX`.
const MAX_DEPTH: usize = 1 << 16;
const MAX_PATH_LENGTH: usize = 4096;

const TOO_DEEP: WireError = WireError {
    at: None,
    what: "too many frames in a callstack",
};

const BUILD_IDS: usize = 0;
const PATHS: usize = 1;
const SOURCES: usize = 2;
const FUNCTIONS: usize = 3;

impl Layout {
    #[inline]
    fn table(self, field: u32) -> Option<Table> {
        Some(match (self, field) {
            (Layout::InternedData, 16) => Table::Strings(BUILD_IDS),
            (Layout::InternedData, 17) => Table::Strings(PATHS),
            (Layout::InternedData, 18) => Table::Strings(SOURCES),
            (Layout::InternedData, 5) => Table::Strings(FUNCTIONS),
            (Layout::InternedData, 19) | (Layout::ProfilePacket, 4) => Table::Mappings,
            (Layout::InternedData, 6) | (Layout::ProfilePacket, 2) => Table::Frames,
            (Layout::InternedData, 7) | (Layout::ProfilePacket, 3) => Table::Callstacks,
            (Layout::ProfilePacket, 1) => Table::Strings(BUILD_IDS),
            _ => return None,
        })
    }
}

#[derive(Debug, Default)]
struct Scope {
    layout: Layout,
    strings: [IidMap; 4],
    mappings: IidMap,
    frames: IidMap,
    callstacks: CallstackIds,
    late: Late,
}

impl Scope {
    /// Returns the table of a kind of strings.
    fn table_of(&self, kind: usize) -> usize {
        match self.layout {
            Layout::InternedData => kind,
            Layout::ProfilePacket => 0,
        }
    }
}

/// Definitions by ID whose parts are not all known yet.
#[derive(Debug, Default)]
struct Late {
    mappings: HashMap<u64, RawMapping>,
    frames: HashMap<u64, RawFrame>,
    /// Frame IDs, root first.
    callstacks: HashMap<u64, Box<[u64]>>,
}

impl Late {
    fn count(&self) -> usize {
        self.mappings.len() + self.frames.len() + self.callstacks.len()
    }
}

/// Common definitions of the scopes of a run; the first one of each ID is used.
#[derive(Debug, Default)]
struct Shared {
    strings: [IidMap; 4],
    mappings: IidMap,
    frames: IidMap,
}

#[derive(Debug, Default, Clone)]
struct RawMapping {
    iid: Option<u64>,
    build_id: u64,
    path: Vec<u64>,
    start: u64,
    end: u64,
    exact_offset: u64,
    start_offset: u64,
    load_bias: u64,
}

#[derive(Debug, Default, Clone, Copy)]
struct RawFrame {
    iid: Option<u64>,
    name: u64,
    mapping: u64,
    rel_pc: u64,
    source: u64,
    line: u32,
}

/// All scopes of a trace, which fill one set of [`Tables`].
#[derive(Debug, Default)]
pub(super) struct Interning {
    scopes: Vec<Scope>,
    raw: RawStrings,
    /// Remaining memory for the trace.
    pub(super) allowance: Allowance,
    /// Reused for the frames of one callstack.
    stack: Vec<u32>,
}

impl Interning {
    /// Memory of a scope.
    pub(super) const SCOPE: usize = size_of::<Scope>() * 3 / 2;

    /// Opens a scope.
    pub(super) fn open(&mut self, layout: Layout) -> ScopeId {
        self.scopes.push(Scope {
            layout,
            ..Scope::default()
        });
        ScopeId(u32::try_from(self.scopes.len() - 1).expect("fewer scopes than bytes in memory"))
    }

    /// Returns whether a scope defines no callstack.
    pub(super) fn has_no_callstacks(&self, scope: ScopeId) -> bool {
        let scope = &self.scopes[scope.0 as usize];
        scope.callstacks.is_empty() && scope.late.callstacks.is_empty()
    }

    /// Adds all definitions of a message, in order. A definition with unknown parts is tried again
    /// at the end of the message, and then at the end of the trace.
    ///
    /// # Errors
    /// Returns an error if the message or an entry is damaged; all readable entries are added.
    pub(super) fn add(
        &mut self,
        scope: ScopeId,
        message: &[u8],
        tables: &mut Tables,
    ) -> Result<(), WireError> {
        let at = scope.0 as usize;
        let layout = self.scopes[at].layout;
        let mut early = Late::default();
        // Memory paid for those.
        let mut early_cost = 0;
        let outcome = each_field(message, |number, value| {
            let message = value.bytes();
            match layout.table(number) {
                Some(Table::Strings(kind)) => {
                    let (iid, text) = read_string(message)?;
                    if let Some(iid) = iid {
                        let cost = STRING + PER_BYTE_OF_STRING * text.len();
                        pay(&mut self.allowance, cost)?;
                        let id = self.raw.intern(text);
                        self.scopes[at].strings[kind].define(iid, id);
                    }
                }
                Some(Table::Mappings) => {
                    let raw = read_mapping(message)?;
                    if let Some(iid) = raw.iid {
                        pay(&mut self.allowance, MAPPING)?;
                        if !self.add_mapping(at, iid, &raw, tables) {
                            let waiting = LATE + 16 * raw.path.len();
                            pay(&mut self.allowance, waiting)?;
                            early_cost += waiting;
                            early.mappings.entry(iid).or_insert(raw);
                        }
                    }
                }
                Some(Table::Frames) => {
                    let raw = read_frame(message)?;
                    if let Some(iid) = raw.iid {
                        pay(&mut self.allowance, FRAME)?;
                        if !self.add_frame(at, iid, &raw, tables) {
                            pay(&mut self.allowance, LATE)?;
                            early_cost += LATE;
                            early.frames.entry(iid).or_insert(raw);
                        }
                    }
                }
                Some(Table::Callstacks) => {
                    self.add_callstack(at, message, tables, &mut early, &mut early_cost)?;
                }
                None => {}
            }
            Ok(())
        });
        self.scopes[at].callstacks.define_pushed(tables);
        let kept = self.scopes[at].late.count();
        self.retry(at, early, tables);
        if self.scopes[at].late.count() == kept {
            self.allowance.give_back(early_cost);
        }
        outcome
    }

    /// Defines a mapping; returns whether it is defined now or was before.
    fn add_mapping(&mut self, at: usize, iid: u64, raw: &RawMapping, tables: &mut Tables) -> bool {
        if self.scopes[at].late.mappings.contains_key(&iid) {
            return true;
        }
        let id = self.mapping(at, None, raw, tables, false);
        if let Some(id) = id {
            self.scopes[at].mappings.define(iid, id.0);
        }
        id.is_some()
    }

    /// Defines a frame; returns whether it is defined now or was before.
    fn add_frame(&mut self, at: usize, iid: u64, raw: &RawFrame, tables: &mut Tables) -> bool {
        let late = &self.scopes[at].late.frames;
        if !late.is_empty() && late.contains_key(&iid) {
            return true;
        }
        let id = self.frame(at, None, raw, tables, false);
        if let Some(id) = id {
            self.scopes[at].frames.define(iid, id.0);
        }
        id.is_some()
    }

    /// Adds a callstack (`1: iid, 2: frame ids root first`): the bulk of most traces. A callstack
    /// with unknown frames is added to `early`, and the memory paid for it to `early_cost`.
    fn add_callstack(
        &mut self,
        at: usize,
        message: &[u8],
        tables: &mut Tables,
        early: &mut Late,
        early_cost: &mut usize,
    ) -> Result<(), WireError> {
        let stack = &mut self.stack;
        stack.clear();
        let scope = &mut self.scopes[at];
        let mut iid = None;
        let mut known = true;
        let (mut frames, mut packed) = (0usize, 0usize);
        let mut fields = Fields::new(message);
        while let Some((number, value)) = fields.next()? {
            match (number, value) {
                (1, _) => iid = Some(value.number()),
                (2, Value::Varint(frame)) => {
                    frames += 1;
                    match scope.frames.get(frame) {
                        Some(id) if frames <= MAX_DEPTH => stack.push(id),
                        Some(_) => {}
                        None => known = false,
                    }
                }
                (2, _) => value.numbers(|frame| {
                    frames += 1;
                    packed += 1;
                    match scope.frames.get(frame) {
                        Some(id) if frames <= MAX_DEPTH => stack.push(id),
                        Some(_) => {}
                        None => known = false,
                    }
                })?,
                _ => {}
            }
        }
        let Some(iid) = iid else { return Ok(()) };
        let is_too_deep = frames > MAX_DEPTH;
        let frames = frames.min(MAX_DEPTH);
        let cost = CALLSTACK + PER_FRAME * frames + PER_PACKED_FRAME * packed.min(MAX_DEPTH);
        if frames == 0 {
            // A callstack without frames is not the stack of any sample.
            return Ok(());
        }
        pay(&mut self.allowance, cost)?;
        if !scope.late.callstacks.is_empty() && scope.late.callstacks.contains_key(&iid) {
            return Ok(());
        }
        if known && !stack.is_empty() {
            let leaf_first = stack.iter().rev().copied();
            scope.callstacks.push(iid, leaf_first, tables);
        } else {
            let cost = LATE + 16 * frames;
            pay(&mut self.allowance, cost)?;
            *early_cost += cost;
            let mut all = Vec::with_capacity(frames);
            each_field(message, |number, value| match number {
                2 => value.numbers(|frame| {
                    if all.len() < frames {
                        all.push(frame);
                    }
                }),
                _ => Ok(()),
            })?;
            early
                .callstacks
                .entry(iid)
                .or_insert(all.into_boxed_slice());
        }
        match is_too_deep {
            true => Err(TOO_DEEP),
            false => Ok(()),
        }
    }

    /// Retries the incomplete definitions of a message; those still incomplete wait for the end of
    /// the trace.
    fn retry(&mut self, at: usize, early: Late, tables: &mut Tables) {
        for (iid, raw) in sorted(early.mappings) {
            if !self.add_mapping(at, iid, &raw, tables) {
                self.scopes[at].late.mappings.insert(iid, raw);
            }
        }
        for (iid, raw) in sorted(early.frames) {
            if !self.add_frame(at, iid, &raw, tables) {
                self.scopes[at].late.frames.insert(iid, raw);
            }
        }
        for (iid, frames) in sorted(early.callstacks) {
            let scope = &mut self.scopes[at];
            let known = frames.iter().rev().map(|&frame| scope.frames.get(frame));
            match known.collect::<Option<Vec<u32>>>() {
                Some(stack) if !stack.is_empty() => {
                    let id = tables.intern_callsite(&stack).0;
                    scope.callstacks.define(iid, CallsiteId(id));
                }
                _ => drop(scope.late.callstacks.entry(iid).or_insert(frames)),
            }
        }
    }

    /// Looks up a string in a scope, then in its run; iid 0 is the empty string.
    fn string(&self, at: usize, run: Option<&Shared>, kind: usize, iid: u64) -> Option<u32> {
        let scope = &self.scopes[at];
        let own = scope.table_of(kind);
        scope.strings[own]
            .get(iid)
            .or_else(|| run?.strings[kind].get(iid))
            .or((iid == 0).then_some(RawStrings::EMPTY))
    }

    /// Builds a mapping; `None` if a part is unknown, unless `settle` accepts it anyway.
    fn mapping(
        &mut self,
        at: usize,
        run: Option<&Shared>,
        raw: &RawMapping,
        tables: &mut Tables,
        settle: bool,
    ) -> Option<MappingId> {
        let build_id = match self.string(at, run, BUILD_IDS, raw.build_id) {
            Some(id) => BuildId(self.raw.get(id).to_vec()),
            None if settle => BuildId::default(),
            None => return None,
        };
        let mut path: Vec<u8> = Vec::new();
        for &part in &raw.path {
            match self.string(at, run, PATHS, part) {
                Some(_) if path.len() > MAX_PATH_LENGTH => break,
                Some(id) => {
                    path.push(b'/');
                    path.extend_from_slice(self.raw.get(id));
                }
                None if settle => break,
                None => return None,
            }
        }
        // Chrome stores a full path as one part.
        let path = if path.starts_with(b"//") {
            &path[1..]
        } else {
            &path[..]
        };
        // Many mappings can have one long path or build ID.
        if !self.allowance.take(path.len() + build_id.0.len()) {
            return None;
        }
        let path = tables.intern_bytes(path);
        Some(tables.intern_mapping(Mapping {
            path,
            build_id,
            start: raw.start,
            end: raw.end,
            exact_offset: raw.exact_offset,
            start_offset: raw.start_offset,
            load_bias: raw.load_bias,
        }))
    }

    fn frame(
        &mut self,
        at: usize,
        run: Option<&Shared>,
        raw: &RawFrame,
        tables: &mut Tables,
        settle: bool,
    ) -> Option<FrameId> {
        let text = |kind, iid| {
            let known = self.string(at, run, kind, iid);
            known.or(settle.then_some(RawStrings::EMPTY))
        };
        let mapping = if raw.mapping == 0 {
            None
        } else {
            let own = self.scopes[at].mappings.get(raw.mapping);
            let found = own.or_else(|| run?.mappings.get(raw.mapping));
            if found.is_none() && !settle {
                return None;
            }
            found.map(MappingId)
        };
        let name = text(FUNCTIONS, raw.name)?;
        let (file, line) = if raw.mapping == 0 {
            (text(SOURCES, raw.source)?, raw.line)
        } else {
            (RawStrings::EMPTY, 0)
        };
        let name = self.raw.name(name, tables);
        let file = self.raw.name(file, tables);
        Some(tables.intern_frame(Frame {
            mapping,
            rel_pc: raw.rel_pc,
            name,
            file,
            line,
        }))
    }

    /// Resolves late definitions with all scopes of a run, starting with their own.
    pub(super) fn settle(&mut self, run: &[ScopeId], tables: &mut Tables, health: &mut Health) {
        let scopes: Vec<usize> = run.iter().map(|scope| scope.0 as usize).collect();
        if !scopes.iter().any(|&at| self.scopes[at].late.count() != 0) {
            return;
        }
        let mut shared = Shared::default();
        // A single scope shares nothing.
        let sharing = if scopes.len() > 1 { &scopes[..] } else { &[] };
        for &at in sharing {
            let scope = &self.scopes[at];
            for (kind, strings) in shared.strings.iter_mut().enumerate() {
                strings.define_all(&scope.strings[scope.table_of(kind)]);
            }
        }
        for &at in &scopes {
            for (iid, raw) in sorted(std::mem::take(&mut self.scopes[at].late.mappings)) {
                if let Some(id) = self.mapping(at, Some(&shared), &raw, tables, true) {
                    self.scopes[at].mappings.define(iid, id.0);
                }
            }
        }
        for &at in sharing {
            shared.mappings.define_all(&self.scopes[at].mappings);
        }
        for &at in &scopes {
            for (iid, raw) in sorted(std::mem::take(&mut self.scopes[at].late.frames)) {
                let frame = self.frame(at, Some(&shared), &raw, tables, false);
                let frame = frame.or_else(|| {
                    health.lost_frames += 1;
                    self.frame(at, Some(&shared), &raw, tables, true)
                });
                if let Some(id) = frame {
                    self.scopes[at].frames.define(iid, id.0);
                }
            }
        }
        for &at in sharing {
            shared.frames.define_all(&self.scopes[at].frames);
        }
        for &at in &scopes {
            for (iid, frames) in sorted(std::mem::take(&mut self.scopes[at].late.callstacks)) {
                if frames.is_empty() {
                    continue;
                }
                let lost = lost_frame(tables, LOST_FRAME);
                let own = &self.scopes[at].frames;
                let known = |frame| own.get(frame).or_else(|| shared.frames.get(frame));
                let stack: Vec<u32> = frames
                    .iter()
                    .rev()
                    .map(|&frame| {
                        known(frame).unwrap_or_else(|| {
                            health.lost_frames += 1;
                            lost.0
                        })
                    })
                    .collect();
                let id = tables.intern_callsite(&stack).0;
                self.scopes[at].callstacks.define(iid, CallsiteId(id));
            }
        }
    }

    /// Ends interning and returns the remaining data: callstack IDs by scope.
    pub(super) fn into_callstacks(self) -> Callstacks {
        Callstacks::new(self.scopes.into_iter().map(|scope| scope.callstacks))
    }
}

/// Name of a frame that the trace refers to but does not define.
pub(super) const LOST_FRAME: &str = "[frame lost]";

/// Returns the frame for lost data.
pub(super) fn lost_frame(tables: &mut Tables, name: &str) -> FrameId {
    let name = tables.intern_str(name);
    tables.intern_frame(Frame {
        mapping: None,
        rel_pc: 0,
        name,
        file: StringId::default(),
        line: 0,
    })
}

fn sorted<T>(map: HashMap<u64, T>) -> Vec<(u64, T)> {
    let mut entries: Vec<_> = map.into_iter().collect();
    entries.sort_unstable_by_key(|entry| entry.0);
    entries
}

/// Calls `each` for every field; continues after an error of `each`, and returns the first one.
#[inline]
fn each_field<'a>(
    message: &'a [u8],
    mut each: impl FnMut(u32, Value<'a>) -> Result<(), WireError>,
) -> Result<(), WireError> {
    let mut fields = Fields::new(message);
    let mut outcome = Ok(());
    loop {
        match fields.next() {
            Ok(Some((number, value))) => {
                if let Err(error) = each(number, value)
                    && outcome.is_ok()
                {
                    outcome = Err(error);
                }
            }
            Ok(None) => return outcome,
            Err(error) => return Err(error),
        }
    }
}

fn read_string(message: &[u8]) -> Result<(Option<u64>, &[u8]), WireError> {
    let (mut iid, mut text) = (None, &[][..]);
    let mut fields = Fields::new(message);
    while let Some((number, value)) = fields.next()? {
        match number {
            1 => iid = Some(value.number()),
            2 => text = value.bytes(),
            _ => {}
        }
    }
    Ok((iid, text))
}

fn read_mapping(message: &[u8]) -> Result<RawMapping, WireError> {
    let mut raw = RawMapping::default();
    let mut fields = Fields::new(message);
    while let Some((number, value)) = fields.next()? {
        match number {
            1 => raw.iid = Some(value.number()),
            2 => raw.build_id = value.number(),
            3 => raw.start_offset = value.number(),
            4 => raw.start = value.number(),
            5 => raw.end = value.number(),
            6 => raw.load_bias = value.number(),
            7 => value.numbers(|part| {
                if raw.path.len() < MAX_PATH_LENGTH {
                    raw.path.push(part);
                }
            })?,
            8 => raw.exact_offset = value.number(),
            _ => {}
        }
    }
    Ok(raw)
}

fn read_frame(message: &[u8]) -> Result<RawFrame, WireError> {
    let mut raw = RawFrame::default();
    let mut fields = Fields::new(message);
    while let Some((number, value)) = fields.next()? {
        match number {
            1 => raw.iid = Some(value.number()),
            2 => raw.name = value.number(),
            3 => raw.mapping = value.number(),
            4 => raw.rel_pc = value.number(),
            5 => raw.source = value.number(),
            6 => raw.line = value.number() as u32,
            _ => {}
        }
    }
    Ok(raw)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made::bytes as field;

    #[test]
    fn what_came_late_is_found_in_its_run_and_first_in_its_scope() {
        let mut interning = Interning::default();
        let (mut tables, mut health) = (Tables::default(), Health::default());
        // In a large number of scopes, the middle one defines the frame and all others only refer
        // to it.
        let count = 20_000;
        let run: Vec<ScopeId> = (0..count)
            .map(|_| interning.open(Layout::InternedData))
            .collect();
        let callstack = field(7, &[8, 1, 16, 9]);
        let function = [vec![8, 5], field(2, b"f")].concat();
        let frame = [field(5, &function), field(6, &[8, 9, 16, 5])].concat();
        for (n, &scope) in run.iter().enumerate() {
            if n == count / 2 {
                interning.add(scope, &frame, &mut tables).unwrap();
            }
            interning.add(scope, &callstack, &mut tables).unwrap();
        }
        interning.settle(&run, &mut tables, &mut health);
        assert_eq!(health.lost_frames, 0);
        let callstacks = interning.into_callstacks();
        let site = callstacks.get(run[0], 1).unwrap();
        assert!(run.iter().all(|&s| callstacks.get(s, 1) == Some(site)));
        let all = callstacks.joined(&run);
        assert_eq!(all.len(), 1);
        assert_eq!(callstacks.callsite(all[&1]), site);
    }
}
