//! Tests of dumps before and after a process exits.

use super::before_leaving;
use crate::heaps::input::{DumpList, ListedDump};
use heaptap_model::stacks::Facts;
use heaptap_results::manifest::Totals;

fn listed(number: u32, space: i64, has_left: bool) -> ListedDump {
    let mut facts = Facts {
        number,
        pid: 7,
        heap: "libc.malloc".to_owned(),
        ..Facts::default()
    };
    facts.flags.disconnected = has_left;
    ListedDump {
        facts,
        labels: Vec::new(),
        totals: Some(Totals {
            space: Some(space),
            objects: Some(1),
            alloc_space: 1 << 30,
            alloc_objects: 1,
        }),
        held: None,
        callsites: 1,
    }
}

#[test]
fn a_process_that_left_holding_next_to_nothing_points_to_the_dump_before() {
    let all = DumpList::from(vec![
        listed(0, 10, false),
        listed(1, 100, false),
        listed(2, 4, true),
    ]);
    assert_eq!(before_leaving(&all[2].facts, &all), Some(1));
    assert_eq!(before_leaving(&all[1].facts, &all), None);
}

#[test]
fn a_last_dump_that_holds_as_much_or_is_alone_points_nowhere() {
    let much = DumpList::from(vec![listed(0, 100, false), listed(1, 50, true)]);
    assert_eq!(before_leaving(&much[1].facts, &much), None);
    let alone = DumpList::from(vec![listed(0, 4, true)]);
    assert_eq!(before_leaving(&alone[0].facts, &alone), None);
    let mut other = listed(0, 100, false);
    other.facts.pid = 8;
    let others = DumpList::from(vec![other, listed(1, 4, true)]);
    assert_eq!(before_leaving(&others[1].facts, &others), None);
}
