//! Packets that no correct client or server sends.

use crate::addresses::{CLIENTS_SIDE, Family, ifindex_of};
use crate::common::*;
use crate::copies::role_of;
use crate::{PORT, Planes, SERVERS};
use headway_net::header::{CloneRole, Flag, HEADER_BYTES, Header, Status};
use headway_policy::rack::Mark;
use rand_core::Rng;

impl Planes {
    /// Packets that the switch drops for their contents.
    pub(crate) fn odd_datagram(&mut self) {
        let header = Header {
            class: self.below(8) as u8,
            flag: Flag::REQUEST,
            index: self.rng.next_u32(),
            time_ns: 5,
        };
        match self.below(9) {
            0 => {
                let mut frame = self.client_frame(header);
                frame
                    .payload
                    .truncate(self.rng.next_u32() as usize % HEADER_BYTES);
                self.dropped_alike(&frame);
            }
            1 => {
                let mut frame = self.client_frame(header);
                let length = 2001 + self.rng.next_u32() as usize % 300;
                frame.payload.resize(length, 9);
                self.dropped_alike(&frame);
            }
            2 => {
                let number = self.below(SERVERS as u32 + 1) as usize;
                let mut frame = self.client_frame(header);
                frame.from = if number == SERVERS {
                    self.family.own()
                } else {
                    self.family.server(number)
                };
                self.dropped_alike(&frame);
            }
            3 | 4 => {
                // From a client, or from a server about a finished request: it matches no request under way.
                let kind = [Flag::response(Status::Ok), Flag::REQUEST.with_bounced(true)];
                let flag = kind[self.below(2) as usize];
                let Some(at) = self.done.last().cloned() else {
                    return;
                };
                let flag = flag.with_clone_role(role_of(at.mark));
                let from = self.family.server(at.server);
                let (user_in, xdp_in) = self.packet_of_server(&at, from, flag);
                self.dropped(ifindex_of(at.server), &user_in, &xdp_in);
            }
            kind => {
                let Some(at) = self.under_way.last().cloned() else {
                    return;
                };
                let flag = if self.below(2) == 0 {
                    Flag::response(Status::Ok)
                } else {
                    Flag::REQUEST.with_bounced(true)
                };
                let mut by = ifindex_of(at.server);
                let (from, flag) = if kind >= 7 {
                    // Right but for the interface by which it comes.
                    by = 3 - by;
                    let role = role_of(at.mark);
                    (self.family.server(at.server), flag.with_clone_role(role))
                } else if kind == 5 {
                    let other = (at.server + 1) % SERVERS;
                    let role = role_of(at.mark);
                    (self.family.server(other), flag.with_clone_role(role))
                } else {
                    // The request has one copy and the packet claims two, or the other way round.
                    let role = if at.mark == Mark::Plain {
                        [CloneRole::Original, CloneRole::Clone][self.below(2) as usize]
                    } else {
                        CloneRole::None
                    };
                    (self.family.server(at.server), flag.with_clone_role(role))
                };
                let (user_in, xdp_in) = self.packet_of_server(&at, from, flag);
                self.dropped(by, &user_in, &xdp_in);
            }
        }
    }

    /// Packets that the user-space switch never sees: the kernel keeps them from its socket, or changes them first.
    pub(crate) fn odd_packet(&mut self) {
        let header = Header {
            class: 1,
            flag: Flag::REQUEST,
            index: 1,
            time_ns: 5,
        };
        let mut frame = self.client_frame(header);
        let is_ip4 = self.family == Family::Ip4;
        let expected = match self.below(9) {
            0 => {
                frame.to.set_port(PORT + 1);
                (frame.bytes(), PASS)
            }
            1 => {
                frame.to.set_ip(self.family.ip(0, 2));
                (frame.bytes(), PASS)
            }
            2 => {
                let mut bytes = frame.bytes();
                bytes[frame.ip_at() - 2..frame.ip_at()].copy_from_slice(&[0x08, 0x06]);
                (bytes, PASS)
            }
            3 => {
                let mut bytes = frame.bytes();
                // TCP.
                bytes[frame.ip_at() + if is_ip4 { 9 } else { 6 }] = 6;
                (bytes, PASS)
            }
            4 => {
                let mut bytes = frame.bytes();
                self.below.fragment += 1;
                if is_ip4 {
                    // More fragments follow, or this is not the first.
                    let field = [[0x20, 0], [0, 0x10], [0x3f, 0xff]][self.below(3) as usize];
                    bytes[frame.ip_at() + 6..frame.ip_at() + 8].copy_from_slice(&field);
                } else {
                    bytes[frame.ip_at() + 6] = 44;
                }
                (bytes, PASS)
            }
            5 => {
                let mut bytes = frame.bytes();
                self.below.options += 1;
                if is_ip4 {
                    bytes[frame.ip_at()] = 0x46 + self.below(10) as u8;
                } else {
                    bytes[frame.ip_at() + 6] = [0, 43, 60][self.below(3) as usize];
                }
                (bytes, PASS)
            }
            6 => {
                // The packet ends inside UDP's header or payload.
                let mut bytes = frame.bytes();
                let kept =
                    frame.udp_at() + self.below((bytes.len() - frame.udp_at()) as u32) as usize;
                bytes.truncate(kept.max(14));
                self.below.truncated += 1;
                (bytes, DROP)
            }
            7 => {
                // UDP's length is beyond IP's, or too small to be one.
                let mut bytes = frame.bytes();
                let lie = if self.below(2) == 0 {
                    0xffff
                } else {
                    self.below(18) as u16
                };
                let at = frame.udp_at() + 4;
                bytes[at..at + 2].copy_from_slice(&lie.to_be_bytes());
                self.below.truncated += 1;
                (bytes, DROP)
            }
            _ => {
                // The packet ends inside Ethernet's tags or IP's header.
                let mut bytes = frame.bytes();
                let kept = 14 + self.below((frame.udp_at() - 14) as u32) as usize;
                bytes.truncate(kept);
                (bytes, PASS)
            }
        };
        let (bytes, action) = expected;
        let ran = self.xdp_run(CLIENTS_SIDE, &bytes);
        assert_eq!((ran.action, ran.bytes), (action, bytes));
    }
}
