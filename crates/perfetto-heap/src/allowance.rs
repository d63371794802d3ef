//! What may be kept of a trace, for readers of single messages: what there is no room for is
//! damage of the message.

use super::wire::WireError;
use heaptap_model::units::Allowance;

/// There is no room for what a message defines.
const TOO_MANY: WireError = WireError {
    at: 0,
    what: "entries that take too much memory for the size of the trace",
};

/// Takes of what may be kept.
///
/// # Errors
/// Where there is not as much left; nothing is taken then.
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
