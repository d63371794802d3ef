//! Writes a report of any size, for browsers to be measured with:
//! `generate_report NODES DUMPS OUT.html`. Names, shapes and sizes are drawn with a fixed seed:
//! few deep stacks that many share, many leaves, a leak in the last dumps.

use heaptap_model::profile::DumpKind;
use heaptap_model::stacks::{
    Dump, Frame, FrameId, Function, Kind, Library, Measure, NodeId, StackProfile, StackTable,
    TextId, Values, View,
};
use heaptap_report::Report;
use heaptap_report::data::header::{Fact, Header, Unseen, Warning};
use std::io::Write as _;

fn frames(table: &mut StackTable, rng: &mut fastrand::Rng, count: usize) -> Vec<FrameId> {
    let words = [
        "Decode", "Image", "Cache", "Load", "Bitmap", "Stream", "Parse", "Node", "Layout", "Text",
        "Draw", "Scene", "Codec", "Buffer", "Pool", "Render", "Measure", "Fetch", "Queue", "Task",
    ];
    let libraries: Vec<_> = (0..40)
        .map(|at| {
            let word = words[at % words.len()].to_lowercase();
            let path = table.text(&format!("/data/app/~~x==/com.example.app/lib{word}{at}.so"));
            let build_id = table.text(&format!("{:040x}", rng.u128(..)));
            table.library(Library { path, build_id })
        })
        .collect();
    (0..count)
        .map(|at| {
            let mut pick = || words[rng.usize(..words.len())];
            let name = format!(
                "example::{}::{}{}{at}(unsigned long)",
                pick(),
                pick(),
                pick()
            );
            let file = format!(
                "src/{}/{}.cpp",
                pick().to_lowercase(),
                pick().to_lowercase()
            );
            let function = Function {
                name: table.text(&name),
                system_name: TextId::default(),
                library: libraries[rng.usize(..libraries.len())],
                kind: Kind::Plain,
            };
            let frame = Frame {
                function: table.function(function),
                file: table.text(&file),
                line: rng.u32(1..2000),
                inlined: rng.u8(..8) == 0,
            };
            table.frame(frame)
        })
        .collect()
}

fn profile(count: usize, dumps: usize) -> StackProfile {
    let mut rng = fastrand::Rng::with_seed(20261120);
    let mut table = StackTable::default();
    let frames = frames(&mut table, &mut rng, (count / 16).clamp(16, 60_000));
    let function = Function {
        name: table.text("malloc"),
        system_name: TextId::default(),
        library: Default::default(),
        kind: Kind::Allocator,
    };
    let malloc = Frame {
        function: table.function(function),
        file: TextId::default(),
        line: 0,
        inlined: false,
    };
    let malloc = table.frame(malloc);
    let mut leaves: Vec<NodeId> = Vec::new();
    let mut stack = vec![NodeId::ROOT];
    while table.node_count() < count {
        stack.truncate(rng.usize(1..=stack.len()));
        for _ in 0..rng.usize(1..20) {
            let above = stack[stack.len() - 1];
            // Callers choose among few callees.
            let near = (above.0 as usize).wrapping_mul(31) % frames.len();
            let frame = frames[(near + rng.usize(..24)) % frames.len()];
            stack.push(table.child(above, frame));
        }
        let leaf = table.child(stack[stack.len() - 1], malloc);
        leaves.push(leaf);
    }
    leaves.sort_unstable();
    leaves.dedup();
    let views = [
        View::Objects,
        View::Space,
        View::AllocObjects,
        View::AllocSpace,
    ];
    let mut held: Vec<[i64; 4]> = vec![[0; 4]; leaves.len()];
    let dumps = (0..dumps)
        .map(|at| {
            for (leaf, row) in held.iter_mut().enumerate() {
                let leaks = leaf % 1000 == 7;
                if at == 0 || leaks || rng.u8(..10) == 0 {
                    let new = rng.i64(1..4) + i64::from(leaks) * 20;
                    let freed = if leaks { 0 } else { rng.i64(0..=row[0] + new) };
                    row[2] += new;
                    row[3] += new * 4096;
                    row[0] += new - freed;
                    row[1] = row[0] * 4096;
                }
            }
            let mut dump = Dump {
                measures: views.map(Measure::of_view).to_vec(),
                default_measure: 1,
                values: Values {
                    nodes: leaves.clone(),
                    columns: (0..4)
                        .map(|column| held.iter().map(|row| row[column]).collect())
                        .collect(),
                },
                ..Dump::default()
            };
            dump.facts.number = at as u32 + 1;
            dump.facts.label = Some(format!("round {at}"));
            dump.facts.pid = 4242;
            dump.facts.process = "com.example.app".to_owned();
            dump.facts.heap = "libc.malloc".to_owned();
            dump.facts.time_ns = Some(80_000_000_000 + at as u64 * 10_000_000_000);
            dump.facts.wall_time_ns = Some(1_795_161_600_000_000_000 + at as u64 * 10_000_000_000);
            dump.facts.sampling_interval_bytes = 4096;
            dump.facts.kind = DumpKind::Cumulative;
            dump
        })
        .collect();
    StackProfile { table, dumps }
}

#[allow(clippy::print_stdout)]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().collect();
    let [_, nodes, dumps, path] = &args[..] else {
        return Err("usage: generate_report NODES DUMPS OUT.html".into());
    };
    let profile = profile(nodes.parse()?, dumps.parse()?);
    let began = std::time::Instant::now();
    let header = Header {
        tool: "heaptap".to_owned(),
        title: "com.example.app".to_owned(),
        facts: vec![Fact {
            name: "Device".to_owned(),
            value: "generated".to_owned(),
        }],
        warnings: vec![Warning {
            kind: None,
            message: "these numbers are drawn, not recorded".to_owned(),
            help: None,
            dumps: Vec::new(),
        }],
        unseen: vec![Unseen {
            what: "Graphics memory".to_owned(),
            why: "it comes from no heap".to_owned(),
            bytes: None,
        }],
        ..Header::default()
    };
    let first = profile.dumps.first();
    let callsites = first.map_or(0, |dump| dump.values.nodes.len());
    let (count, dumps) = (profile.table.node_count(), profile.dumps.len());
    let report = Report {
        header,
        native: Some(profile),
        inputs: Vec::new(),
        java: Vec::new(),
    };
    let mut out = std::io::BufWriter::new(std::fs::File::create(path)?);
    report.write(&mut out)?;
    out.flush()?;
    println!(
        "{count} nodes, {callsites} callsites, {dumps} dumps: {} bytes in {:.2} s",
        std::fs::metadata(path)?.len(),
        began.elapsed().as_secs_f64()
    );
    Ok(())
}
