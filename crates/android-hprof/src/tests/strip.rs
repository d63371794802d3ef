//! Names of threads and numbers from which texts can be guessed do not get into a stripped copy.

use super::dump::{ClassSpec, Dump, Val};
use crate::records::tag;
use crate::strip::{StripOptions, strip};
use heaptap_model::heap_graph::BasicType::{self, Int, Long, Object};

fn stripped(file: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    strip(file, StripOptions::default(), &mut out).expect("it has a header");
    out
}

fn class<'a>(
    id: u64,
    name: &'a str,
    superclass: u64,
    fields: &'a [(&'a str, BasicType)],
) -> ClassSpec<'a> {
    ClassSpec {
        id,
        name,
        superclass,
        fields,
        ..ClassSpec::default()
    }
}

#[test]
fn hash_codes_go_from_every_class_and_other_numbers_stay() {
    let node = [("hash", Int), ("key", Object)];
    let tree = [("before", Object), ("mHash", Int), ("red", Int)];
    let url = [("hashCode", Int), ("port", Int)];
    let other = [("hash", Long), ("mHash", Object)];
    let with_hash = |hash| {
        let mut dump = Dump::art();
        dump.class(&class(0x100, "java.util.HashMap$Node", 0, &node));
        dump.class(&class(0x110, "java.util.HashMap$TreeNode", 0x100, &tree));
        dump.class(&class(0x120, "java.net.URL", 0, &url));
        dump.class(&class(0x130, "a.Other", 0, &other));
        let own = [Val::Ref(7), Val::Int(hash), Val::Int(8)];
        let node = [Val::Int(hash), Val::Ref(0x9000)];
        dump.instance(0x1000, 0x100, &node);
        dump.instance(0x1010, 0x110, &[&own[..], &node].concat());
        dump.instance(0x1020, 0x120, &[Val::Int(hash), Val::Int(443)]);
        dump.instance(0x1030, 0x130, &[Val::Long(5), Val::Ref(0x1000)]);
        dump.finish()
    };
    assert_eq!(stripped(&with_hash(77)), with_hash(0));
}

#[test]
fn zeroed_fields_still_tell_which_views_were_detached() {
    let view = [("mWindowAttachCount", Int), ("mLeft", Int)];
    let with = |left, other| {
        let mut dump = Dump::art();
        dump.class(&class(0x100, "android.view.View", 0, &view));
        dump.class(&class(0x110, "a.Mine", 0x100, &view[..1]));
        dump.instance(0x1000, 0x100, &[Val::Int(2), Val::Int(left)]);
        dump.instance(
            0x1010,
            0x110,
            &[Val::Int(other), Val::Int(3), Val::Int(left)],
        );
        dump.finish()
    };
    let options = StripOptions {
        fields: true,
        ..StripOptions::default()
    };
    let mut out = Vec::new();
    strip(&with(640, 41), options, &mut out).expect("it has a header");
    assert_eq!(out, with(0, 0));
}

#[test]
fn a_class_that_the_dump_lacks_or_that_is_too_short_keeps_no_hash_codes() {
    for fields in [None, Some(&[("value", Object)][..])] {
        let with_hash = |hash, value| {
            let mut dump = Dump::art();
            dump.load_class(0x120, "java.lang.String");
            dump.instance(0x1000, 0x120, &[Val::Ref(value), Val::Int(hash)]);
            if let Some(fields) = fields {
                dump.class(&ClassSpec {
                    id: 0x120,
                    name: "java.lang.String",
                    fields,
                    ..ClassSpec::default()
                });
            }
            dump.ended = false;
            dump.finish()
        };
        let value = fields.map_or(0, |_| 0x2000);
        assert_eq!(stripped(&with_hash(77, 0x2000)), with_hash(0, value));
    }
}

#[test]
fn names_of_started_threads_go_unless_they_name_something_else() {
    let mut dump = Dump::hotspot();
    let names = ["secret", "main", "value", "a.Class", "system"].map(|name| dump.name(name));
    dump.stack(1, 0, &[(1, "main", "Main.java", 3)]);
    for threads in [&names[..3], &names[2..]] {
        let ids: Vec<u8> = threads.iter().flat_map(|id| id.to_be_bytes()).collect();
        dump.record(tag::START_THREAD, &[&[0; 16][..], &ids].concat());
    }
    dump.class(&ClassSpec {
        id: 0x100,
        name: "a.Class",
        fields: &[("value", Int)],
        ..ClassSpec::default()
    });
    let file = dump.finish();
    let mut expected = file.clone();
    for name in ["secret", "system"] {
        let text = name.as_bytes();
        let at = file.windows(text.len()).position(|window| window == text);
        expected[at.expect("the dump has it")..][..text.len()].fill(0);
    }
    assert_eq!(stripped(&file), expected);
}
