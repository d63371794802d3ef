//! Selection of a virtual phone on the command line.

use crate::error::{ErrorClass, Failure};
use crate::phone::{PhoneSpec, SpecError};

/// Returns the phone that a SPEC describes.
///
/// # Errors
/// Returns an error if the SPEC is invalid.
pub(crate) fn parse(spec: &str) -> Result<PhoneSpec, Failure> {
    let failure = |e: SpecError| Failure::new(ErrorClass::Usage, "phone-spec", e.to_string());
    PhoneSpec::parse(spec).map_err(failure)
}
