//! Reads the rules for applications from flags and files.

use super::file::{AppClass, AppTable, NameOrNumber};
use headway_host::daemon::{AppNetwork, AppRule};
use headway_policy::host::AppKind;
use std::fs;

/// Reads a flag: `kv:guaranteed=1,cores=2`, `pricer:batch`.
pub(super) fn of_flag(text: &str) -> Result<AppRule, String> {
    const FORM: &str = "an application is NAME[:batch][,guaranteed=G][,cores=M][,user=U][,group=G][,ip=IP/BITS][,gateway=IP]";
    let split = text.find([':', ',']).unwrap_or(text.len());
    let (name, rest) = text.split_at(split);
    let mut table = AppTable {
        name: name.to_owned(),
        guaranteed: 0,
        cores: None,
        class: AppClass::LatencyCritical,
        users: Vec::new(),
        groups: Vec::new(),
        ip: None,
        gateway: None,
        mac: None,
    };
    let parts = rest.split([':', ',']).filter(|part| !part.is_empty());
    for part in parts {
        let number = |value: &str| {
            value
                .parse::<usize>()
                .map_err(|_| format!("{part}: a number of cores is expected"))
        };
        match part.split_once('=') {
            None if part == "batch" => table.class = AppClass::Batch,
            Some(("guaranteed", value)) => table.guaranteed = number(value)?,
            Some(("cores", value)) => table.cores = Some(number(value)?),
            Some(("user", value)) => table.users.push(named(value)),
            Some(("ip", value)) => table.ip = Some(value.to_owned()),
            Some(("gateway", value)) => table.gateway = Some(value.to_owned()),
            Some(("group", value)) => table.groups.push(named(value)),
            _ => return Err(format!("'{part}' means nothing here: {FORM}")),
        }
    }
    of_table(&table)
}

fn named(text: &str) -> NameOrNumber {
    match text.parse() {
        Ok(number) => NameOrNumber::Number(number),
        Err(_) => NameOrNumber::Name(text.to_owned()),
    }
}

/// Reads a table of a file.
pub(super) fn of_table(table: &AppTable) -> Result<AppRule, String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if table.name.is_empty() || table.name.len() > 64 || !table.name.chars().all(is_plain) {
        return Err(format!(
            "'{}' is no name of an application: 1 to 64 letters, digits, '-', '_' and '.'",
            table.name
        ));
    }
    let all = |list: &[NameOrNumber], file: &str, what: &str| {
        list.iter()
            .map(|one| number_of(one, file, what))
            .collect::<Result<Vec<u32>, String>>()
    };
    Ok(AppRule {
        name: table.name.clone(),
        guaranteed: table.guaranteed,
        most: table.cores,
        kind: match table.class {
            AppClass::LatencyCritical => AppKind::Latency,
            AppClass::Batch => AppKind::Batch,
        },
        users: all(&table.users, "/etc/passwd", "user")?,
        groups: all(&table.groups, "/etc/group", "group")?,
        network: network_of(table)?,
    })
}

/// The application's addresses in the network of the daemon's device.
fn network_of(table: &AppTable) -> Result<Option<AppNetwork>, String> {
    let name = &table.name;
    let Some(ip) = &table.ip else {
        return match table.gateway.as_ref().or(table.mac.as_ref()) {
            None => Ok(None),
            Some(_) => Err(format!(
                "'{name}' has a gateway or an Ethernet address, and no ip"
            )),
        };
    };
    let address = ip.split_once('/').and_then(|(ip, bits)| {
        let bits = bits.parse().ok().filter(|bits| (1..=32).contains(bits))?;
        Some((ip.parse().ok()?, bits))
    });
    let (ip, prefix) = address.ok_or_else(|| {
        format!("'{ip}' is no address with the bits of its network, such as 10.0.0.9/24")
    })?;
    let gateway = table.gateway.as_ref().map(|text| {
        let wrong = |_| format!("'{text}' is no IPv4 address of a router, such as 10.0.0.1");
        text.parse().map_err(wrong)
    });
    Ok(Some(AppNetwork {
        ip,
        prefix,
        gateway: gateway.transpose()?,
        mac: table.mac.as_ref().map(|text| text.parse()).transpose()?,
    }))
}

/// The number of a user or group. For a name, it is the third field of the name's line in `file`.
fn number_of(one: &NameOrNumber, file: &str, what: &str) -> Result<u32, String> {
    let name = match one {
        NameOrNumber::Number(number) => return Ok(*number),
        NameOrNumber::Name(name) => name,
    };
    let text = fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?;
    let line = text
        .lines()
        .find(|line| line.split(':').next() == Some(name));
    line.and_then(|line| line.split(':').nth(2)?.parse().ok())
        .ok_or_else(|| format!("{file} knows no {what} '{name}': name another, or its number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_read() {
        let rule = of_flag("kv:guaranteed=1,cores=2,user=root,user=1000,group=7").unwrap();
        assert_eq!(
            (rule.name.as_str(), rule.guaranteed, rule.most),
            ("kv", 1, Some(2))
        );
        assert_eq!(
            (rule.kind, rule.users, rule.groups),
            (AppKind::Latency, vec![0, 1000], vec![7])
        );
        assert_eq!(of_flag("pricer:batch").unwrap().kind, AppKind::Batch);
        assert_eq!(of_flag("pricer,batch").unwrap().kind, AppKind::Batch);
        assert_eq!(of_flag("web").unwrap().most, None);
        let network = of_flag("web:ip=10.0.0.9/24,gateway=10.0.0.1").unwrap();
        let network = network.network.unwrap();
        assert_eq!((network.ip, network.prefix), ([10, 0, 0, 9].into(), 24));
        assert_eq!(network.gateway, Some([10, 0, 0, 1].into()));
        assert_eq!(network.address().mac.to_string(), "02:00:0a:00:00:09");
    }

    #[test]
    fn what_is_none_is_refused() {
        let refused = |text: &str| of_flag(text).unwrap_err();
        assert!(refused("").contains("is no name"));
        assert!(refused("kv:fast").contains("'fast' means nothing here"));
        assert!(refused("kv:ip=10.0.0.9").contains("such as 10.0.0.9/24"));
        assert!(refused("kv:gateway=10.0.0.1").contains("and no ip"));
        assert!(refused("kv:cores=two").contains("a number of cores"));
        assert!(refused("kv:user=nobody-at-all").contains("knows no user"));
    }
}
