// The differences between the LLVM versions that the one source is built for (19 and 22).
#pragma once

#include "llvm/Config/llvm-config.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Transforms/Utils/ScalarEvolutionExpander.h"
#include "llvm/Transforms/Utils/UnrollLoop.h"

#if __has_include("llvm/Plugins/PassPlugin.h")
#include "llvm/Plugins/PassPlugin.h"
#else
#include "llvm/Passes/PassPlugin.h"
#endif

namespace headway::compat {

/// Calls `Add(MPM, Phase)` at the end of the optimiser. LLVM 19 does not tell the phase, and comes by once.
template <typename F> void registerOptimizerLast(llvm::PassBuilder &PB, F Add) {
#if LLVM_VERSION_MAJOR >= 20
  PB.registerOptimizerLastEPCallback(
      [Add](llvm::ModulePassManager &MPM, llvm::OptimizationLevel, llvm::ThinOrFullLTOPhase Phase) { Add(MPM, Phase); });
#else
  PB.registerOptimizerLastEPCallback(
      [Add](llvm::ModulePassManager &MPM, llvm::OptimizationLevel) { Add(MPM, llvm::ThinOrFullLTOPhase::None); });
#endif
}

inline llvm::UnrollLoopOptions unrollOptions(unsigned Count) {
  llvm::UnrollLoopOptions ULO{};
  ULO.Count = Count;
  ULO.Force = true;
  ULO.Runtime = false;
  ULO.AllowExpensiveTripCount = false;
  ULO.UnrollRemainder = false;
  ULO.ForgetAllSCEV = false;
  return ULO;
}

#if LLVM_VERSION_MAJOR >= 21
using Expander = llvm::SCEVExpander;
inline llvm::SCEVExpander makeExpander(llvm::ScalarEvolution &SE, const llvm::DataLayout &) {
  return llvm::SCEVExpander(SE, "headway");
}
#else
inline llvm::SCEVExpander makeExpander(llvm::ScalarEvolution &SE, const llvm::DataLayout &DL) {
  return llvm::SCEVExpander(SE, DL, "headway");
}
#endif

} // namespace headway::compat
