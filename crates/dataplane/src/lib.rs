//! The data plane of a host. It gives packets of a device to applications by their Ethernet addresses, and within an application to the lane of a kthread that has a core;
//! and it sends what kthreads with cores have written.
//!
//! | concern | file |
//! |---|---|
//! | which application and kthread gets a frame: no I/O | [`steer`] |
//! | the hash of a flow | [`toeplitz`] |
//! | the loop's turn over device and lanes | [`plane`] |

pub mod plane;
pub mod steer;
pub mod toeplitz;
