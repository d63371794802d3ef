//! Frames of a stack below its nearest remaining caller: their libraries, and the owner of the memory.

use heaptap_model::profile::packed;
use heaptap_model::stacks::{Function, Kind, LibraryId, StackTable};
use std::sync::Arc;

/// No callsite or frame.
pub(super) const NONE: u32 = u32::MAX;

/// Library with its visibility: always, or only with the runtime or with allocators.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key(pub(super) u32);

impl Key {
    pub(super) const PER_LIBRARY: u32 = 3;

    fn from_function(function: &Function) -> Key {
        let visible = match function.kind {
            Kind::Plain | Kind::Java | Kind::Class => 0,
            Kind::Runtime => 1,
            Kind::Allocator => 2,
        };
        Key(function.library.0 * Key::PER_LIBRARY + visible)
    }

    pub(super) fn library(self) -> LibraryId {
        LibraryId(self.0 / Key::PER_LIBRARY)
    }

    pub(super) fn kind(self) -> Kind {
        [Kind::Plain, Kind::Runtime, Kind::Allocator][(self.0 % Key::PER_LIBRARY) as usize]
    }
}

/// Maximum number of libraries on a stack, more than any real one has. Further libraries are not
/// distinguished in sums, because time depends on their number.
const MAX_LIBRARIES: usize = 256;

/// Omitted frames of a stack.
#[derive(Debug, Clone, Copy)]
pub(super) struct Omitted {
    /// Allocating frame.
    pub(super) frame: u32,
    /// Frame that owns the memory: not an allocator's, and the runtime's only if there is no other.
    /// [`NONE`] if all omitted frames are allocators'.
    pub(super) owner: u32,
    /// Library that owns the memory. It comes last, so it has its bytes even if functions are
    /// omitted.
    pub(super) last: Key,
}

/// Reads stacks. Clones are for other threads.
#[derive(Clone)]
pub(super) struct Walk {
    /// By frame.
    keys: Arc<[Key]>,
    /// By key, the number of the last stack or remaining callsite with the library.
    seen: Vec<u32>,
    /// The last one of these numbers.
    number: u32,
    caller: Caller,
    libraries: Vec<Key>,
}

/// Remaining callsite of the last stack.
#[derive(Clone)]
struct Caller {
    id: u32,
    number: u32,
    /// Number of its libraries.
    libraries: usize,
}

impl Walk {
    pub(super) fn from_table(table: &StackTable) -> Walk {
        let functions = table.functions();
        let frames = table.frames().iter();
        Walk {
            keys: frames
                .map(|frame| Key::from_function(&functions[frame.function.0 as usize]))
                .collect(),
            seen: vec![0; table.libraries().len() * Key::PER_LIBRARY as usize],
            number: 0,
            caller: Caller {
                id: NONE,
                number: 0,
                libraries: 0,
            },
            libraries: Vec::new(),
        }
    }

    /// Reads a packed stack of which the first `depth` frames remain, those of the callsite `caller`.
    /// Returns `None` if that is all of it. The same `caller` always has the same frames.
    pub(super) fn read(&mut self, mut packed: &[u8], caller: u32, depth: u32) -> Option<Omitted> {
        match self.caller.id == caller {
            true => packed::skip(&mut packed, depth as usize),
            false => self.start(&mut packed, caller, depth),
        }
        let number = self.next_number();
        self.libraries.clear();
        let most = MAX_LIBRARIES - self.caller.libraries;
        let mut omitted: Option<Omitted> = None;
        while let Some(frame) = packed::first(&mut packed) {
            let key = self.keys[frame as usize];
            let seen = &mut self.seen[key.0 as usize];
            let is_new = *seen != number && *seen != self.caller.number;
            if is_new && self.libraries.len() < most {
                *seen = number;
                self.libraries.push(key);
            }
            let above = omitted.map_or(NONE, |omitted| omitted.owner);
            let owner = match key.kind() {
                Kind::Plain => frame,
                Kind::Runtime
                    if above == NONE || self.keys[above as usize].kind() != Kind::Plain =>
                {
                    frame
                }
                _ => above,
            };
            omitted = Some(Omitted {
                frame,
                owner,
                last: match owner {
                    NONE => key,
                    owner => self.keys[owner as usize],
                },
            });
        }
        omitted
    }

    /// Finds the libraries of a remaining callsite on the first stack with it, and removes its frames
    /// from that.
    fn start(&mut self, packed: &mut &[u8], caller: u32, depth: u32) {
        let number = self.next_number();
        let mut libraries = 0;
        let frames = std::iter::from_fn(|| packed::first(packed));
        for frame in frames.take(depth as usize) {
            let seen = &mut self.seen[self.keys[frame as usize].0 as usize];
            if *seen != number && libraries < MAX_LIBRARIES {
                *seen = number;
                libraries += 1;
            }
        }
        self.caller = Caller {
            id: caller,
            number,
            libraries,
        };
    }

    fn next_number(&mut self) -> u32 {
        // After 4 billion numbers, a library could be missed once.
        self.number = self.number.wrapping_add(1);
        self.number
    }

    /// Returns [`Omitted::last`] of a packed stack, as [`Walk::read`] does. Reads from the leaf, because the
    /// owner is usually near it.
    pub(super) fn owner(&self, mut packed: &[u8], depth: u32) -> Option<Key> {
        packed::skip(&mut packed, depth as usize);
        let leaf_first = std::iter::from_fn(|| packed::last(&mut packed));
        let mut last = None;
        for key in leaf_first.map(|frame| self.keys[frame as usize]) {
            match (key.kind(), last.map(Key::kind)) {
                (Kind::Plain, _) => return Some(key),
                (_, None) | (Kind::Runtime, Some(Kind::Allocator)) => last = Some(key),
                _ => {}
            }
        }
        last
    }

    /// Returns the libraries that the omitted frames of the last stack add to it, the owner's last.
    pub(super) fn libraries(&mut self, omitted: &Omitted) -> &[Key] {
        self.libraries.retain(|key| *key != omitted.last);
        self.libraries.sort_unstable();
        self.libraries.push(omitted.last);
        &self.libraries
    }
}
