//! pprof of allocations tracked by a Java runtime: exact numbers, with class and thread. As in
//! profiles of Java heaps, the class is the innermost frame, so every viewer shows it with its
//! allocating code. The thread is a label of each sample.

use std::collections::HashMap;

use prost::Message as _;

use super::wire::signed;
use heaptap_proto::pprof::{Function, Label, Line, Location, Profile, Sample, ValueType};

/// Maximum bytes of all written names. Input can name a million places with long names.
const NAMES: usize = 64 << 20;
/// Maximum number of distinct places; the largest profiles have some hundred thousand.
const PLACES: usize = 1 << 20;
/// Name of the frame that replaces frames beyond these limits.
const LEFT_OUT: &str = "(omitted: too many callsites)";

/// Source frame.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TrackedFrame {
    /// Name such as `com.example.Feed.bind`.
    pub name: String,
    /// Name in the runtime, if different.
    pub system_name: String,
    /// Empty if unknown.
    pub file: String,
    /// 0 if unknown.
    pub line: u32,
}

impl TrackedFrame {
    /// Returns whether an R8 mapping changed the name.
    pub fn is_changed(&self) -> bool {
        !self.system_name.is_empty()
    }
}

/// Frame in a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place(u64);

/// Builder for a profile of tracked allocations: `alloc_objects`, `alloc_space` (the default).
pub struct TrackedProfile {
    strings: HashMap<String, i64>,
    table: Vec<String>,
    functions: HashMap<(i64, i64, i64), u64>,
    locations: HashMap<(u64, u32), u64>,
    profile: Profile,
    thread: i64,
    /// Bytes of `table`.
    named: usize,
    /// Limits of `named` and of the length of `locations`.
    most: (usize, usize),
    left_out: u64,
}

impl Default for TrackedProfile {
    fn default() -> TrackedProfile {
        TrackedProfile::new()
    }
}

impl TrackedProfile {
    /// Creates a profile without allocations.
    pub fn new() -> TrackedProfile {
        TrackedProfile::bounded((NAMES, PLACES))
    }

    fn bounded(most: (usize, usize)) -> TrackedProfile {
        let mut new = TrackedProfile {
            strings: HashMap::new(),
            table: Vec::new(),
            functions: HashMap::new(),
            locations: HashMap::new(),
            profile: Profile::default(),
            thread: 0,
            named: 0,
            most,
            left_out: 0,
        };
        new.string("");
        let types = [
            new.value_type("alloc_objects", "count"),
            new.value_type("alloc_space", "bytes"),
        ];
        new.profile.sample_type.extend(types);
        new.profile.default_sample_type = new.string("alloc_space");
        // The name that heapprofd uses for a profile of every allocation.
        new.profile.period_type = Some(new.value_type("space", "bytes"));
        new.profile.period = 1;
        new.thread = new.string("thread");
        new
    }

    fn string(&mut self, text: &str) -> i64 {
        if let Some(known) = self.strings.get(text) {
            return *known;
        }
        let id = i64::try_from(self.table.len()).unwrap_or(i64::MAX);
        self.named = self.named.saturating_add(text.len());
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

    pub fn place(&mut self, frame: &TrackedFrame) -> Place {
        if self.named > self.most.0 || self.locations.len() >= self.most.1 {
            let known = self.known_place(frame);
            return known.unwrap_or_else(|| self.left_out_place(1));
        }
        self.new_place(frame)
    }

    /// Returns the place that replaces frames beyond the limits, and counts `frames` more of them.
    pub fn left_out_place(&mut self, frames: u64) -> Place {
        self.left_out = self.left_out.saturating_add(frames);
        self.new_place(&TrackedFrame {
            name: LEFT_OUT.to_owned(),
            system_name: String::new(),
            file: String::new(),
            line: 0,
        })
    }

    fn known_place(&self, frame: &TrackedFrame) -> Option<Place> {
        let string = |text: &str| self.strings.get(text).copied();
        let key = (
            string(&frame.name)?,
            string(&frame.system_name)?,
            string(&frame.file)?,
        );
        let function = *self.functions.get(&key)?;
        let location = self.locations.get(&(function, frame.line))?;
        Some(Place(*location))
    }

    fn new_place(&mut self, frame: &TrackedFrame) -> Place {
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
        Place(location)
    }

    /// Adds all allocations of one class by one thread at one place: the class, then the frames,
    /// innermost first. `thread` is the lower 16 bits of the kernel's thread ID.
    pub fn add(
        &mut self,
        stack: impl IntoIterator<Item = Place>,
        thread: u16,
        objects: u64,
        bytes: u64,
    ) {
        self.profile.sample.push(Sample {
            location_id: stack.into_iter().map(|place| place.0).collect(),
            value: vec![signed(objects), signed(bytes)],
            label: vec![Label {
                key: self.thread,
                num: thread.into(),
                ..Label::default()
            }],
        });
    }

    /// Returns the number of frames beyond the limits.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Returns the uncompressed profile with `comments`.
    pub fn finish(mut self, comments: &[String]) -> Vec<u8> {
        let comments = comments.iter().map(|comment| self.string(comment));
        let comments: Vec<i64> = comments.collect();
        self.profile.comment = comments;
        self.profile.string_table = self.table;
        self.profile.encode_to_vec()
    }
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
        let mut tracked = TrackedProfile::new();
        for (thread, line) in [(7, 17), (9, 18)] {
            let frames = [
                frame("java.lang.Long", 0),
                frame("a.Feed.bind", line),
                frame("a.Main.run", 3),
            ];
            let stack = frames.map(|frame| tracked.place(&frame));
            tracked.add(stack, thread, 2, 32);
        }
        assert_eq!(tracked.left_out(), 0);
        let bytes = tracked.finish(&["a remark".to_owned()]);
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

    #[test]
    fn what_finds_no_room_is_one_place_and_is_counted() {
        for most in [(usize::MAX, 2), (60, usize::MAX)] {
            let mut tracked = TrackedProfile::bounded(most);
            let first = tracked.place(&frame("a.A.a", 1));
            let second = tracked.place(&frame(&"b".repeat(60), 2));
            assert_eq!(tracked.left_out(), 0);
            let third = tracked.place(&frame("c.C.c", 3));
            assert_eq!(tracked.place(&frame("d.D.d", 4)), third);
            assert_eq!(tracked.left_out(), 2);
            // A known frame keeps its place.
            assert_eq!(tracked.place(&frame("a.A.a", 1)), first);
            tracked.add([first, second, third], 7, 1, 16);
            let profile = Profile::decode(tracked.finish(&[]).as_slice()).unwrap();
            assert_eq!(profile.location.len(), 3);
            let has = |text: &str| profile.string_table.iter().any(|s| s == text);
            assert!(has(LEFT_OUT) && !has("c.C.c"));
        }
    }
}
