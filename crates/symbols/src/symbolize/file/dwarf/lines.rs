//! File and line of each address of a unit, in one pass over its line program that keeps only the
//! requested rows. The rules are those of llvm-symbolizer: only the sequence that ends first after
//! the address is used. In it the last row at or before the address counts, even if its line is 0.

use super::abbrev::Cursor;
use super::error::DwarfError;
use super::line_header::LineHeader;
use super::work::Share;
use gimli::constants::{self as dw, DwLne, DwLns};

/// Error for a program that ends within an instruction.
const CUT: DwarfError = DwarfError::Cut;

/// Source location of an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Row {
    /// Number of the file in the unit's table.
    pub file: u64,
    pub line: u32,
    pub column: u32,
}

/// Rows of one unit's addresses. Reused for other units to save allocations.
#[derive(Debug, Default)]
pub(super) struct Lines {
    found: Vec<Option<Found>>,
    /// Ends of the sequences.
    ends: Vec<u64>,
    /// Rows of the current sequence, each with the index of its address.
    sequence: Vec<(usize, Row)>,
}

/// Row of an address, from the sequence that contains it and ends first.
#[derive(Debug, Clone, Copy)]
struct Found {
    row: Row,
    /// End of its sequence.
    high: u64,
}

impl Lines {
    /// Clears the rows for a new unit with these addresses.
    pub fn clear(&mut self, addresses: &[u64]) {
        self.found.clear();
        self.found.resize(addresses.len(), None);
        self.ends.clear();
        self.sequence.clear();
    }

    /// Runs a line program for sorted addresses.
    ///
    /// # Errors
    /// Returns an error if the program is damaged; rows found before that are kept.
    pub fn find(
        &mut self,
        header: &LineHeader<'_>,
        addresses: &[u64],
        work: &Share<'_>,
    ) -> Result<(), DwarfError> {
        let result = self.run(header, addresses, work);
        self.choose(addresses);
        result
    }

    /// Returns the row of the address at this index.
    pub fn row(&self, address: usize) -> Option<Row> {
        self.found[address].map(|found| found.row)
    }

    /// Runs the state machine of DWARF 5, 6.2.
    fn run(
        &mut self,
        header: &LineHeader<'_>,
        addresses: &[u64],
        work: &Share<'_>,
    ) -> Result<(), DwarfError> {
        let base = i32::from(header.line_base);
        let (range, opcode_base) = (header.line_range, header.opcode_base);
        let scale = u64::from(header.minimum_instruction_length);
        let constant = u64::from((255 - opcode_base) / range) * scale;
        let mask = header.address_mask();
        let mut state = State::new(addresses);
        let mut cursor = Cursor {
            bytes: header.program,
            at: 0,
        };
        while let Some(opcode) = cursor.byte() {
            if opcode >= opcode_base {
                let adjusted = opcode - opcode_base;
                let by = u64::from(adjusted / range) * scale;
                state.address = state.address.wrapping_add(by) & mask;
                let lines = base + i32::from(adjusted % range);
                state.row.line = state.row.line.wrapping_add_signed(lines);
                self.begin_row(&mut state);
                continue;
            }
            match DwLns(opcode) {
                DwLns(0) => {
                    let size = cursor.leb().ok_or(CUT)?;
                    let operands = cursor.split(size).ok_or(CUT)?;
                    self.extended(operands, mask, &mut state, work)?;
                }
                dw::DW_LNS_copy => self.begin_row(&mut state),
                dw::DW_LNS_advance_pc => {
                    let by = cursor.leb().ok_or(CUT)?.wrapping_mul(scale);
                    state.address = state.address.wrapping_add(by) & mask;
                }
                dw::DW_LNS_advance_line => {
                    let by = cursor.signed_leb().ok_or(CUT)?;
                    state.row.line = state.row.line.wrapping_add(by as u32);
                }
                dw::DW_LNS_set_file => state.row.file = cursor.leb().ok_or(CUT)?,
                dw::DW_LNS_set_column => {
                    state.row.column = u32::try_from(cursor.leb().ok_or(CUT)?).unwrap_or(0);
                }
                dw::DW_LNS_negate_stmt
                | dw::DW_LNS_set_basic_block
                | dw::DW_LNS_set_prologue_end
                | dw::DW_LNS_set_epilogue_begin => {}
                dw::DW_LNS_const_add_pc => {
                    state.address = state.address.wrapping_add(constant) & mask;
                }
                dw::DW_LNS_fixed_advance_pc => {
                    let by = cursor.number(2).ok_or(CUT)?;
                    state.address = state.address.wrapping_add(by) & mask;
                }
                // The instruction set, and unknown opcodes.
                _ => {
                    let lengths = header.standard_opcode_lengths;
                    let operands = lengths.get(usize::from(opcode) - 1).copied();
                    for _ in 0..operands.unwrap_or(0) {
                        cursor.leb().ok_or(CUT)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn extended(
        &mut self,
        operands: &[u8],
        mask: u64,
        state: &mut State<'_>,
        work: &Share<'_>,
    ) -> Result<(), DwarfError> {
        let Some((opcode, operands)) = operands.split_first() else {
            return Ok(());
        };
        match DwLne(*opcode) {
            dw::DW_LNE_end_sequence => {
                self.begin_row(state);
                self.end_sequence(state, work)?;
            }
            dw::DW_LNE_set_address => {
                let address = operands.iter().rev().take(8);
                state.address = address.fold(0, |n, b| n << 8 | u64::from(*b)) & mask;
                // An address of all ones marks code that the linker dropped.
                state.is_dropped = state.address == mask;
            }
            // Discriminators, and file definitions, which producers do not write here.
            _ => {}
        }
        Ok(())
    }

    fn end_sequence(&mut self, state: &mut State<'_>, work: &Share<'_>) -> Result<(), DwarfError> {
        // Many sequences can contain the same addresses.
        work.take(self.sequence.len())?;
        let high = state.address;
        let low = state.low.filter(|low| *low < high);
        if low.is_some() {
            self.ends.push(high);
        }
        for (address, row) in self.sequence.drain(..) {
            let found = &mut self.found[address];
            let is_first = found.is_none_or(|found| high < found.high);
            if low.is_some_and(|low| low <= state.addresses[address]) && is_first {
                *found = Some(Found { row, high });
            }
        }
        *state = State::new(state.addresses);
        Ok(())
    }

    /// Begins a row at the state's address, where the previous row ends.
    #[inline]
    fn begin_row(&mut self, state: &mut State<'_>) {
        if state.is_dropped {
            return;
        }
        if state.low.is_none() {
            state.low = Some(state.address);
            state.next = state.addresses.partition_point(|a| *a < state.address);
        } else {
            while let Some(address) = state.addresses.get(state.next)
                && *address < state.address
            {
                self.sequence.push((state.next, state.last));
                state.next += 1;
            }
        }
        state.last = state.row;
    }

    /// Drops the row of an address if another sequence ends between the address and the row's end.
    fn choose(&mut self, addresses: &[u64]) {
        self.ends.sort_unstable();
        for (found, address) in self.found.iter_mut().zip(addresses) {
            let first = self.ends.partition_point(|end| end <= address);
            let first = self.ends.get(first);
            if found.is_some_and(|found| first.is_some_and(|end| *end < found.high)) {
                *found = None;
            }
        }
    }
}

/// Registers of the line program.
struct State<'addresses> {
    addresses: &'addresses [u64],
    address: u64,
    row: Row,
    is_dropped: bool,
    /// Start of the sequence.
    low: Option<u64>,
    /// Previous row.
    last: Row,
    /// First address without a row.
    next: usize,
}

impl<'addresses> State<'addresses> {
    const START: Row = Row {
        file: 1,
        line: 1,
        column: 0,
    };

    fn new(addresses: &'addresses [u64]) -> Self {
        State {
            addresses,
            address: 0,
            row: Self::START,
            is_dropped: false,
            low: None,
            last: Self::START,
            next: 0,
        }
    }
}
