//! Judges measured bytes against a limit.
//!
//! ```console
//! $ cargo run -p heaptap-lab --example verdict -- 8mb 8.1mb 8.2mb 8.15mb
//! ```

use heaptap_base::units::ByteSize;
use heaptap_lab::results::{Unit, values};
use heaptap_lab::verdict::{InterimAnalyses, Measured, judge};
use std::io::{self, Write as _};

fn verdict(sizes: &[&str]) -> Result<String, Box<dyn std::error::Error>> {
    let sizes = sizes.iter().map(|size| ByteSize::parse(size));
    let sizes = sizes.collect::<Result<Vec<_>, _>>()?;
    let (limit, sizes) = sizes.split_first().ok_or("usage: verdict LIMIT SIZE…")?;
    let measured = |size: &ByteSize| Measured {
        value: size.0 as f64,
        samples: None,
    };
    let runs: Vec<Measured> = sizes.iter().map(measured).collect();
    let looks = InterimAnalyses::new(runs.len(), runs.len());
    let judged = judge(&runs, &[], limit.0 as f64, 1.0, looks);
    let estimate = values::estimate(Unit::Bytes, &judged);
    let limit = values::value(Unit::Bytes, judged.limit);
    Ok(format!("{:?}: {estimate}, limit {limit}", judged.verdict))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let sizes: Vec<String> = std::env::args().skip(1).collect();
    let sizes: Vec<&str> = sizes.iter().map(String::as_str).collect();
    writeln!(io::stdout().lock(), "{}", verdict(&sizes)?)?;
    Ok(())
}

#[test]
fn verdict_follows_the_bounds() {
    let text = verdict(&["8mb", "8.1mb", "8.2mb", "8.15mb"]).unwrap();
    assert_eq!(text, "Over: 8.1 MiB (8.1 to 8.2), limit 8.0 MiB");
    let text = verdict(&["8mb", "8.1mb", "7.8mb", "8.0mb"]).unwrap();
    assert!(text.starts_with("Undecided"), "{text}");
}
