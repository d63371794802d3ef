//! `heaptap apps`: shows packages and their eligibility for profiling.

use std::collections::BTreeMap;

use serde::Serialize;

use super::args::Args;
use crate::commands::shared::eligibility::show_finding;
use crate::console::exit::Outcome;
use crate::console::flags::context::Context;
use crate::console::table::{columns, show_columns};
use crate::console::{Console, Style};
use heaptap_base::error::Failure;
use heaptap_capture::eligibility::{
    self, Answer, AppType, DeviceFacts, Finding, InstalledApp, ListOptions, Severity,
};

/// Document of `--json`.
#[derive(Serialize)]
struct AppsReport {
    device: DeviceFacts,
    /// Findings about the device.
    findings: Vec<Finding>,
    /// Packages by name.
    apps: Vec<InstalledApp>,
}

/// Runs the command.
///
/// # Errors
/// Returns an error if the device cannot be reached or is lost.
pub async fn run(ctx: &Context, args: Args) -> Result<Outcome, Failure> {
    let options = ListOptions {
        filter: args.filter,
        all: args.all,
        user: ctx.globals.user,
    };
    let device = ctx.device().await?;
    let facts = eligibility::facts(device).await?;
    let apps = eligibility::list_apps(device, &facts, &options).await?;
    let report = AppsReport {
        findings: eligibility::decide_device(&facts),
        device: facts,
        apps,
    };
    let console = &ctx.console;
    if console.is_json() {
        console.json(&report);
        return Ok(Outcome::Done);
    }
    show(console, &report);
    if report.apps.is_empty() {
        console.say(match &options.filter {
            Some(filter) => format!("no package has \"{filter}\" in its name"),
            None => "no apps were installed on this phone; --all lists those of the system".into(),
        });
    } else if options.filter.is_none() && !options.all {
        console.say("Apps that were installed; --all adds those of the system.");
    }
    Ok(Outcome::Done)
}

fn show(console: &Console, report: &AppsReport) {
    for finding in &report.findings {
        show_finding(console, finding, "");
    }
    if report.apps.is_empty() {
        return;
    }
    let mut rows: Vec<Vec<String>> = Vec::with_capacity(report.apps.len() + 1);
    rows.push(HEADINGS.map(str::to_owned).to_vec());
    rows.extend(report.apps.iter().map(|app| row(app).to_vec()));
    match console.stdout_width() {
        Some(width) if is_wide(&columns(&rows, &[]), width) => narrow(console, &rows, width),
        _ => show_columns(console, &rows, &[]),
    }
    let mut reasons: BTreeMap<String, (&Finding, usize)> = BTreeMap::new();
    for finding in report.apps.iter().flat_map(|a| &a.findings) {
        if finding.severity == Severity::Blocks {
            reasons
                .entry(finding.id.to_string())
                .or_insert((finding, 0))
                .1 += 1;
        }
    }
    for (finding, count) in reasons.into_values() {
        let apps = if count == 1 { "app" } else { "apps" };
        console.say(format_args!(
            "no for {count} {apps}: {} [{}]",
            finding.why, finding.id
        ));
        if let Some(fix) = &finding.fix {
            console.say(format_args!(
                "  {}: {fix}",
                console.on_stderr(Style::Help, "help")
            ));
        }
    }
}

const HEADINGS: [&str; 6] = ["PACKAGE", "UID", "TYPE", "NATIVE", "JAVA", "RUNNING"];

fn is_wide(lines: &[String], columns: usize) -> bool {
    let width = |line: &String| console::measure_text_width(line);
    lines.iter().map(width).any(|width| width > columns)
}

/// Shows rows on terminals that are too narrow: omits the user ID, then puts names on their own
/// lines, with the rest below.
fn narrow(console: &Console, rows: &[Vec<String>], width: usize) {
    let without_uid = |row: &Vec<String>| [&row[..1], &row[2..]].concat();
    let rows: Vec<Vec<String>> = rows.iter().map(without_uid).collect();
    let lines = columns(&rows, &[]);
    if !is_wide(&lines, width) {
        return show_columns(console, &rows, &[]);
    }
    let rest: Vec<Vec<String>> = rows.iter().map(|row| row[1..].to_vec()).collect();
    for (row, line) in rows.iter().zip(columns(&rest, &[])) {
        console.laid_out(&row[0]);
        console.data(format_args!("  {line}"));
    }
}

fn row(app: &InstalledApp) -> [String; 6] {
    let kind = match app.package.app_type {
        Some(AppType::Debuggable) => "debuggable",
        Some(AppType::Profileable) => "profileable",
        Some(AppType::PlatformOnly | AppType::Closed) => "closed",
        None => "?",
    };
    let pids: Vec<String> = app.processes.iter().map(|p| p.pid.to_string()).collect();
    // The running state has its own column.
    let word = |a: Answer| match a {
        Answer::Yes | Answer::OnlyFromStartup | Answer::OnceRunning => "yes",
        Answer::Unknown => "?",
        Answer::No => "no",
    };
    [
        app.package.name.clone(),
        app.package
            .uid
            .map_or_else(|| "?".to_owned(), |u| u.to_string()),
        kind.to_owned(),
        word(app.native).to_owned(),
        word(app.java).to_owned(),
        if pids.is_empty() {
            "-".to_owned()
        } else {
            pids.join(" ")
        },
    ]
}
