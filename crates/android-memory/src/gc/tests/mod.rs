//! Every form of line against the values it must give; hostile text.

mod analysis;
mod forms;
mod hostile;
