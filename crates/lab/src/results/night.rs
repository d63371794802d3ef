//! `index.html` of many results: a table of devices and scenarios, the budgets of each scenario, and
//! trends over versions of the app. Jenkins shows pages without scripts, inline style and `data:`
//! images, so the page has plain tables and one style sheet.

use std::collections::BTreeMap;

use super::defang::{self, markup};
use super::markdown::totals;
use super::{BudgetResult, Run, RunPage, RunState, ScenarioResult, values};
use crate::verdict::{Judgement, Verdict};

/// Name of the style sheet that the page refers to.
pub const CSS_NAME: &str = "index.css";

/// A page and its style sheet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Night {
    /// Contents of `index.html`.
    pub html: String,
    /// Contents of [`CSS_NAME`] in the same directory.
    pub css: &'static str,
}

/// Returns the page of the results, with links to the pages of runs: paths relative to the page. If
/// a device has several results of a scenario, the tables show the latest and a trend shows all.
pub fn index(results: &[ScenarioResult], page: RunPage<'_>) -> Night {
    let cells = latest(results);
    let mut html = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>Memory budgets</title>\n<link rel=\"stylesheet\" href=\"{CSS_NAME}\">\n</head>\n\
         <body>\n<main>\n<h1>Memory budgets</h1>\n<p>{}</p>\n",
        totals(&cells.values().copied().collect::<Vec<_>>()),
    );
    let mut scenarios: Vec<&str> = Vec::new();
    let mut devices: Vec<DeviceKey> = Vec::new();
    for result in results {
        if !scenarios.contains(&result.scenario.as_str()) {
            scenarios.push(&result.scenario);
        }
        if !devices.contains(&device_key(result)) {
            devices.push(device_key(result));
        }
    }
    overview(&mut html, &cells, &devices, &scenarios, page);
    for scenario in scenarios {
        html += &format!("<h2>{}</h2>\n", text(scenario));
        budgets(&mut html, &cells, &devices, scenario);
        trends(&mut html, results, scenario);
    }
    html += "</main>\n</body>\n</html>\n";
    Night {
        html,
        css: include_str!("night.css"),
    }
}

/// Serial, that of the device that stayed away, and model: serials of cheap devices are not unique.
type DeviceKey<'a> = (&'a str, Option<&'a str>, Option<&'a str>);
type Cells<'a> = BTreeMap<(DeviceKey<'a>, &'a str), &'a ScenarioResult>;

fn device_key(result: &ScenarioResult) -> DeviceKey<'_> {
    let device = &result.device;
    (
        &device.serial,
        device.instead_of.as_deref(),
        device.model.as_deref(),
    )
}

/// Returns the latest result of each device and scenario.
fn latest(results: &[ScenarioResult]) -> Cells<'_> {
    let mut cells = Cells::new();
    for result in results {
        let cell = cells
            .entry((device_key(result), result.scenario.as_str()))
            .or_insert(result);
        if result.started >= cell.started {
            *cell = result;
        }
    }
    cells
}

fn overview(
    html: &mut String,
    cells: &Cells,
    devices: &[DeviceKey],
    scenarios: &[&str],
    page: RunPage<'_>,
) {
    let mut columns = vec!["device".to_owned()];
    columns.extend(scenarios.iter().map(|scenario| text(scenario)));
    table_start(html, "Verdicts by device and scenario", &columns);
    for device in devices {
        let of_device = scenarios
            .iter()
            .map(|scenario| cells.get(&(*device, *scenario)));
        let of_device: Vec<_> = of_device.collect();
        let Some(first) = of_device.iter().flatten().next() else {
            continue;
        };
        let system = first.device.system.as_deref().unwrap_or_default();
        *html += &format!(
            "<tr><th scope=\"row\">{}<br><small>{}</small></th>",
            markup(&values::device_name(&first.device)),
            text(system)
        );
        for cell in of_device {
            *html += &match cell {
                Some(result) => format!("<td>{}</td>", summary(result, page)),
                None => "<td>-</td>".to_owned(),
            };
        }
        *html += "</tr>\n";
    }
    table_end(html);
}

/// Returns the verdicts of a result, its errors, unusual conditions, and the links of its runs.
fn summary(result: &ScenarioResult, page: RunPage<'_>) -> String {
    let failures = values::failures(result);
    let has = |word: &str| {
        result
            .budgets
            .iter()
            .any(|budget| values::verdict(budget) == word)
    };
    let class = match () {
        () if !failures.is_empty() => "failed",
        () if has("over") => "over",
        () if has("undecided") || has("not measured") => "undecided",
        () => "within",
    };
    let mut html = format!("<span class=\"{class}\">{}</span>", totals(&[result]));
    for failure in &failures {
        let message = format!("{}: {}", failure.title, failure.message);
        html += &format!("<br><small>{}</small>", markup(&message));
    }
    for run in &result.runs {
        if let Some(conditions) = values::conditions(run) {
            let text = format!("run {}: {conditions}", run.number);
            html += &format!("<br><small>{}</small>", markup(&text));
        }
    }
    let links: Vec<String> = result
        .runs
        .iter()
        .map(|run| link(result, run, page))
        .collect();
    if !links.is_empty() {
        html += &format!("<br>{}", links.join(", "));
    }
    html
}

fn link(result: &ScenarioResult, run: &Run, page: RunPage<'_>) -> String {
    let state = match run.state {
        RunState::Done => "",
        RunState::Void => " (void)",
        RunState::Failed => " (failed)",
    };
    let name = format!("run {}{state}", run.number);
    let path = page(result, run).and_then(|path| defang::relative_path(&path));
    match path {
        Some(path) => format!("<a href=\"{}\">{name}</a>", percent_encoded(&path)),
        None => name,
    }
}

/// Encodes a path for a link. A path cannot become a scheme such as `javascript:`.
fn percent_encoded(path: &str) -> String {
    let mut out = String::new();
    for byte in path.bytes() {
        match byte {
            b'/' | b'-' | b'_' | b'.' | b'~' => out.push(char::from(byte)),
            byte if byte.is_ascii_alphanumeric() => out.push(char::from(byte)),
            byte => out += &format!("%{byte:02X}"),
        }
    }
    out
}

/// Writes the table of a scenario's budgets on all devices.
fn budgets(html: &mut String, cells: &Cells, devices: &[DeviceKey], scenario: &str) {
    let columns = [
        "budget",
        "device",
        "verdict",
        "value",
        "limit",
        "largest part",
    ];
    table_start(html, "Budgets", &columns.map(str::to_owned));
    for device in devices {
        let Some(result) = cells.get(&(*device, scenario)) else {
            continue;
        };
        for budget in &result.budgets {
            *html += &format!(
                "<tr><th scope=\"row\">{}<br><small>{}</small></th><td>{}<br><small>{}</small></td>",
                text(&budget.name),
                text(&budget.what),
                markup(&values::device_name(&result.device)),
                text(&result.device_class)
            );
            *html += &verdict_cell(budget);
            *html += &match &budget.judgement {
                Some(judgement) => format!(
                    "<td class=\"number\">{}</td><td class=\"number\">{}</td>",
                    values::estimate(budget.unit, judgement),
                    values::value(budget.unit, judgement.limit)
                ),
                None => format!(
                    "<td>{}</td><td>-</td>",
                    text(budget.missing.as_deref().unwrap_or("-"))
                ),
            };
            let part = budget.excess.first();
            let part = part.map_or("-".to_owned(), |part| values::excess(budget.unit, part));
            *html += &format!("<td>{}</td></tr>\n", markup(&part));
        }
    }
    table_end(html);
}

fn verdict_cell(budget: &BudgetResult) -> String {
    let class = match values::verdict_of(budget) {
        Some(Verdict::Within) => "within",
        Some(Verdict::Over) => "over",
        Some(Verdict::Undecided) => "undecided",
        None => "unmeasured",
    };
    let why = budget.judgement.as_ref().and_then(values::why);
    let why = why.map(|why| format!("<br><small>{}</small>", markup(&why)));
    format!(
        "<td class=\"{class}\">{}{}</td>",
        values::verdict(budget),
        why.unwrap_or_default()
    )
}

/// A judged budget of a result.
type Point<'a> = (&'a ScenarioResult, &'a BudgetResult, &'a Judgement);

/// Writes a table by version of the app for each device and budget with several versions.
fn trends(html: &mut String, results: &[ScenarioResult], scenario: &str) {
    let mut series: BTreeMap<(DeviceKey, &str), Vec<Point>> = BTreeMap::new();
    for result in results.iter().filter(|result| result.scenario == scenario) {
        for budget in &result.budgets {
            if let Some(judgement) = &budget.judgement {
                let key = (device_key(result), budget.name.as_str());
                series
                    .entry(key)
                    .or_default()
                    .push((result, budget, judgement));
            }
        }
    }
    for ((_, name), mut points) in series {
        points.sort_by(|a, b| a.0.started.cmp(&b.0.started));
        if points
            .iter()
            .all(|point| point.0.app_version == points[0].0.app_version)
        {
            continue;
        }
        let caption = format!(
            "{} on {} by version, oldest first",
            defang::name(name),
            values::device_name(&points[0].0.device)
        );
        let columns = [
            "version",
            "start",
            "verdict",
            "value",
            "limit",
            "share of the largest",
        ];
        table_start(html, &caption, &columns.map(str::to_owned));
        let largest = points.iter().map(|point| point.2.mean).fold(0.0, f64::max);
        for (result, budget, judgement) in points {
            *html += &format!(
                "<tr><th scope=\"row\">{}</th><td>{}</td>{}<td class=\"number\">{}</td>\
                 <td class=\"number\">{}</td><td>{}</td></tr>\n",
                text(result.app_version.as_deref().unwrap_or("unknown")),
                text(&result.started),
                verdict_cell(budget),
                values::estimate(budget.unit, judgement),
                values::value(budget.unit, judgement.limit),
                bar(judgement.mean, largest)
            );
        }
        table_end(html);
    }
}

/// Returns a bar of the share in percent; browsers without `meter` show the number.
fn bar(value: f64, largest: f64) -> String {
    let share = value / largest * 100.0;
    if !share.is_finite() {
        return "-".to_owned();
    }
    let share = share.clamp(0.0, 100.0);
    format!("<meter min=\"0\" max=\"100\" value=\"{share:.1}\">{share:.0}%</meter>")
}

fn table_start(html: &mut String, caption: &str, columns: &[String]) {
    *html += "<div class=\"wide\">\n<table>\n";
    *html += &format!("<caption>{}</caption>\n<thead><tr>", markup(caption));
    for column in columns {
        *html += &format!("<th scope=\"col\">{column}</th>");
    }
    *html += "</tr></thead>\n<tbody>\n";
}

fn table_end(html: &mut String) {
    *html += "</tbody>\n</table>\n</div>\n";
}

/// Returns text from a device, escaped.
fn text(text: &str) -> String {
    markup(&defang::line(text, defang::MAX_LINE_CHARS))
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{self, all_states, hostile};
    use super::*;

    const VOID: &[&str] = &["meta", "link", "br"];

    #[test]
    fn index_all_states_has_links_and_verdicts() {
        let night = index(&[all_states()], &fixture::page);
        fixture::assert_well_formed(&night.html, VOID);
        for part in [
            "<span class=\"failed\">1 over, 1 undecided, 1 not measured, 1 within, \
             1 error</span>",
            "run 3 failed at steps[3]: no activity .MainActivity in 30 s (help: check the cable)",
            "run 1: thermal status 1 (light); killed for low memory: com.example.chat",
            "<a href=\"night/run-2/report.html\">run 2 (void)</a>",
            "<td class=\"over\">over</td><td class=\"number\">12.9 MiB (12.4 to 13.4)</td>\
             <td class=\"number\">12.0 MiB</td><td>3.0 MiB  Cache::insert &lt;- Cache::load</td>",
            "<td class=\"unmeasured\">not measured</td><td>meminfo has no row Graphics</td>",
        ] {
            assert!(night.html.contains(part), "{part} in {}", night.html);
        }
        assert!(!night.html.contains("by version"));
    }

    #[test]
    fn index_has_nothing_that_a_sandbox_forbids() {
        let night = index(&[all_states(), hostile()], &fixture::page);
        fixture::assert_well_formed(&night.html, VOID);
        fixture::assert_harmless(&night.html);
        for part in [
            "<script",
            "<style",
            "style=",
            "data:",
            "javascript:",
            "onclick",
            "<img",
        ] {
            assert!(!night.html.contains(part), "{part}");
        }
        assert!(!night.css.contains("url(") && night.css.contains("prefers-color-scheme: dark"));
    }

    #[test]
    fn index_several_versions_have_a_trend() {
        let mut old = all_states();
        old.app_version = Some("2.0 (200)".to_owned());
        old.started = "2026-11-19T01:02:03Z".to_owned();
        for judgement in old.budgets.iter_mut().filter_map(|b| b.judgement.as_mut()) {
            judgement.mean /= 2.0;
        }
        let html = index(&[all_states(), old], &fixture::page).html;
        fixture::assert_well_formed(&html, VOID);
        let old = html
            .find("<th scope=\"row\">2.0 (200)</th>")
            .expect("the old version");
        let new = html
            .find("<th scope=\"row\">2.1 (210)</th>")
            .expect("the new version");
        assert!(old < new);
        assert!(html.contains("<meter min=\"0\" max=\"100\" value=\"50.0\">50%</meter>"));
        // The tables of budgets show the latest result only.
        assert_eq!(html.matches("<td class=\"unmeasured\">").count(), 1);
    }

    #[test]
    fn index_links_have_no_scheme() {
        let html = index(&[all_states()], &|_, _| {
            Some("javascript:alert(1)/\" x".to_owned())
        })
        .html;
        assert!(html.contains("href=\"javascript%3Aalert%281%29/%22%20x\""));
        let html = index(&[all_states()], &|_, _| Some("../../etc/passwd".to_owned())).html;
        assert!(!html.contains("<a "));
    }
}
