//! Requests of the page: their names, values and answers.
//!
//! | operation | values | answer |
//! |---|---|---|
//! | `meta` | | the heap, what is built, totals |
//! | `changes` | `sort`, `reverse`, `filter`, page | classes that changed since the earlier heap, as in `diff --json` |
//! | `changed-leaks`, `changed-dominators` | | leaks of either heap, nodes of the dominator tree, as in `diff --json` |
//! | `holders` | `class` | paths from a class to roots, merged |
//! | `sql` | `sql` | rows of the last statement |
//! | `classes` | `by`, `sort`, `reverse`, `filter`, page | rows of the table |
//! | `objects` | `class`, `dominated` or `top`; `sort`, `reverse`, page | objects of a list |
//! | `object` | `id`, `most` dominators | facts about an object |
//! | `fields`, `referrers` | `id`, page | its fields or elements; what refers to it |
//! | `drop` | `id` | where its retained bytes are: facts about an object |
//! | `path` | `id`, `most` steps at either end | the shortest path from a root |
//! | `search` | `in`: `objects`, `strings` or `arrays`; `text`, or `equal`: the ID of a string; `from`, `limit` | matching objects |
//! | `bitmaps` | `equal`: an ID; page | bitmaps |
//! | `picture` | `id`, `most` | the pixels of a bitmap |
//! | `leaks`, `waste` | | as in `leaks --json` |
//! | `flame` | `tree`: `paths` or `dominators`; `most` | the tree merged by class |
//! | `treemap` | `id`, or nothing for the whole; `cells` | cut of the dominator tree |
//!
//! A page is `offset` and `limit`. Each request but `meta` can name the `generation` that `meta` told: a
//! server answers 409 once it shows another heap.

use super::compare::{self, ChangeQuery};
use super::heap::{ExploredHeap, Progress};
use crate::heaps::java::diff::{ChangeRow, DiffReport};
use crate::heaps::java::facts::HeapFacts;
use crate::page::net::{ApiProblem, ApiRequest};
use heaptap_explore::{
    ClassQuery, ClassSort, Explorer, FlameTree, ObjectList, ObjectQuery, ObjectSort, Page,
    SearchList, SearchQuery, SearchText, Size, TABLE_KEYS,
};
use heaptap_model::heap_graph::{ObjectIndex, OutOfMemory};
use serde::Serialize;
use std::str::FromStr;

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
    out_of_memory: Option<OutOfMemoryFacts>,
    /// The earlier heap; `None` if there is none, or before it is compared.
    before: Option<&'a HeapFacts>,
    /// All reachable objects, before and now.
    change: Option<&'a ChangeRow>,
    /// Whether answers have texts and values.
    contents: bool,
    /// Whether `sql` answers.
    sql: bool,
    objects: u64,
    classes: u64,
    roots: u64,
    /// `None` before dominators are computed.
    reachable: Option<Size>,
    unreachable: Option<Size>,
    #[serde(flatten)]
    served: Option<ServerFacts>,
}

/// The OutOfMemoryError that caused the dump.
#[derive(Serialize)]
struct OutOfMemoryFacts {
    allocation_bytes: u64,
    free_bytes: u64,
    free_until_oom_bytes: u64,
    /// `None` if contents are hidden: an app can throw the error itself.
    message: Option<String>,
    /// The throwing frame first.
    stack: Vec<String>,
}

impl OutOfMemoryFacts {
    fn new(error: &OutOfMemory, shows_contents: bool) -> OutOfMemoryFacts {
        let frames = error.stack.iter();
        OutOfMemoryFacts {
            allocation_bytes: error.allocation_bytes,
            free_bytes: error.free_bytes,
            free_until_oom_bytes: error.free_until_oom_bytes,
            message: shows_contents.then(|| error.message.clone()),
            stack: frames
                .map(|frame| format!("{} ({}:{})", frame.method, frame.file, frame.line))
                .collect(),
        }
    }
}

/// Facts about the server of a page.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct ServerFacts {
    /// Number of the heap among those that were shown.
    pub generation: u64,
    /// Seconds without a request after which the server ends.
    pub idle_seconds: f64,
}

/// Answers a request as JSON; `served` if a server asks.
///
/// # Errors
/// Returns an error if the heap is not read yet, is not that of the request, or does not have what is
/// asked for.
pub fn answer(
    explored: &ExploredHeap,
    request: &ApiRequest,
    served: Option<ServerFacts>,
) -> Result<Vec<u8>, ApiProblem> {
    if request.operation == "meta" {
        return json(&meta(explored, served));
    }
    if let Some(served) = served {
        check_generation(request, served.generation)?;
    }
    let Some((explorer, _)) = explored.heap() else {
        return Err(ApiProblem::NotReady);
    };
    match request.operation.as_str() {
        "classes" => json(&explorer.classes(&class_query(request)?)),
        "objects" => json(&explorer.objects(&object_query(explorer, request)?)),
        "object" => json(&explorer.object(object(explorer, request)?, most(request)?)),
        "fields" => json(&explorer.fields(object(explorer, request)?, page(request)?)),
        "referrers" => json(&explorer.referrers_of(object(explorer, request)?, page(request)?)),
        "leaks" => json(explored.leaks()),
        "waste" => json(explored.waste()),
        "drop" => {
            let drop = explorer.big_drop(object(explorer, request)?);
            json(&explorer.object(drop, 0))
        }
        "path" => json(&explorer.path(object(explorer, request)?, most(request)?)),
        "changes" => json(&compare::classes(
            compared(explored)?,
            &change_query(request)?,
        )),
        "changed-leaks" => json(&compared(explored)?.leaks),
        "changed-dominators" => json(&compared(explored)?.paths),
        "holders" => {
            let class = request.get("class").ok_or_else(|| invalid("class", ""))?;
            json(&explorer.holders(class))
        }
        "sql" => {
            let statement = request.get("sql").unwrap_or("");
            let rows = explored.sql().and_then(|sql| sql.run(statement));
            json(&rows.map_err(|problem| ApiProblem::Invalid(problem.0))?)
        }
        "search" => json(&explorer.search(&search_query(explorer, request)?)),
        "bitmaps" => {
            let equal = request.get("equal").map(|id| find(explorer, id));
            json(&explorer.bitmaps(equal.transpose()?, page(request)?))
        }
        "picture" => {
            let of = object(explorer, request)?;
            let picture = explorer.picture(of, number(request, "most", u32::MAX)?);
            json(&picture.ok_or_else(|| {
                ApiProblem::NotFound("the pixels are not in the dump, or hidden".to_owned())
            })?)
        }
        "flame" => {
            let tree = match request.get("tree").unwrap_or("paths") {
                "paths" => FlameTree::Paths,
                "dominators" => FlameTree::Dominators,
                other => return Err(invalid("tree", other)),
            };
            json(&explorer.flame(tree, most(request)?))
        }
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

/// Checks that a request is about the heap that is shown, if it names one.
///
/// # Errors
/// Returns an error if it is about another heap.
pub fn check_generation(request: &ApiRequest, shown: u64) -> Result<(), ApiProblem> {
    match number(request, "generation", shown)? == shown {
        true => Ok(()),
        false => Err(ApiProblem::OtherHeap),
    }
}

fn meta(explored: &ExploredHeap, served: Option<ServerFacts>) -> Meta<'_> {
    let progress = explored.progress();
    let heap = explored.heap();
    let graph = heap.map(|(explorer, _)| explorer.graph());
    let is_sized = progress.built.contains(&"dominators");
    let sized = heap.filter(|_| is_sized);
    let shows_contents = heap.is_some_and(|(explorer, _)| explorer.shows_contents());
    Meta {
        heap: heap.map(|(_, facts)| facts),
        out_of_memory: explored
            .out_of_memory()
            .map(|error| OutOfMemoryFacts::new(error, shows_contents)),
        before: explored.comparison().map(|comparison| &comparison.before),
        change: explored.comparison().map(|comparison| &comparison.total),
        contents: shows_contents,
        sql: cfg!(feature = "sql") && shows_contents,
        objects: graph.map_or(0, |graph| graph.len() as u64),
        classes: graph.map_or(0, |graph| graph.classes().len() as u64),
        roots: graph.map_or(0, |graph| graph.roots().len() as u64),
        reachable: sized.map(|(explorer, _)| explorer.dominators().total().into()),
        unreachable: sized.map(|(explorer, _)| explorer.unreachable()),
        served,
        progress,
    }
}

fn json(answer: &impl Serialize) -> Result<Vec<u8>, ApiProblem> {
    serde_json::to_vec(answer).map_err(|error| ApiProblem::Invalid(error.to_string()))
}

fn class_query(request: &ApiRequest) -> Result<ClassQuery, ApiProblem> {
    Ok(ClassQuery {
        by: {
            let name = request.get("by").unwrap_or("class");
            let known = TABLE_KEYS.iter().find(|(known, _)| *known == name);
            known.ok_or_else(|| invalid("by", name))?.1
        },
        sort: class_sort(request)?,
        reverse: request.get("reverse").is_some(),
        filter: request.get("filter").unwrap_or("").to_owned(),
        page: page(request)?,
    })
}

fn class_sort(request: &ApiRequest) -> Result<ClassSort, ApiProblem> {
    Ok(match request.get("sort").unwrap_or("retained") {
        "name" => ClassSort::Name,
        "count" => ClassSort::Count,
        "shallow" => ClassSort::Shallow,
        "native" => ClassSort::Native,
        "retained" => ClassSort::Retained,
        other => return Err(invalid("sort", other)),
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
        reverse: request.get("reverse").is_some(),
        page: page(request)?,
    })
}

fn compared(explored: &ExploredHeap) -> Result<&DiffReport, ApiProblem> {
    let none = || ApiProblem::NotFound("no other heap is compared, or not yet".to_owned());
    explored.comparison().ok_or_else(none)
}

fn change_query(request: &ApiRequest) -> Result<ChangeQuery, ApiProblem> {
    Ok(ChangeQuery {
        sort: class_sort(request)?,
        reverse: request.get("reverse").is_some(),
        filter: request.get("filter").unwrap_or("").to_owned(),
        page: page(request)?,
    })
}

fn search_query(explorer: &Explorer, request: &ApiRequest) -> Result<SearchQuery, ApiProblem> {
    Ok(SearchQuery {
        list: match request.get("in").unwrap_or("objects") {
            "objects" => SearchList::Objects,
            "strings" => SearchList::Strings,
            "arrays" => SearchList::Arrays,
            other => return Err(invalid("in", other)),
        },
        text: match request.get("equal") {
            Some(id) => SearchText::Of(find(explorer, id)?),
            None => SearchText::Part(request.get("text").unwrap_or("").to_owned()),
        },
        from: number(request, "from", 0)?,
        limit: page(request)?.limit,
    })
}

fn page(request: &ApiRequest) -> Result<Page, ApiProblem> {
    let offset = number(request, "offset", 0)?;
    Ok(Page::new(offset, number(request, "limit", DEFAULT_ROWS)?))
}

fn number<N: FromStr>(request: &ApiRequest, name: &str, default: N) -> Result<N, ApiProblem> {
    match request.get(name) {
        Some(text) => text.parse().map_err(|_| invalid(name, text)),
        None => Ok(default),
    }
}

fn most(request: &ApiRequest) -> Result<usize, ApiProblem> {
    number(request, "most", usize::MAX)
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
