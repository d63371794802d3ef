//! Memory limit for readers of single messages: a message that exceeds it counts as damaged.

use super::wire::WireError;
use heaptap_base::units::Allowance;

/// The definitions of a message exceed the memory limit.
const TOO_MANY: WireError = WireError {
    at: None,
    what: "memory limit for a trace of this size exceeded",
};

/// Takes memory from the allowance.
///
/// # Errors
/// Returns an error if not enough is left; nothing is taken then.
#[inline]
pub(super) fn pay(allowance: &mut Allowance, memory: usize) -> Result<(), WireError> {
    match allowance.take(memory) {
        true => Ok(()),
        false => Err(TOO_MANY),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_taken_where_there_is_not_as_much() {
        let mut allowance = Allowance::default();
        let left = allowance.left();
        assert!(pay(&mut allowance, left + 1).is_err());
        assert_eq!(allowance.left(), left);
        assert!(pay(&mut allowance, left).is_ok());
        assert_eq!(allowance.left(), 0);
    }
}
