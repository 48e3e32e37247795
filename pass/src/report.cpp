#include "report.h"

#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace headway {
namespace {

json::Object place(const Instruction *I) {
  json::Object Out;
  if (const DILocation *Where = I ? I->getDebugLoc().get() : nullptr) {
    Out["file"] = Where->getFilename().str();
    Out["line"] = Where->getLine();
    Out["column"] = Where->getColumn();
  }
  return Out;
}

/// A loop is where its first instruction with a place is.
json::Object place(const BasicBlock &Header) {
  for (const Instruction &I : Header)
    if (I.getDebugLoc())
      return place(&I);
  return {};
}

json::Object probe(json::Object Where, Reason Why, Cost Covers, uint64_t Iterations) {
  Where["reason"] = text(Why);
  Where["covers"] = static_cast<int64_t>(Covers);
  Where["iterations"] = static_cast<int64_t>(Iterations);
  return Where;
}

/// In a directory: the module's name, flattened, with a hash of its full path.
std::string fileFor(const std::string &Asked, const Module &M) {
  if (!sys::fs::is_directory(Asked))
    return Asked;
  SmallString<256> Path(Asked);
  const std::string Full = M.getSourceFileName();
  sys::path::append(Path, sys::path::filename(Full) + "-" + Twine::utohexstr(hash_value(StringRef(Full))) + ".json");
  return std::string(Path);
}

} // namespace

void Report::add(const Function &F, const Plan &P) {
  json::Array Points, Quiet;
  for (const PointProbe &At : P.Points)
    Points.push_back(probe(place(At.Before), At.Why, At.Covers, 1));
  for (const EdgeProbe &E : P.Edges)
    Points.push_back(probe(place(E.From->getTerminator()), E.Why, E.Covers, 1));
  for (const LoopAction &L : P.Loops)
    Points.push_back(probe(place(*L.Header), L.Why, L.Covers, L.Iterations));
  for (const QuietLoop &L : P.Quiet) {
    json::Object Out = place(*L.Header);
    Out["trips"] = static_cast<int64_t>(L.Trips);
    Out["covers"] = static_cast<int64_t>(L.Covers);
    Quiet.push_back(std::move(Out));
  }
  Probes += Points.size();
  json::Object Residual{{"before", static_cast<int64_t>(P.Function.Before)},
                        {"after", static_cast<int64_t>(P.Function.After)}};
  if (P.Function.Through)
    Residual["through"] = static_cast<int64_t>(*P.Function.Through);
  Functions.push_back(json::Object{{"name", F.getName()},
                                   {"probes", std::move(Points)},
                                   {"quiet_loops", std::move(Quiet)},
                                   {"unprobed", std::move(Residual)}});
}

void Report::addSkipped(const Function &F, StringRef Why) {
  Skipped.push_back(json::Object{{"name", F.getName()}, {"reason", Why}});
}

void Report::write() const {
  if (O.Report.empty())
    return;
  std::error_code Error;
  raw_fd_ostream File(fileFor(O.Report, M), Error, sys::fs::OF_Text);
  if (Error) {
    errs() << "headway: the report cannot be written to " << O.Report << ": " << Error.message() << "\n";
    return;
  }
  json::Object Root{{"version", 1},
                    {"module", M.getSourceFileName()},
                    {"probe", O.Probe == ProbeKind::Flag ? "flag" : "tsc"},
                    {"distance", static_cast<int64_t>(O.Distance)},
                    {"probes", static_cast<int64_t>(Probes)},
                    {"functions", json::Array(Functions)},
                    {"skipped", json::Array(Skipped)}};
  File << formatv("{0:2}", json::Value(std::move(Root))) << "\n";
}

} // namespace headway
