// The report: every probe and its reason, and the loops that need none, as JSON.
#pragma once

#include "options.h"
#include "plan.h"

#include "llvm/Support/JSON.h"

namespace headway {

class Report {
public:
  Report(const llvm::Module &M, const Options &O) : M(M), O(O) {}

  /// Notes what was planned for a function. Call it before the plan is carried out.
  void add(const llvm::Function &F, const Plan &P);
  /// A function that has no probes by request or of necessity.
  void addSkipped(const llvm::Function &F, llvm::StringRef Why);
  /// Writes the file that the options name, if they do.
  void write() const;

private:
  const llvm::Module &M;
  const Options &O;
  llvm::json::Array Functions, Skipped;
  uint64_t Probes = 0;
};

} // namespace headway
