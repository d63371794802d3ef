//! Selection of dumps and columns to export, and of the rows, frames and callsites that they need.
//! Independent of formats.

use heaptap_model::stacks::{
    Dump, FrameId, FunctionId, LibraryId, Measure, NodeId, StackProfile, StackTable, Unit, View,
};

/// Part of a profile.
#[derive(Debug, Clone)]
pub struct Chosen<'a> {
    /// Names, frames, callsites.
    pub table: &'a StackTable,
    /// Dumps in order.
    pub dumps: Vec<ChosenDump<'a>>,
}

/// Dump with selected columns.
#[derive(Debug, Clone)]
pub struct ChosenDump<'a> {
    pub dump: &'a Dump,
    /// Indexes of its measures, in their order.
    pub columns: Vec<usize>,
}

impl<'a> Chosen<'a> {
    /// Selects every dump with every column.
    pub fn all(profile: &'a StackProfile) -> Chosen<'a> {
        let dumps = profile.dumps.iter().map(|dump| ChosenDump {
            dump,
            columns: (0..dump.measures.len()).collect(),
        });
        Chosen {
            table: &profile.table,
            dumps: dumps.collect(),
        }
    }

    /// Returns the distinct measures of all columns in order of appearance.
    pub fn measures(&self) -> Vec<&'a Measure> {
        let mut all: Vec<&Measure> = Vec::new();
        for dump in &self.dumps {
            for measure in dump.measures() {
                if !all.contains(&measure) {
                    all.push(measure);
                }
            }
        }
        all
    }
}

impl<'a> ChosenDump<'a> {
    /// Returns the selected columns.
    pub fn measures(&self) -> impl Iterator<Item = &'a Measure> {
        let dump = self.dump;
        self.columns.iter().map(move |&at| &dump.measures[at])
    }

    /// Returns the index in the dump's measures of a column like `measure`.
    pub fn column_of(&self, measure: &Measure) -> Option<usize> {
        let mut columns = self.columns.iter().copied();
        columns.find(|&at| self.dump.measures[at] == *measure)
    }

    /// Returns the positions in the dump's values of callsites with a number in a selected column.
    pub fn rows(&self) -> impl Iterator<Item = usize> + '_ {
        let values = &self.dump.values;
        (0..values.nodes.len())
            .filter(move |&row| self.columns.iter().any(|&at| values.columns[at][row] != 0))
    }

    /// Returns the display title of the dump: process, heap, index, label.
    pub fn title(&self) -> String {
        let facts = &self.dump.facts;
        let mut title = match (facts.process.as_str(), facts.pid) {
            ("", 0) => String::new(),
            ("", pid) => format!("pid {pid}"),
            (name, 0) => name.to_owned(),
            (name, pid) => format!("{name} ({pid})"),
        };
        let mut add = |text: &str| {
            if !title.is_empty() {
                title.push(' ');
            }
            title.push_str(text);
        };
        if !facts.heap.is_empty() {
            add(&facts.heap);
        }
        add(&format!("@{}", facts.number));
        if let Some(label) = &facts.label {
            add(label);
        }
        title
    }
}

/// Returns a measure as text: `space`, with the unit if it is neither bytes nor a count.
pub fn measure_title(measure: &Measure) -> String {
    match &measure.unit {
        Unit::Other(unit) if !unit.is_empty() => format!("{} ({unit})", measure.name),
        _ => measure.name.clone(),
    }
}

/// Returns a unique column heading for each measure: its name, with the unit if two names are
/// equal, with a number if that is not enough.
pub fn headings(measures: &[&Measure]) -> Vec<String> {
    let mut taken: Vec<String> = Vec::new();
    for measure in measures {
        let same = measures.iter().filter(|other| other.name == measure.name);
        let mut heading = match same.count() {
            1 => measure.name.clone(),
            _ => format!("{}_{}", measure.name, unit_name(&measure.unit)),
        };
        while taken.contains(&heading) {
            heading.push('_');
        }
        taken.push(heading);
    }
    taken
}

/// Returns `bytes`, `count`, or the unit of another tool.
pub fn unit_name(unit: &Unit) -> &str {
    match unit {
        Unit::Bytes => "bytes",
        Unit::Count => "count",
        Unit::Other(word) => word,
    }
}

/// Returns `space`, `objects`, `alloc_space` or `alloc_objects`; `None` for another tool's measure.
pub fn view_name(measure: &Measure) -> Option<&'static str> {
    measure.view.map(View::name)
}

/// Table entries that the rows of a selection need, renumbered without gaps.
#[derive(Debug)]
pub struct Needed {
    /// Callsites, parents before children; the root is first.
    pub nodes: Vec<NodeId>,
    /// Frames of the callsites.
    pub frames: Vec<FrameId>,
    /// Functions of the frames.
    pub functions: Vec<FunctionId>,
    /// Libraries of the functions.
    pub libraries: Vec<LibraryId>,
    node_numbers: Vec<u32>,
    frame_numbers: Vec<u32>,
    function_numbers: Vec<u32>,
    library_numbers: Vec<u32>,
}

/// Not needed.
const NONE: u32 = u32::MAX;
/// Needed, not yet numbered.
const WANTED: u32 = u32::MAX - 1;

impl Needed {
    /// Collects the entries in one pass over all rows.
    pub fn from_chosen(chosen: &Chosen<'_>) -> Needed {
        let table = chosen.table;
        let mut nodes = vec![NONE; table.node_count()];
        nodes[NodeId::ROOT.0 as usize] = WANTED;
        for dump in &chosen.dumps {
            for row in dump.rows() {
                let mut node = dump.dump.values.nodes[row];
                while nodes[node.0 as usize] == NONE {
                    nodes[node.0 as usize] = WANTED;
                    node = table.parent(node);
                }
            }
        }
        let mut frames = vec![NONE; table.frames().len()];
        for (at, _) in nodes.iter().enumerate().filter(|(_, n)| **n == WANTED) {
            if let Some(frame) = table.frame_of(NodeId(at as u32)) {
                frames[frame.0 as usize] = WANTED;
            }
        }
        let mut functions = vec![NONE; table.functions().len()];
        for (frame, _) in wanted(table.frames(), &frames) {
            functions[frame.function.0 as usize] = WANTED;
        }
        let mut libraries = vec![NONE; table.libraries().len()];
        for (function, _) in wanted(table.functions(), &functions) {
            libraries[function.library.0 as usize] = WANTED;
        }
        Needed {
            nodes: number(&mut nodes).map(NodeId).collect(),
            frames: number(&mut frames).map(FrameId).collect(),
            functions: number(&mut functions).map(FunctionId).collect(),
            libraries: number(&mut libraries).map(LibraryId).collect(),
            node_numbers: nodes,
            frame_numbers: frames,
            function_numbers: functions,
            library_numbers: libraries,
        }
    }

    /// Returns the number of a needed callsite.
    pub fn node(&self, id: NodeId) -> u32 {
        self.node_numbers[id.0 as usize]
    }

    /// Returns the number of a needed frame.
    pub fn frame(&self, id: FrameId) -> u32 {
        self.frame_numbers[id.0 as usize]
    }

    /// Returns the number of a needed function.
    pub fn function(&self, id: FunctionId) -> u32 {
        self.function_numbers[id.0 as usize]
    }

    /// Returns the number of a needed library.
    pub fn library(&self, id: LibraryId) -> u32 {
        self.library_numbers[id.0 as usize]
    }
}

fn wanted<'a, T>(
    all: &'a [T],
    numbers: &'a [u32],
) -> impl Iterator<Item = (&'a T, &'a u32)> + use<'a, T> {
    let pairs = all.iter().zip(numbers);
    pairs.filter(|(_, number)| **number == WANTED)
}

/// Numbers the wanted entries and returns their former numbers in order.
fn number(numbers: &mut [u32]) -> impl Iterator<Item = u32> + use<> {
    let mut kept = Vec::new();
    for (at, number) in numbers.iter_mut().enumerate() {
        if *number == WANTED {
            *number = kept.len() as u32;
            kept.push(at as u32);
        }
    }
    kept.into_iter()
}
