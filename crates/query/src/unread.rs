//! Tables of Perfetto that queries on heaps join or look into, and whose rows heaptap does not
//! read: they are empty.

use std::sync::Arc;

use super::table::{Catalog, Column, Schema};

/// Declares tables by name and columns.
macro_rules! tables {
    ($($name:literal: $($column:ident)+;)+) => {
        static TABLES: &[Schema] = &[$(Schema {
            name: $name,
            module: None,
            about: "Always empty: heaptap does not read these events.",
            columns: &[$(Column::int(stringify!($column), "")),+],
        }),+];
    };
}

tables! {
    "android_logs": id ts utid prio tag msg;
    "args": id arg_set_id flat_key key int_value string_value real_value value_type display_value;
    "flow": id slice_out slice_in trace_id arg_set_id;
    "ftrace_event": id ts name cpu utid arg_set_id common_flags ucpu;
    "instant": ts track_id name arg_set_id;
    "perf_sample": id ts utid cpu cpu_mode callsite_id unwind_error perf_session_id;
    "process_track": id name type parent_id source_arg_set_id machine_id upid;
    "raw": id ts name cpu utid arg_set_id common_flags ucpu;
    "sched": id ts dur cpu utid end_state priority ucpu ts_end;
    "slice": id ts dur track_id category name depth parent_id arg_set_id thread_ts thread_dur
        thread_instruction_count thread_instruction_delta cat slice_id;
    "slices": id ts dur track_id category name depth parent_id arg_set_id thread_ts thread_dur
        thread_instruction_count thread_instruction_delta cat slice_id;
    "thread_state": id ts dur cpu utid state io_wait blocked_function waker_utid waker_id
        irq_context ucpu;
    "thread_track": id name type parent_id source_arg_set_id machine_id utid;
}

/// Adds the tables. `on_use` is called with the name of a table when a statement first reads it.
pub fn add(catalog: &mut Catalog, on_use: impl Fn(&'static str) + Send + Sync + 'static) {
    let on_use = Arc::new(on_use);
    for schema in TABLES {
        let on_use = Arc::clone(&on_use);
        catalog.fixed(schema, move || {
            on_use(schema.name);
            Ok(Vec::new())
        });
    }
}
