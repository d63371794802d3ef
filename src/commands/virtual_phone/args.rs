//! The flags of `heaptap virtual-phone`.

use std::fmt::Write as _;

use virtual_phone::{FaultKind, PhoneSpec};

/// Flags of `virtual-phone`.
#[derive(Debug, clap::Args)]
#[command(before_help = "Example:\n  heaptap virtual-phone --port 5038 android=14,build=user")]
pub struct Args {
    /// Port to listen on; 0 is any
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    pub port: u16,
    /// Phone: a list such as android=14,build=user
    #[arg(value_name = "SPEC", default_value = "", hide_default_value = true, long_help = keys())]
    pub spec: String,
}

fn keys() -> String {
    let mut help = "Phone: a list such as android=14,build=user\n\nKeys:".to_owned();
    for (key, values) in PhoneSpec::KEYS {
        let _ = write!(help, "\n- {key}: {values}");
    }
    help += "\n\nA fault strikes each time; with #K only the K-th time. VALUE is a whole number \
             without a unit, with a meaning that depends on KIND:";
    for kind in FaultKind::ALL {
        let description = kind.description().trim_end_matches('.');
        let _ = write!(help, "\n- {}: {description}", kind.name());
    }
    help
}
