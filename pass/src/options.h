// What the user may say: on the command line (`-mllvm -headway-…`), or where that cannot be (rustc)
// in the environment (HEADWAY_PROBE, HEADWAY_PROBE_DISTANCE, HEADWAY_REPORT).
#pragma once

#include <cstdint>
#include <string>

namespace headway {

enum class ProbeKind { Flag, Tsc };

struct Options {
  ProbeKind Probe;
  /// The bound on the weighted instructions between two probes.
  uint64_t Distance;
  /// Where the JSON report goes: a file, or a directory that gets a file per module. Empty: nowhere.
  std::string Report;
  /// Thread-local objects are reached by calls (`-femulated-tls`), which the module does not say: the wrapper around clang does.
  bool EmulatedTls;
  /// rustc links the module with those of other crates (`lto`, or `linker-plugin-lto`); the wrapper around rustc says so.
  bool LinksCrates;
  /// The placement of the negative control: a plain, non-volatile load at entries and back-edges,
  /// put in before the optimiser runs. It is wrong by design and only the tests ask for it.
  bool NaivePlainLoad;
  /// Likewise: thread-local addresses stay what the optimiser takes them for.
  bool NaiveAddresses;

  /// What may be un-probed on one side of a boundary (entry, return, loop, call). Two sides meet
  /// at a boundary, so half of the distance each keeps the bound.
  uint64_t half() const { return Distance / 2; }
};

/// The options, read once.
const Options &options();

} // namespace headway
