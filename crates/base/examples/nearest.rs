//! Prints the names that a misspelled one might mean.
//!
//! ```console
//! $ cargo run -p heaptap-base --example nearest -- reprot
//! ```
#![allow(clippy::print_stdout, reason = "an example prints")]

use heaptap_base::suggest::nearest;
use heaptap_base::untrusted::sanitize;

fn main() {
    let typed = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "reprot".to_owned());
    let names = ["record", "report", "query", "leaks"];
    println!("{} is not a command", sanitize(&typed));
    if let Some(name) = nearest(&typed, names) {
        println!("did you mean {name}?");
    }
}
