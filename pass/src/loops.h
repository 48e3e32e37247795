// The two transformations that let one probe cover several iterations.
#pragma once

#include "llvm/Analysis/AssumptionCache.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/OptimizationRemarkEmitter.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/IR/Dominators.h"

namespace headway {

struct LoopTools {
  llvm::DominatorTree &DT;
  llvm::LoopInfo &LI;
  llvm::ScalarEvolution &SE;
  llvm::AssumptionCache &AC;
  const llvm::TargetTransformInfo &TTI;
  llvm::OptimizationRemarkEmitter &ORE;
};

/// `Copies` iterations of an uncountable loop per back-edge, each with its exits. Returns whether it did.
bool unroll(llvm::Loop &L, unsigned Copies, LoopTools Tools);

/// A countable loop taken out of the loop analyses, so that several can be transformed after each
/// other without keeping them up to date.
struct StripLoop {
  llvm::BasicBlock *Preheader, *Header, *Latch;
  std::vector<llvm::BasicBlock *> Blocks;
  /// How often the latch branches back unless another exit is taken, computed in the preheader.
  llvm::Value *Backedges;
  uint64_t Strip;
  /// What tells trips of at most one strip, which a copy without counter serves: it is below `ShortSpan` for those. Null if there is no copy.
  llvm::Value *Span;
  uint64_t ShortSpan;
  /// Whether sums of integers are carried in vector registers. Then strips are a loop around this one: only a latch that is
  /// its own header's predecessor lets the code generator add into the carried register; elsewhere it moves each sum
  /// each time round. Without such, they stand beside it: around it, every variable would be the sum of two.
  bool AddsVectors;
};

/// Computes in front of the loop how often its latch goes back, which must be cheap and safe to expand there. `ShortCopy`: trips of at most one
/// strip are to take a copy of the loop without a counter.
StripLoop prepareStrip(llvm::Loop &L, const llvm::SCEV *Backedges, uint64_t Strip, bool ShortCopy,
                       llvm::ScalarEvolution &SE);

/// Whether the loop carries values in vector registers from one iteration to the next.
bool carriesVectorRegisters(const llvm::Loop &L);

/// Strip-mines: a register that counts down the iterations of a strip takes the place of the loop's
/// exit condition. Returns the branch, once per strip, that a probe goes in front of.
/// The old condition is left behind, unused.
struct StripMined {
  llvm::Instruction *ProbePoint;
  llvm::Value *OldCondition;
};
StripMined stripMine(StripLoop &L);

} // namespace headway
