//! Problems in a process's collections, each with its threshold and its evidence. They are a
//! growing live set, allocations that wait while the heap is full, errors, long pauses, and
//! requested collections.

use super::log::ProcessLog;
use super::report::{Diagnosis, Evidence, Figures, Growing, Growth, Live, ProcessReport, Severity};
use super::trend::{MIN_COUNT, OVER_NOISE, Point, Trend};
use heaptap_base::units::{ByteSize, HumanDuration, counted};
use std::time::Duration;

/// Minimum growth in bytes; smaller growth is not reported, whatever its rate.
const LEAST_GROWTH: u64 = 1 << 20;
/// Minimum growth relative to the live set.
const LEAST_PART: f64 = 0.05;
/// Part of the limit from which a heap is full.
const FULL: f64 = 0.9;
/// If the limit is unknown, a heap is full if at most this much of it is free after a full GC. The
/// runtime leaves more free unless it is at its limit.
const FULL_FREE_PART: f64 = 0.05;
const FULL_FREE: u64 = 4 << 20;
/// Number of such collections required for a report; fewer are enough if the limit is known.
const CASE: u64 = 3;
const CASE_OF_LIMIT: u64 = 2;
/// A frame at 60 Hz. A longer pause drops a frame.
const FRAME_NS: u64 = 16_700_000;
/// A pause that users notice.
const NOTICED_NS: u64 = 100_000_000;
/// Number of requested collections from which they are reported.
const HABIT: u64 = 3;

/// Judges the live set after full GCs, in order.
pub fn growth(live: &[Live]) -> Growth {
    let whole: Vec<&Live> = live.iter().filter(|l| l.whole).collect();
    let points: Vec<Point> = whole
        .iter()
        .enumerate()
        .map(|(n, live)| Point {
            x: n as f64,
            // The unit hides half of itself on average.
            y: live.bytes as f64 + live.step.saturating_sub(1) as f64 / 2.0,
        })
        .collect();
    let Some(trend) = Trend::from_points(&points) else {
        return Growth::TooFew {
            collections: whole.len(),
            wanted: MIN_COUNT,
        };
    };
    let step = whole.iter().map(|l| l.step).max().unwrap_or(0);
    let middle = points[points.len() / 2].y;
    let least = (LEAST_GROWTH.max(step.saturating_mul(2)) as f64).max(LEAST_PART * middle);
    if let Some(wanted) = trend.points_to_decide(least) {
        return Growth::TooFew {
            collections: trend.points,
            wanted,
        };
    }
    if !trend.grows(least) {
        return Growth::Steady {
            collections: trend.points,
            growth: trend.growth,
            noise: trend.noise,
            least,
        };
    }
    let timed: Vec<Point> = whole
        .iter()
        .zip(&points)
        .filter_map(|(live, point)| {
            Some(Point {
                x: live.at? as f64 / 60e9,
                y: point.y,
            })
        })
        .collect();
    // f64 minutes of thousands of days are too coarse for the differences between them.
    let first = timed.first().map_or(0.0, |p| p.x);
    let mut timed: Vec<Point> = timed
        .iter()
        .map(|p| Point {
            x: p.x - first,
            ..*p
        })
        .collect();
    timed.sort_by(|a, b| a.x.total_cmp(&b.x));
    let by_time = (timed.len() == points.len())
        .then(|| Trend::from_points(&timed))
        .flatten();
    Growth::Grows(Growing {
        collections: trend.points,
        per_collection: trend.slope,
        per_minute: by_time.map(|t| t.slope),
        per_minute_range: by_time.map(|t| t.slope_range),
        growth: trend.growth,
        live: whole.last().map_or(0, |l| l.bytes),
        noise: trend.noise,
        score: trend.score,
    })
}

/// Returns the reason why a live set counts as steady. Takes its growth along the trend line, the
/// spread around the line, and the minimum growth that counts, all in bytes.
pub fn why_steady(growth: f64, noise: f64, least: f64) -> String {
    if growth <= OVER_NOISE * noise {
        format!(
            "no sustained growth: the trend is within the spread of {}",
            size(noise)
        )
    } else if growth < least {
        format!(
            "no sustained growth: the trend of {} in total is below the leak threshold of {}",
            size(growth),
            size(least)
        )
    } else {
        "no sustained growth: the live set rose mainly in the first half".to_owned()
    }
}

/// Returns all problems, the most severe first.
pub fn diagnose(report: &ProcessReport, process: &ProcessLog) -> Vec<Diagnosis> {
    let mut found: Vec<Diagnosis> = [
        out_of_memory(report),
        near_limit(report, process),
        grows(report),
        long_pauses(report, process),
        explicit(report, process),
    ]
    .into_iter()
    .flatten()
    .collect();
    found.sort_by_key(|d| std::cmp::Reverse(d.severity));
    found
}

fn grows(report: &ProcessReport) -> Option<Diagnosis> {
    let Growth::Grows(growing) = report.growth else {
        return None;
    };
    // The sizes that the line with the live set shows. The growth along the trend differs from
    // their difference.
    let first = report.live.iter().find(|live| live.whole);
    let mut text = format!(
        "the live set keeps growing: from {} to {} over {} full GCs, trend {} per GC",
        ByteSize(first.map_or(0, |live| live.bytes)),
        ByteSize(growing.live),
        growing.collections,
        size(growing.per_collection),
    );
    if let (Some(pace), Some((low, high))) = (growing.per_minute, growing.per_minute_range) {
        text += &format!(", {} per minute", size(pace));
        let (low, high) = (size(low), size(high));
        // An even series has an interval without width.
        if low != high {
            text += &format!(" (95% confidence interval {low} to {high})");
        }
        let left = report
            .limit
            .and_then(|limit| limit.checked_sub(growing.live));
        if let Some(left) = left.filter(|_| pace > 0.0) {
            let minutes = left as f64 / pace;
            if minutes < 60.0 * 24.0 {
                text += &format!(
                    ". At this rate, the heap reaches its limit of {} in {}",
                    ByteSize(report.limit.unwrap_or(0)),
                    HumanDuration(Duration::from_secs_f64(minutes * 60.0))
                );
            }
        }
    }
    text += &format!(". The spread around the trend is {}.", size(growing.noise));
    Some(Diagnosis {
        severity: Severity::Warning,
        text,
        help: "find the objects that stay reachable: take Java dumps before and after the growth \
               with `heaptap dump` and compare them with `heaptap leaks`"
            .to_owned(),
        evidence: Evidence::LiveSetGrows(growing),
    })
}

/// Returns whether an allocation waited for the collection.
fn is_for_alloc(reason: &str) -> bool {
    matches!(
        reason,
        "Alloc" | "GC_FOR_ALLOC" | "GC_FOR_MALLOC" | "GC_BEFORE_OOM"
    )
}

fn near_limit(report: &ProcessReport, process: &ProcessLog) -> Option<Diagnosis> {
    let (mut collections, mut full, mut most, mut last_resort) = (0u64, 0u64, 0u64, 0u64);
    for timed in &process.collections {
        let collection = &timed.logged.collection;
        if collection.ours || !is_for_alloc(&collection.reason) {
            continue;
        }
        collections += 1;
        last_resort += u64::from(collection.reason == "GC_BEFORE_OOM");
        let Some(live) = collection.live else {
            continue;
        };
        let steps = timed.logged.steps;
        let is_full = match (report.limit, collection.total) {
            (Some(limit), _) => live.saturating_add(steps.live) as f64 >= FULL * limit as f64,
            // Young collections do not change the size of the heap.
            (None, Some(total)) if super::event::is_whole(&collection.collector) => {
                let free = total.saturating_sub(live).saturating_add(steps.total);
                free <= FULL_FREE
                    && total.saturating_sub(live) as f64 <= FULL_FREE_PART * total as f64
            }
            _ => false,
        };
        if is_full {
            full += 1;
            most = most.max(live);
        }
    }
    let wanted = match report.limit {
        Some(_) => CASE_OF_LIMIT,
        None => CASE,
    };
    if full < wanted && last_resort == 0 {
        return None;
    }
    let bound = match report.limit {
        Some(limit) => format!(
            "the live set was at least {:.0}% of the heap limit of {}{}",
            FULL * 100.0,
            ByteSize(limit),
            report
                .limit_from
                .map_or_else(String::new, |from| format!(" ({})", from.words())),
        ),
        None => format!(
            "at most {:.0}% and {} of the heap were free",
            FULL_FREE_PART * 100.0,
            ByteSize(FULL_FREE)
        ),
    };
    let mut text = format!(
        "OutOfMemoryError is near: allocations waited for {}, and after {full} of them {bound}",
        counted(collections, "collection", "collections")
    );
    if most > 0 {
        text += &format!(" (at most {} live)", ByteSize(most));
    }
    if last_resort > 0 {
        text += &format!("; last attempts before an OutOfMemoryError: {last_resort}");
    }
    Some(Diagnosis {
        severity: Severity::Warning,
        text,
        help: "reduce the live set, or the next large allocation can fail; `heaptap dump` shows \
               what fills the heap"
            .to_owned(),
        evidence: Evidence::NearLimit {
            collections,
            full,
            limit: report.limit,
            live: most,
        },
    })
}

fn out_of_memory(report: &ProcessReport) -> Option<Diagnosis> {
    // A thrown error is also reported, so count the larger number.
    let errors: u64 = report
        .out_of_memory
        .iter()
        .map(|e| e.thrown.max(e.reported))
        .sum();
    let last = report.out_of_memory.last()?;
    let mut text = match errors {
        1 => "an OutOfMemoryError was thrown".to_owned(),
        more => format!("{more} OutOfMemoryErrors were thrown"),
    };
    let error = &last.error;
    if let Some(wanted) = error.wanted {
        text += &format!(": {} requested", ByteSize(wanted));
        if let Some(free) = error.free {
            text += &format!(", {} free", ByteSize(free));
        }
        if let Some(limit) = error.growth_limit {
            text += &format!(" of at most {}", ByteSize(limit));
        }
    } else if !error.text.is_empty() {
        let words: String = error.text.chars().take(160).collect();
        text += &format!(": {}", heaptap_base::untrusted::sanitize(&words));
    }
    if let Some(largest) = error.largest_free {
        text += &format!(
            "; the heap is fragmented: the largest free block is {}",
            ByteSize(largest)
        );
    }
    let threads = error.text.contains("pthread_create") || error.text.contains("new native thread");
    let help = match threads {
        true => {
            "reduce the number of threads or the use of address space: a thread could not be \
             created, but the Java heap is not full"
        }
        false => {
            "run `heaptap dump` to see what fills the heap, or look for a single very large \
             allocation"
        }
    };
    Some(Diagnosis {
        severity: Severity::Warning,
        text,
        help: help.to_owned(),
        evidence: Evidence::OutOfMemory { errors },
    })
}

fn long_pauses(report: &ProcessReport, process: &ProcessLog) -> Option<Diagnosis> {
    let long = process
        .collections
        .iter()
        .filter(|c| !c.logged.collection.ours)
        .flat_map(|c| &c.logged.collection.pauses)
        .filter(|pause| **pause > FRAME_NS)
        .count() as u64;
    if long == 0 {
        return None;
    }
    let Figures { count, max_ns, .. } = report.pauses;
    Some(Diagnosis {
        severity: match max_ns >= NOTICED_NS {
            true => Severity::Warning,
            false => Severity::Note,
        },
        text: format!(
            "{long} of {count} pauses exceeded a frame of 16.7 ms; the longest took {}",
            milliseconds(max_ns)
        ),
        help: "make fewer and smaller allocations in frequently executed code; `heaptap record \
               --java-allocations` shows their callsites"
            .to_owned(),
        evidence: Evidence::LongPauses {
            long,
            pauses: count,
            max_ns,
        },
    })
}

fn explicit(report: &ProcessReport, process: &ProcessLog) -> Option<Diagnosis> {
    let own: Vec<u64> = process
        .collections
        .iter()
        .filter(|c| !c.logged.collection.ours && !c.by_signal)
        .filter(|c| {
            let reason = c.logged.collection.reason.as_str();
            matches!(reason, "Explicit" | "GC_EXPLICIT")
        })
        .map(|c| c.logged.collection.duration.unwrap_or(0))
        .collect();
    let collections = own.len() as u64;
    if collections < HABIT {
        return None;
    }
    let total_ns = own.iter().fold(0u64, |sum, ns| sum.saturating_add(*ns));
    let name = report.name.as_deref().unwrap_or("the process");
    Some(Diagnosis {
        severity: Severity::Note,
        text: format!(
            "{collections} collections were requested, {} in total: by System.gc() in {} or by \
             `dumpsys meminfo`, which `heaptap meminfo` runs",
            milliseconds(total_ns),
            heaptap_base::untrusted::sanitize(name)
        ),
        help: "if the app calls System.gc(), remove the calls: they cost time and free little"
            .to_owned(),
        evidence: Evidence::ExplicitCollections {
            collections,
            total_ns,
        },
    })
}

/// Formats a number of bytes that can be fractional or negative.
fn size(bytes: f64) -> String {
    let text = ByteSize(bytes.abs().round() as u64).to_string();
    match bytes <= -0.5 {
        true => format!("-{text}"),
        false => text,
    }
}

/// `94 µs`, `1.23 ms`, `12.3 ms`, `1.20 s`.
pub fn milliseconds(ns: u64) -> String {
    let ms = ns as f64 / 1e6;
    match ns {
        0 => "0 ms".to_owned(),
        1..100_000 => format!("{:.0} µs", ns as f64 / 1e3),
        100_000..10_000_000 => format!("{ms:.2} ms"),
        10_000_000..1_000_000_000 => format!("{ms:.1} ms"),
        _ => format!("{:.2} s", ms / 1e3),
    }
}
