//! Flags that apply to a host only.

use crate::error::usage;
use anyhow::Result;
use headway_policy::PolicySpec;

/// The flags of a simulated host.
#[derive(clap::Args)]
pub(super) struct HostFlags {
    /// An application that shares the host's cores, repeatable: NAME:workload=…,load=…|rate=…[,cores=G[..MOST]]
    /// [,policy=…][,refuses] or NAME:batch[,cores=…][,refuses]. G cores are guaranteed (0); a rate may change in
    /// steps: 100k/1s+5M/1s+100k; one that refuses to leave its cores is moved away. Without any: one application
    /// of --workload and --load with every core guaranteed, and a batch application
    #[arg(
        long,
        value_name = "NAME:…",
        help_heading = "Host (policies static, interval, shenango)",
        conflicts_with_all = ["workload", "load", "rate"]
    )]
    pub(super) app: Vec<String>,
    /// Hyper-threads per physical core of the host, 1 or 2 [default: 2]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=2),
          help_heading = "Host (policies static, interval, shenango)")]
    pub(super) threads_per_core: Option<u8>,
    /// Costs of moving cores [default: Shenango's figures]: daemon, leave, wake, park, spin, packet, overhead
    #[arg(
        long,
        value_name = "KEY=TIME[,…]",
        help_heading = "Host (policies static, interval, shenango)"
    )]
    pub(super) host_costs: Option<String>,
}

impl HostFlags {
    /// Refuses these flags under a policy that is not a host's.
    pub(super) fn refuse_without_host(&self, policy: &PolicySpec) -> Result<()> {
        let names = headway_policy::host::systems::NAMES.join(", ");
        if !self.app.is_empty() {
            let message = format!(
                "'{policy}' does not share cores among applications; those that do: {names}"
            );
            return Err(usage("--policy", message));
        }
        let given = [
            ("--threads-per-core", self.threads_per_core.is_some()),
            ("--host-costs", self.host_costs.is_some()),
        ];
        match given.iter().find(|(_, given)| *given) {
            Some((flag, _)) => Err(usage(
                flag,
                format!("only a host has that: add --policy with one of {names}"),
            )),
            None => Ok(()),
        }
    }
}
