//! Actions that bring leaks out, as the Android guide recommends them: rotations, leaving and
//! coming back, restarts of activities, trims, random and scripted input. Each is a plain value
//! that can be written in a script; what an action changes on the device is put back afterwards.
