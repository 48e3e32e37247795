// Where the probes of a function go, decided before anything is changed.
#pragma once

#include "cost.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/Analysis/BlockFrequencyInfo.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/IR/Dominators.h"

#include <vector>

namespace headway {

/// Why a probe stands where it stands.
enum class Reason {
  StraightLine,  ///< The code since the last probe has used up the bound.
  BeforeCall,    ///< In front of a call that leaves instrumented code.
  AfterCall,     ///< Behind such a call, or behind code that returned with the bound used up.
  TailCall,      ///< In front of a call that becomes a jump and may lead back here.
  Recursion,     ///< On the way into a function that goes on in itself.
  HeavyWay,      ///< The way through a light loop that makes some of its iterations long.
  HeavyLoop,     ///< Each iteration may be long: a probe on the back-edge.
  UncountedLoop, ///< As above, of a light loop of unknown trip count that cannot be unrolled.
  UnrolledLoop,  ///< One probe for several iterations of a loop of unknown trip count.
  CountedLoop,   ///< One probe for a strip of iterations of a countable loop.
  Irreducible,   ///< On an edge of a cycle that is no natural loop.
};
const char *text(Reason R);

/// A probe in straight-line code, in front of an instruction.
struct PointProbe {
  llvm::Instruction *Before;
  Reason Why;
  /// The un-probed cost that ends here at most.
  Cost Covers;
};

/// A probe on an edge of the control flow.
struct EdgeProbe {
  llvm::BasicBlock *From, *To;
  Reason Why;
  Cost Covers;
};

/// What becomes of a loop.
struct LoopAction {
  enum Kind { BackEdge, Unroll, StripMine } What;
  /// The header names the loop: it stays when others are transformed.
  llvm::BasicBlock *Header;
  Reason Why;
  /// Iterations between probes.
  uint64_t Iterations;
  /// The un-probed cost of that many iterations at most.
  Cost Covers;
  /// Whether the trips of at most one strip take a copy of the loop without a counter.
  bool ShortCopy;
};

/// A loop without a probe, for the report.
struct QuietLoop {
  llvm::BasicBlock *Header;
  uint64_t Trips;
  Cost Covers;
};

struct Plan {
  std::vector<PointProbe> Points;
  std::vector<EdgeProbe> Edges;
  std::vector<LoopAction> Loops;
  std::vector<QuietLoop> Quiet;
  /// What callers have to know of the function once this is done.
  Residual Function;

  bool empty() const { return Points.empty() && Edges.empty() && Loops.empty(); }
};

struct PlanInput {
  llvm::Function &F;
  llvm::LoopInfo &LI;
  llvm::ScalarEvolution &SE;
  llvm::DominatorTree &DT;
  const llvm::TargetTransformInfo &TTI;
  const llvm::TargetLibraryInfo &TLI;
  const CostModel &Costs;
  const llvm::BlockFrequencyInfo &Frequencies;
  /// The most un-probed cost on one side of a boundary.
  Cost Half;
};

/// Walks the loops from the inside out, then the function. `F` must be in loop-simplify form.
Plan makePlan(const PlanInput &In);

/// How often the latch is reached if the loop is left by it, as an expression of values known in
/// front of the loop and cheap to compute there; null if there is none.
const llvm::SCEV *countableBackedges(const llvm::Loop &L, const PlanInput &In);

} // namespace headway
