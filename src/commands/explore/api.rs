//! Requests of the page: their names, values and answers.
//!
//! | operation | values | answer |
//! |---|---|---|
//! | `meta` | | the heap, what is built, totals |
//! | `classes` | `by`, `sort`, `reverse`, `filter`, page | rows of the table |
//! | `objects` | `class`, `dominated` or `top`; `sort`; page | objects of a list |
//! | `object` | `id` | facts about an object |
//! | `fields`, `referrers` | `id`, page | its fields or elements; what refers to it |
//! | `path` | `id` | the shortest path from a root |
//! | `leaks`, `waste` | | as in `leaks --json` |
//! | `treemap` | `id`, or nothing for the whole; `cells` | cut of the dominator tree |
//!
//! A page is `offset` and `limit`.

use super::state::{ExploredHeap, Progress};
use crate::analyze::histogram::HistogramKey;
use crate::explore::{
    ClassQuery, ClassSort, Explorer, ObjectList, ObjectQuery, ObjectSort, Page, Size,
};
use crate::heap_graph::ObjectIndex;
use crate::heaps::java::facts::HeapFacts;
use crate::net::{ApiProblem, ApiRequest};
use serde::Serialize;

/// Rows of a page if the request does not say.
const DEFAULT_ROWS: usize = 100;
/// Cells of a treemap if the request does not say.
const DEFAULT_CELLS: usize = 1000;

/// State of the heap and facts about it.
#[derive(Serialize)]
struct Meta<'a> {
    #[serde(flatten)]
    progress: Progress,
    /// `None` before it is read.
    heap: Option<&'a HeapFacts>,
    /// Whether answers have texts and values.
    contents: bool,
    objects: u64,
    classes: u64,
    roots: u64,
    /// `None` before dominators are computed.
    reachable: Option<Size>,
    version: &'static str,
}

/// Answers a request.
pub(super) fn answer(explored: &ExploredHeap, request: &ApiRequest) -> Result<Vec<u8>, ApiProblem> {
    if request.operation == "meta" {
        return json(&meta(explored));
    }
    let Some((explorer, _)) = explored.heap() else {
        return Err(ApiProblem::NotReady);
    };
    match request.operation.as_str() {
        "classes" => json(&explorer.classes(&class_query(request)?)),
        "objects" => json(&explorer.objects(&object_query(explorer, request)?)),
        "object" => json(&explorer.object(object(explorer, request)?)),
        "fields" => json(&explorer.fields(object(explorer, request)?, page(request)?)),
        "referrers" => json(&explorer.referrers_of(object(explorer, request)?, page(request)?)),
        "leaks" => json(explored.leaks(explorer)),
        "waste" => json(explored.waste(explorer)),
        "path" => json(&explorer.path(object(explorer, request)?)),
        "treemap" => {
            let of = match request.get("id") {
                Some(_) => Some(object(explorer, request)?),
                None => None,
            };
            json(&explorer.treemap(of, number(request, "cells", DEFAULT_CELLS)?))
        }
        unknown => Err(ApiProblem::NotFound(format!("no operation {unknown:?}"))),
    }
}

fn meta(explored: &ExploredHeap) -> Meta<'_> {
    let progress = explored.progress();
    let heap = explored.heap();
    let graph = heap.map(|(explorer, _)| explorer.graph());
    let is_sized = progress.built.contains(&"dominators");
    let sized = heap.filter(|_| is_sized);
    Meta {
        heap: heap.map(|(_, facts)| facts),
        contents: heap.is_some_and(|(explorer, _)| explorer.shows_contents()),
        objects: graph.map_or(0, |graph| graph.len() as u64),
        classes: graph.map_or(0, |graph| graph.classes().len() as u64),
        roots: graph.map_or(0, |graph| graph.roots().len() as u64),
        reachable: sized.map(|(explorer, _)| explorer.dominators().total().into()),
        version: env!("CARGO_PKG_VERSION"),
        progress,
    }
}

fn json(answer: &impl Serialize) -> Result<Vec<u8>, ApiProblem> {
    serde_json::to_vec(answer).map_err(|error| ApiProblem::Invalid(error.to_string()))
}

fn class_query(request: &ApiRequest) -> Result<ClassQuery, ApiProblem> {
    Ok(ClassQuery {
        by: match request.get("by").unwrap_or("class") {
            "class" => HistogramKey::Class,
            "package" => HistogramKey::Package,
            "superclass" => HistogramKey::Superclass,
            "heap" => HistogramKey::Heap,
            "loader" => HistogramKey::Loader,
            other => return Err(invalid("by", other)),
        },
        sort: match request.get("sort").unwrap_or("retained") {
            "name" => ClassSort::Name,
            "count" => ClassSort::Count,
            "shallow" => ClassSort::Shallow,
            "native" => ClassSort::Native,
            "retained" => ClassSort::Retained,
            other => return Err(invalid("sort", other)),
        },
        reverse: request.get("reverse").is_some(),
        filter: request.get("filter").unwrap_or("").to_owned(),
        page: page(request)?,
    })
}

fn object_query(explorer: &Explorer, request: &ApiRequest) -> Result<ObjectQuery, ApiProblem> {
    let dominated = request.get("dominated");
    let list = match (request.get("class"), dominated, request.get("top")) {
        (Some(class), None, None) => ObjectList::Class(class.to_owned()),
        (None, Some(id), None) => ObjectList::Dominated(find(explorer, id)?),
        (None, None, Some(_)) => ObjectList::Top,
        (None, None, None) => ObjectList::All,
        _ => return Err(ApiProblem::Invalid("several lists are named".to_owned())),
    };
    Ok(ObjectQuery {
        list,
        sort: match request.get("sort").unwrap_or("retained") {
            "retained" => ObjectSort::Retained,
            "shallow" => ObjectSort::Shallow,
            other => return Err(invalid("sort", other)),
        },
        page: page(request)?,
    })
}

fn page(request: &ApiRequest) -> Result<Page, ApiProblem> {
    let offset = number(request, "offset", 0)?;
    Ok(Page::new(offset, number(request, "limit", DEFAULT_ROWS)?))
}

fn number(request: &ApiRequest, name: &str, default: usize) -> Result<usize, ApiProblem> {
    match request.get(name) {
        Some(text) => text.parse().map_err(|_| invalid(name, text)),
        None => Ok(default),
    }
}

fn object(explorer: &Explorer, request: &ApiRequest) -> Result<ObjectIndex, ApiProblem> {
    let id = request.get("id");
    find(explorer, id.ok_or_else(|| invalid("id", ""))?)
}

fn find(explorer: &Explorer, id: &str) -> Result<ObjectIndex, ApiProblem> {
    let found = explorer.find(id);
    found.ok_or_else(|| ApiProblem::NotFound(format!("the heap does not contain object {id}")))
}

fn invalid(name: &str, value: &str) -> ApiProblem {
    ApiProblem::Invalid(format!("{name} cannot be {value:?}"))
}
