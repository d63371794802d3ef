//! Pages that people look at: one HTML file without network or foreign parts, that reads well
//! without scripts and unstyled too, and the data that its viewer shows. Takes what `analyze`
//! computed, gives text.
//!
//! | file | owns |
//! |---|---|
//! | `html` | escaping, elements, the frame of a page with its content policy |
//! | `icicle` | a tree of sizes as a picture |
//! | `data` | the numbers for the viewer |
//! | `java` | the pages of a Java heap |

pub mod data;
mod html;
mod icicle;
pub mod java;
