// Loops that mostly take a light way round and now and then a heavy one.
#pragma once

#include "llvm/Analysis/BlockFrequencyInfo.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/IR/Function.h"

namespace headway {

/// Gives the heavy ways round of one loop, those that call or that are rare and loop, a latch and a header of their own: what is
/// left is a light inner loop, which can be counted or unrolled, and the probe of the heavy way stands in the
/// outer one. `F` must be in loop-simplify and LCSSA form. Returns whether it changed the function; its analyses
/// are stale then.
bool splitHeavyWay(llvm::Function &F, llvm::LoopInfo &LI, llvm::ScalarEvolution &SE, const llvm::BlockFrequencyInfo &Frequencies);

} // namespace headway
