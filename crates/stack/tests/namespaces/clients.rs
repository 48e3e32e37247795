//! Real clients of Linux and the servers of an application behind the daemon.

use crate::hosted::{HostedStage, KV, connected};
use crate::net::shell;
use crate::roles::RoleProcess;
use crate::services::{ADDRESS, page};
use crate::{in_namespaces, lacks};
use std::net::{Ipv4Addr, SocketAddrV4};

/// Runs a test with a client, where that is installed.
fn with_client(client: &'static str, package: &'static str, test: impl FnOnce() + Send + 'static) {
    in_namespaces(client, move || {
        if lacks(client, package) {
            return;
        }
        let stage = HostedStage::new();
        let _app = RoleProcess::start("services", &stage.socket());
        // The port of pages is the last that opens.
        stage.linux(|| drop(connected(SocketAddrV4::new(KV, 80))));
        stage.linux(test);
        let counts = stage.network();
        assert_eq!((counts.spoofed, counts.invalid), (0, 0), "{counts:?}");
        assert!(counts.broken.is_empty());
    });
}

#[test]
fn curl_gets_pages_through_the_daemon() {
    with_client("curl", "curl", || {
        let get = format!("curl -sS --max-time 60 http://{KV}/page");
        let all = shell(&format!(
            "cd $(mktemp -d); for n in 1 2 3 4 5 6 7 8; do {get} > $n & done; wait; cat 1 2 3 4 5 6 7 8; rm -r $PWD"
        ));
        assert!(all.as_bytes() == page().repeat(8), "the page, eight times");
    });
}

#[test]
fn dig_resolves_names_through_the_daemon() {
    with_client("dig", "bind9-dnsutils", || {
        let address = format!("{}\n", Ipv4Addr::from(ADDRESS));
        for over in ["+notcp", "+tcp"] {
            for name in ["a.test", "a-longer-name.of.several.parts.test"] {
                let found = shell(&format!("dig {over} +short +tries=3 @{KV} {name} A"));
                assert_eq!(found, address, "{over} {name}");
            }
        }
    });
}

#[test]
fn dnsperf_gets_every_answer_through_the_daemon() {
    with_client("dnsperf", "dnsperf", || {
        const QUERIES: usize = 5000;
        let said = shell(&format!(
            "for n in $(seq {QUERIES}); do echo name$n.test A; done | dnsperf -s {KV} -n 1 -c 8 -q 64 -t 10"
        ));
        let line = |name: &str| {
            let mut lines = said.lines().map(str::trim);
            let line = lines.find_map(|line| line.strip_prefix(name));
            line.unwrap_or_else(|| panic!("{name}: {said}"))
                .trim()
                .to_owned()
        };
        assert_eq!(line("Queries sent:"), QUERIES.to_string());
        assert!(
            line("Queries completed:").starts_with(&format!("{QUERIES} (100.00%)")),
            "{said}"
        );
        assert_eq!(
            line("Response codes:"),
            format!("NOERROR {QUERIES} (100.00%)")
        );
    });
}

#[test]
fn memcached_clients_get_what_they_set_through_the_daemon() {
    with_client("memccp", "libmemcached-tools", || {
        let keys: String = (1..=20).map(|number| format!(" key{number}")).collect();
        let same = shell(&format!(
            "cd $(mktemp -d)
             for key in {keys}; do seq 1 $((${{key#key}} * 500)) > $key; done
             memccp --servers={KV}:11211 --set {keys}
             for key in {keys}; do memccat --servers={KV}:11211 --file=got $key; cmp got $key; echo $key; done
             rm -r $PWD"
        ));
        assert_eq!(same.split_whitespace().count(), 20, "{same}");
    });
}
