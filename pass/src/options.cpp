#include "options.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/ErrorHandling.h"

#include <cstdlib>
#include <optional>

using namespace llvm;

namespace headway {
namespace {

constexpr uint64_t LeastDistance = 16;

cl::opt<ProbeKind> ProbeOption(
    "headway-probe", cl::desc("What a probe looks at"), cl::init(ProbeKind::Flag),
    cl::values(clEnumValN(ProbeKind::Flag, "flag", "a word that the scheduler sets (default)"),
               clEnumValN(ProbeKind::Tsc, "tsc", "the time-stamp counter, each time a countdown runs out")));

cl::opt<unsigned> DistanceOption(
    "headway-probe-distance", cl::init(8000), cl::value_desc("N"),
    cl::desc("At most N (weighted) instructions between two probes, 16 at least (default 8000)"));

cl::opt<std::string> ReportOption(
    "headway-report", cl::value_desc("file or directory"),
    cl::desc("Write every probe and its reason there as JSON; a directory gets a file per module"));

cl::opt<bool> EmulatedTlsOption("headway-emulated-tls", cl::init(false), cl::Hidden, cl::desc("The code is for -femulated-tls"));

cl::opt<bool> NaiveOption("headway-naive-plain-load", cl::init(false), cl::Hidden,
                          cl::desc("Negative control of the tests: a plain load that the optimiser may hoist"));

cl::opt<bool> NaiveAddressesOption("headway-naive-addresses", cl::init(false), cl::Hidden,
                                   cl::desc("Negative control of the tests: cached thread-local addresses"));

/// The variable's value if it is set and the option is not: rustc reads its -C llvm-args before it
/// loads a plugin, so there the environment is the only way.
std::optional<std::string> fromEnvironment(const cl::Option &Option, const char *Name) {
  const char *Value = Option.getNumOccurrences() == 0 ? std::getenv(Name) : nullptr;
  return Value && *Value ? std::optional<std::string>(Value) : std::nullopt;
}

[[noreturn]] void refuse(const char *Name, const std::string &Value, const char *Expected) {
  report_fatal_error(Twine("headway: ") + Name + "=" + Value + ": expected " + Expected, /*gen_crash_diag=*/false);
}

Options parse() {
  Options O{ProbeOption, DistanceOption, ReportOption, EmulatedTlsOption, std::getenv("HEADWAY_LINKS_CRATES") != nullptr, NaiveOption, NaiveAddressesOption};
  if (const auto Probe = fromEnvironment(ProbeOption, "HEADWAY_PROBE")) {
    if (*Probe != "flag" && *Probe != "tsc")
      refuse("HEADWAY_PROBE", *Probe, "flag or tsc");
    O.Probe = *Probe == "tsc" ? ProbeKind::Tsc : ProbeKind::Flag;
  }
  if (const auto Distance = fromEnvironment(DistanceOption, "HEADWAY_PROBE_DISTANCE"))
    if (StringRef(*Distance).getAsInteger(10, O.Distance))
      refuse("HEADWAY_PROBE_DISTANCE", *Distance, "a number of instructions");
  if (const auto Report = fromEnvironment(ReportOption, "HEADWAY_REPORT"))
    O.Report = *Report;
  O.Distance = std::max(O.Distance, LeastDistance);
  return O;
}

} // namespace

const Options &options() {
  static const Options Parsed = parse();
  return Parsed;
}

} // namespace headway
