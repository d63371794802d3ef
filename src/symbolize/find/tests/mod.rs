//! A fixture for each kind of place: small trees in a temporary folder, from ELF files that
//! hold no more than what a search asks for.

mod order;
