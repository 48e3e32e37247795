#include "loops.h"
#include "compat.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include "llvm/Transforms/Utils/LoopUtils.h"
#include "llvm/Transforms/Utils/ValueMapper.h"

using namespace llvm;

namespace headway {
namespace {

/// A copy of the loop serves short trips only up to this size, in instructions.
constexpr size_t MostCopied = 150;

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
  Value *Limit = ConstantInt::get(L.Backedges->getType(), L.Strip);
  B.CreateCondBr(B.CreateICmpULT(L.Backedges, Limit), ShortHeader, Long);
  return Long;
}

} // namespace

bool unroll(Loop &L, unsigned Copies, LoopTools T) {
  const LoopUnrollResult Result = UnrollLoop(&L, compat::unrollOptions(Copies), &T.LI, &T.SE, &T.DT, &T.AC, &T.TTI,
                                             &T.ORE, /*PreserveLCSSA=*/true);
  return Result == LoopUnrollResult::PartiallyUnrolled;
}

StripLoop prepareStrip(Loop &L, const SCEV *Backedges, uint64_t Strip, ScalarEvolution &SE) {
  BasicBlock *Preheader = L.getLoopPreheader();
  auto Expander = compat::makeExpander(SE, Preheader->getModule()->getDataLayout());
  Value *Count = Expander.expandCodeFor(Backedges, Backedges->getType(), Preheader->getTerminator()->getIterator());
  size_t Size = 0;
  for (BasicBlock *BB : L.blocks())
    Size += BB->sizeWithoutDebug();
  const bool Short = !isa<ConstantInt>(Count) && Size <= MostCopied;
  return {Preheader, L.getHeader(), L.getLoopLatch(), L.getBlocksVector(), Count, Strip, Short};
}

StripMined stripMine(StripLoop &L) {
  Function *F = L.Header->getParent();
  Type *CountType = L.Backedges->getType();
  // A strip is never longer than the counter can hold.
  const unsigned Bits = CountType->getIntegerBitWidth();
  if (Bits < 64)
    L.Strip = std::min<uint64_t>(L.Strip, (uint64_t(1) << (Bits - 1)) - 1);
  BasicBlock *From = L.ShortCopy ? copyForShortTrips(L) : L.Preheader;

  BasicBlock *Latch = L.Latch;
  auto *StripEnd = BasicBlock::Create(F->getContext(), "headway.strip.end", F);
  auto *Probe = BasicBlock::Create(F->getContext(), "headway.strip.probe", F);
  auto *Back = BasicBlock::Create(F->getContext(), "headway.strip.back", F);
  Back->moveAfter(Latch);
  StripEnd->moveAfter(Back);
  Probe->moveAfter(StripEnd);

  // How many iterations there are until the latch looks further: what is left, at most a strip.
  const auto strip = [&](IRBuilder<> &B, Value *Left) {
    Value *Most = ConstantInt::get(CountType, L.Strip - 1);
    return B.CreateAdd(B.CreateBinaryIntrinsic(Intrinsic::umin, Left, Most), ConstantInt::get(CountType, 1));
  };
  IRBuilder<> B(From->getTerminator());
  Value *First = L.ShortCopy ? ConstantInt::get(CountType, L.Strip) : strip(B, L.Backedges);

  B.SetInsertPoint(L.Header, L.Header->begin());
  PHINode *Counter = B.CreatePHI(CountType, 2, "headway.counter");
  PHINode *Left = B.CreatePHI(CountType, 2, "headway.left");

  // The latch counts down; its way out leads past the end of a strip.
  auto *Branch = cast<BranchInst>(Latch->getTerminator());
  BasicBlock *Exit = Branch->getSuccessor(Branch->getSuccessor(0) == L.Header ? 1 : 0);
  Value *OldCondition = Branch->getCondition();
  B.SetInsertPoint(Branch);
  Value *Next = B.CreateSub(Counter, ConstantInt::get(CountType, 1));
  MDNode *Weights = MDBuilder(F->getContext()).createBranchWeights(std::min<uint64_t>(L.Strip, 1u << 20), 1);
  BranchInst *NewBranch = B.CreateCondBr(B.CreateICmpNE(Next, ConstantInt::get(CountType, 0)), Back, StripEnd, Weights);
  NewBranch->setDebugLoc(Branch->getDebugLoc());
  MDNode *LoopId = Branch->getMetadata(LLVMContext::MD_loop);
  Branch->eraseFromParent();

  // After a strip: out, or past the probe into the next.
  B.SetInsertPoint(StripEnd);
  B.CreateCondBr(B.CreateICmpULT(Left, ConstantInt::get(CountType, L.Strip)), Exit, Probe);
  Exit->replacePhiUsesWith(Latch, StripEnd);
  B.SetInsertPoint(Probe);
  B.SetCurrentDebugLocation(NewBranch->getDebugLoc());
  Value *Rest = B.CreateSub(Left, ConstantInt::get(CountType, L.Strip));
  Value *Following = strip(B, Rest);
  BranchInst *ProbePoint = B.CreateBr(Back);

  // One way back, so that this stays one loop whose variables step as before.
  B.SetInsertPoint(Back);
  B.SetCurrentDebugLocation(DebugLoc());
  PHINode *CounterBack = B.CreatePHI(CountType, 2);
  CounterBack->addIncoming(Next, Latch);
  CounterBack->addIncoming(Following, Probe);
  PHINode *LeftBack = B.CreatePHI(CountType, 2);
  LeftBack->addIncoming(Left, Latch);
  LeftBack->addIncoming(Rest, Probe);
  B.CreateBr(L.Header)->setMetadata(LLVMContext::MD_loop, LoopId);
  L.Header->replacePhiUsesWith(Latch, Back);
  Counter->addIncoming(First, From);
  Counter->addIncoming(CounterBack, Back);
  Left->addIncoming(L.Backedges, From);
  Left->addIncoming(LeftBack, Back);
  return {ProbePoint, OldCondition};
}

} // namespace headway
