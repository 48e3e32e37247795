// Fibers migrate: after a yield the program may run in another thread, so no thread-local address
// may be kept across a probe. LLVM takes such an address for a constant of the function.
#pragma once

#include "llvm/IR/PassManager.h"

namespace headway {

/// Early, before anything is cached: makes every computation of a thread-local address one that the
/// optimiser can neither move nor merge, and that memory is not known across.
class OpaqueAddressesPass : public llvm::PassInfoMixin<OpaqueAddressesPass> {
public:
  llvm::PreservedAnalyses run(llvm::Module &M, llvm::ModuleAnalysisManager &);
  static bool isRequired() { return true; }
};

/// Late, when the probes are in place: an address whose use stands behind a probe or a call is
/// computed again right in front of that use.
void refreshAddresses(llvm::Function &F);

} // namespace headway
