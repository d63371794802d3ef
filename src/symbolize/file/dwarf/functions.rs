//! Which functions of a unit hold its addresses: one pass over the unit's entries. Owns the
//! order of inlined calls; names and call sites are read afterwards, of what was found.
//!
//! The innermost function of an address is the last entry in the order of the section whose
//! ranges hold it; the functions that it was inlined into are its parents.

use super::entries::{Cursor, Kind, Plan, Plans, Slot};
use super::unit::RANGE;
use super::work::Share;
use super::{DwarfError, Sections, Unit};
use gimli::{
    Abbreviations, AttributeValue, DebugAddrIndex, DebugRngListsIndex, Encoding,
    RawRangeListsOffset, UnitOffset, constants as dw,
};
use std::sync::Arc;

/// The functions found in one unit. Kept from unit to unit for its memory.
#[derive(Debug, Default)]
pub(super) struct Functions {
    plans: Plans,
    /// What the plans are of.
    planned: Option<(Arc<Abbreviations>, Encoding)>,
    found: Vec<Function>,
    open: Vec<Open>,
    /// Of each address the innermost function.
    innermost: Vec<Option<u32>>,
}

#[derive(Debug, Clone, Copy)]
struct Function {
    entry: usize,
    /// What it was inlined into; `None`: it was not inlined.
    parent: Option<u32>,
}

/// A function whose children are being passed.
#[derive(Debug, Clone, Copy)]
struct Open {
    /// Depth of its children.
    depth: usize,
    entry: usize,
    inlined: bool,
    found: Option<u32>,
}

/// Whether entries are passed that hold no address themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pass {
    /// Subtrees in which code would be astray are jumped.
    Quick,
    /// All of the unit.
    Whole,
}

impl Functions {
    /// Searches a unit for these addresses, which are sorted. What is found before an error
    /// counts.
    pub fn find<'a>(
        &mut self,
        sections: &Sections<'a>,
        unit: &Unit<'a>,
        addresses: &[u64],
        share: &mut Share<'_>,
    ) -> Result<(), DwarfError> {
        let encoding = unit.header.encoding();
        let same = self.planned.as_ref().is_some_and(|(table, planned)| {
            Arc::ptr_eq(table, &unit.abbreviations) && *planned == encoding
        });
        if !same {
            self.plans.clear();
            self.planned = Some((Arc::clone(&unit.abbreviations), encoding));
        }
        self.found.clear();
        self.innermost.clear();
        self.innermost.resize(addresses.len(), None);
        let jumped = self.pass(sections, unit, addresses, Pass::Quick, share)?;
        if jumped && self.innermost.contains(&None) {
            // Rare: a nested function of GNU C or Ada has its code elsewhere than its parent.
            self.found.clear();
            self.innermost.fill(None);
            self.pass(sections, unit, addresses, Pass::Whole, share)?;
        }
        Ok(())
    }

    /// The innermost function of the address of this index.
    pub fn innermost(&self, address: usize) -> Option<u32> {
        self.innermost[address]
    }

    /// The entry of a function, and what it was inlined into.
    pub fn entry(&self, function: u32) -> (UnitOffset, Option<u32>) {
        let function = &self.found[function as usize];
        (UnitOffset(function.entry), function.parent)
    }

    /// Whether a subtree was jumped.
    fn pass<'a>(
        &mut self,
        sections: &Sections<'a>,
        unit: &Unit<'a>,
        addresses: &[u64],
        pass: Pass,
        share: &mut Share<'_>,
    ) -> Result<bool, DwarfError> {
        let encoding = unit.header.encoding();
        let header = unit.header.header_size();
        let entries = unit.header.range_from(UnitOffset(header)..)?;
        let mut cursor = Cursor {
            bytes: entries.slice(),
            at: 0,
        };
        let mut ranges = Ranges {
            sections,
            unit,
            share,
        };
        ranges.share.spend(cursor.bytes.len() as u64)?;
        let mut jumped = false;
        let mut depth = 0usize;
        self.open.clear();
        loop {
            let entry = cursor.at;
            let code = cursor.leb()?;
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
            let plan = self.plans.get(code, &unit.abbreviations, encoding)?;
            let kept = self.plans.pass(&plan, &mut cursor, encoding)?;
            if !plan.children && (!plan.has_code() || plan.kind == Kind::Other) {
                if depth == 0 {
                    return Ok(jumped);
                }
                continue;
            }
            let (function, empty) = match plan.kind {
                Kind::Function | Kind::Inlined => {
                    let mut open = Open {
                        depth: depth + 1,
                        entry: entry + header,
                        inlined: plan.kind == Kind::Inlined,
                        found: None,
                    };
                    if plan.has_code() {
                        ranges.for_each(&plan, &kept, |begin, end| {
                            self.hold(&mut open, addresses, begin, end) as u64
                        })?;
                    }
                    (Some(open), open.found.is_none())
                }
                Kind::Block if plan.has_code() => {
                    let mut holds = false;
                    ranges.for_each(&plan, &kept, |begin, end| {
                        let first = addresses.partition_point(|address| *address < begin);
                        holds |= addresses.get(first).is_some_and(|address| *address < end);
                        0
                    })?;
                    (None, !holds)
                }
                Kind::Aside => (None, true),
                Kind::Block | Kind::Other => (None, false),
            };
            if !plan.children {
                continue;
            }
            if empty && pass == Pass::Quick {
                let sibling = (kept[Slot::Sibling as usize] as usize).wrapping_sub(header);
                // Forward only, or a damaged unit would never end.
                if is_reference(&plan) && sibling > cursor.at && sibling < cursor.bytes.len() {
                    cursor.at = sibling;
                    jumped = true;
                    continue;
                }
            }
            depth += 1;
            self.open.extend(function);
        }
    }

    /// Notes an open function as the innermost so far of the addresses in this range; returns
    /// how many these are.
    fn hold(&mut self, open: &mut Open, addresses: &[u64], begin: u64, end: u64) -> usize {
        let first = addresses.partition_point(|address| *address < begin);
        let inside = addresses[first..]
            .iter()
            .take_while(|address| **address < end);
        let count = inside.count();
        if count == 0 {
            return 0;
        }
        let function = match open.found {
            Some(function) => function,
            None => {
                let parent = if open.inlined { self.parent() } else { None };
                self.add(open, parent)
            }
        };
        self.innermost[first..first + count].fill(Some(function));
        count
    }

    /// The innermost open function, which counts as found even where its own ranges do not
    /// hold what its children hold.
    fn parent(&mut self) -> Option<u32> {
        let known = |open: &Open| open.found.is_some() || !open.inlined;
        let first = self.open.iter().rposition(known)?;
        let mut parent = None;
        for at in first..self.open.len() {
            let mut open = self.open[at];
            parent = match open.found {
                Some(function) => Some(function),
                None => Some(self.add(&mut open, parent)),
            };
            self.open[at] = open;
        }
        parent
    }

    fn add(&mut self, open: &mut Open, parent: Option<u32>) -> u32 {
        let function = self.found.len() as u32;
        self.found.push(Function {
            entry: open.entry,
            parent,
        });
        open.found = Some(function);
        function
    }
}

/// Whether the sibling is given as an offset in the unit.
fn is_reference(plan: &Plan) -> bool {
    matches!(
        gimli::DwForm(plan.forms[Slot::Sibling as usize]),
        dw::DW_FORM_ref1
            | dw::DW_FORM_ref2
            | dw::DW_FORM_ref4
            | dw::DW_FORM_ref8
            | dw::DW_FORM_ref_udata
    )
}

/// Reads the addresses of entries.
struct Ranges<'s, 'w, 'a> {
    sections: &'s Sections<'a>,
    unit: &'s Unit<'a>,
    share: &'s mut Share<'w>,
}

impl Ranges<'_, '_, '_> {
    /// Calls `each` with the ranges of an entry; it returns how much more work that was. A
    /// damaged list ends where it is: other entries have theirs.
    #[inline]
    fn for_each(
        &mut self,
        plan: &Plan,
        kept: &[u64; 4],
        mut each: impl FnMut(u64, u64) -> u64,
    ) -> Result<(), DwarfError> {
        if plan.has(Slot::Low) && plan.has(Slot::High) {
            if let Some((low, high)) = self.low_and_high(plan, kept)
                && low < high
            {
                self.share.spend(each(low, high))?;
            }
            return Ok(());
        }
        if !plan.has(Slot::Ranges) {
            return Ok(());
        }
        let value = kept[Slot::Ranges as usize] as usize;
        let value = match gimli::DwForm(plan.forms[Slot::Ranges as usize]) {
            dw::DW_FORM_rnglistx => AttributeValue::DebugRngListsIndex(DebugRngListsIndex(value)),
            _ => AttributeValue::RangeListsRef(RawRangeListsOffset(value)),
        };
        let Ok(Some(mut list)) = self.sections.attr_ranges(self.unit, value) else {
            return Ok(());
        };
        while let Ok(Some(range)) = list.next() {
            self.share.spend(RANGE + each(range.begin, range.end))?;
        }
        Ok(())
    }

    #[inline]
    fn low_and_high(&self, plan: &Plan, kept: &[u64; 4]) -> Option<(u64, u64)> {
        let form = |slot| gimli::DwForm(plan.forms[slot as usize]);
        let (low, high) = (kept[Slot::Low as usize], kept[Slot::High as usize]);
        let low = self.address(form(Slot::Low), low).ok()??;
        let high = match self.address(form(Slot::High), high).ok()? {
            Some(high) => high,
            None => low.wrapping_add(high),
        };
        Some((low, high))
    }

    /// The address that a value of this form is; `None` where the form is a plain number.
    #[inline]
    fn address(&self, form: gimli::DwForm, value: u64) -> gimli::Result<Option<u64>> {
        Ok(match form {
            dw::DW_FORM_addr => Some(value),
            dw::DW_FORM_addrx
            | dw::DW_FORM_addrx1
            | dw::DW_FORM_addrx2
            | dw::DW_FORM_addrx4
            | dw::DW_FORM_GNU_addr_index => {
                let index = DebugAddrIndex(value as usize);
                Some(self.sections.address(self.unit, index)?)
            }
            _ => None,
        })
    }
}
