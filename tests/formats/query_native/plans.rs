//! SQLite's plans for the queries that Perfetto documents: none scans a table once for each row of
//! another.

use super::content::select;
use super::{database, fixtures};

/// Queries of Perfetto's page on native heap profiles, and queries for stacks without macros.
const DOCUMENTED: [&str; 7] = [
    "select a.callsite_id, a.ts, a.upid, f.name, f.rel_pc, m.build_id, m.name as mapping_name,
        sum(a.size) as space_size, sum(a.count) as space_count
      from heap_profile_allocation a join
           stack_profile_callsite c ON (a.callsite_id = c.id) join
           stack_profile_frame f ON (c.frame_id = f.id) join
           stack_profile_mapping m ON (f.mapping = m.id)
      group by 1, 2, 3, 4, 5, 6, 7 order by space_size desc",
    "select c.id, s.name, s.source_file, s.line_number
      from stack_profile_callsite c
      join stack_profile_frame f on c.frame_id = f.id
      left join stack_profile_symbol s on f.symbol_set_id = s.symbol_set_id",
    "with recursive stack(id, parent_id, depth) as (
        select id, parent_id, 0 from stack_profile_callsite where id = 10
        union all
        select c.id, c.parent_id, s.depth + 1
        from stack s join stack_profile_callsite c on c.id = s.parent_id)
      select s.depth, f.name from stack s
      join stack_profile_callsite c on c.id = s.id
      join stack_profile_frame f on f.id = c.frame_id",
    "select p.name, sum(a.size) from heap_profile_allocation a join process p using (upid)
      where a.ts <= 10 group by 1",
    "select * from heap_profile h join heap_profile_allocation a
      on a.ts = h.ts_end and a.upid = h.upid and a.heap_name = h.heap_name",
    "select parent.id, count(*) from stack_profile_callsite parent
      join stack_profile_callsite child on child.parent_id = parent.id group by 1",
    "select * from heaptap_live",
];

#[test]
fn documented_queries_never_scan_in_the_inner_loop() {
    for trace in ["c_cont", "rust_cont_symbolized"] {
        let trace = fixtures().join(format!("conversions/{trace}.pftrace"));
        let mut database = database(&trace);
        for sql in DOCUMENTED {
            let plan = select(&mut database, &format!("EXPLAIN QUERY PLAN {sql}"));
            let rows = plan
                .iter()
                .map(|row| row["detail"].clone().unwrap_or_default());
            // `SCAN name VIRTUAL TABLE INDEX …:` and, in a plan by key, `column=`.
            let whole: Vec<String> = rows
                .filter(|row| row.starts_with("SCAN") && !row.contains('='))
                .collect();
            // A recursive query scans each of its two parts, and their results.
            let outer = if sql.contains("recursive") { 2 } else { 1 };
            assert!(whole.len() <= outer, "{sql}\n{whole:#?}");
            select(&mut database, sql);
        }
    }
}
