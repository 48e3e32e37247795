#include "walk.h"
#include "tail.h"

#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

namespace headway {
namespace {

class Walk {
public:
  Walk(const PlanInput &In, const Loop *Region, const InnerLoops &Inner, const ForcedProbes &Forced, Plan &Out)
      : In(In), Region(Region), Inner(Inner), Forced(Forced), Out(Out) {
    if (Region)
      Dependent = dependentLoads(*Region);
  }

  Ends run(ArrayRef<BasicBlock *> Order) {
    const BasicBlock *Entry = Region ? Region->getHeader() : &In.F.getEntryBlock();
    Arrive[Entry] = Way{};
    for (unsigned I = 0; I < Order.size(); ++I)
      Position[Order[I]] = I;
    for (BasicBlock *BB : Order)
      visit(BB);
    return std::move(Result);
  }

private:
  const PlanInput &In;
  const Loop *Region;
  const InnerLoops &Inner;
  const ForcedProbes &Forced;
  Plan &Out;
  SmallPtrSet<const Instruction *, 8> Dependent;
  DenseMap<const BasicBlock *, Way> Arrive;
  DenseMap<const BasicBlock *, unsigned> Position;
  Ends Result;

  void visit(BasicBlock *BB) {
    const auto Found = Arrive.find(BB);
    if (Found == Arrive.end())
      return;
    const Loop *Owner = In.LI.getLoopFor(BB);
    if (Owner == Region)
      visitBlock(BB, Found->second);
    else if (Owner && Owner->getHeader() == BB && Owner->getParentLoop() == Region)
      visitLoop(*Owner, Found->second);
  }

  void visitLoop(const Loop &L, Way W) {
    const Residual &R = Inner.lookup(&L);
    if (W.Due || W.Since + R.Before > In.Half)
      probe(W, firstPointBefore(L), W.Due ? Reason::AfterCall : Reason::StraightLine);
    across(W, R);
    SmallVector<BasicBlock *, 8> Exits;
    L.getUniqueExitBlocks(Exits);
    for (BasicBlock *Exit : Exits)
      reach(L.getHeader(), Exit, W);
  }

  void visitBlock(BasicBlock *BB, Way W) {
    if (const auto Found = Forced.find(BB); Found != Forced.end())
      if (Instruction *Point = firstPointOf(*BB))
        probe(W, Point, Found->second);
    for (Instruction &I : *BB)
      if (!I.isDebugOrPseudoInst())
        step(I, W);
    const Instruction &End = *BB->getTerminator();
    if (isa<ReturnInst, ResumeInst, CleanupReturnInst>(End))
      leave(W);
    for (BasicBlock *To : successors(BB))
      reach(BB, To, W);
  }

  /// One instruction: a probe in front of it if the bound asks for one.
  void step(Instruction &I, Way &W) {
    const auto *CB = dyn_cast<CallBase>(&I);
    if (CB && isRealCall(*CB))
      return stepCall(I, *CB, W);
    const Cost C = CostModel::instruction(I, Dependent.contains(&I));
    if (C == 0)
      return;
    if (W.Due && !isTailReturn(I))
      probe(W, &I, Reason::AfterCall);
    else if (W.Since + C > In.Half)
      probe(W, &I, Reason::StraightLine);
    W.pass(C);
  }

  void stepCall(Instruction &I, const CallBase &CB, Way &W) {
    const CallCost C = In.Costs.call(CB, In.TLI);
    // What waits for a call that leaves may be half of the usual: the call itself has no bound.
    const Cost Allowed = C.Kind == CallCost::Leaves ? In.Half / 4 : In.Half;
    const Cost Ahead = C.Kind == CallCost::Leaves ? 0 : C.What.Before;
    if (W.Due)
      probe(W, &I, Reason::AfterCall);
    else if (W.Since + Ahead > Allowed)
      probe(W, &I, C.Kind == CallCost::Leaves ? Reason::BeforeCall : Reason::StraightLine);
    else if (W.FromEntry && C.Kind == CallCost::Leaves && mayGoRound(CB))
      probe(W, &I, Reason::TailCall);
    across(W, C.What);
    if (C.Kind == CallCost::Leaves) {
      W.Due = !CB.doesNotReturn();
      W.Since = std::min(W.Since, In.Half);
    }
  }

  /// A call that becomes a jump comes back to no probe behind it, and functions that call each other so go round for ever.
  /// Within a module that is recursion, which has its probes; what the C library calls returns to it, and allocators (Rust's have
  /// names that the C library does not know) call nothing back.
  bool mayGoRound(const CallBase &CB) const {
    LibFunc Library;
    return mayBecomeJump(CB) && !In.TLI.getLibFunc(CB, Library) && !CB.hasFnAttr(Attribute::AllocKind);
  }

  /// Between a call and the return of its value nothing may stand, or it is no tail call any more.
  static bool isTailReturn(const Instruction &I) { return isa<ReturnInst>(I); }

  void across(Way &W, const Residual &R) {
    if (W.FromEntry)
      Result.Before = std::max(Result.Before, *W.FromEntry + R.Before);
    if (R.Probed)
      Result.Probed = true;
    if (!R.Through) {
      W.Since = R.After;
      W.FromEntry.reset();
      return;
    }
    W.Since = std::max(W.Since + *R.Through, R.After);
    if (W.FromEntry)
      *W.FromEntry += *R.Through;
  }

  void probe(Way &W, Instruction *Point, Reason Why) {
    Out.Points.push_back({Point, Why, W.Since});
    if (W.FromEntry)
      Result.Before = std::max(Result.Before, *W.FromEntry);
    W = Way{0, std::nullopt, false};
    Result.Probed = true;
  }

  void leave(const Way &W) { meet(Result.Exit, W); }

  void reach(const BasicBlock *From, BasicBlock *To, const Way &W) {
    if (Region && To == Region->getHeader())
      return meet(Result.Latch, W);
    if (Region && !Region->contains(To))
      return leave(W);
    const bool Backwards = Position.lookup(To) <= Position.lookup(From);
    if (Backwards) {
      Out.Edges.push_back({const_cast<BasicBlock *>(From), To, Reason::Irreducible, W.Since});
      Result.Probed = true;
      if (W.FromEntry)
        Result.Before = std::max(Result.Before, *W.FromEntry);
      return;
    }
    const auto [It, New] = Arrive.try_emplace(To, W);
    if (!New)
      It->second.meet(W);
  }

  static void meet(std::optional<Way> &At, const Way &W) {
    if (At)
      At->meet(W);
    else
      At = W;
  }

  /// Where a probe in front of a loop goes. A loop that a computed goto enters has no block of its own in front: the probe stands in its header.
  static Instruction *firstPointBefore(const Loop &L) {
    BasicBlock *Preheader = L.getLoopPreheader();
    return Preheader ? Preheader->getTerminator() : firstPointOf(*L.getHeader());
  }

  /// Where a probe at the start of a block goes; null if nothing can stand there.
  static Instruction *firstPointOf(BasicBlock &BB) {
    auto It = BB.getFirstInsertionPt();
    while (It != BB.end() && isa<AllocaInst>(*It))
      ++It;
    return It == BB.end() ? nullptr : &*It;
  }
};

} // namespace

Ends walkRegion(const PlanInput &In, const Loop *Region, ArrayRef<BasicBlock *> Order, const InnerLoops &Inner,
                const ForcedProbes &Forced, Plan &Out) {
  return Walk(In, Region, Inner, Forced, Out).run(Order);
}

} // namespace headway
