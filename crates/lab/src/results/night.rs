//! `index.html` of many results: a table of devices and scenarios, the budgets of each scenario, and
//! trends over versions of the app. Jenkins shows pages without scripts, inline style and `data:`
//! images, so the page has plain tables, one style sheet, and images in files.

use std::collections::BTreeMap;

use super::ci_escape::{self, markup};
use super::markdown::totals;
use super::{BudgetResult, Run, RunPage, RunState, ScenarioResult, trend, values};
use crate::verdict::Verdict;

/// Name of the style sheet that the page refers to.
pub const CSS_NAME: &str = "index.css";

/// A page and its style sheet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Night {
    /// Contents of `index.html`.
    pub html: String,
    /// Contents of [`CSS_NAME`] in the same directory.
    pub css: &'static str,
    /// Names and contents of the images in the same directory.
    pub images: Vec<(String, String)>,
}

/// Returns the page of the results, with links to the pages of runs: paths relative to the page. If
/// a device has several results of a scenario, the tables show the latest.
pub fn index(results: &[ScenarioResult], page: RunPage<'_>) -> Night {
    let cells = latest(results);
    let html = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>Memory budgets</title>\n<link rel=\"stylesheet\" href=\"{CSS_NAME}\">\n</head>\n\
         <body>\n<main>\n<h1>Memory budgets</h1>\n<p>{}</p>\n",
        totals(&cells.values().copied().collect::<Vec<_>>()),
    );
    let mut night = Night {
        html,
        css: include_str!("night.css"),
        images: Vec::new(),
    };
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
    overview(&mut night.html, &cells, &devices, &scenarios, page);
    for scenario in scenarios {
        night.html += &format!("<h2>{}</h2>\n", text(scenario));
        budgets(&mut night.html, &cells, &devices, scenario);
        trends(&mut night, &cells, &devices, scenario);
    }
    night.html += "</main>\n</body>\n</html>\n";
    night
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

/// Returns the verdicts of a result, its errors, what was unusual, and the links of its runs.
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
    if let Some(builds) = values::builds(result) {
        html += &format!("<br><small>{}</small>", markup(&builds));
    }
    for run in &result.runs {
        for remark in values::remarks(run) {
            let text = format!("run {}: {remark}", run.number);
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
        RunState::Done => String::new(),
        state => format!(" ({state})"),
    };
    let build = run.build.map(|build| format!(" {build}"));
    let name = format!("run {}{}{state}", run.number, build.unwrap_or_default());
    let path = page(result, run).and_then(|path| ci_escape::relative_path(&path));
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
        "largest part or growth",
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
                    "<td class=\"number\">{}{}</td><td class=\"number\">{}</td>",
                    values::estimate(budget.unit, judgement),
                    values::change(budget)
                        .map(|change| format!("<br><small>{}</small>", markup(&change)))
                        .unwrap_or_default(),
                    values::value(budget.unit, judgement.limit)
                ),
                None => format!(
                    "<td>{}</td><td>-</td>",
                    text(budget.missing.as_deref().unwrap_or("-"))
                ),
            };
            let part = budget.excess.first();
            let part = part.map_or("-".to_owned(), |part| values::excess(budget.unit, part));
            *html += &format!("<td class=\"names\">{}</td></tr>\n", markup(&part));
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

/// Writes the figures of the nights before, by version of the app, for each budget that the
/// baseline has.
fn trends(night: &mut Night, cells: &Cells, devices: &[DeviceKey], scenario: &str) {
    let results = devices
        .iter()
        .filter_map(|device| cells.get(&(*device, scenario)));
    let known: Vec<_> = results
        .flat_map(|result| result.budgets.iter().map(move |budget| (*result, budget)))
        .filter(|(_, budget)| !budget.history.is_empty())
        .collect();
    if known.is_empty() {
        return;
    }
    let columns = ["budget", "trend", "versions, oldest first"];
    table_start(&mut night.html, "Trend", &columns.map(str::to_owned));
    for (result, budget) in known {
        let picture = trend::svg(budget).map(|svg| {
            let name = format!("trend-{}.svg", night.images.len() + 1);
            let image = format!("<img src=\"{name}\" alt=\"\" width=\"240\" height=\"60\">");
            night.images.push((name, svg));
            image
        });
        night.html += &format!(
            "<tr><th scope=\"row\">{}<br><small>{}</small></th><td>{}</td><td><ol>",
            text(&budget.name),
            markup(&values::device_name(&result.device)),
            picture.unwrap_or_default()
        );
        for past in &budget.history {
            let value = values::past(budget.unit, past);
            night.html += &point(past.app_version.as_deref(), &past.started, &value);
        }
        if let Some(judgement) = &budget.judgement {
            let value = values::estimate(budget.unit, judgement);
            night.html += &point(result.app_version.as_deref(), &result.started, &value);
        }
        night.html += "</ol></td></tr>\n";
    }
    table_end(&mut night.html);
}

fn point(version: Option<&str>, started: &str, value: &str) -> String {
    let day = started.split('T').next().unwrap_or_default();
    let version = text(version.unwrap_or("unknown version"));
    format!("<li>{version}: {value} <small>{}</small></li>", text(day))
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
    markup(&ci_escape::line(text, ci_escape::MAX_LINE_CHARS))
}

#[cfg(test)]
mod tests {
    use super::super::PastFigure;
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
             <td class=\"number\">12.0 MiB</td><td class=\"names\">3.0 MiB  Cache::insert &lt;- Cache::load</td>",
            "<td class=\"unmeasured\">not measured</td><td>meminfo has no row Graphics</td>",
        ] {
            assert!(night.html.contains(part), "{part} in {}", night.html);
        }
        assert!(night.images.is_empty());
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
    fn index_of_two_builds_names_the_build_of_each_run() {
        let html = index(&[fixture::two_builds()], &fixture::page).html;
        fixture::assert_well_formed(&html, VOID);
        for part in [
            "<small>old build 2.0 (200): runs 1, 4, 5; new build 2.1 (210): runs 2, 3, 6</small>",
            ">run 1 old</a>, ",
            "<br><small>+30.0% (28.0% to 32.1%) from the old build</small></td>",
        ] {
            assert!(html.contains(part), "{part} in {html}");
        }
    }

    #[test]
    fn index_has_the_nights_of_the_baseline() {
        let mut result = all_states();
        let mib = f64::from(1 << 20);
        result.budgets[1].history = vec![PastFigure {
            started: "2026-11-19T01:02:03Z".to_owned(),
            device: None,
            app_version: Some("2.0 (200)".to_owned()),
            mean: 6.0 * mib,
            lower: 5.5 * mib,
            upper: 6.5 * mib,
        }];
        let night = index(&[result], &fixture::page);
        fixture::assert_well_formed(&night.html, &[VOID, &["img"]].concat());
        let versions = "<ol><li>2.0 (200): 6.0 MiB (5.5 to 6.5) <small>2026-11-19</small></li>\
                        <li>2.1 (210): 12.9 MiB (12.4 to 13.4) <small>2026-11-20</small></li></ol>";
        assert!(night.html.contains(versions), "{}", night.html);
        assert!(
            night.html.contains("<img src=\"trend-1.svg\""),
            "{}",
            night.html
        );
        assert_eq!(night.images.len(), 1);
        // Of several results of a device, the latest.
        let mut old = all_states();
        old.started = "2026-11-18T01:02:03Z".to_owned();
        let html = index(&[all_states(), old], &fixture::page).html;
        assert_eq!(html.matches("<td class=\"unmeasured\">").count(), 1);
        assert!(!html.contains("<caption>Trend"));
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
