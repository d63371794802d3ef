//! Arguments of the function.

use crate::table::{Argument, TableError};

const TS: usize = 1;
const PROFILE_TYPE: usize = 16;
const TS_IN: usize = 17;
const TS_CONSTRAINT: usize = 18;
const UPID: usize = 19;
const UPID_GROUP: usize = 20;
const FOCUS: usize = 21;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sort {
    Native,
    Graph,
}

/// Arguments of the function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) sort: Sort,
    pub(super) ts: i64,
    pub(super) upids: Vec<i64>,
    pub(super) focus: Option<String>,
}

impl Asked {
    pub(super) fn from_arguments(arguments: &[Argument]) -> Result<Asked, TableError> {
        let wrong = |what: &str| {
            Err(TableError(format!(
                "experimental_flamegraph: {what}; write \
                 experimental_flamegraph('native', TS, NULL, UPID, NULL, NULL), with 'graph' for \
                 a Java heap"
            )))
        };
        let at = |column: usize| &arguments[column];
        // Of three arguments, the first is the time.
        let (sort, ts, upid, constraint) = match at(PROFILE_TYPE) {
            Argument::Int(_) => (
                at(TS_CONSTRAINT),
                at(PROFILE_TYPE),
                at(TS_IN),
                &Argument::Absent,
            ),
            sort => {
                let ts = match at(TS_IN) {
                    Argument::Absent => at(TS),
                    ts => ts,
                };
                (sort, ts, at(UPID), at(TS_CONSTRAINT))
            }
        };
        let sort = match sort {
            Argument::Text(sort) if sort == "native" => Sort::Native,
            Argument::Text(sort) if sort == "graph" => Sort::Graph,
            Argument::Text(sort) if sort == "perf" => {
                return wrong("CPU profile samples are not supported");
            }
            Argument::Text(_) => return wrong("the type must be 'native' or 'graph'"),
            _ => return wrong("the type is missing"),
        };
        let ts = match (ts, constraint) {
            (Argument::Int(ts), _) => *ts,
            (Argument::Absent | Argument::Null, Argument::Text(constraint)) => {
                let ts = constraint.strip_prefix("<=").map(str::trim);
                match ts.and_then(|ts| ts.parse().ok()) {
                    Some(ts) => ts,
                    None => {
                        return wrong("the only supported constraint is `<=` followed by a time");
                    }
                }
            }
            (Argument::Absent | Argument::Null, _) => return wrong("the time is missing"),
            _ => return wrong("the time must be an integer"),
        };
        let upids = match (upid, at(UPID_GROUP)) {
            (Argument::Int(upid), _) => vec![*upid],
            (Argument::Absent | Argument::Null, Argument::Text(group)) => {
                let upids = group.split(',').map(|upid| upid.trim().parse());
                match upids.collect() {
                    Ok(upids) => upids,
                    Err(_) => {
                        return wrong("a process group must be a comma-separated list of upids");
                    }
                }
            }
            _ => return wrong("the upid is missing"),
        };
        let focus = match at(FOCUS) {
            Argument::Text(focus) if !focus.is_empty() => Some(focus.clone()),
            Argument::Text(_) | Argument::Absent | Argument::Null => None,
            _ => return wrong("the focus must be text"),
        };
        Ok(Asked {
            sort,
            ts,
            upids,
            focus,
        })
    }
}
