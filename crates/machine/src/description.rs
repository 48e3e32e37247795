//! The description of the machine in a report.

use std::fmt;
use std::fs;

use crate::topology::{Topology, TopologyError};

/// The machine in the words of a report: figures from two machines are only comparable knowing these.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct MachineDescription {
    /// The CPU's model name; the architecture where the kernel gives none.
    pub cpu: String,
    /// The kernel's release, such as `6.12.1`.
    pub kernel: String,
    /// Whether this is a virtual machine: another tenant may take its cores at any time.
    pub virtual_machine: bool,
    /// Logical cores this process may use.
    pub cores: usize,
    /// Distinct physical cores among them.
    pub physical_cores: usize,
}

impl MachineDescription {
    /// Describes this machine.
    ///
    /// # Errors
    ///
    /// When the cores cannot be read; an unknown model or kernel is described as such.
    pub fn read() -> Result<MachineDescription, TopologyError> {
        let topology = Topology::read("/sys")?;
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        Ok(MachineDescription {
            cpu: cpu_model(&cpuinfo)
                .unwrap_or(std::env::consts::ARCH)
                .to_owned(),
            kernel: kernel_release(),
            virtual_machine: is_virtual(&cpuinfo),
            cores: topology.cores().len(),
            physical_cores: topology.physical_cores(),
        })
    }
}

impl fmt::Display for MachineDescription {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.cores == 1 { "" } else { "s" };
        write!(out, "{}, {} core{plural}", self.cpu, self.cores)?;
        if self.physical_cores != self.cores {
            write!(out, " ({} physical)", self.physical_cores)?;
        }
        write!(out, ", Linux {}", self.kernel)?;
        if self.virtual_machine {
            write!(out, ", virtual machine")
        } else {
            Ok(())
        }
    }
}

/// The running kernel's release, or `unknown`.
pub fn kernel_release() -> String {
    // The system call, not /proc, which is missing in some containers.
    let release = nix::sys::utsname::uname();
    let release = release
        .as_ref()
        .ok()
        .and_then(|name| name.release().to_str());
    release.unwrap_or("unknown").trim().to_owned()
}

/// The major and minor version in a release such as `6.12.1-amd64`.
pub(crate) fn kernel_version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

fn cpu_model(cpuinfo: &str) -> Option<&str> {
    field(cpuinfo, "model name")
}

/// The `hypervisor` flag is the one bit that every hypervisor sets for its guests.
fn is_virtual(cpuinfo: &str) -> bool {
    field(cpuinfo, "flags").is_some_and(|flags| {
        flags
            .split_ascii_whitespace()
            .any(|flag| flag == "hypervisor")
    })
}

fn field<'a>(cpuinfo: &'a str, name: &str) -> Option<&'a str> {
    cpuinfo
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(key, _)| key.trim() == name)
        .map(|(_, value)| value.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    const CPUINFO: &str =
        "processor\t: 0\nmodel name\t: Some CPU @ 3 GHz\nflags\t\t: fpu hypervisor\n";

    #[test]
    fn cpuinfo_gives_the_model_and_the_hypervisor() {
        assert_eq!(cpu_model(CPUINFO), Some("Some CPU @ 3 GHz"));
        assert!(is_virtual(CPUINFO));
        assert!(!is_virtual("flags : fpu\n"));
    }

    #[test]
    fn releases_have_a_version() {
        assert_eq!(kernel_version("6.12.1-amd64"), Some((6, 12)));
        assert_eq!(kernel_version("6.18-rc1"), Some((6, 18)));
        assert_eq!(kernel_version("unknown"), None);
    }

    #[test]
    fn the_sentence_names_what_matters() {
        let description = MachineDescription {
            cpu: "Some CPU".to_owned(),
            kernel: "6.12.1".to_owned(),
            virtual_machine: true,
            cores: 8,
            physical_cores: 4,
        };
        let sentence = description.to_string();
        assert_eq!(
            sentence,
            "Some CPU, 8 cores (4 physical), Linux 6.12.1, virtual machine"
        );
    }

    #[test]
    fn the_kernel_says_its_release_itself() {
        let release = kernel_release();
        assert!(kernel_version(&release).is_some(), "{release}");
        if let Ok(file) = fs::read_to_string("/proc/sys/kernel/osrelease") {
            assert_eq!(release, file.trim());
        }
    }

    #[test]
    fn this_machine_can_be_described() {
        assert!(MachineDescription::read().unwrap().cores >= 1);
    }
}
