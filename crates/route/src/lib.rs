//! Request and layouts to a plan; responses to one response; cursors.
//!
//! Sans-IO: nothing here waits, reads a clock or opens a socket. An [`Execution`](execution) hands out physical calls
//! and takes their answers until it can give the client's.
