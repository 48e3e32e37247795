//! The Ethernet addresses of the switch's own interfaces. The program passes frames for others on: a device that floods, or takes all frames, shows it those too.

use aya::maps::{Array, MapData};
use nix::sys::socket::SockProtocol;

use crate::layout::{InterfaceAddress, MAX_INTERFACES, OwnInterfaces, Raw, bytes_of};
use crate::neighbours::Kernel;
use crate::switch::{SwitchError, XdpSwitch, reading, writing};

const BYTES: usize = OwnInterfaces::BYTES;

impl XdpSwitch {
    /// Tells the program the Ethernet address of an interface. [`attach`](Self::attach) does so for its own; by an interface without an address come frames for
    /// all but groups. There is room for 16 interfaces.
    ///
    /// # Errors
    /// [`SwitchError::Map`] when the kernel refuses.
    pub fn set_address(&mut self, ifindex: u32, mac: [u8; 6]) -> Result<(), SwitchError> {
        let mut map = self.interfaces()?;
        let mut own = OwnInterfaces::get(&map.get(&0, 0).map_err(reading)?);
        let is_its = |at: &&mut InterfaceAddress| at.ifindex == 0 || at.ifindex == ifindex;
        let Some(place) = own.at.iter_mut().find(is_its) else {
            return Ok(());
        };
        if place.ifindex == ifindex && place.mac == mac {
            return Ok(());
        }
        *place = InterfaceAddress { ifindex, mac };
        map.set(0, bytes_of(&own), 0).map_err(writing)
    }

    /// Tells the program the addresses that its interfaces have now. Call it at intervals.
    ///
    /// # Errors
    /// [`SwitchError::Map`] when the kernel refuses.
    pub fn renew_addresses(&mut self) -> Result<(), SwitchError> {
        let own = self.interfaces()?.get(&0, 0).map_err(reading)?;
        let own = OwnInterfaces::get(&own).at.map(|at| at.ifindex);
        for ifindex in own.into_iter().filter(|ifindex| *ifindex != 0) {
            self.learn_address(ifindex)?;
        }
        Ok(())
    }

    /// Looks an interface's address up, if it has one.
    pub(crate) fn learn_address(&mut self, ifindex: u32) -> Result<(), SwitchError> {
        let kernel = Kernel::open(SockProtocol::NetlinkRoute);
        let link = kernel.and_then(|kernel| kernel.link(ifindex));
        let mac = link.ok().and_then(|link| link.mac);
        mac.map_or(Ok(()), |mac| self.set_address(ifindex, mac))
    }

    fn interfaces(&mut self) -> Result<Array<&mut MapData, [u8; BYTES]>, SwitchError> {
        let map = self.program.map_mut("interfaces");
        let map = map.ok_or(SwitchError::Missing("map of interfaces"))?;
        Array::try_from(map).map_err(reading)
    }
}

const _: () = assert!(MAX_INTERFACES == 16, "as documented");
