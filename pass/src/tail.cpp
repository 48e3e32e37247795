#include "tail.h"

#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

namespace headway {
namespace {

/// Blocks that only lead to the return, at most: the code generator copies the return to where each of them comes from.
constexpr unsigned MostBlocksToReturn = 4;

/// Computes nothing that would have to happen behind the call.
bool isNothing(const Instruction &I) {
  if (const auto *Intrinsic = dyn_cast<IntrinsicInst>(&I))
    return Intrinsic->isAssumeLikeIntrinsic();
  return I.isDebugOrPseudoInst() || isa<PHINode, CastInst, ExtractValueInst, InsertValueInst, FreezeInst>(I);
}

/// The end of the block that `I` stands in, if nothing happens before; else null.
const Instruction *endBehind(const Instruction *I) {
  while (!I->isTerminator()) {
    if (!isNothing(*I))
      return nullptr;
    I = I->getNextNode();
  }
  return I;
}

/// What `V` is for whoever comes into `Into` from `From`.
const Value *onEdge(const Value *V, const BasicBlock *From, const BasicBlock *Into) {
  const auto *Phi = dyn_cast_or_null<PHINode>(V ? V->stripPointerCasts() : nullptr);
  return Phi && Phi->getParent() == Into ? Phi->getIncomingValueForBlock(From) : V;
}

/// Whether `Returned` (null: nothing) may be what the call returned: itself, made of it, or what it says that it returns.
bool mayBeResult(const Value *Returned, const CallInst &Call) {
  if (!Returned || isa<UndefValue>(Returned) || Returned == &Call || Returned == Call.getReturnedArgOperand())
    return true;
  const auto *I = dyn_cast<Instruction>(Returned);
  return I && isa<CastInst, ExtractValueInst, InsertValueInst, FreezeInst>(I) &&
         any_of(I->operands(), [&](const Use &U) { return !isa<Constant>(U) && mayBeResult(U.get(), Call); });
}

/// The blocks from the call to a return, both included, if nothing happens on the way; else empty.
SmallVector<const BasicBlock *, MostBlocksToReturn> wayToReturn(const CallInst &Call) {
  SmallVector<const BasicBlock *, MostBlocksToReturn> Way{Call.getParent()};
  const Instruction *End = endBehind(Call.getNextNode());
  while (End && !isa<ReturnInst>(End)) {
    const auto *Branch = dyn_cast<BranchInst>(End);
    if (!Branch || Branch->isConditional() || Way.size() == MostBlocksToReturn)
      return {};
    Way.push_back(Branch->getSuccessor(0));
    End = endBehind(&Way.back()->front());
  }
  if (!End)
    Way.clear();
  return Way;
}

} // namespace

bool mayBecomeJump(const CallBase &CB) {
  const auto *Call = dyn_cast<CallInst>(&CB);
  if (!Call || !Call->isTailCall())
    return false;
  if (Call->isMustTailCall())
    return true;
  if (Call->getFunction()->getFnAttribute("disable-tail-calls").getValueAsBool())
    return false;
  const auto Way = wayToReturn(*Call);
  if (Way.empty())
    return false;
  const Value *Returned = cast<ReturnInst>(Way.back()->getTerminator())->getReturnValue();
  for (size_t I = Way.size() - 1; I > 0; --I)
    Returned = onEdge(Returned, Way[I - 1], Way[I]);
  return mayBeResult(Returned, *Call);
}

} // namespace headway
