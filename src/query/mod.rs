//! SQL over profiles: Perfetto's tables and columns, and views of our own, as virtual tables of
//! an embedded SQLite. Knows neither files nor the terminal.
