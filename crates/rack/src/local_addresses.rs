//! The addresses of a socket that has all of its machine's: clients expect an answer from the one that they asked.

use crate::LocalAddress;
use headway_net::slot::Slot;

/// The addresses that packets came to, numbered from 1 as they appear. They are never forgotten: requests under way have their numbers.
pub(crate) struct LocalAddresses {
    ips: Vec<[u8; 16]>,
    /// The address found last, which most often is the next one too.
    last: LocalAddress,
}

impl LocalAddresses {
    const MOST: usize = LocalAddress::UNNUMBERED.0 as usize - 1;

    /// None yet.
    pub(crate) fn new() -> Self {
        Self {
            ips: Vec::with_capacity(Self::MOST),
            last: LocalAddress::UNNUMBERED,
        }
    }

    /// The number of this address. A socket cannot send from [`Slot::ANY_IP`], which has none.
    #[inline]
    pub(crate) fn number(&mut self, ip: [u8; 16]) -> LocalAddress {
        if self.ip(self.last) != ip || ip == Slot::ANY_IP {
            self.last = self.find(ip);
        }
        self.last
    }

    fn find(&mut self, ip: [u8; 16]) -> LocalAddress {
        if ip == Slot::ANY_IP {
            return LocalAddress::UNNUMBERED;
        }
        let known = self.ips.iter().position(|known| *known == ip);
        let at = known.unwrap_or(self.ips.len());
        if at == Self::MOST {
            return LocalAddress::UNNUMBERED;
        }
        if known.is_none() {
            self.ips.push(ip);
        }
        LocalAddress(at as u8 + 1)
    }

    /// The address of this number; [`Slot::ANY_IP`] for those that mean none.
    #[inline]
    pub(crate) fn ip(&self, number: LocalAddress) -> [u8; 16] {
        let at = usize::from(number.0).wrapping_sub(1);
        self.ips.get(at).copied().unwrap_or(Slot::ANY_IP)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_keep_their_numbers_until_there_are_too_many() {
        let mut addresses = LocalAddresses::new();
        let ip = |number: u16| {
            let [high, low] = number.to_be_bytes();
            [high, low, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]
        };
        for _ in 0..2 {
            for number in 0..LocalAddresses::MOST as u16 {
                let found = addresses.number(ip(number));
                assert_eq!(found, LocalAddress(number as u8 + 1));
                assert_eq!(addresses.number(ip(number)), found);
                assert_eq!(addresses.ip(found), ip(number));
            }
            for none in [ip(254), ip(255), Slot::ANY_IP] {
                assert_eq!(addresses.number(none), LocalAddress::UNNUMBERED);
            }
        }
        for none in [LocalAddress::ANY, LocalAddress::UNNUMBERED] {
            assert_eq!(addresses.ip(none), Slot::ANY_IP);
        }
    }
}
