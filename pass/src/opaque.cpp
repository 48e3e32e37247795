#include "opaque.h"
#include "attributes.h"
#include "options.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/AttributeMask.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace headway {
namespace {

/// The thread's block, and an object's distance from it out of the table that the loader fills.
constexpr StringLiteral InitialExec = "movq %fs:0, $0\n\taddq ${1:P}@gottpoff(%rip), $0";
constexpr StringLiteral AccessorPrefix = "__headway_address_of.";

/// Functions that return what belongs to the calling thread; the C library declares some of them `const`.
constexpr StringLiteral ThreadFunctions[] = {"__errno_location", "__h_errno_location", "__tls_get_addr", "pthread_self"};

bool isThreadFunction(const Function &F) {
  return is_contained(ThreadFunctions, F.getName()) || F.getName().starts_with(AccessorPrefix) ||
         F.getName().starts_with("_ZTW");
}

void forgetPurity(AttributeMask &Mask) {
  for (const Attribute::AttrKind K : {Attribute::Memory, Attribute::WillReturn, Attribute::NoSync, Attribute::NoFree,
                                      Attribute::Speculatable, Attribute::NoCallback})
    Mask.addAttribute(K);
}

/// In a shared object the address of a thread-local object may only be known to the loader: a
/// function of its own asks for it, which the optimiser cannot see through.
Function *accessor(GlobalValue &G) {
  Module &M = *G.getParent();
  const std::string Name = (AccessorPrefix + G.getName()).str();
  if (Function *Known = M.getFunction(Name))
    return Known;
  auto *F = Function::Create(FunctionType::get(G.getType(), false), GlobalValue::InternalLinkage, Name, M);
  F->addFnAttr(Attribute::NoInline);
  F->addFnAttr(Attribute::OptimizeNone);
  F->setDoesNotThrow();
  IRBuilder<> B(BasicBlock::Create(M.getContext(), "", F));
  B.CreateRet(B.CreateThreadLocalAddress(&G));
  return F;
}

bool isSharedObject(const Module &M) {
  return M.getPICLevel() != PICLevel::NotPIC && M.getPIELevel() == PIELevel::Default;
}

/// The models in which the loader may place the object after the program has started.
bool isDynamic(const GlobalValue &G) {
  const auto Mode = G.getThreadLocalMode();
  return Mode == GlobalValue::GeneralDynamicTLSModel || Mode == GlobalValue::LocalDynamicTLSModel;
}

Value *opaqueAddress(IRBuilder<> &B, GlobalValue &G) {
  if (options().EmulatedTls || (isSharedObject(*G.getParent()) && isDynamic(G)))
    return B.CreateCall(accessor(G));
  auto *Type = FunctionType::get(G.getType(), {G.getType()}, false);
  auto *Asm = InlineAsm::get(Type, InitialExec, "=r,s,~{memory},~{dirflag},~{fpsr},~{flags}", /*hasSideEffects=*/true);
  CallInst *Call = B.CreateCall(Type, Asm, {&G});
  Call->setDoesNotThrow();
  return Call;
}

bool isOpaqueAddress(const Instruction &I) {
  const auto *CB = dyn_cast<CallInst>(&I);
  if (!CB || !CB->getType()->isPointerTy())
    return false;
  if (const auto *Asm = dyn_cast<InlineAsm>(CB->getCalledOperand()))
    return Asm->getAsmString() == InitialExec;
  const Function *Callee = CB->getCalledFunction();
  return Callee && isThreadFunction(*Callee) && CB->arg_size() == 0;
}

/// Whether the thread may change between two instructions of one block. Probes end blocks.
bool mayYieldBetween(const Instruction &First, const Instruction &Last) {
  for (auto It = std::next(First.getIterator()); &*It != &Last; ++It)
    if (const auto *CB = dyn_cast<CallBase>(&*It); CB && !CB->isInlineAsm() && !isa<IntrinsicInst>(CB) && !isOpaqueAddress(*CB))
      return true;
  return false;
}

class Refresh {
public:
  explicit Refresh(Instruction &Address) : Address(Address) {}

  void run() {
    SmallVector<Instruction *, 4> Chain{&Address};
    visitUses(Chain);
  }

private:
  Instruction &Address;

  void visitUses(SmallVectorImpl<Instruction *> &Chain) {
    Instruction *Last = Chain.back();
    for (Use &U : make_early_inc_range(Last->uses())) {
      auto *User = cast<Instruction>(U.getUser());
      if (isa<GetElementPtrInst, CastInst>(User)) {
        Chain.push_back(User);
        visitUses(Chain);
        Chain.pop_back();
        continue;
      }
      Instruction *At = User;
      if (auto *Phi = dyn_cast<PHINode>(User))
        At = Phi->getIncomingBlock(U)->getTerminator();
      if (At->getParent() != Address.getParent() || mayYieldBetween(Address, *At))
        U.set(again(Chain, At));
    }
  }

  /// The address and what was derived from it, computed anew in front of `At`.
  static Instruction *again(ArrayRef<Instruction *> Chain, Instruction *At) {
    Instruction *Previous = nullptr, *Original = nullptr;
    for (Instruction *I : Chain) {
      Instruction *Copy = I->clone();
      Copy->insertBefore(At->getIterator());
      if (Original)
        Copy->replaceUsesOfWith(Original, Previous);
      Original = I;
      Previous = Copy;
    }
    return Previous;
  }
};

} // namespace

PreservedAnalyses OpaqueAddressesPass::run(Module &M, ModuleAnalysisManager &) {
  const bool Marked = markAnnotated(M);
  AttributeMask Purity;
  forgetPurity(Purity);
  SmallVector<IntrinsicInst *, 16> Addresses;
  for (Function &F : M) {
    if (isThreadFunction(F)) {
      F.removeFnAttrs(Purity);
      for (User *U : F.users())
        if (auto *CB = dyn_cast<CallBase>(U))
          CB->removeFnAttrs(Purity);
    }
    for (BasicBlock &BB : F)
      for (Instruction &I : BB)
        if (auto *II = dyn_cast<IntrinsicInst>(&I); II && II->getIntrinsicID() == Intrinsic::threadlocal_address)
          Addresses.push_back(II);
  }
  for (IntrinsicInst *I : Addresses) {
    auto *G = dyn_cast<GlobalValue>(I->getArgOperand(0)->stripPointerCasts());
    if (!G || I->getFunction()->getName().starts_with(AccessorPrefix))
      continue;
    IRBuilder<> B(I);
    I->replaceAllUsesWith(opaqueAddress(B, *G));
    I->eraseFromParent();
  }
  return Addresses.empty() && !Marked ? PreservedAnalyses::all() : PreservedAnalyses::none();
}

void refreshAddresses(Function &F) {
  SmallVector<Instruction *, 16> Addresses;
  for (BasicBlock &BB : F)
    for (Instruction &I : BB)
      if (isOpaqueAddress(I))
        Addresses.push_back(&I);
  for (Instruction *I : Addresses)
    Refresh(*I).run();
}

} // namespace headway
