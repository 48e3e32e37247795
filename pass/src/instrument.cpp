#include "instrument.h"
#include "attributes.h"
#include "blocks.h"
#include "emit.h"
#include "loops.h"
#include "note.h"
#include "opaque.h"
#include "plan.h"
#include "report.h"
#include "split.h"

#include "llvm/ADT/SCCIterator.h"
#include "llvm/Analysis/CallGraph.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/Local.h"
#include "llvm/Transforms/Utils/LoopSimplify.h"
#include "llvm/Transforms/Utils/LoopUtils.h"

using namespace llvm;

namespace headway {
namespace {

/// Loops of a function whose heavy ways are split off, at most.
constexpr unsigned MostSplits = 16;

class Instrument {
public:
  Instrument(Module &M, FunctionAnalysisManager &FAM, Linked How)
      : M(M), FAM(FAM), Costs(options().half()), Emit(M, options().Probe, How == Linked::AsObject), Out(M, options()),
        Unwanted(functionsWithoutProbes(M)) {}

  bool run() {
    CallGraph CG(M);
    bool Changed = false;
    for (auto It = scc_begin(&CG); !It.isAtEnd(); ++It) {
      SmallVector<Function *, 4> Members;
      for (const CallGraphNode *Node : *It)
        if (Function *F = Node->getFunction(); F && !F->isDeclaration())
          Members.push_back(F);
      SmallPtrSet<const Function *, 4> Cycle;
      if (It.hasCycle())
        Cycle.insert(Members.begin(), Members.end());
      Costs.setCycle(Cycle);
      for (Function *F : Members)
        Changed |= visit(*F);
    }
    Out.write();
    if (Changed)
      noteProbes(M);
    return Changed;
  }

private:
  Module &M;
  FunctionAnalysisManager &FAM;
  CostModel Costs;
  Emitter Emit;
  Report Out;
  StringMap<std::string> Unwanted;

  bool visit(Function &F) {
    if (const auto Found = Unwanted.find(F.getName()); Found != Unwanted.end()) {
      Out.addSkipped(F, Found->second);
      return false;
    }
    if (takeApart(F, options().half()))
      FAM.invalidate(F, PreservedAnalyses::none());
    simplifyLoops(F);
    // A light way that was split off has no heavy one any more; what is left of the loop may have another.
    for (unsigned Splits = 0; Splits < MostSplits && splitHeavyWays(F); ++Splits) {
      FAM.invalidate(F, PreservedAnalyses::none());
      simplifyLoops(F);
    }
    const Plan P = plan(F);
    Out.add(F, P);
    // What another definition may replace at link time is known as little as what is elsewhere.
    if (!F.isInterposable())
      Costs.setResidual(F, P.Function);
    if (!P.empty())
      carryOut(F, P);
    if (!options().NaiveAddresses)
      refreshAddresses(F);
    F.addFnAttr(ProbedAttribute);
    FAM.invalidate(F, PreservedAnalyses::none());
    return true;
  }

  void simplifyLoops(Function &F) {
    auto &LI = FAM.getResult<LoopAnalysis>(F);
    if (LI.empty())
      return;
    auto &DT = FAM.getResult<DominatorTreeAnalysis>(F);
    auto &AC = FAM.getResult<AssumptionAnalysis>(F);
    for (Loop *L : LI) {
      simplifyLoop(L, &DT, &LI, /*SE=*/nullptr, &AC, /*MSSAU=*/nullptr, /*PreserveLCSSA=*/false);
      if (!F.hasOptNone())
        formLCSSARecursively(*L, DT, &LI, /*SE=*/nullptr);
    }
    PreservedAnalyses Kept;
    Kept.preserve<LoopAnalysis>();
    Kept.preserve<DominatorTreeAnalysis>();
    Kept.preserve<AssumptionAnalysis>();
    FAM.invalidate(F, Kept);
  }

  bool splitHeavyWays(Function &F) {
    return splitHeavyWay(F, FAM.getResult<LoopAnalysis>(F), FAM.getResult<ScalarEvolutionAnalysis>(F),
                         FAM.getResult<BlockFrequencyAnalysis>(F));
  }

  PlanInput input(Function &F) {
    return {F,
            FAM.getResult<LoopAnalysis>(F),
            FAM.getResult<ScalarEvolutionAnalysis>(F),
            FAM.getResult<DominatorTreeAnalysis>(F),
            FAM.getResult<TargetIRAnalysis>(F),
            FAM.getResult<TargetLibraryAnalysis>(F),
            Costs,
            FAM.getResult<BlockFrequencyAnalysis>(F),
            options().half()};
  }

  Plan plan(Function &F) { return makePlan(input(F)); }

  static Emitter::Offset offsetIn(const Loop *L) {
    return L && !hasRealCall(*L) ? Emitter::Offset::MayHoist : Emitter::Offset::AtProbe;
  }

  struct Marked {
    Instruction *Marker;
    Cost Covers;
    Emitter::Offset Where;
  };

  /// An instruction that is nothing and that nobody removes.
  static Instruction *sideEffect(IRBuilder<> &B) {
    return B.CreateIntrinsic(Intrinsic::sideeffect, ArrayRef<Type *>(), ArrayRef<Value *>());
  }

  /// Marks the places in straight-line code: the instruction that a plan names may be gone, as dead or
  /// replaced, once the loops beside it are transformed.
  static std::vector<Marked> mark(const Plan &P, const LoopInfo &LI) {
    std::vector<Marked> Out;
    for (const PointProbe &Point : P.Points) {
      IRBuilder<> B(Point.Before);
      const Loop *L = LI.getLoopFor(Point.Before->getParent());
      Out.push_back({sideEffect(B), Point.Covers, offsetIn(L)});
    }
    return Out;
  }

  /// Loops that need the analyses first, then those that were taken out of them, then the probes,
  /// and last the conditions that no loop asks any more.
  void carryOut(Function &F, const Plan &P) {
    const PlanInput In = input(F);
    LoopTools Tools{In.DT, In.LI, In.SE, FAM.getResult<AssumptionAnalysis>(F), In.TTI,
                    FAM.getResult<OptimizationRemarkEmitterAnalysis>(F)};
    const std::vector<Marked> Points = mark(P, In.LI);
    for (const LoopAction &A : P.Loops)
      if (A.What == LoopAction::Unroll)
        unroll(*In.LI.getLoopFor(A.Header), A.Iterations, Tools);

    std::vector<std::pair<StripLoop, Cost>> Strips;
    std::vector<EdgeProbe> EdgeProbes = P.Edges;
    for (const LoopAction &A : P.Loops) {
      Loop *L = In.LI.getLoopFor(A.Header);
      const SCEV *Count = A.What == LoopAction::StripMine ? countableBackedges(*L, In) : nullptr;
      if (Count) {
        Strips.emplace_back(prepareStrip(*L, Count, A.Iterations, A.ShortCopy, In.SE), A.Covers);
        continue;
      }
      SmallVector<BasicBlock *, 4> Latches;
      L->getLoopLatches(Latches);
      for (BasicBlock *Latch : Latches)
        EdgeProbes.push_back({Latch, A.Header, A.Why, A.Covers});
    }

    // The loops are asked before the blocks move.
    std::vector<std::pair<EdgeProbe, Emitter::Offset>> Edges;
    for (const EdgeProbe &E : EdgeProbes)
      Edges.emplace_back(E, offsetIn(In.LI.getLoopFor(E.To)));

    SmallVector<WeakTrackingVH, 8> Unused;
    for (auto &[Strip, Covers] : Strips) {
      const StripMined Done = stripMine(Strip);
      Emit.before(Done.ProbePoint, Covers, Emitter::Offset::AtProbe);
      Unused.push_back(Done.OldCondition);
    }
    SmallPtrSet<const BasicBlock *, 4> Ended;
    for (const auto &[E, Where] : Edges)
      if (!Ended.contains(E.From) && Emit.onEdge(E.From, E.To, E.Covers, Where))
        Ended.insert(E.From);
    for (const Marked &Point : Points) {
      Emit.before(Point.Marker, Point.Covers, Point.Where);
      Point.Marker->eraseFromParent();
    }
    RecursivelyDeleteTriviallyDeadInstructionsPermissive(Unused);
    for (auto &Entry : Strips)
      DeleteDeadPHIs(Entry.first.Header);
    forgetPurity(F);
  }
};

} // namespace

PreservedAnalyses InstrumentPass::run(Module &M, ModuleAnalysisManager &MAM) {
  if (!isSupportedTarget(M))
    return PreservedAnalyses::all();
  auto &FAM = MAM.getResult<FunctionAnalysisManagerModuleProxy>(M).getManager();
  return Instrument(M, FAM, How).run() ? PreservedAnalyses::none() : PreservedAnalyses::all();
}

} // namespace headway
