#include "naive.h"
#include "attributes.h"

#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

using namespace llvm;

namespace headway {
namespace {

void plainProbe(Module &M, Instruction *Point) {
  Type *Word = Type::getInt64Ty(M.getContext());
  auto *Flag = cast<GlobalVariable>(M.getOrInsertGlobal("__headway_preempt", Word));
  Flag->setThreadLocalMode(GlobalValue::InitialExecTLSModel);
  IRBuilder<> B(Point);
  Value *Asked = B.CreateICmpNE(B.CreateLoad(Word, B.CreateThreadLocalAddress(Flag)), B.getInt64(0));
  Instruction *Taken = SplitBlockAndInsertIfThen(Asked, Point->getIterator(), /*Unreachable=*/false);
  auto Slow = M.getOrInsertFunction("__headway_preempted", B.getVoidTy());
  cast<Function>(Slow.getCallee())->setCallingConv(CallingConv::PreserveAll);
  cast<Function>(Slow.getCallee())->setOnlyAccessesInaccessibleMemory();
  B.SetInsertPoint(Taken);
  B.CreateCall(Slow)->setCallingConv(CallingConv::PreserveAll);
}

} // namespace

PreservedAnalyses NaivePass::run(Module &M, ModuleAnalysisManager &MAM) {
  auto &FAM = MAM.getResult<FunctionAnalysisManagerModuleProxy>(M).getManager();
  const auto Unwanted = functionsWithoutProbes(M);
  for (Function &F : M) {
    if (F.isDeclaration() || Unwanted.contains(F.getName()))
      continue;
    SmallVector<Instruction *, 8> Points;
    for (const Loop *L : FAM.getResult<LoopAnalysis>(F).getLoopsInPreorder()) {
      SmallVector<BasicBlock *, 4> Latches;
      L->getLoopLatches(Latches);
      for (BasicBlock *Latch : Latches)
        Points.push_back(Latch->getTerminator());
    }
    for (Instruction *Point : Points)
      plainProbe(M, Point);
  }
  return PreservedAnalyses::none();
}

} // namespace headway
