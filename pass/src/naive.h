// The negative control of the tests: a probe as a plain load of the flag at function entries and
// loop back-edges, put in before the optimiser runs, which may then hoist it out of a loop.
#pragma once

#include "llvm/IR/PassManager.h"

namespace headway {

class NaivePass : public llvm::PassInfoMixin<NaivePass> {
public:
  llvm::PreservedAnalyses run(llvm::Module &M, llvm::ModuleAnalysisManager &MAM);
  static bool isRequired() { return true; }
};

} // namespace headway
