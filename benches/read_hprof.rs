//! Reads an HPROF for benches/hprof.py: `read_hprof histogram|graph|analysis FILE`. Prints one line
//! of JSON: seconds, objects, and the peaks of this process's memory, its own and with the pages
//! of the file that are mapped.

use android_hprof::{Options, histogram, read};
use heaptap_base::bytes::Bytes;
use heaptap_model::heap_graph::{Dominators, Follow};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A line of /proc/self/status in bytes; 0 where the host has none.
fn status(name: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|line| line.trim_start_matches(':').split_whitespace().next());
    number.and_then(|n| n.parse::<u64>().ok()).unwrap_or(0) * 1024
}

fn work(what: &str, file: Bytes) -> Result<u64, Box<dyn std::error::Error>> {
    let options = Options::default();
    if what == "histogram" {
        let rows = histogram(&file, &options)?.rows;
        return Ok(rows.iter().map(|row| row.objects).sum());
    }
    let graph = read(file, &options)?;
    if what == "analysis" {
        let dominators = Dominators::compute(&graph, Follow::default());
        let largest = graph.objects().map(|o| dominators.retained_bytes(o)).max();
        assert!(largest > Some(0), "something is retained");
    }
    Ok(graph.len() as u64)
}

#[allow(clippy::print_stdout)]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, what, path] = &arguments[..] else {
        return Err("usage: read_hprof histogram|graph|analysis FILE".into());
    };
    let done = AtomicBool::new(false);
    let most = AtomicU64::new(0);
    let (seconds, objects) = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                most.fetch_max(status("RssAnon"), Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(2));
            }
        });
        let started = Instant::now();
        let objects = Bytes::map(Path::new(path))
            .map_err(Into::into)
            .and_then(|file| work(what, file));
        let seconds = started.elapsed().as_secs_f64();
        most.fetch_max(status("RssAnon"), Ordering::Relaxed);
        done.store(true, Ordering::Relaxed);
        objects.map(|objects| (seconds, objects))
    })?;
    println!(
        "{{\"seconds\": {seconds:.4}, \"objects\": {objects}, \"anonymous\": {}, \"peak\": {}}}",
        most.into_inner(),
        status("VmHWM"),
    );
    Ok(())
}
