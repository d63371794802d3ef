//! Selection of a virtual phone on the command line.

use heaptap_base::error::{ErrorClass, Failure};
use heaptap_base::suggest::nearest;
use virtual_phone::{PhoneSpec, SpecError};

/// Returns the phone that a SPEC describes.
///
/// # Errors
/// Returns an error if the SPEC is invalid.
pub(crate) fn parse(spec: &str) -> Result<PhoneSpec, Failure> {
    let failure = |error: SpecError| {
        let meant = match &error {
            SpecError::UnknownKey { key } => nearest(key, PhoneSpec::KEYS.map(|(key, _)| key)),
            _ => None,
        };
        let keys = "run `heaptap virtual-phone --help` for the keys and their values";
        let help = match meant {
            Some(meant) => format!("did you mean `{meant}`? {keys}"),
            None => keys.to_owned(),
        };
        Failure::new(ErrorClass::Usage, "phone-spec", error.to_string()).with_help(help)
    };
    PhoneSpec::parse(spec).map_err(failure)
}
