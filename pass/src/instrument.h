// The pass itself: decides on and puts in the probes of a module, callees before callers.
#pragma once

#include "llvm/IR/PassManager.h"

namespace headway {

class InstrumentPass : public llvm::PassInfoMixin<InstrumentPass> {
public:
  llvm::PreservedAnalyses run(llvm::Module &M, llvm::ModuleAnalysisManager &MAM);
  static bool isRequired() { return true; }
};

} // namespace headway
