//! The result of the demo: the most certain leak of the native heap, and the leak of the Java heap
//! that retains the most.

use std::path::Path;

use crate::commands::shared::blocking;
use crate::commands::shared::java::kept;
use crate::commands::shared::sites::show_site;
use crate::console::flags::context::Context;
use crate::console::{Console, Style};
use crate::heaps::growth::{self, GrowthLooked, NativeLeaksRequest, SeriesRow, TOLERANCE_BYTES};
use crate::heaps::input::{DumpScope, LookOptions};
use crate::heaps::java::{JavaOptions, OpenedJava};
use crate::heaps::leaks::{LeaksRequest, LeaksRows, leaks};
use crate::heaps::selector::JavaInput;
use crate::names::options::NameOptions;
use heaptap_analyze::{filter, native::filter::Filter};
use heaptap_base::error::Failure;
use heaptap_base::untrusted::sanitize;

/// Shows the leaks of a recording and of the Java heaps that were dumped into `java`.
///
/// # Errors
/// Returns the errors of `heaptap leaks` for either input.
pub(crate) async fn answer(ctx: &Context, recording: &Path, java: &Path) -> Result<(), Failure> {
    let input = |path: &Path| JavaInput {
        path: path.to_owned(),
        which: None,
    };
    let request = NativeLeaksRequest {
        inputs: vec![(input(recording), DumpScope::All)],
        named: false,
        options: LookOptions {
            names: kept_names(),
            ..LookOptions::default()
        },
        filter: Filter::default(),
        tolerance: TOLERANCE_BYTES,
        loops: 1,
        warmup: None,
        interval: 0,
        limit: 1,
    };
    let found = blocking::stepwise(ctx, move |progress| growth::leaks(&request, progress)).await?;
    if let GrowthLooked::Native(found) = found {
        for series in &found.document.series {
            ctx.console.data("");
            show_series(&ctx.console, series);
        }
    }
    let request = LeaksRequest {
        inputs: vec![input(java)],
        options: JavaOptions {
            names: kept_names(),
            ..JavaOptions::default()
        },
        leaks: true,
        waste: false,
        limit: 1,
        classes: filter::Filter::default(),
        loops: 1,
    };
    let report = blocking::stepwise(ctx, move |progress| {
        leaks(&request, OpenedJava::Unread, progress)
    })
    .await?;
    if let Some(rows) = &report.document.leaks {
        ctx.console.data("");
        show_java(&ctx.console, rows);
    }
    Ok(())
}

/// Returns options that use only the names stored in the recording.
fn kept_names() -> NameOptions {
    NameOptions {
        symbolize: false,
        discover: false,
        ..NameOptions::default()
    }
}

fn show_series(console: &Console, series: &SeriesRow) {
    let leaks = series.leaks + series.leaks_below_tolerance;
    let text = match leaks {
        0 => "Native heap: no confirmed leaks".to_owned(),
        1 => "Native heap: 1 confirmed leak".to_owned(),
        n => format!("Native heap: {n} confirmed leaks, the largest:"),
    };
    console.in_style(Style::Strong, text);
    let first = series
        .sites
        .first()
        .filter(|site| site.verdict == "confirmed");
    if let Some(site) = first {
        show_site(console, "  ", site, &series.heaps, None);
    }
}

fn show_java(console: &Console, rows: &LeaksRows) {
    let others = rows.groups_total.saturating_sub(1);
    let text = match (rows.groups.first(), others) {
        (None, _) => "Java heap: no leaks".to_owned(),
        (Some(_), 0) => "Java heap: 1 leak".to_owned(),
        (Some(_), others) => format!("Java heap: {} leaks, the largest:", others + 1),
    };
    console.in_style(Style::Strong, text);
    let Some(group) = rows.groups.first() else {
        return;
    };
    let certainty = group.certainty.name();
    let certainty = match group.leaks.first() {
        Some(leak) => format!("{certainty}: {}", leak.reason),
        None => certainty.to_owned(),
    };
    console.data(format_args!(
        "  {} × {}  {}",
        group.count,
        console.styled(Style::Strong, sanitize(&group.class)),
        sanitize(&certainty)
    ));
    let held = group.path.iter().filter(|step| step.suspect);
    let held: Vec<String> = held
        .filter_map(|step| {
            let class = step.class.rsplit('.').next().unwrap_or(&step.class);
            Some(format!("{class}.{}", step.reference.as_ref()?.shown()))
        })
        .collect();
    let held = match held.as_slice() {
        [] => String::new(),
        held => format!(" · reachable through {}", held.join(", ")),
    };
    console.data(format_args!(
        "  a {} that retains {}{}",
        group.what,
        kept(group.kept),
        sanitize(&held)
    ));
    let advice = console.styled(Style::Help, sanitize(&group.advice));
    console.data(format_args!("  → {advice}"));
}
