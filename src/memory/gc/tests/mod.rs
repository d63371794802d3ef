//! Every form of line against the values it must give; hostile text.

mod forms;
mod hostile;
