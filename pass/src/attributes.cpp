#include "attributes.h"

#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/IR/AttributeMask.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/GlobalIFunc.h"
#include "llvm/IR/InstrTypes.h"
#if __has_include("llvm/TargetParser/Triple.h")
#include "llvm/TargetParser/Triple.h"
#endif

using namespace llvm;

namespace headway {
namespace {

void addAnnotated(Module &M, SmallPtrSetImpl<Function *> &Out) {
  const GlobalVariable *Annotations = M.getNamedGlobal("llvm.global.annotations");
  if (!Annotations || !Annotations->hasInitializer())
    return;
  for (const Use &Entry : cast<Constant>(Annotations->getInitializer())->operands()) {
    const auto *Fields = dyn_cast<ConstantStruct>(Entry.get());
    if (!Fields || Fields->getNumOperands() < 2)
      continue;
    auto *F = dyn_cast<Function>(Fields->getOperand(0)->stripPointerCasts());
    const auto *Text = dyn_cast<GlobalVariable>(Fields->getOperand(1)->stripPointerCasts());
    const auto *Data = Text && Text->hasInitializer() ? dyn_cast<ConstantDataArray>(Text->getInitializer()) : nullptr;
    if (F && Data && Data->isCString() && Data->getAsCString() == NoProbesAnnotation)
      Out.insert(F);
  }
}

} // namespace

bool markAnnotated(Module &M) {
  SmallPtrSet<Function *, 8> Annotated;
  addAnnotated(M, Annotated);
  for (Function *F : Annotated)
    F->addFnAttr(NoProbesAttribute);
  return !Annotated.empty();
}

bool isSupportedTarget(Module &M) {
  const Triple T(M.getTargetTriple());
  if (T.getArch() == Triple::x86_64 && T.isOSBinFormatELF() && !T.isX32())
    return true;
  M.getContext().emitError("headway: probes exist for x86-64 ELF only, this module is for " + T.str());
  return false;
}

StringMap<std::string> functionsWithoutProbes(Module &M) {
  markAnnotated(M); // once more: the early stage may have been left out
  StringMap<std::string> Out;
  StringSet<> Resolvers;
  for (const GlobalIFunc &I : M.ifuncs())
    if (const Function *F = I.getResolverFunction())
      Resolvers.insert(F->getName());
  for (const Function &F : M) {
    if (F.isDeclaration())
      continue;
    if (F.getName().starts_with("__headway_"))
      Out[F.getName()] = "runtime";
    else if (F.hasFnAttribute(ProbedAttribute))
      Out[F.getName()] = "has probes already";
    else if (F.hasFnAttribute(Attribute::Naked))
      Out[F.getName()] = "naked";
    else if (F.hasAvailableExternallyLinkage())
      Out[F.getName()] = "defined elsewhere";
    else if (Resolvers.contains(F.getName()))
      Out[F.getName()] = "runs before thread-local storage exists";
    else if (F.hasFnAttribute(NoProbesAttribute))
      Out[F.getName()] = "annotated";
  }
  return Out;
}

void forgetPurity(Function &F) {
  AttributeMask Mask;
  for (const Attribute::AttrKind K : {Attribute::Memory, Attribute::WillReturn, Attribute::NoSync, Attribute::NoFree,
                                      Attribute::Speculatable, Attribute::NoCallback, Attribute::NoRecurse})
    Mask.addAttribute(K);
  F.removeFnAttrs(Mask);
  for (User *U : F.users())
    if (auto *CB = dyn_cast<CallBase>(U); CB && CB->getCalledFunction() == &F)
      CB->removeFnAttrs(Mask);
}

} // namespace headway
