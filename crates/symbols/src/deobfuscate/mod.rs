//! Original Java names from before R8 or ProGuard renamed them: mapping files and packets of a
//! trace, the rules for looking up their entries, and names for the frames of a recording. Depends
//! only on [`heaptap_model::profile`] for recordings and on [`heaptap_model::heap_graph`] for Java
//! heaps; never prints.
//!
//! | file | owns |
//! |---|---|
//! | `file`, `unpack`, `index` | a mapping file: opening, decompression, index |
//! | `block` | the lines of one class, read when needed |
//! | `grammar`, `json`, `metadata` | one line of a mapping file, its JSON, its meaning |
//! | `class` | a class with its members, from any source |
//! | `packets` | R8 mappings from packets of a trace |
//! | `retrace` | selection of a method's entries and lines |
//! | `owner`, `frame_name` | owner of a frame's code; forms of frame names |
//! | `retracer`, `stack` | single lookups of classes, fields, types; frames of stack traces |
//! | `types`, `source_file` | forms of types; the likely file of a class |
//! | `discover`, `map_id` | mapping files of Gradle builds; the build that an R8 mapping belongs to |
//! | `heap` | names for the classes and fields of a Java heap |
//! | `app_map` | an R8 mapping with its scope |
//! | `apply`, `choice`, `lookup` | names for the frames of a recording: selection of R8 mappings, lookup |
//! | `error` | errors of mapping files |

mod app_map;
mod apply;
mod block;
mod choice;
mod class;
mod discover;
mod error;
mod file;
mod frame_name;
mod grammar;
mod heap;
mod index;
mod json;
mod lookup;
mod map_id;
mod metadata;
mod owner;
mod packets;
mod retrace;
mod retracer;
mod source_file;
mod stack;
mod types;
mod unpack;

pub use app_map::{AppMap, MapSource, Scope};
pub use apply::apply;
pub use choice::packages_for;
pub use discover::{Discovered, discover};
pub use error::MapError;
pub use file::{Entry, MapFile};
pub use grammar::Fault;
pub use heap::{minified_classes, name_heap};
pub use index::{BadLine, Survey};
pub use map_id::{is_same_map, map_ids};
pub use metadata::Version;
pub use owner::{SeenIn, java_frames, profiled_packages};
pub use retrace::{Chain, SourceFrame, SourceMethod};
pub use retracer::{FieldType, Retraced, Retracer, SourceField};
pub use stack::TraceFrame;
