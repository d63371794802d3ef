//! A recording's life on the device: start, follow, snapshot, stop, pull, tidy up; and the
//! journal on the host from which a later process can go on. Emits events; never prints.
