// The forward walk over one region (a loop's body or a function) with inner loops folded into one
// node each: the longest un-probed way to every point, and a probe wherever it would get too long.
#pragma once

#include "plan.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"

namespace headway {

/// The longest un-probed ways that reach a point of a region.
struct Way {
  /// Since the last probe, or since the region's entry.
  Cost Since = 0;
  /// Since the region's entry without any probe; empty if every way met one.
  std::optional<Cost> FromEntry = 0;
  /// Whether time spent outside instrumented code ends here: a probe is due at once.
  bool Due = false;

  void meet(const Way &Other) {
    Since = std::max(Since, Other.Since);
    if (Other.FromEntry)
      FromEntry = std::max(FromEntry.value_or(0), *Other.FromEntry);
    Due |= Other.Due;
  }
  void pass(Cost C) {
    Since += C;
    if (FromEntry)
      *FromEntry += C;
  }
};

/// What the walk found at the region's ways out.
struct Ends {
  /// From the entry to the first probe, at most.
  Cost Before = 0;
  std::optional<Way> Latch, Exit;
  bool Probed = false;
};

using InnerLoops = llvm::DenseMap<const llvm::Loop *, Residual>;

/// Blocks that begin with a probe, whatever has come before.
using ForcedProbes = llvm::SmallDenseMap<const llvm::BasicBlock *, Reason, 2>;

/// Walks `Region` (null: the whole function). `Order` is a reverse post-order of the function.
Ends walkRegion(const PlanInput &In, const llvm::Loop *Region, llvm::ArrayRef<llvm::BasicBlock *> Order,
                const InnerLoops &Inner, const ForcedProbes &Forced, Plan &Out);

} // namespace headway
