//! Conversions of real and synthetic traces, judged against what Perfetto's converter makes of
//! them.

mod pprof;

use heaptap::export::gzip::Gzip;
use heaptap::export::pprof::{Pprof, PprofOptions};
use heaptap::trace::{Trace, TraceError};
use std::path::Path;

#[test]
#[ignore = "looks around"]
fn look() {
    let dir = std::env::var("RECORDINGS").unwrap();
    let mut entries: Vec<_> = std::fs::read_dir(&dir)
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    entries.sort();
    for path in entries {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if !(name.ends_with(".pftrace") || name.ends_with(".zst")) || name.contains("many_one") {
            continue;
        }
        let stem = name.split('.').next().unwrap().to_owned();
        let only = std::env::var("ONLY").unwrap_or_default();
        if !only.is_empty() && only != stem {
            continue;
        }
        let mut refs: Vec<(u32, u64, String, pprof::View)> = Vec::new();
        for e in std::fs::read_dir(Path::new(&dir).join(&stem))
            .into_iter()
            .flatten()
        {
            let p = e.unwrap().path();
            let n = p.file_name().unwrap().to_string_lossy().into_owned();
            let Some(rest) = n.strip_prefix("heap_dump.") else {
                continue;
            };
            let rest = rest.strip_suffix(".pb.gz").unwrap();
            let mut parts = rest.splitn(3, '.');
            let idx = parts.next().unwrap().parse().unwrap();
            let pid = parts.next().unwrap().parse().unwrap();
            let heap = parts.next().unwrap().to_owned();
            refs.push((
                idx,
                pid,
                heap,
                pprof::view(&pprof::read(&std::fs::read(&p).unwrap())),
            ));
        }
        refs.sort_by_key(|r| r.0);
        let traces = match heaptap::import::open(&path) {
            Ok(t) => t,
            Err(e) => {
                println!("{stem}: {e}");
                continue;
            }
        };
        for t in traces {
            if let Some(d) = &t.damage {
                println!("  damage {d}");
            }
            let trace = Trace::open(t.source).unwrap();
            let pp = Pprof::new(trace.recording().clone(), PprofOptions::default());
            let mut ours = Vec::new();
            let health = trace
                .read_dumps::<TraceError>(|d| {
                    let b = pp.encode(&d, &[]);
                    Gzip::default().compress(&b);
                    let p = pprof::read(&b);
                    let f = pprof::faults(&p);
                    if !f.is_empty() {
                        println!("{stem}: faults {f:?}");
                    }
                    ours.push((d, pprof::view(&p)));
                    Ok(())
                })
                .unwrap();
            // match
            let mut at: std::collections::HashMap<(u64, String), usize> = Default::default();
            let mut unmatched = Vec::new();
            let mut matched = vec![false; ours.len()];
            for (idx, pid, heap, v) in &refs {
                let key = (*pid, heap.clone());
                let start = *at.get(&key).unwrap_or(&0);
                let found = (start..ours.len()).find(|&i| {
                    ours[i].0.pid == *pid
                        && ours[i].0.heap == *heap
                        && ours[i].1.without_zeros() == v.without_zeros()
                });
                match found {
                    Some(i) => {
                        matched[i] = true;
                        at.insert(key, i + 1);
                    }
                    None => unmatched.push(*idx),
                }
            }
            let extra: Vec<String> = ours
                .iter()
                .enumerate()
                .filter(|(i, _)| !matched[*i])
                .map(|(i, (d, v))| {
                    format!(
                        "{i}:{}:{}:{:?}{}",
                        d.pid,
                        d.heap,
                        v.totals(),
                        if v.samples.is_empty() { "E" } else { "" }
                    )
                })
                .collect();
            let mark = if unmatched.is_empty() && extra.is_empty() {
                "ok "
            } else {
                "DIFF"
            };
            println!(
                "{mark} {stem}: refs {} ours {} unmatched refs {unmatched:?} extra ours {}: {:?} {}",
                refs.len(),
                ours.len(),
                extra.len(),
                &extra[..extra.len().min(4)],
                if health == Default::default() {
                    String::new()
                } else {
                    format!("{:?}", health)
                }
            );
            if !only.is_empty() {
                for (idx, pid, heap, v) in &refs {
                    if unmatched.contains(idx) {
                        println!(
                            "REF {idx} {pid} {heap} {:?} {:?} n={}",
                            v.columns,
                            v.totals(),
                            v.samples.len()
                        );
                        let near = ours
                            .iter()
                            .filter(|o| o.0.pid == *pid)
                            .nth(
                                std::env::var("NTH")
                                    .ok()
                                    .and_then(|n| n.parse().ok())
                                    .unwrap_or((*idx as usize).min(ours.len()) - 1),
                            )
                            .or(ours.last());
                        if let Some(o) = near {
                            println!(
                                "OUR {:?} {:?} n={}",
                                o.1.columns,
                                o.1.totals(),
                                o.1.samples.len()
                            );
                            for s in v
                                .samples
                                .iter()
                                .filter(|s| !o.1.samples.contains(s))
                                .take(3)
                            {
                                println!("  - {s:?}");
                            }
                            for s in
                                o.1.samples
                                    .iter()
                                    .filter(|s| !v.samples.contains(s))
                                    .take(3)
                            {
                                println!("  + {s:?}");
                            }
                        }
                        break;
                    }
                }
            }
        }
    }
}
