#include "loops.h"
#include "compat.h"

#include "llvm/IR/IRBuilder.h"
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

  auto *ShortHeader = cast<BasicBlock>(Map[L.Header]);
  BasicBlock *Long = BasicBlock::Create(F->getContext(), "headway.long", F, L.Header);
  BranchInst::Create(L.Header, Long);
  L.Header->replacePhiUsesWith(L.Preheader, Long);

  Instruction *Enter = L.Preheader->getTerminator();
  IRBuilder<> B(Enter);
  Value *Limit = ConstantInt::get(L.Backedges->getType(), L.Strip);
  B.CreateCondBr(B.CreateICmpULT(L.Backedges, Limit), ShortHeader, Long);
  Enter->eraseFromParent();
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

  // The outer loop's header: what is left, and how much of it this strip takes.
  auto *Outer = BasicBlock::Create(F->getContext(), "headway.strip", F, L.Header);
  auto *StripEnd = BasicBlock::Create(F->getContext(), "headway.strip.end", F);
  auto *Probe = BasicBlock::Create(F->getContext(), "headway.strip.probe", F);
  StripEnd->moveAfter(L.Latch);
  Probe->moveAfter(StripEnd);

  IRBuilder<> B(Outer);
  PHINode *Left = B.CreatePHI(CountType, 2, "headway.left");
  for (PHINode &Phi : L.Header->phis()) {
    PHINode *Carried = B.CreatePHI(Phi.getType(), 2, Phi.getName() + ".strip");
    Carried->addIncoming(Phi.getIncomingValueForBlock(From), From);
    Carried->addIncoming(Phi.getIncomingValueForBlock(L.Latch), Probe);
    Phi.setIncomingValueForBlock(From, Carried);
  }
  L.Header->replacePhiUsesWith(From, Outer);
  From->getTerminator()->replaceSuccessorWith(L.Header, Outer);
  Value *Most = ConstantInt::get(CountType, L.Strip - 1);
  Value *Iterations = B.CreateAdd(B.CreateBinaryIntrinsic(Intrinsic::umin, Left, Most), ConstantInt::get(CountType, 1));
  B.CreateBr(L.Header);

  // The inner loop's counter and its only exit by the latch.
  B.SetInsertPoint(L.Header, L.Header->begin());
  PHINode *Counter = B.CreatePHI(CountType, 2, "headway.counter");
  auto *Branch = cast<BranchInst>(L.Latch->getTerminator());
  BasicBlock *Exit = Branch->getSuccessor(Branch->getSuccessor(0) == L.Header ? 1 : 0);
  B.SetInsertPoint(Branch);
  Value *Next = B.CreateSub(Counter, ConstantInt::get(CountType, 1));
  Counter->addIncoming(Iterations, Outer);
  Counter->addIncoming(Next, L.Latch);
  Value *OldCondition = Branch->getCondition();
  BranchInst *NewBranch = B.CreateCondBr(B.CreateICmpNE(Next, ConstantInt::get(CountType, 0)), L.Header, StripEnd);
  NewBranch->setDebugLoc(Branch->getDebugLoc());
  Branch->eraseFromParent();

  // After a strip: out, or past the probe into the next.
  B.SetInsertPoint(StripEnd);
  Value *Done = B.CreateICmpULT(Left, ConstantInt::get(CountType, L.Strip));
  B.CreateCondBr(Done, Exit, Probe);
  Exit->replacePhiUsesWith(L.Latch, StripEnd);
  B.SetInsertPoint(Probe);
  Value *Rest = B.CreateSub(Left, ConstantInt::get(CountType, L.Strip));
  BranchInst *Back = B.CreateBr(Outer);
  Back->setDebugLoc(NewBranch->getDebugLoc());
  Left->addIncoming(L.Backedges, From);
  Left->addIncoming(Rest, Probe);
  return {Back, OldCondition};
}

} // namespace headway
