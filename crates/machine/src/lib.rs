//! What this machine is and does: its clock, its cores, its noise.
