#include "split.h"
#include "cost.h"

#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Analysis/BranchProbabilityInfo.h"
#include "llvm/IR/Instructions.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include "llvm/Transforms/Utils/ValueMapper.h"

using namespace llvm;

namespace headway {
namespace {

/// The latch is there twice afterwards: in instructions.
constexpr ptrdiff_t MostInLatch = 16;

bool calls(const BasicBlock &BB) {
  return any_of(BB, [](const Instruction &I) {
    const auto *CB = dyn_cast<CallBase>(&I);
    return CB && isRealCall(*CB);
  });
}

/// The blocks of the loop itself that are reached from its header without a call or an inner loop on the way.
SmallPtrSet<BasicBlock *, 16> lightBlocks(const Loop &L, const LoopInfo &LI) {
  SmallPtrSet<BasicBlock *, 16> Light;
  SmallVector<BasicBlock *, 16> Open{L.getHeader()};
  while (!Open.empty()) {
    BasicBlock *BB = Open.pop_back_val();
    if (LI.getLoopFor(BB) != &L || calls(*BB) || !Light.insert(BB).second)
      continue;
    for (BasicBlock *To : successors(BB))
      Open.push_back(To);
  }
  return Light;
}

/// Whether at most one iteration in `RareOneIn` leaves the light blocks for others of the loop, as the optimiser expects.
bool leavesRarely(const Loop &L, const SmallPtrSetImpl<BasicBlock *> &Light, const BlockFrequencyInfo &Frequencies) {
  BlockFrequency Entered(0);
  for (const BasicBlock *From : Light)
    for (const BasicBlock *To : successors(From))
      if (L.contains(To) && !Light.contains(To))
        Entered += Frequencies.getBlockFreq(From) * Frequencies.getBPI()->getEdgeProbability(From, To);
  return Entered.getFrequency() <= Frequencies.getBlockFreq(L.getHeader()).getFrequency() / RareOneIn;
}

/// The predecessors of the latch that come from a heavy way; empty unless there are light ones as well. What enters another loop and no call
/// would pay for entering this one again, so that way must be rare.
SmallVector<BasicBlock *, 4> heavyPredecessors(const Loop &L, const LoopInfo &LI, const BlockFrequencyInfo &Frequencies) {
  const auto Light = lightBlocks(L, LI);
  SmallVector<BasicBlock *, 4> Heavy;
  if (!Light.contains(L.getLoopLatch()) || !(hasRealCall(L) || leavesRarely(L, Light, Frequencies)))
    return Heavy;
  bool AnyLight = false;
  for (BasicBlock *From : predecessors(L.getLoopLatch())) {
    if (Light.contains(From))
      AnyLight = true;
    else
      Heavy.push_back(From);
  }
  if (!AnyLight)
    Heavy.clear();
  return Heavy;
}

bool mayBeSplit(const Loop &L, ScalarEvolution &SE) {
  const BasicBlock *Latch = L.getLoopLatch();
  return L.isLoopSimplifyForm() && L.isSafeToClone() && Latch != L.getHeader() &&
         isa<BranchInst>(Latch->getTerminator()) && Latch->sizeWithoutDebug() <= MostInLatch && SE.getSmallConstantMaxTripCount(&L) == 0;
}

/// The latch once more, for those who come from `From`.
BasicBlock *copyLatch(BasicBlock *Latch, BasicBlock *From) {
  ValueToValueMapTy Map;
  BasicBlock *Copy = CloneBasicBlock(Latch, Map, ".heavy", Latch->getParent());
  Copy->moveAfter(From);
  for (PHINode &Phi : make_early_inc_range(Latch->phis())) {
    auto *Cloned = cast<PHINode>(Map[&Phi]);
    Map[&Phi] = Phi.getIncomingValueForBlock(From);
    Cloned->eraseFromParent();
    Phi.removeIncomingValue(From, /*DeletePHIIfEmpty=*/false);
  }
  remapInstructionsInBlocks({Copy}, Map);
  for (BasicBlock *To : successors(Latch))
    for (PHINode &Phi : To->phis()) {
      Value *Out = Phi.getIncomingValueForBlock(Latch);
      Value *Mapped = Map.lookup(Out);
      Phi.addIncoming(Mapped ? Mapped : Out, Copy);
    }
  From->getTerminator()->replaceSuccessorWith(Latch, Copy);
  return Copy;
}

bool split(Loop &L, const LoopInfo &LI, const BlockFrequencyInfo &Frequencies) {
  const SmallVector<BasicBlock *, 4> Heavy = heavyPredecessors(L, LI, Frequencies);
  const auto branches = [](const BasicBlock *From) { return isa<BranchInst, SwitchInst>(From->getTerminator()); };
  if (Heavy.empty() || !all_of(Heavy, branches))
    return false;
  BasicBlock *Header = L.getHeader(), *Preheader = L.getLoopPreheader();
  BasicBlock *Joined = SplitBlockPredecessors(L.getLoopLatch(), Heavy, ".heavy.end");
  BasicBlock *HeavyLatch = copyLatch(L.getLoopLatch(), Joined);
  SplitBlockPredecessors(Header, {Preheader, HeavyLatch}, ".heavy.loop");
  return true;
}

} // namespace

bool splitHeavyWay(Function &F, LoopInfo &LI, ScalarEvolution &SE, const BlockFrequencyInfo &Frequencies) {
  if (F.hasOptNone() || F.hasOptSize())
    return false;
  for (Loop *L : LI.getLoopsInPreorder())
    if (mayBeSplit(*L, SE) && split(*L, LI, Frequencies))
      return true;
  return false;
}

} // namespace headway
