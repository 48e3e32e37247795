//! An Ethernet address.

use std::fmt;
use std::str::FromStr;

/// An Ethernet address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MacAddress(pub [u8; 6]);

impl MacAddress {
    /// Whether it is a multicast or broadcast address.
    #[inline]
    #[must_use]
    pub fn is_group(self) -> bool {
        self.0[0] & 1 == 1
    }
}

impl fmt::Display for MacAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl FromStr for MacAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("'{text}' is no Ethernet address: write six bytes, as 02:00:00:00:00:01");
        let mut bytes = [0; 6];
        let mut parts = text.split(':');
        for byte in &mut bytes {
            let part = parts.next().filter(|part| part.len() == 2);
            let part = part.ok_or_else(wrong)?;
            *byte = u8::from_str_radix(part, 16).map_err(|_| wrong())?;
        }
        if parts.next().is_some() {
            return Err(wrong());
        }
        Ok(Self(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ethernet_addresses_read_back_as_they_are_written() {
        let mac = MacAddress([2, 0, 0xab, 1, 0xff, 9]);
        assert_eq!(mac.to_string(), "02:00:ab:01:ff:09");
        assert_eq!(mac.to_string().parse(), Ok(mac));
        for text in [
            "",
            "02:00:ab:01:ff",
            "02:00:ab:01:ff:9",
            "02:00:ab:01:ff:09:00",
            "0x:00:ab:01:ff:09",
        ] {
            let said = text.parse::<MacAddress>().unwrap_err();
            assert!(said.contains("write six bytes"), "{said}");
        }
        assert!(MacAddress([0xff; 6]).is_group() && !mac.is_group());
    }
}
