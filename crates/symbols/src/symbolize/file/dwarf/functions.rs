//! Search for the functions that contain the addresses of a unit, in one pass over its entries.
//! Determines the order of inlined calls; names and call sites are read later, only for results.
//!
//! The innermost function of an address is the last entry in section order whose ranges contain it;
//! its parents are the functions that it was inlined into.

use super::abbrev::{Abbrev, Cursor, Kind, Slot};
use super::error::DwarfError;
use super::unit::{Code, Parts, Unit};
use super::work::Share;
use gimli::constants as dw;

/// Functions found in one unit. Reused for other units to save allocations.
#[derive(Debug, Default)]
pub(super) struct Functions {
    found: Vec<Function>,
    open: Vec<Open>,
    /// Innermost function of each address.
    innermost: Vec<Option<u32>>,
}

/// Subprogram or inlined call.
#[derive(Debug, Clone, Copy)]
pub(super) struct Function {
    /// Offset of its entry from the unit's header.
    pub entry: usize,
    /// Function that it was inlined into; `None` if it was not inlined.
    pub caller: Option<u32>,
}

/// Function whose children are being read.
#[derive(Debug, Clone, Copy)]
struct Open {
    /// Depth of its children.
    depth: usize,
    entry: usize,
    is_inlined: bool,
    found: Option<u32>,
}

/// Treatment of entries that do not contain an address themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pass {
    /// Subtrees that normally do not contain code are skipped.
    Quick,
    /// All entries are read.
    Whole,
}

impl Functions {
    /// Searches a unit for sorted addresses. If `is_missed` returns that an address without a
    /// function should have one, the search is repeated without skipping entries.
    ///
    /// # Errors
    /// Returns an error if the unit is damaged; results found before that are kept.
    pub fn find<'data>(
        &mut self,
        unit: &Unit<'data>,
        parts: &Parts<'data>,
        addresses: &[u64],
        work: &Share<'_>,
        is_missed: impl Fn(usize) -> bool,
    ) -> Result<(), DwarfError> {
        self.clear(addresses);
        let jumped = self.pass(unit, parts, addresses, Pass::Quick, work)?;
        let missed = |(at, found): (usize, &Option<u32>)| found.is_none() && is_missed(at);
        if jumped && self.innermost.iter().enumerate().any(missed) {
            // Rare: the code of a nested function of GNU C or Ada is outside its parent.
            self.clear(addresses);
            self.pass(unit, parts, addresses, Pass::Whole, work)?;
        }
        Ok(())
    }

    fn clear(&mut self, addresses: &[u64]) {
        self.found.clear();
        self.innermost.clear();
        self.innermost.resize(addresses.len(), None);
    }

    /// Returns the innermost function of the address at this index.
    pub fn innermost(&self, address: usize) -> Option<&Function> {
        self.innermost[address].map(|function| &self.found[function as usize])
    }

    /// Returns the function that this one was inlined into.
    pub fn caller(&self, function: &Function) -> Option<&Function> {
        function.caller.map(|caller| &self.found[caller as usize])
    }

    /// Reads the entries and returns whether a subtree was skipped.
    fn pass<'data>(
        &mut self,
        unit: &Unit<'data>,
        parts: &Parts<'data>,
        addresses: &[u64],
        pass: Pass,
        work: &Share<'_>,
    ) -> Result<bool, DwarfError> {
        work.take(unit.bytes.len())?;
        let mut cursor = Cursor {
            bytes: unit.bytes,
            at: unit.root,
        };
        let mut jumped = false;
        let mut depth = 0usize;
        self.open.clear();
        loop {
            let entry = cursor.at;
            let code = cursor.leb().ok_or(DwarfError::Cut)?;
            if code == 0 {
                depth = depth.saturating_sub(1);
                if self.open.last().is_some_and(|open| open.depth > depth) {
                    self.open.pop();
                }
                if depth == 0 {
                    return Ok(jumped);
                }
                continue;
            }
            let abbrev = unit.abbrevs.get(code);
            let abbrev = abbrev.ok_or(DwarfError::UnknownAbbreviation)?;
            let kept = unit.abbrevs.pass(abbrev, &mut cursor, unit.encoding);
            let kept = kept.ok_or(DwarfError::Cut)?;
            if !abbrev.has_children && (!abbrev.has_code() || abbrev.kind == Kind::Other) {
                if depth == 0 {
                    return Ok(jumped);
                }
                continue;
            }
            let code = Code::new(abbrev, kept);
            let (function, is_empty) = match abbrev.kind {
                Kind::Function | Kind::Inlined => {
                    let mut open = Open {
                        depth: depth + 1,
                        entry,
                        is_inlined: abbrev.kind == Kind::Inlined,
                        found: None,
                    };
                    if abbrev.has_code() {
                        let hold = |low, high| self.hold(&mut open, addresses, low, high, work);
                        sound(unit.ranges(parts, &code, work, hold))?;
                    }
                    (Some(open), open.found.is_none())
                }
                Kind::Block if abbrev.has_code() => {
                    let mut holds = false;
                    let hold = |low, high| {
                        let first = addresses.partition_point(|address| *address < low);
                        holds |= addresses.get(first).is_some_and(|address| *address < high);
                        Ok(())
                    };
                    sound(unit.ranges(parts, &code, work, hold))?;
                    (None, !holds)
                }
                Kind::Aside => (None, true),
                Kind::Block | Kind::Other => (None, false),
            };
            if !abbrev.has_children {
                continue;
            }
            if is_empty
                && pass == Pass::Quick
                && let Some(sibling) = sibling(abbrev, kept)
                // Only forward, otherwise a damaged unit could cause an endless loop.
                && sibling > cursor.at
                && sibling < cursor.bytes.len()
            {
                cursor.at = sibling;
                jumped = true;
                continue;
            }
            depth += 1;
            self.open.extend(function);
        }
    }

    /// Records an open function as the innermost so far for the addresses in a range.
    fn hold(
        &mut self,
        open: &mut Open,
        addresses: &[u64],
        low: u64,
        high: u64,
        work: &Share<'_>,
    ) -> Result<(), DwarfError> {
        let first = addresses.partition_point(|address| *address < low);
        let inside = addresses[first..].iter();
        let count = inside.take_while(|address| **address < high).count();
        if count == 0 {
            return Ok(());
        }
        work.take(count)?;
        let function = match open.found {
            Some(function) => function,
            None => {
                let caller = if open.is_inlined {
                    self.caller_of_next()
                } else {
                    None
                };
                self.add(open, caller)
            }
        };
        self.innermost[first..first + count].fill(Some(function));
        Ok(())
    }

    /// Returns the innermost open function. It counts as found even if its own ranges do not
    /// contain the addresses of its children.
    fn caller_of_next(&mut self) -> Option<u32> {
        let is_known = |open: &Open| open.found.is_some() || !open.is_inlined;
        let first = self.open.iter().rposition(is_known)?;
        let mut caller = None;
        for at in first..self.open.len() {
            let mut open = self.open[at];
            caller = match open.found {
                Some(function) => Some(function),
                None => Some(self.add(&mut open, caller)),
            };
            self.open[at] = open;
        }
        caller
    }

    fn add(&mut self, open: &mut Open, caller: Option<u32>) -> u32 {
        let function = self.found.len() as u32;
        self.found.push(Function {
            entry: open.entry,
            caller,
        });
        open.found = Some(function);
        function
    }
}

/// Ignores a damaged range list, because the rest of the unit might be intact.
fn sound(read: Result<(), DwarfError>) -> Result<(), DwarfError> {
    match read {
        Err(DwarfError::TooMuchWork) => Err(DwarfError::TooMuchWork),
        _ => Ok(()),
    }
}

/// Returns the start of the next sibling, relative to the unit's header.
fn sibling(abbrev: &Abbrev, kept: [u64; 4]) -> Option<usize> {
    let in_unit = matches!(
        abbrev.form(Slot::Sibling),
        dw::DW_FORM_ref1
            | dw::DW_FORM_ref2
            | dw::DW_FORM_ref4
            | dw::DW_FORM_ref8
            | dw::DW_FORM_ref_udata
    );
    let sibling = usize::try_from(kept[Slot::Sibling as usize]).ok();
    sibling.filter(|_| in_unit)
}
