//! The data plane of a host. It delivers a device's packets to applications by Ethernet address, and within an application to the lane of a kthread that has a
//! core. In the other direction it sends the packets that kthreads with cores have written.
//!
//! | concern | file |
//! |---|---|
//! | which application gets a frame, and the frame's flow; the policy chooses the kthread | [`steer`] |
//! | the hash of a flow | [`toeplitz`] |
//! | the loop's turn over device and lanes | [`plane`] |

pub mod plane;
pub mod steer;
pub mod toeplitz;
