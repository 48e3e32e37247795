#include "loops.h"
#include "compat.h"

#include "llvm/Analysis/ScalarEvolutionExpressions.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PatternMatch.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include "llvm/Transforms/Utils/LoopUtils.h"
#include "llvm/Transforms/Utils/ValueMapper.h"

using namespace llvm;
using namespace llvm::PatternMatch;

namespace headway {
namespace {

/// How many short trips the code generator is told to expect for each one of more than a strip: by that it decides which of the two gets the
/// registers. A hundred was best on the tuned half of the suite among 4, 30, 100, 300, 1000 and 100 000.
constexpr uint32_t ShortTripsToALongOne = 100;

/// Puts an unchanged copy of the loop beside it and a branch in front of both: trips of at most one
/// strip take the copy. Returns the block that the other trips come from.
BasicBlock *copyForShortTrips(StripLoop &L) {
  Function *F = L.Header->getParent();
  ValueToValueMapTy Map;
  SmallVector<BasicBlock *, 8> Copies;
  for (BasicBlock *BB : L.Blocks) {
    BasicBlock *Copy = CloneBasicBlock(BB, Map, ".short", F);
    Map[BB] = Copy;
    Copies.push_back(Copy);
    Copy->moveBefore(L.Header);
  }
  remapInstructionsInBlocks(Copies, Map);

  const SmallPtrSet<BasicBlock *, 8> Inside(L.Blocks.begin(), L.Blocks.end());
  for (BasicBlock *BB : L.Blocks)
    for (BasicBlock *Exit : successors(BB)) {
      if (Inside.contains(Exit))
        continue;
      for (PHINode &Phi : Exit->phis()) {
        Value *Out = Phi.getIncomingValueForBlock(BB);
        Value *Copied = Map.lookup(Out);
        Phi.addIncoming(Copied ? Copied : Out, cast<BasicBlock>(Map[BB]));
      }
    }

  // The branch in front stays as it is: a probe may be planned there.
  auto *ShortHeader = cast<BasicBlock>(Map[L.Header]);
  BasicBlock *Choice = BasicBlock::Create(F->getContext(), "headway.choice", F, ShortHeader);
  BasicBlock *Long = BasicBlock::Create(F->getContext(), "headway.long", F, L.Header);
  BranchInst::Create(L.Header, Long);
  L.Header->replacePhiUsesWith(L.Preheader, Long);
  ShortHeader->replacePhiUsesWith(L.Preheader, Choice);
  L.Preheader->getTerminator()->replaceSuccessorWith(L.Header, Choice);

  IRBuilder<> B(Choice);
  MDNode *Weights = MDBuilder(F->getContext()).createBranchWeights(ShortTripsToALongOne, 1);
  Value *IsShort = B.CreateICmpULT(L.Span, ConstantInt::get(L.Span->getType(), L.ShortSpan));
  B.CreateCondBr(IsShort, ShortHeader, Long, Weights);
  return Long;
}

/// What both forms of a strip-mined loop share: the branch that counts, and what follows a strip.
class StripMiner {
public:
  explicit StripMiner(StripLoop &L) : L(L), F(*L.Header->getParent()), CountType(L.Backedges->getType()) {
    From = L.Span ? copyForShortTrips(L) : L.Preheader;
    End = BasicBlock::Create(F.getContext(), "headway.strip.end", &F);
    Probe = BasicBlock::Create(F.getContext(), "headway.strip.probe", &F);
    IRBuilder<> B(From->getTerminator());
    First = L.Span ? constant(L.Strip) : lengthOf(B, L.Backedges);
  }

  StripMined run() {
    BasicBlock *Joint = L.AddsVectors ? stripsAround() : stripsBeside();
    End->moveAfter(L.Latch);
    Probe->moveAfter(End);
    // After a strip: out, or past the probe into the next.
    IRBuilder<> B(End);
    B.CreateCondBr(B.CreateICmpULT(Left, constant(L.Strip)), Exit, Probe);
    Exit->replacePhiUsesWith(L.Latch, End);
    B.SetInsertPoint(Probe);
    B.SetCurrentDebugLocation(Counting->getDebugLoc());
    Value *Rest = B.CreateSub(Left, constant(L.Strip));
    LengthAfterProbe->addIncoming(lengthOf(B, Rest), Probe);
    LeftAfterProbe->addIncoming(Rest, Probe);
    return {B.CreateBr(Joint), OldCondition};
  }

private:
  StripLoop &L;
  Function &F;
  Type *CountType;
  BasicBlock *From, *End, *Probe, *Exit = nullptr;
  /// The length of the first strip, and in the loop how many times the latch goes back after this strip.
  Value *First, *Left = nullptr;
  Value *OldCondition = nullptr;
  BranchInst *Counting = nullptr;
  /// Where the next strip gets its length from, and what is left.
  PHINode *LengthAfterProbe = nullptr, *LeftAfterProbe = nullptr;

  Value *constant(uint64_t N) { return ConstantInt::get(CountType, N); }

  /// How many iterations there are until the latch looks further: what is left, at most a strip.
  Value *lengthOf(IRBuilder<> &B, Value *Rest) {
    return B.CreateAdd(B.CreateBinaryIntrinsic(Intrinsic::umin, Rest, constant(L.Strip - 1)), constant(1));
  }

  /// The same, of unknown origin: the code generator would see one more variable that steps with the others, make the
  /// others of it, and have their addresses to add up each time round.
  static Value *hidden(IRBuilder<> &B, Value *Counter) {
    auto *Type = FunctionType::get(Counter->getType(), {Counter->getType()}, false);
    CallInst *Same = B.CreateCall(Type, InlineAsm::get(Type, "", "=r,0", /*hasSideEffects=*/false), {Counter});
    Same->setDoesNotAccessMemory();
    Same->setDoesNotThrow();
    return Same;
  }

  /// The latch counts down and goes on to `Next`; its way out leads past the end of a strip.
  Value *countDown(Value *Counter, BasicBlock *Next) {
    auto *Branch = cast<BranchInst>(L.Latch->getTerminator());
    Exit = Branch->getSuccessor(Branch->getSuccessor(0) == L.Header ? 1 : 0);
    OldCondition = Branch->getCondition();
    IRBuilder<> B(Branch);
    Value *After = B.CreateSub(Counter, constant(1));
    MDNode *Weights = MDBuilder(F.getContext()).createBranchWeights(std::min<uint64_t>(L.Strip, 1u << 20), 1);
    Counting = B.CreateCondBr(B.CreateICmpNE(After, constant(0)), Next, End, Weights);
    Counting->setMetadata(LLVMContext::MD_loop, Branch->getMetadata(LLVMContext::MD_loop));
    Branch->eraseFromParent();
    return After;
  }

  /// What follows a strip comes back into the one loop, whose variables so step as before.
  BasicBlock *stripsBeside() {
    auto *Back = BasicBlock::Create(F.getContext(), "headway.strip.back", &F);
    Back->moveAfter(L.Latch);
    IRBuilder<> B(L.Header, L.Header->begin());
    PHINode *Counter = B.CreatePHI(CountType, 2, "headway.counter");
    PHINode *LeftNow = B.CreatePHI(CountType, 2, "headway.left");
    Value *After = countDown(Counter, Back);
    MDNode *LoopId = Counting->getMetadata(LLVMContext::MD_loop);
    Counting->setMetadata(LLVMContext::MD_loop, nullptr);

    B.SetInsertPoint(Back);
    LengthAfterProbe = B.CreatePHI(CountType, 2);
    LengthAfterProbe->addIncoming(After, L.Latch);
    LeftAfterProbe = B.CreatePHI(CountType, 2);
    LeftAfterProbe->addIncoming(LeftNow, L.Latch);
    B.CreateBr(L.Header)->setMetadata(LLVMContext::MD_loop, LoopId);
    L.Header->replacePhiUsesWith(L.Latch, Back);
    Counter->addIncoming(First, From);
    Counter->addIncoming(LengthAfterProbe, Back);
    LeftNow->addIncoming(L.Backedges, From);
    LeftNow->addIncoming(LeftAfterProbe, Back);
    Left = LeftNow;
    return Back;
  }

  /// By what an integer variable of the header steps each time round, if that is a constant; or null.
  Value *stepOf(PHINode &Variable) const {
    Value *Next = Variable.getIncomingValueForBlock(L.Latch);
    ConstantInt *Step = nullptr;
    return match(Next, m_Add(m_Specific(&Variable), m_ConstantInt(Step))) ? Step : nullptr;
  }

  /// A loop of strips around it.
  BasicBlock *stripsAround() {
    auto *Begin = BasicBlock::Create(F.getContext(), "headway.strip", &F, L.Header);
    From->getTerminator()->replaceSuccessorWith(L.Header, Begin);
    IRBuilder<> B(Begin);
    SmallVector<std::pair<PHINode *, Value *>, 4> Stepping;
    for (PHINode &Variable : L.Header->phis()) {
      PHINode *Joined = B.CreatePHI(Variable.getType(), 2);
      Joined->addIncoming(Variable.getIncomingValueForBlock(From), From);
      Joined->addIncoming(Variable.getIncomingValueForBlock(L.Latch), Probe);
      if (Value *Step = stepOf(Variable))
        Stepping.emplace_back(Joined, Step);
      Variable.setIncomingValue(Variable.getBasicBlockIndex(From), Joined);
    }
    L.Header->replacePhiUsesWith(From, Begin);
    LengthAfterProbe = B.CreatePHI(CountType, 2, "headway.length");
    LengthAfterProbe->addIncoming(First, From);
    LeftAfterProbe = B.CreatePHI(CountType, 2, "headway.left");
    LeftAfterProbe->addIncoming(L.Backedges, From);
    // What steps evenly is where it began and so many steps on: it need not be carried through the strip for that.
    IRBuilder<> AtProbe(Probe);
    for (auto [Joined, Step] : Stepping) {
      Value *Length = AtProbe.CreateZExtOrTrunc(LengthAfterProbe, Joined->getType());
      Joined->setIncomingValueForBlock(Probe, AtProbe.CreateAdd(Joined, AtProbe.CreateMul(Length, Step)));
    }
    B.CreateBr(L.Header);

    B.SetInsertPoint(L.Header, L.Header->begin());
    PHINode *Counter = B.CreatePHI(CountType, 2, "headway.counter");
    Counter->addIncoming(LengthAfterProbe, Begin);
    IRBuilder<> AtLatch(L.Latch->getTerminator());
    Counter->addIncoming(countDown(hidden(AtLatch, Counter), L.Header), L.Latch);
    Left = LeftAfterProbe;
    return Begin;
  }
};

} // namespace

bool carriesVectorRegisters(const Loop &L) {
  return any_of(L.getHeader()->phis(),
                [](const PHINode &Phi) { return Phi.getType()->isVectorTy() || Phi.getType()->isFloatingPointTy(); });
}

/// Of integers: sums of theirs are what the code generator moves (see StripLoop::AddsVectors).
static bool carriesIntegerVectors(const Loop &L) {
  return any_of(L.getHeader()->phis(),
                [](const PHINode &Phi) { return Phi.getType()->isVectorTy() && Phi.getType()->isIntOrIntVectorTy(); });
}

bool unroll(Loop &L, unsigned Copies, LoopTools T) {
  const LoopUnrollResult Result = UnrollLoop(&L, compat::unrollOptions(Copies), &T.LI, &T.SE, &T.DT, &T.AC, &T.TTI,
                                             &T.ORE, /*PreserveLCSSA=*/true);
  return Result == LoopUnrollResult::PartiallyUnrolled;
}

/// Whether `S` is at least `C`, so that taking away `C` does not wrap. Of the distance between two addresses that a loop with one way out walks it
/// is taken for granted: a loop that wraps there walks through all of memory. Of others it is not: a limit of 0 that is counted down first means "none".
static bool isAtLeast(const SCEV *S, const SCEV *C, const Loop &L, ScalarEvolution &SE) {
  const auto isAddress = [](const SCEV *Part) { return isa<SCEVPtrToIntExpr>(Part); };
  return SE.isKnownPredicate(ICmpInst::ICMP_UGE, S, C) || SE.isLoopEntryGuardedByCond(&L, ICmpInst::ICMP_UGE, S, C) ||
         (L.getExitingBlock() && SCEVExprContains(S, isAddress));
}

/// Rewrites `Backedges < Strip` as a comparison that is cheaper to compute: X / 24 - 1 < 100 as X < 2424.
static std::pair<const SCEV *, uint64_t> spanOf(const SCEV *Backedges, uint64_t Strip, const Loop &L, ScalarEvolution &SE) {
  constexpr int64_t LargestConstant = 1 << 16;
  if (Backedges->getType()->getIntegerBitWidth() != 64)
    return {Backedges, Strip};
  const auto withoutSubtraction = [&] {
    const auto *Sum = dyn_cast<SCEVAddExpr>(Backedges);
    const auto *Added = Sum ? dyn_cast<SCEVConstant>(Sum->getOperand(0)) : nullptr;
    if (!Added || !Added->getAPInt().isNegative() || Added->getAPInt().slt(-LargestConstant))
      return;
    const SCEV *Taken = SE.getNegativeSCEV(Added), *Whole = SE.getAddExpr(Backedges, Taken);
    if (!isAtLeast(Whole, Taken, L, SE))
      return;
    Backedges = Whole;
    Strip += cast<SCEVConstant>(Taken)->getAPInt().getZExtValue();
  };
  withoutSubtraction();
  if (const auto *Division = dyn_cast<SCEVUDivExpr>(Backedges))
    if (const auto *By = dyn_cast<SCEVConstant>(Division->getRHS()); By && By->getAPInt().ule(LargestConstant)) {
      Backedges = Division->getLHS();
      Strip *= By->getAPInt().getZExtValue();
      withoutSubtraction();
    }
  return {Backedges, Strip};
}

StripLoop prepareStrip(Loop &L, const SCEV *Backedges, uint64_t Strip, bool ShortCopy, ScalarEvolution &SE) {
  BasicBlock *Preheader = L.getLoopPreheader();
  auto Expander = compat::makeExpander(SE, Preheader->getModule()->getDataLayout());
  const auto inFront = [&](const SCEV *S) { return Expander.expandCodeFor(S, S->getType(), Preheader->getTerminator()->getIterator()); };
  // A strip is never longer than the counter can hold.
  if (const unsigned Bits = Backedges->getType()->getIntegerBitWidth(); Bits < 64)
    Strip = std::min<uint64_t>(Strip, (uint64_t(1) << (Bits - 1)) - 1);
  const auto [Span, ShortSpan] = spanOf(Backedges, Strip, L, SE);
  return {Preheader, L.getHeader(), L.getLoopLatch(), L.getBlocksVector(), inFront(Backedges), Strip,
          ShortCopy ? inFront(Span) : nullptr, ShortSpan, carriesIntegerVectors(L)};
}

StripMined stripMine(StripLoop &L) { return StripMiner(L).run(); }

} // namespace headway
