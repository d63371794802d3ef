//! Observed answers of R8's retrace, numbered. `at` is a frame with a line, `no_line` one without,
//! `profile` a sampled one.

use super::{at, field, map, method, names, no_line, profile, shown};
use heaptap_symbols::deobfuscate::{FieldType, MapFile, Retracer};

const SYNTHESIZED: &str = "# {\"id\":\"com.android.tools.r8.synthesized\"}";

/// Frames `CLASS.f` with their lines, as a stack trace, top first.
fn stack(map: &MapFile, frames: &[(&str, Option<u32>)]) -> Vec<String> {
    let retracer = Retracer::new(map);
    let mut outline_line = None;
    let frames = frames.iter().map(|(class, line)| {
        let frame = retracer.frame(class, "f", *line, outline_line);
        outline_line = frame.outline_line;
        shown(&frame.retraced, *line)
    });
    frames.collect()
}

#[test]
fn case_01_a_method_that_is_not_there_keeps_its_name_in_its_class() {
    let map = map("x.A -> a:\n    void r() -> g\n");
    assert_eq!(at(&map, 7), "x.A.f:7");
    assert_eq!(no_line(&map), "x.A.f");
    assert_eq!(profile(&map), "x.A.f");
}

#[test]
fn case_02_a_class_that_is_not_there_is_unknown() {
    let map = method(&["r()"]);
    let retracer = Retracer::new(&map);
    assert_eq!(stack(&map, &[("z", Some(3))]), ["unknown"]);
    assert_eq!(retracer.class("z"), None);
    assert_eq!(retracer.type_name("z[]"), "z[]");
    assert!(retracer.field("z", "f", FieldType::Unknown).is_empty());
}

#[test]
fn case_03_without_a_range_the_line_passes() {
    let map = method(&["r()"]);
    assert_eq!(at(&map, 12), "r:12");
    assert_eq!(no_line(&map), "r");
    assert_eq!(profile(&map), "x.A.r");
}

#[test]
fn case_04_a_range_moves_the_line() {
    let map = method(&["5:9:r():105:109"]);
    assert_eq!(at(&map, 7), "r:107");
    assert_eq!(no_line(&map), "r");
    assert_eq!(profile(&map), "x.A.r");
}

#[test]
fn case_05_a_range_may_be_one_line() {
    let map = method(&["5:9:r():40"]);
    assert_eq!(at(&map, 7), "r:40");
    let map = method(&["5:9:r():40:40"]);
    assert_eq!(at(&map, 7), "r:40");
}

#[test]
fn case_06_a_range_without_original_lines_lets_the_line_pass() {
    assert_eq!(at(&method(&["5:9:r()"]), 7), "r:7");
}

#[test]
fn case_07_out_of_all_ranges_the_class_is_known() {
    let map = method(&["1:3:r():11:13"]);
    assert_eq!(at(&map, 27), "x.A.f:27");
    assert_eq!(no_line(&map), "r");
    assert_eq!(profile(&map), "x.A.r");
}

#[test]
fn case_08_ranges_of_different_spans_are_ambiguous() {
    let map = method(&["10:20:r():100:105"]);
    let all = (100..=105).map(|line| format!("r:{line}"));
    assert_eq!(at(&map, 13), all.collect::<Vec<_>>().join(" OR "));
    assert_eq!(profile(&map), "x.A.r");
}

#[test]
fn case_09_inlined_calls_come_innermost_first() {
    let map = method(&[
        "1:1:y.U.i():7:7",
        "1:1:m():20",
        "1:1:o():30",
        "2:2:o():31:31",
    ]);
    assert_eq!(at(&map, 1), "y.U.i:7 / m:20 / o:30");
    assert_eq!(at(&map, 2), "o:31");
    assert_eq!(no_line(&map), "o");
    assert_eq!(profile(&map), "x.A.o");
}

#[test]
fn case_10_without_a_line_line_0_answers() {
    let map = method(&["0:0:g():80:80", "0:0:h():81", "3:3:h():90:90"]);
    assert_eq!(no_line(&map), "g:80 / h:81");
    assert_eq!(at(&map, 3), "h:90");
    assert_eq!(profile(&map), "x.A.h");
}

#[test]
fn case_11_the_catch_all_holds_any_line_and_none() {
    let map = method(&["0:65535:r():33:33"]);
    assert_eq!(at(&map, 5), "r:33");
    assert_eq!(at(&map, 70_000), "r:33");
    assert_eq!(no_line(&map), "r:33");
    assert_eq!(profile(&map), "x.A.r");
}

#[test]
fn case_12_the_catch_all_may_have_inlined_calls() {
    let map = method(&["0:65535:y.U.d():70:70", "0:65535:r():34"]);
    assert_eq!(no_line(&map), "y.U.d:70 / r:34");
    assert_eq!(at(&map, 9), "y.U.d:70 / r:34");
    assert_eq!(profile(&map), "x.A.r");
}

#[test]
fn case_13_a_position_may_be_the_offset_of_code() {
    let map = method(&["0:3:p():100:100", "4:9:y.U.q():101:101", "4:9:p():102"]);
    assert_eq!(at(&map, 5), "y.U.q:101 / p:102");
    assert_eq!(no_line(&map), "p:100");
    assert_eq!(profile(&map), "x.A.p");
}

#[test]
fn case_14_lines_tell_overloads_apart() {
    let map = method(&["1:2:v(int):50:51", "3:4:v(java.lang.String):60:61"]);
    assert_eq!(at(&map, 3), "v:60");
    assert_eq!(profile(&map), "x.A.v");
}

#[test]
fn case_15_methods_without_lines_are_ambiguous() {
    let map = method(&["q1(int)", "q2()"]);
    assert_eq!(at(&map, 3), "q1:3 OR q2:3");
    assert_eq!(no_line(&map), "q1 OR q2");
    assert_eq!(profile(&map), "x.A.q1 | x.A.q2");
}

#[test]
fn case_16_entries_without_a_range_are_for_what_no_range_holds() {
    let map = method(&["3:3:s():200:200", "t()"]);
    assert_eq!(at(&map, 3), "s:200");
    assert_eq!(at(&map, 9), "t:9");
    assert_eq!(no_line(&map), "t");
    assert_eq!(profile(&map), "x.A.s | x.A.t");
}

#[test]
fn case_17_original_lines_without_a_range_are_ambiguous() {
    let map = method(&["r():42:44"]);
    assert_eq!(at(&map, 3), "r:42 OR r:43 OR r:44");
    assert_eq!(no_line(&map), "r");
}

#[test]
fn case_18_one_original_line_without_a_range_is_known_without_a_line() {
    let map = method(&["r():9"]);
    assert_eq!(at(&map, 4), "r:9");
    assert_eq!(no_line(&map), "r:9");
}

#[test]
fn case_19_reversed_ranges_are_swapped() {
    assert_eq!(at(&method(&["5:3:r()"]), 4), "r:4");
    assert_eq!(at(&method(&["2:5:r():5:2"]), 4), "r:4");
}

#[test]
fn case_20_an_original_line_0_is_unknown() {
    assert_eq!(at(&method(&["1:1:r():0:0"]), 1), "r");
    assert_eq!(at(&method(&["1:1:r():0"]), 1), "r");
}

#[test]
fn case_21_merged_methods_are_told_apart_by_their_class() {
    let map = method(&["1:1:x.B.z():51:51", "2:2:z():51:51"]);
    assert_eq!(at(&map, 2), "z:51");
    assert_eq!(at(&map, 1), "x.B.z:51");
    assert_eq!(profile(&map), "x.A.z | x.B.z");
}

#[test]
fn case_22_what_the_compiler_made_is_left_out_of_a_trace_but_not_of_a_profile() {
    let map = method(&["0:3:x.M.lambda$k$0():55:55", "0:3:run():0", SYNTHESIZED]);
    assert_eq!(at(&map, 1), "x.M.lambda$k$0:55");
    assert_eq!(at(&map, 9), "x.A.f:9");
    assert_eq!(profile(&map), "x.A.run");
    // The last frame is never removed.
    assert_eq!(at(&method(&["r()", SYNTHESIZED]), 1), "");
}

#[test]
fn case_23_the_line_of_an_outline_is_for_its_caller() {
    let map = map("x.O -> a:\n    1:2:int o():0:0 -> f\n\
         # {'id':'com.android.tools.r8.outline'}\n\
         x.S -> b:\n    4:4:int c(int):98:98 -> f\n    27:27:int c(int):0:0 -> f\n\
         # {'id':'com.android.tools.r8.outlineCallsite','positions':{'1':4},'outline':'La;f()I'}\n");
    let both = stack(&map, &[("a", Some(1)), ("b", Some(27))]);
    assert_eq!(both, ["", "x.S.c:98"]);
    assert_eq!(stack(&map, &[("b", Some(27))]), ["x.S.c"]);
    // The line applies only to the next frame.
    let frames = [("a", Some(1)), ("b", Some(4)), ("b", Some(27))];
    assert_eq!(stack(&map, &frames), ["", "x.S.c:98", "x.S.c"]);
    // Without lines, the caller remains.
    assert_eq!(stack(&map, &[("a", None), ("b", None)]), ["", "x.S.c"]);
}

#[test]
fn case_25_types_tell_fields_apart() {
    let map = map("x.A -> a:\n    int k -> f\n    x.B b -> f\n\
         \x20     # {\"id\":\"com.android.tools.r8.residualsignature\",\"signature\":\"Lb;\"}\n");
    assert_eq!(field(&map, FieldType::Unknown), "k or b");
    assert_eq!(field(&map, FieldType::Exactly("int")), "k");
    assert_eq!(field(&map, FieldType::Exactly("I")), "k");
    assert_eq!(field(&map, FieldType::Exactly("b")), "b");
    assert_eq!(field(&map, FieldType::Exactly("Lb;")), "b");
    assert_eq!(field(&map, FieldType::Object), "b");
    assert_eq!(field(&map, FieldType::Exactly("long")), "");
    let retracer = Retracer::new(&map);
    assert_eq!(retracer.type_name("a[][]"), "x.A[][]");
    assert_eq!(retracer.type_name("[[La;"), "x.A[][]");
    assert_eq!(
        retracer.type_name("java.lang.Class<a>"),
        "java.lang.Class<x.A>"
    );
    assert!(retracer.field("a", "g", FieldType::Unknown).is_empty());
}

#[test]
fn residual_signatures_choose_an_overload() {
    // With and without the note: by the class names in the app.
    let map = map("x.A -> a:\n    1:2:void v(x.B):5:6 -> f\n\
         \x20     # {\"id\":\"com.android.tools.r8.residualsignature\",\"signature\":\"(I)V\"}\n\
         \x20   3:3:void w(x.B,int[]):7:7 -> f\n    4:4:x.B u(x.B,int[]):8:8 -> f\nx.B -> b:\n");
    let named = |frame: &str| names::by_file(&map, &[frame]).remove(0);
    assert_eq!(named("void a.f(int)"), "x.A.v");
    assert_eq!(named("void a.f(b, int[])"), "x.A.w");
    assert_eq!(named("b a.f(b, int[])"), "x.A.u");
    // R8 compares types as written, too.
    assert_eq!(named("void a.f(x.B, int[])"), "x.A.w");
    assert_eq!(
        named("void a.f(b)"),
        "x.A.u | x.A.v | x.A.w",
        "no such types"
    );
}

#[test]
fn source_files_are_those_of_the_class_a_call_was_written_in() {
    let map = map(
        "x.A -> a:\n# {\"id\":\"sourceFile\",\"fileName\":\"Main.kt\"}\n    1:1:void x.B.i():7:7 -> f\n\
         \x20   1:1:void m():20 -> f\nx.B -> b:\n# {\"id\":\"sourceFile\",\"fileName\":\"Bee.java\"}\n",
    );
    let retracer = Retracer::new(&map);
    assert_eq!(retracer.source_file("x.A", Some("SourceFile")), "Main.kt");
    assert_eq!(retracer.source_file("x.B", Some("SourceFile")), "Bee.java");
    assert_eq!(retracer.source_file("x.C$D", Some("SourceFile")), "C.java");
}
