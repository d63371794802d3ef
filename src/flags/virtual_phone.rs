//! Which virtual phone is meant, as it is typed.

use crate::error::{ErrorClass, Failure};
use crate::phone::{PhoneSpec, SpecError};

/// The phone that a SPEC describes.
///
/// # Errors
/// Returns an error if the SPEC can't be understood.
pub(crate) fn parse(spec: &str) -> Result<PhoneSpec, Failure> {
    let failure = |e: SpecError| Failure::new(ErrorClass::Usage, "phone-spec", e.to_string());
    PhoneSpec::parse(spec).map_err(failure)
}
