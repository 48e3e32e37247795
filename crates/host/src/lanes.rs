//! The lanes of an application's packets: one lane per kthread, in a memfd whose size is sealed like that of its lines.

use crate::memory::{MemoryError, check_sealed, sealed};
use headway_policy::host::MOST_KTHREADS;
use headway_rings::lane::{LANE_BYTES, LaneEnds};
use headway_rings::mapping::SharedMapping;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// The lanes of an application, mapped.
#[derive(Clone, Debug)]
pub struct SharedLanes {
    mapping: Arc<SharedMapping>,
    kthreads: usize,
}

impl SharedLanes {
    /// Makes empty lanes for this many kthreads.
    ///
    /// # Errors
    /// [`MemoryError`].
    pub fn create(kthreads: usize) -> Result<(OwnedFd, Self), MemoryError> {
        let bytes = bytes_for(kthreads)?;
        let fd = sealed(c"headway-lanes", bytes)?;
        let lanes = Self::map(fd.as_fd(), bytes, kthreads)?;
        Ok((fd, lanes))
    }

    /// Maps lanes of another process, after checking that seals fix their size.
    ///
    /// # Errors
    /// [`MemoryError`].
    pub fn adopt(fd: impl AsFd, kthreads: usize) -> Result<Self, MemoryError> {
        let bytes = bytes_for(kthreads)?;
        check_sealed(fd.as_fd(), bytes, kthreads)?;
        Self::map(fd.as_fd(), bytes, kthreads)
    }

    fn map(fd: BorrowedFd<'_>, bytes: usize, kthreads: usize) -> Result<Self, MemoryError> {
        let mapping = SharedMapping::of(fd, bytes, 0);
        let mapping = mapping.map_err(|source| MemoryError::System {
            what: "map the memory of packets",
            source,
        })?;
        Ok(Self {
            mapping: Arc::new(mapping),
            kthreads,
        })
    }

    /// The number of kthreads.
    pub fn kthreads(&self) -> usize {
        self.kthreads
    }

    /// The memory, lane after lane.
    pub fn mapping(&self) -> &Arc<SharedMapping> {
        &self.mapping
    }

    /// The application's ends, in the order of its kthreads.
    pub fn of_application(&self) -> Vec<LaneEnds> {
        let ends = (0..self.kthreads)
            .filter_map(|kthread| LaneEnds::of_application(&self.mapping, kthread * LANE_BYTES));
        ends.collect()
    }
}

fn bytes_for(kthreads: usize) -> Result<usize, MemoryError> {
    if !(1..=MOST_KTHREADS).contains(&kthreads) {
        return Err(MemoryError::Lanes(kthreads));
    }
    Ok(kthreads * LANE_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use headway_rings::lane::{MOST_PACKET_BYTES, Taken};

    #[test]
    fn what_one_side_sends_the_other_receives() {
        let (fd, daemon) = SharedLanes::create(2).unwrap();
        let app = SharedLanes::adopt(&fd, 2).unwrap();
        let mut ends = app.of_application();
        assert_eq!((ends.len(), daemon.kthreads()), (2, 2));
        let mut plane = LaneEnds::of_plane(daemon.mapping(), LANE_BYTES).unwrap();
        assert_eq!(ends[1].sender.send(&[7; 60]), Ok(true));
        let mut packet = [0; MOST_PACKET_BYTES];
        assert_eq!(plane.receiver.receive(&mut packet), Ok(Taken::Packet(60)));
        assert_eq!(packet[..60], [7; 60]);
    }

    #[test]
    fn lanes_of_another_size_or_number_are_refused() {
        let (fd, _lanes) = SharedLanes::create(2).unwrap();
        let short = SharedLanes::adopt(&fd, 3).unwrap_err().to_string();
        assert!(short.contains("3 kthreads need"), "{short}");
        assert!(SharedLanes::create(0).is_err());
        let many = SharedLanes::create(MOST_KTHREADS + 1).unwrap_err();
        assert!(many.to_string().contains("1 to 64"), "{many}");
    }
}
