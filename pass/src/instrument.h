// The pass itself: decides on and puts in the probes of a module, callees before callers.
#pragma once

#include "llvm/IR/PassManager.h"

namespace headway {

/// What becomes of a module behind the pass.
enum class Linked {
  /// The linker gets it as an object, or the linker itself optimises it (clang's -flto).
  AsObject,
  /// rustc links it with the modules of other crates, and makes what no crate exports private: thread-local words too, which assembly names.
  WithOthers,
};

class InstrumentPass : public llvm::PassInfoMixin<InstrumentPass> {
public:
  explicit InstrumentPass(Linked How = Linked::AsObject) : How(How) {}
  llvm::PreservedAnalyses run(llvm::Module &M, llvm::ModuleAnalysisManager &MAM);
  static bool isRequired() { return true; }

private:
  Linked How;
};

} // namespace headway
