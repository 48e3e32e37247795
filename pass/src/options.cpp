#include "options.h"

#include "llvm/Support/CommandLine.h"

using namespace llvm;

namespace headway {
namespace {

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

cl::opt<bool> NaiveOption("headway-naive-plain-load", cl::init(false), cl::Hidden,
                          cl::desc("Negative control of the tests: a plain load that the optimiser may hoist"));

} // namespace

const Options &options() {
  static const Options Parsed = [] {
    const uint64_t Least = 16;
    return Options{ProbeOption, std::max<uint64_t>(DistanceOption, Least), ReportOption, NaiveOption};
  }();
  return Parsed;
}

} // namespace headway
