//! pprof of allocations that a Java runtime tracked itself: exact numbers, with class and thread.
//! The class stands as the innermost frame, as in profiles of Java heaps, so that every viewer
//! shows what was allocated and, around it, by whom; the thread is a label of each sample.

use std::collections::HashMap;

use prost::Message as _;

use crate::proto::pprof::{Function, Label, Line, Location, Profile, Sample, ValueType};

/// One frame of the source.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TrackedFrame {
    /// `com.example.Feed.bind`.
    pub name: String,
    /// As the runtime called it, where that differs.
    pub system_name: String,
    /// Empty where not known.
    pub file: String,
    /// 0 where not known.
    pub line: u32,
}

/// All allocations of one class by one thread in one place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrackedSample {
    /// `java.lang.String`.
    pub class: TrackedFrame,
    /// Innermost first.
    pub frames: Vec<TrackedFrame>,
    /// The thread's id in the kernel, its lower 16 bits.
    pub thread: u16,
    /// Allocations.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
}

#[derive(Default)]
struct Builder {
    strings: HashMap<String, i64>,
    table: Vec<String>,
    functions: HashMap<(i64, i64, i64), u64>,
    locations: HashMap<(u64, u32), u64>,
    profile: Profile,
}

impl Builder {
    fn string(&mut self, text: &str) -> i64 {
        if let Some(known) = self.strings.get(text) {
            return *known;
        }
        let id = i64::try_from(self.table.len()).unwrap_or(i64::MAX);
        self.table.push(text.to_owned());
        self.strings.insert(text.to_owned(), id);
        id
    }

    fn value_type(&mut self, name: &str, unit: &str) -> ValueType {
        ValueType {
            r#type: self.string(name),
            unit: self.string(unit),
        }
    }

    fn location(&mut self, frame: &TrackedFrame) -> u64 {
        let key = (
            self.string(&frame.name),
            self.string(&frame.system_name),
            self.string(&frame.file),
        );
        let next = self.functions.len() as u64 + 1;
        let function = *self.functions.entry(key).or_insert(next);
        if function == next {
            self.profile.function.push(Function {
                id: function,
                name: key.0,
                system_name: key.1,
                filename: key.2,
                ..Function::default()
            });
        }
        let next = self.locations.len() as u64 + 1;
        let location = *self.locations.entry((function, frame.line)).or_insert(next);
        if location == next {
            self.profile.location.push(Location {
                id: location,
                line: vec![Line {
                    function_id: function,
                    line: frame.line.into(),
                    ..Line::default()
                }],
                ..Location::default()
            });
        }
        location
    }
}

/// An uncompressed profile: `alloc_objects`, `alloc_space` (the default), and `comments`.
pub fn encode(
    samples: &[TrackedSample],
    wall_time_ns: Option<u64>,
    comments: &[String],
) -> Vec<u8> {
    let signed = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let mut builder = Builder::default();
    builder.string("");
    let types = [
        builder.value_type("alloc_objects", "count"),
        builder.value_type("alloc_space", "bytes"),
    ];
    builder.profile.sample_type.extend(types);
    builder.profile.default_sample_type = builder.string("alloc_space");
    // As heapprofd calls a profile of every allocation.
    let period = builder.value_type("space", "bytes");
    builder.profile.period_type = Some(period);
    builder.profile.period = 1;
    builder.profile.time_nanos = wall_time_ns.map_or(0, signed);
    let comments = comments.iter().map(|comment| builder.string(comment));
    let comments: Vec<i64> = comments.collect();
    builder.profile.comment = comments;
    let thread = builder.string("thread");
    for sample in samples {
        let frames = std::iter::once(&sample.class).chain(&sample.frames);
        let location_id: Vec<u64> = frames.map(|frame| builder.location(frame)).collect();
        builder.profile.sample.push(Sample {
            location_id,
            value: vec![signed(sample.objects), signed(sample.bytes)],
            label: vec![Label {
                key: thread,
                num: sample.thread.into(),
                ..Label::default()
            }],
        });
    }
    builder.profile.string_table = builder.table;
    builder.profile.encode_to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(name: &str, line: u32) -> TrackedFrame {
        TrackedFrame {
            name: name.to_owned(),
            system_name: String::new(),
            file: "Feed.kt".to_owned(),
            line,
        }
    }

    #[test]
    fn classes_are_leaves_and_threads_labels() {
        let sample = |thread, line| TrackedSample {
            class: frame("java.lang.Long", 0),
            frames: vec![frame("a.Feed.bind", line), frame("a.Main.run", 3)],
            thread,
            objects: 2,
            bytes: 32,
        };
        let samples = [sample(7, 17), sample(9, 18)];
        let bytes = encode(&samples, Some(5), &["a remark".to_owned()]);
        let profile = Profile::decode(bytes.as_slice()).unwrap();
        let text = |id: i64| profile.string_table[usize::try_from(id).unwrap()].as_str();
        let types: Vec<(&str, &str)> = profile
            .sample_type
            .iter()
            .map(|of| (text(of.r#type), text(of.unit)))
            .collect();
        assert_eq!(
            types,
            [("alloc_objects", "count"), ("alloc_space", "bytes")]
        );
        assert_eq!(text(profile.default_sample_type), "alloc_space");
        assert_eq!(text(profile.comment[0]), "a remark");
        assert_eq!(profile.sample.len(), 2);
        // One function at two lines.
        assert_eq!((profile.function.len(), profile.location.len()), (3, 4));
        let name = |location: u64| {
            let at = usize::try_from(location - 1).unwrap();
            let function = profile.location[at].line[0].function_id;
            text(profile.function[usize::try_from(function - 1).unwrap()].name)
        };
        let sample = &profile.sample[1];
        let names: Vec<&str> = sample.location_id.iter().map(|id| name(*id)).collect();
        assert_eq!(names, ["java.lang.Long", "a.Feed.bind", "a.Main.run"]);
        assert_eq!(sample.value, [2, 32]);
        let label = &sample.label[0];
        assert_eq!((text(label.key), label.num), ("thread", 9));
    }
}
