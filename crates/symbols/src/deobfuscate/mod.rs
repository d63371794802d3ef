//! Java names as they were before R8 or ProGuard renamed them: mapping files and the packets of
//! a trace, the rules by which their entries answer, and names for the frames of a recording.
//! Knows recordings only as [`heaptap_model::profile`], Java heaps only as
//! [`heaptap_model::heap_graph`]; never prints.
//!
//! | file | owns |
//! |---|---|
//! | `file`, `unpack`, `index` | a mapping file: opened, unpacked, and what is kept of it |
//! | `block` | the lines of one class, read when it is asked for |
//! | `grammar`, `json`, `metadata` | one line of a mapping file, its JSON, what that means |
//! | `class` | a class with its members, wherever it was read from |
//! | `packets` | maps that came as packets of a trace |
//! | `retrace` | which entries of a method answer, and with which lines |
//! | `owner`, `frame_name` | whose code a frame is; the forms of its name |
//! | `retracer`, `stack` | questions one at a time: frames, methods, fields, types; stack traces |
//! | `types`, `source_file` | forms of types; the likely file of a class |
//! | `discover`, `map_id` | mapping files that Gradle's builds left; which build a map is of |
//! | `heap` | names for the classes and fields of a Java heap |
//! | `app_map` | a map as it is given: whose frames it names |
//! | `apply`, `choice`, `lookup` | names for the frames of a recording: which map is for it, what that answers |

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
pub use apply::{Applied, apply};
pub use choice::packages_for;
pub use class::Signature;
pub use discover::{Discovered, discover};
pub use error::MapError;
pub use file::{Entry, MapFile};
pub use grammar::Fault;
pub use heap::{minified_classes, name_heap};
pub use index::{BadLine, Survey};
pub use map_id::{is_same_map, map_ids};
pub use metadata::{MergedClasses, Version};
pub use owner::{SeenIn, java_frames, profiled_packages};
pub use retrace::{Chain, SourceFrame, SourceMethod};
pub use retracer::{FieldType, Retraced, Retracer, SourceClass, SourceField};
pub use stack::AppFrame;
