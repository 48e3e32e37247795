//! Attachment of the program to interfaces.

use crate::pins::LinkKind;
use crate::switch::{PROGRAM, SwitchError, XdpSwitch, classifier, xdp};
use crate::tags::{HiddenTags, VETH_PROGRAM, runs_in_veth};
use aya::programs::tc::{SchedClassifierLink, TcAttachOptions, TcAttachType};
use aya::programs::xdp::XdpLink;
use aya::programs::{LinkOrder, ProgramError, XdpMode};

impl XdpSwitch {
    /// Gives the interface's packets to the program. The attachment ends with this switch, unless it is pinned; an attachment that an earlier process pinned
    /// has this program from one packet to the next. Returns what becomes of packets there whose VLAN tag lies beside them.
    ///
    /// # Errors
    /// [`SwitchError::Attach`] when there is no such interface, it has a program, or its driver takes none.
    pub fn attach(&mut self, interface: &str, mode: XdpMode) -> Result<HiddenTags, SwitchError> {
        let failed = |source| SwitchError::Attach {
            interface: interface.to_owned(),
            source,
        };
        // An interface that is gone has no pins, and the kernel says so below.
        let ifindex = nix::net::if_::if_nametoindex(interface).unwrap_or(0);
        self.learn_address(ifindex)?;
        if self.clones {
            self.attach_copier(interface, ifindex)
                .map_err(|source| SwitchError::AttachClones {
                    interface: interface.to_owned(),
                    source,
                })?;
        }
        let tags = self.tags_at(ifindex, mode);
        let name = match tags {
            HiddenTags::Dropped => VETH_PROGRAM,
            HiddenTags::Unseen => PROGRAM,
        };
        let program = xdp(&mut self.program, name)?;
        let Some(pins) = &self.pins else {
            return program
                .attach(interface, mode)
                .map(|_| tags)
                .map_err(failed);
        };
        if let Some(link) = pins.link(LinkKind::Xdp, ifindex)
            && let Ok(link) = XdpLink::try_from(link)
            && program.attach_to_link(link).is_ok()
        {
            return Ok(tags);
        }
        let attached = program.attach(interface, mode).map_err(failed)?;
        let link = program.take_link(attached).map_err(failed)?;
        pins.keep(LinkKind::Xdp, ifindex, link)
            .map_err(SwitchError::Pin)?;
        Ok(tags)
    }

    /// Loads the program that sees tags if one can run there. The kernel checks it for a tenth of a second, so that it waits for a first veth pair.
    fn tags_at(&mut self, ifindex: u32, mode: XdpMode) -> HiddenTags {
        if !self.sees_tags || !runs_in_veth(ifindex, mode) {
            return HiddenTags::Unseen;
        }
        let Ok(program) = xdp(&mut self.program, VETH_PROGRAM) else {
            return HiddenTags::Unseen;
        };
        // A process without the right to read the kernel's memory does without.
        if program.fd().is_ok() || program.load().is_ok() {
            HiddenTags::Dropped
        } else {
            HiddenTags::Unseen
        }
    }

    fn attach_copier(&mut self, interface: &str, ifindex: u32) -> Result<(), ProgramError> {
        let Ok(copier) = classifier(&mut self.program) else {
            return Err(ProgramError::NotLoaded);
        };
        let order = TcAttachOptions::TcxOrder(LinkOrder::last());
        let Some(pins) = &self.pins else {
            let attached = copier.attach_with_options(interface, TcAttachType::Ingress, order);
            return attached.map(|_| ());
        };
        if let Some(link) = pins.link(LinkKind::Copier, ifindex)
            && let Ok(link) = SchedClassifierLink::try_from(link)
            && copier.attach_to_link(link).is_ok()
        {
            return Ok(());
        }
        let attached = copier.attach_with_options(interface, TcAttachType::Ingress, order)?;
        let link = copier.take_link(attached)?;
        pins.keep(LinkKind::Copier, ifindex, link)
            .map_err(|_| ProgramError::NotLoaded)
    }
}
