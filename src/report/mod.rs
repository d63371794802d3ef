//! Pages that people look at: one HTML file without scripts, network or foreign parts, that
//! reads well unstyled too. Takes what `analyze` computed, gives text.
//!
//! | file | owns |
//! |---|---|
//! | `html` | escaping, elements, the frame of a page with its content policy |
//! | `icicle` | a tree of sizes as a picture |
//! | `java` | the pages of a Java heap |

mod html;
mod icicle;
pub mod java;
