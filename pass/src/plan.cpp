#include "plan.h"
#include "compat.h"
#include "loops.h"
#include "walk.h"

#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/Analysis/ScalarEvolutionExpressions.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace headway {

const char *text(Reason R) {
  switch (R) {
  case Reason::StraightLine: return "straight-line";
  case Reason::BeforeCall: return "before-external-call";
  case Reason::AfterCall: return "after-external-call";
  case Reason::TailCall: return "tail-call";
  case Reason::Recursion: return "recursion";
  case Reason::HeavyLoop: return "heavy-loop";
  case Reason::HeavyWay: return "heavy-way";
  case Reason::UncountedLoop: return "uncountable-loop";
  case Reason::UnrolledLoop: return "unrolled-loop";
  case Reason::CountedLoop: return "strip-mined-loop";
  case Reason::Irreducible: return "irreducible-cycle";
  }
  return "";
}

namespace {

/// The end of a strip costs a mispredicted branch; a probe a cycle or two. A body above the first
/// figure is better off with a probe each time round, and so is a strip below the second.
constexpr Cost LightBody = 100;
constexpr uint64_t LeastStrip = 16;
/// An uncountable loop is unrolled if its body costs no more, until the copies come to `EnoughUnrolled`.
constexpr Cost LightUnrolledBody = 200;
constexpr Cost EnoughUnrolled = 480;
/// A copy of a loop serves short trips only up to this size, in instructions.
constexpr unsigned MostCopied = 150;
/// Copies of the body of an uncountable loop, at most, and the instructions they may come to.
constexpr uint64_t MostUnrolled = 8;
constexpr uint64_t MostUnrolledSize = 400;
/// SCEV's budget for the trip count in front of a loop, in instructions: a loop that the optimiser
/// unrolled by four takes five, (end - begin - 4) / 4.
constexpr unsigned TripCountBudget = 6;

unsigned sizeOf(const Loop &L) {
  unsigned Size = 0;
  for (const BasicBlock *BB : L.blocks())
    Size += BB->sizeWithoutDebug();
  return Size;
}

class Planner {
public:
  explicit Planner(const PlanInput &In) : In(In) {}

  Plan run() {
    ReversePostOrderTraversal<Function *> RPO(&In.F);
    Order.assign(RPO.begin(), RPO.end());
    findRecursion();
    const auto Outermost = In.LI.getLoopsInPreorder();
    for (Loop *L : reverse(Outermost))
      decide(*L);
    const Ends E = walkRegion(In, nullptr, Order, Inner, Forced, Out);
    Residual &R = Out.Function;
    R.Probed = E.Probed;
    R.Before = E.Before;
    R.After = 0;
    R.Through.reset();
    if (E.Exit) {
      R.After = E.Exit->Since;
      R.Through = E.Exit->FromEntry;
      R.Before = std::max(R.Before, R.Through.value_or(0));
    }
    return std::move(Out);
  }

private:
  const PlanInput &In;
  Plan Out;
  std::vector<BasicBlock *> Order;
  InnerLoops Inner;
  ForcedProbes Forced;

  /// The block that every recursive call of this function has to come through: what a call does
  /// that ends the recursion needs no probe.
  void findRecursion() {
    BasicBlock *Common = nullptr;
    for (BasicBlock *BB : Order)
      for (Instruction &I : *BB)
        if (const auto *CB = dyn_cast<CallBase>(&I); CB && In.Costs.isRecursive(*CB))
          Common = Common ? In.DT.findNearestCommonDominator(Common, BB) : BB;
    if (Common)
      Forced[Common] = Reason::Recursion;
  }

  void decide(Loop &L) {
    const Ends E = walkRegion(In, &L, Order, Inner, Forced, Out);
    const Way Exit = E.Exit.value_or(Way{0, std::nullopt, false});
    if (!E.Latch || !E.Latch->FromEntry) {
      alwaysProbed(L, E, Exit);
      return;
    }
    const Cost Body = std::max<Cost>(1, *E.Latch->FromEntry);
    if (E.Latch->Due || !(quiet(L, E, Exit, Body) || strip(L, E, Exit, Body) || onHeavyWay(L, E) || unroll(L, E, Exit, Body)))
      everyIteration(L, E, Exit, Body);
  }

  /// Each way round meets a probe already.
  void alwaysProbed(Loop &L, const Ends &E, const Way &Exit) {
    const Cost Carried = E.Latch ? E.Latch->Since : 0;
    Residual R;
    R.Before = E.Before;
    R.After = std::max(Exit.Since, Exit.FromEntry ? Carried + *Exit.FromEntry : 0);
    R.Through = Exit.FromEntry;
    R.Probed = E.Probed;
    Inner[&L] = R;
  }

  /// So few iterations that the bound holds without a probe.
  bool quiet(Loop &L, const Ends &E, const Way &Exit, Cost Body) {
    const uint64_t Trips = In.SE.getSmallConstantMaxTripCount(&L);
    if (Trips == 0 || Trips > In.Half / Body)
      return false;
    const Cost Rounds = (Trips - 1) * Body;
    const Cost Leaving = std::max(Exit.Since, Exit.FromEntry.value_or(0)) + Rounds;
    if (Leaving > In.Half)
      return false;
    Residual R;
    R.Before = std::max(E.Before, Exit.FromEntry.value_or(0)) + Rounds;
    R.After = Leaving;
    R.Through = Rounds + Exit.FromEntry.value_or(0);
    R.Probed = E.Probed;
    Inner[&L] = R;
    Out.Quiet.push_back({L.getHeader(), Trips, Trips * Body});
    return true;
  }

  /// Light loops, also around others or with a rare way that is long: what is long within meets a probe of its own.
  bool strip(Loop &L, const Ends &E, const Way &Exit, Cost Body) {
    // Behind a probe inside there may be more than one way round without any.
    const Cost Carried = std::max({E.Latch->Since, Exit.Since, Body}) - Body;
    const bool Nest = !L.isInnermost() || E.Probed;
    // Short, so that the code around the loop still has most of its bound: longer ones save no time, and cost more probes there.
    const uint64_t Strip = std::min({In.Half / 2, std::max(In.Half / 8, LeastStrip * Body), In.Half - std::min(In.Half, Carried)}) / Body;
    if (Body > LightBody || Strip < LeastStrip || !countableBackedges(L, In))
      return false;
    Residual R = Residual::plain(Strip * Body);
    R.After += Carried;
    R.Before += E.Before;
    R.Probed = true;
    Inner[&L] = R;
    const bool Copied = !Nest && !isa<SCEVConstant>(countableBackedges(L, In)) && sizeOf(L) <= MostCopied;
    Out.Loops.push_back({LoopAction::StripMine, L.getHeader(), Reason::CountedLoop, Strip, Strip * Body, Copied});
    return true;
  }

  /// Not where vector registers are carried within another loop: each copy leaves with its own, and the loop around
  /// is then short of them.
  bool unroll(Loop &L, const Ends &E, const Way &, Cost Body) {
    const uint64_t BySize = MostUnrolledSize / std::max(1u, sizeOf(L));
    const uint64_t Enough = std::max<uint64_t>(2, EnoughUnrolled / Body);
    const uint64_t Copies = std::min({MostUnrolled, BySize, Enough, In.Half / 2 / Body});
    const auto *Branch = dyn_cast<BranchInst>(L.getLoopLatch() ? L.getLoopLatch()->getTerminator() : nullptr);
    if (E.Probed || Body > LightUnrolledBody || Copies < 2 || In.F.hasOptNone() || In.F.hasOptSize() || !L.isInnermost() ||
        !L.isSafeToClone() || !L.isLoopSimplifyForm() || hasRealCall(L) || !Branch ||
        (L.getParentLoop() && carriesVectorRegisters(L)))
      return false;
    Residual R = Residual::plain(Copies * Body);
    R.Probed = true;
    Inner[&L] = R;
    Out.Loops.push_back({LoopAction::Unroll, L.getHeader(), Reason::UnrolledLoop, Copies, Copies * Body, false});
    return true;
  }

  /// Where only some iterations are heavy, those have a probe of their own, as deep in the conditions as will do; the light ones are counted.
  bool onHeavyWay(Loop &L, const Ends &E) {
    if (!countableBackedges(L, In))
      return false;
    for (const BasicBlock *Block : conditionalBlocks(L)) {
      // A way that has probes within is better off with one on the back-edge, unless few iterations take it.
      if (E.Probed && !isRare(*Block, L))
        continue;
      Forced[Block] = Reason::HeavyWay;
      Plan Trial;
      const Ends T = walkRegion(In, &L, Order, Inner, Forced, Trial);
      const Way Exit = T.Exit.value_or(Way{0, std::nullopt, false});
      if (T.Latch && T.Latch->FromEntry && !T.Latch->Due && strip(L, T, Exit, std::max<Cost>(1, *T.Latch->FromEntry))) {
        Out.Points.insert(Out.Points.end(), Trial.Points.begin(), Trial.Points.end());
        return true;
      }
      Forced.erase(Block);
    }
    return false;
  }

  bool isRare(const BasicBlock &BB, const Loop &L) const {
    return In.Frequencies.getBlockFreq(&BB).getFrequency() <= In.Frequencies.getBlockFreq(L.getHeader()).getFrequency() / RareOneIn;
  }

  /// The blocks that not every iteration comes through, innermost first.
  std::vector<const BasicBlock *> conditionalBlocks(const Loop &L) const {
    std::vector<const BasicBlock *> Blocks;
    for (const BasicBlock *BB : L.blocks())
      if (In.LI.getLoopFor(BB) == &L && !In.DT.dominates(BB, L.getLoopLatch()))
        Blocks.push_back(BB);
    const auto depth = [&](const BasicBlock *BB) { return In.DT.getNode(BB)->getLevel(); };
    stable_sort(Blocks, [&](const BasicBlock *A, const BasicBlock *B) { return depth(A) > depth(B); });
    return Blocks;
  }

  void everyIteration(Loop &L, const Ends &E, const Way &Exit, Cost Body) {
    const bool Light = !E.Probed && In.Half / 2 / Body >= LeastStrip;
    Residual R;
    R.Before = std::max({E.Before, Body, Exit.FromEntry.value_or(0)});
    R.After = Exit.Since;
    R.Through = Exit.FromEntry;
    R.Probed = true;
    Inner[&L] = R;
    const Reason Why = Light ? Reason::UncountedLoop : Reason::HeavyLoop;
    Out.Loops.push_back({LoopAction::BackEdge, L.getHeader(), Why, 1, Body, false});
  }
};

} // namespace

/// How often a latch goes back that compares for equality, by the very value it compares with: the optimiser computed that in front of the
/// loop, and to expand where it came from would do so again. `Exact`, what SCEV makes of it, is the same number.
static const SCEV *byComparedValue(const Loop &L, const PlanInput &In, const SCEV *Exact) {
  const auto *Branch = cast<BranchInst>(L.getLoopLatch()->getTerminator());
  const auto *Condition = dyn_cast<ICmpInst>(Branch->getCondition());
  const auto Leaves = Branch->getSuccessor(0) == L.getHeader() ? ICmpInst::ICMP_NE : ICmpInst::ICMP_EQ;
  if (!Condition || Condition->getPredicate() != Leaves)
    return nullptr;
  for (const unsigned Side : {0u, 1u}) {
    Value *Limit = Condition->getOperand(1 - Side);
    const auto *Variable = dyn_cast<SCEVAddRecExpr>(In.SE.getSCEV(Condition->getOperand(Side)));
    if (!Variable || Variable->getLoop() != &L || !Variable->isAffine() || !L.isLoopInvariant(Limit) ||
        Variable->getType() != Exact->getType())
      continue;
    const auto *Step = dyn_cast<SCEVConstant>(Variable->getStepRecurrence(In.SE));
    if (!Step || !Step->getAPInt().abs().isPowerOf2())
      continue;
    const SCEV *Way = In.SE.getMinusSCEV(In.SE.getUnknown(Limit), Variable->getStart());
    if (Step->getAPInt().isNegative())
      Way = In.SE.getNegativeSCEV(Way);
    return In.SE.getUDivExpr(Way, In.SE.getConstant(Step->getAPInt().abs()));
  }
  return nullptr;
}

const SCEV *countableBackedges(const Loop &L, const PlanInput &In) {
  BasicBlock *Latch = L.getLoopLatch();
  if (In.F.hasOptNone() || !L.isLoopSimplifyForm() || !L.isLoopExiting(Latch) || !L.isSafeToClone())
    return nullptr;
  const auto *Branch = dyn_cast<BranchInst>(Latch->getTerminator());
  if (!Branch || !Branch->isConditional())
    return nullptr;
  const SCEV *Count = In.SE.getExitCount(&L, Latch);
  if (isa<SCEVCouldNotCompute>(Count) || !Count->getType()->isIntegerTy() || !In.SE.isLoopInvariant(Count, &L))
    return nullptr;
  Instruction *At = L.getLoopPreheader()->getTerminator();
  auto Expander = compat::makeExpander(In.SE, In.F.getParent()->getDataLayout());
  const auto isCheap = [&](const SCEV *S) {
    return Expander.isSafeToExpandAt(S, At) &&
           !Expander.isHighCostExpansion(S, const_cast<Loop *>(&L), TripCountBudget, &In.TTI, At);
  };
  if (isCheap(Count))
    return Count;
  const SCEV *Compared = byComparedValue(L, In, Count);
  return Compared && isCheap(Compared) ? Compared : nullptr;
}

Plan makePlan(const PlanInput &In) { return Planner(In).run(); }

} // namespace headway
