//! Every policy there is, of whichever level: the only file that sees all of them.

use crate::server::fluid::ProcessorSharing;
use crate::server::systems::{self, ServerPolicy, ServerSpec};
use crate::spec::{Description, Spec, SpecError};
use crate::{host, rack};
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

/// A policy by the level at which it decides.
#[derive(Clone, Copy, Debug)]
pub enum Policy {
    /// Which request a server's workers run next.
    Server(&'static ServerPolicy),
    /// The same by rates, in virtual time.
    Fluid,
    /// Which server of a rack gets a request.
    Rack(&'static Description),
    /// Which application of a host gets a core.
    Host(&'static Description),
}

/// Where a policy decides.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Level {
    /// Among the workers of one server.
    Server,
    /// Among the servers of a rack.
    Rack,
    /// Among the applications of a host.
    Host,
}

impl Policy {
    /// Every policy, servers' first, each level in its own order.
    pub fn all() -> impl Iterator<Item = Self> {
        let servers = systems::ALL.iter().copied().map(Self::Server);
        let racks = rack::systems::ALL.iter().copied().map(Self::Rack);
        let hosts = host::systems::ALL.iter().copied().map(Self::Host);
        servers.chain([Self::Fluid]).chain(racks).chain(hosts)
    }

    /// The policy of this name. An own name comes before another level's alias: `shenango` is the allocator of
    /// cores, although a server's `work-stealing` is called so too.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        let own = Self::all().find(|policy| policy.about().name == name);
        own.or_else(|| Self::all().find(|policy| policy.about().is_called(name)))
    }

    /// Its names, what it does, its parameters.
    #[must_use]
    pub fn about(&self) -> &'static Description {
        match self {
            Self::Server(policy) => &policy.about,
            Self::Fluid => &ProcessorSharing::ABOUT,
            Self::Rack(about) | Self::Host(about) => about,
        }
    }

    /// The command that runs it live, with its default parameters; `None` where it runs in virtual time alone. Everybody who says where a policy
    /// runs asks here.
    #[must_use]
    pub fn live_command(&self) -> Option<&'static str> {
        match self {
            Self::Server(policy) => policy.by_default().runs_live().then_some("headway serve"),
            Self::Fluid => None,
            Self::Rack(_) => Some("headway rack"),
            Self::Host(_) => Some("headway host"),
        }
    }

    /// Why one server cannot run it, although it is a policy.
    #[must_use]
    pub fn of_other_level(&self) -> SpecError {
        SpecError::OtherLevel {
            policy: self.about().name,
            level: self.level().name(),
            command: self.live_command(),
        }
    }

    /// Where it decides.
    #[must_use]
    pub fn level(&self) -> Level {
        match self {
            Self::Server(_) | Self::Fluid => Level::Server,
            Self::Rack(_) => Level::Rack,
            Self::Host(_) => Level::Host,
        }
    }
}

/// A spec, parsed once: which policy it names, at which level, with parameters that the policy has. Whether their values
/// go with a server, a rack or a host of some shape the level checks.
#[derive(Clone, PartialEq, Debug)]
pub enum PolicySpec {
    /// Of a server.
    Server(ServerSpec),
    /// Processor sharing, which has no parameters.
    Fluid,
    /// Of a rack.
    Rack {
        /// What the policy says of itself.
        about: &'static Description,
        /// As written; the keys after `inner=NAME` are those of the servers' policy.
        spec: Spec,
        /// The servers' policy; `None` where the rack's control plane decides.
        inner: Option<ServerSpec>,
    },
    /// Of a host.
    Host {
        /// What the policy says of itself.
        about: &'static Description,
        /// As written.
        spec: Spec,
    },
}

impl PolicySpec {
    /// Finds the policy: an own name comes before another level's alias, as in [`Policy::find`].
    ///
    /// # Errors
    /// [`SpecError`] when there is no such policy or parameter.
    pub fn parse(spec: Spec) -> Result<Self, SpecError> {
        let policy = Policy::find(&spec.name).ok_or_else(|| SpecError::UnknownPolicy {
            name: spec.name.clone(),
            valid: systems::NAMES,
        })?;
        match policy {
            Policy::Server(_) => ServerSpec::parse(spec).map(Self::Server),
            Policy::Fluid => {
                policy.about().check_keys(&spec)?;
                Ok(Self::Fluid)
            }
            Policy::Rack(about) => {
                let (own, inner) = rack::systems::split(&spec);
                about.check_keys(&own)?;
                let inner = rack::systems::servers(about, inner);
                let inner = inner.map(ServerSpec::parse).transpose()?;
                Ok(Self::Rack { about, spec, inner })
            }
            Policy::Host(about) => {
                about.check_keys(&spec)?;
                Ok(Self::Host { about, spec })
            }
        }
    }

    /// The policy's own name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Server(spec) => spec.name(),
            Self::Fluid => ProcessorSharing::NAME,
            Self::Rack { about, .. } | Self::Host { about, .. } => about.name,
        }
    }

    /// The server's policy, where only one can be meant.
    ///
    /// # Errors
    /// [`SpecError`] when it is no server's, or only virtual time can follow it.
    pub fn server(&self) -> Result<&ServerSpec, SpecError> {
        match self {
            Self::Server(spec) => Ok(spec),
            Self::Fluid => Err(SpecError::OnlyVirtual {
                policy: ProcessorSharing::NAME,
            }),
            Self::Rack { about, .. } => Err(Policy::Rack(about).of_other_level()),
            Self::Host { about, .. } => Err(Policy::Host(about).of_other_level()),
        }
    }
}

/// Here, since the error for a policy of a rack or a host says so.
impl FromStr for ServerSpec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let spec: Spec = text.parse()?;
        // A server's alias may be another level's own name: the servers' policies come first.
        match Policy::find(&spec.name) {
            Some(other @ (Policy::Rack(_) | Policy::Host(_)))
                if systems::find(&spec.name).is_none() =>
            {
                Err(other.of_other_level())
            }
            _ => Self::parse(spec),
        }
    }
}

impl FromStr for PolicySpec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        Self::parse(text.parse()?)
    }
}

impl fmt::Display for PolicySpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Server(spec) => spec.fmt(f),
            Self::Fluid => f.write_str(ProcessorSharing::NAME),
            Self::Rack { spec, .. } | Self::Host { spec, .. } => spec.fmt(f),
        }
    }
}

impl From<ServerSpec> for PolicySpec {
    fn from(spec: ServerSpec) -> Self {
        Self::Server(spec)
    }
}

impl Level {
    /// Every level.
    pub const ALL: [Self; 3] = [Self::Server, Self::Rack, Self::Host];

    /// As users write it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Rack => "rack",
            Self::Host => "host",
        }
    }

    /// The own names of its policies.
    #[must_use]
    pub fn names(self) -> Vec<&'static str> {
        let all = Policy::all().filter(|policy| policy.level() == self);
        all.map(|policy| policy.about().name).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn a_name_means_one_policy_and_every_policy_is_described() {
        let all: Vec<_> = Policy::all().map(|policy| policy.about()).collect();
        for about in &all {
            let same = all.iter().filter(|other| other.name == about.name);
            assert_eq!(same.count(), 1, "{}", about.name);
            assert!(!about.summary.is_empty(), "{}", about.name);
            for param in about.params {
                let (name, key) = (about.name, param.key);
                assert!(!param.meaning.is_empty(), "{name}: {key}");
                let same = about.params.iter().filter(|other| other.key == key);
                assert_eq!(same.count(), 1, "{name}: {key}");
            }
        }
    }

    #[test]
    fn who_runs_a_policy_that_no_server_runs_is_said() {
        let refused = |text: &str| text.parse::<ServerSpec>().unwrap_err();
        for policy in Policy::all() {
            let about = policy.about();
            let Some(command) = policy.live_command() else {
                continue;
            };
            if policy.level() == Level::Server || systems::find(about.name).is_some() {
                continue;
            }
            let said = refused(about.name).to_string();
            assert!(
                said.contains(command) && said.contains(policy.level().name()),
                "{said}"
            );
            let spec: PolicySpec = about.name.parse().unwrap();
            assert_eq!(spec.server(), Err(refused(about.name)));
        }
        let said = refused("pallas,inner=darc").to_string();
        assert_eq!(
            said,
            "'pallas' is the policy of a rack, which 'headway rack' runs; choose what one server runs, such as darc"
        );
        // An alias of a server's is that server's, although an allocator is called so.
        assert!("shenango".parse::<ServerSpec>().is_ok());
        assert!(matches!(refused("palas"), SpecError::UnknownPolicy { .. }));
        assert!(matches!(refused("ps"), SpecError::OnlyVirtual { .. }));
    }

    #[test]
    fn a_spec_is_parsed_into_its_level() {
        let parsed = |text: &str| text.parse::<PolicySpec>();
        let darc = parsed("persephone,delta=3").unwrap();
        assert_eq!(darc.server().map(ServerSpec::name), Ok("darc"));
        assert_eq!(parsed("ps"), Ok(PolicySpec::Fluid));
        assert!(parsed("ps,q=5us").is_err());
        let pallas = parsed("pallas,delta=5,inner=darc,delta=3");
        assert!(matches!(pallas, Ok(PolicySpec::Rack { .. })));
        assert!(matches!(parsed("shenango"), Ok(PolicySpec::Host { .. })));
        assert!(parsed("darc,deltas=3").is_err());
        let error = parsed("racksched,inner=drac").unwrap_err();
        assert!(matches!(error, SpecError::UnknownPolicy { name, .. } if name == "drac"));
    }

    #[test]
    fn a_parsed_spec_reads_as_written() {
        for text in [
            "zygos,steal=one",
            "ps",
            "pallas,inner=darc,delta=3",
            "arachne,period=1ms",
        ] {
            assert_eq!(text.parse::<PolicySpec>().unwrap().to_string(), text);
        }
    }
}
