//! What of a profile is exported: which dumps, which of their columns, and so which rows, frames
//! and callsites are needed for it. Knows no format.

use heaptap_model::stacks::{
    Dump, FrameId, FunctionId, LibraryId, Measure, NodeId, StackProfile, StackTable, Unit, View,
};

/// A part of a profile.
#[derive(Debug, Clone)]
pub struct Chosen<'a> {
    /// Names, frames, callsites.
    pub table: &'a StackTable,
    /// The dumps, in order.
    pub dumps: Vec<ChosenDump<'a>>,
}

/// A dump, and which of its columns.
#[derive(Debug, Clone)]
pub struct ChosenDump<'a> {
    /// All of it.
    pub dump: &'a Dump,
    /// Indices of its measures, in their order.
    pub columns: Vec<usize>,
}

impl<'a> Chosen<'a> {
    /// Every dump with every column.
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

    /// Names of all columns, each once, in order of appearance.
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
    /// Its chosen columns.
    pub fn measures(&self) -> impl Iterator<Item = &'a Measure> {
        let dump = self.dump;
        self.columns.iter().map(move |&at| &dump.measures[at])
    }

    /// The index in the dump's measures of a column that is like `measure`.
    pub fn column_of(&self, measure: &Measure) -> Option<usize> {
        let mut columns = self.columns.iter().copied();
        columns.find(|&at| self.dump.measures[at] == *measure)
    }

    /// Positions in the dump's values of the callsites with a number in one of the columns.
    pub fn rows(&self) -> impl Iterator<Item = usize> + '_ {
        let values = &self.dump.values;
        (0..values.nodes.len())
            .filter(move |&row| self.columns.iter().any(|&at| values.columns[at][row] != 0))
    }

    /// What tells the dump from others, for people: process, heap, index, label.
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

/// A measure in words: `space`, and the unit where it is neither bytes nor a number of things.
pub fn measure_title(measure: &Measure) -> String {
    match &measure.unit {
        Unit::Other(unit) if !unit.is_empty() => format!("{} ({unit})", measure.name),
        _ => measure.name.clone(),
    }
}

/// A name for each measure, as the heading of a column: its own, with the unit where two would
/// be called the same, with a number where that does not help either.
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

/// `bytes`, `count`, or another tool's own word.
pub fn unit_name(unit: &Unit) -> &str {
    match unit {
        Unit::Bytes => "bytes",
        Unit::Count => "count",
        Unit::Other(word) => word,
    }
}

/// `space`, `objects`, `alloc_space`, `alloc_objects`; `None` for another tool's.
pub fn view_name(measure: &Measure) -> Option<&'static str> {
    measure.view.map(View::name)
}

/// What the rows of a choice need of its table, numbered anew and without gaps.
#[derive(Debug)]
pub struct Needed {
    /// Callsites, parents before children; the root stands first.
    pub nodes: Vec<NodeId>,
    /// Frames of those.
    pub frames: Vec<FrameId>,
    /// Functions of those.
    pub functions: Vec<FunctionId>,
    /// Libraries of those.
    pub libraries: Vec<LibraryId>,
    node_numbers: Vec<u32>,
    frame_numbers: Vec<u32>,
    function_numbers: Vec<u32>,
    library_numbers: Vec<u32>,
}

/// No number: not needed.
const NONE: u32 = u32::MAX;
/// Needed, not yet numbered.
const WANTED: u32 = u32::MAX - 1;

impl Needed {
    /// Walks over all rows once.
    pub fn of(chosen: &Chosen<'_>) -> Needed {
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

    /// The number of a callsite that is needed.
    pub fn node(&self, id: NodeId) -> u32 {
        self.node_numbers[id.0 as usize]
    }

    /// The number of a frame that is needed.
    pub fn frame(&self, id: FrameId) -> u32 {
        self.frame_numbers[id.0 as usize]
    }

    /// The number of a function that is needed.
    pub fn function(&self, id: FunctionId) -> u32 {
        self.function_numbers[id.0 as usize]
    }

    /// The number of a library that is needed.
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

/// Numbers what is wanted; gives its former numbers, in order.
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
