// What code costs between two probes, in weighted instructions: one is what a simple instruction
// takes; what is known to take longer weighs more.
#pragma once

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/InstrTypes.h"

#include <algorithm>
#include <cstdint>
#include <optional>

namespace headway {

using Cost = uint64_t;

/// Bytes that a block copy moves per cycle, from beyond the first cache.
constexpr Cost CopyBytesPerUnit = 8;

/// A way through a loop is rare if the optimiser expects it in at most one of so many iterations.
constexpr uint64_t RareOneIn = 3;

/// The un-probed cost of a stretch of code with one way in (a function, a loop, a call): what a
/// caller needs to know of it to keep its own bound.
struct Residual {
  /// The most from the way in to the first probe, or to the way out where there is none.
  Cost Before = 0;
  /// The most from the last probe to a way out.
  Cost After = 0;
  /// The most on a way through that meets no probe; empty if every way meets one.
  std::optional<Cost> Through = 0;

  /// Whether some way through meets a probe.
  bool Probed = false;

  static Residual plain(Cost C) { return {C, C, C, false}; }
};

/// What a call does to the bound.
struct CallCost {
  enum Kind {
    Known,     ///< A function of this module, or a library function of known cost: `What` is true.
    Leaves,    ///< Leaves instrumented code for an unknown time: a probe on both sides.
    Recursive, ///< Goes on in a function that calls this one: a probe on the way.
  } Kind;
  Residual What;
};

/// The functions of one module and what is known of them so far. Filled callees first.
class CostModel {
public:
  CostModel(Cost Half) : Half(Half) {}

  void setResidual(const llvm::Function &F, const Residual &R) { Known[&F] = R; }
  /// The functions of the strongly connected component that is looked at (with a cycle, or empty).
  void setCycle(llvm::SmallPtrSet<const llvm::Function *, 4> Functions) { Cycle = std::move(Functions); }

  /// The cost of anything but a call.
  static Cost instruction(const llvm::Instruction &I, bool LoadDependsOnLoad);
  CallCost call(const llvm::CallBase &CB, const llvm::TargetLibraryInfo &TLI) const;
  bool isRecursive(const llvm::CallBase &CB) const;

private:
  Cost Half;
  llvm::DenseMap<const llvm::Function *, Residual> Known;
  llvm::SmallPtrSet<const llvm::Function *, 4> Cycle;
};

/// A call that some stretch of time may pass in: everything but intrinsics and assembly.
bool isRealCall(const llvm::CallBase &CB);
bool hasRealCall(const llvm::Loop &L);

/// Loads inside the loop whose address comes from another load of the same loop: they wait for
/// memory one after the other, or at scattered places.
llvm::SmallPtrSet<const llvm::Instruction *, 8> dependentLoads(const llvm::Loop &L);

} // namespace headway
