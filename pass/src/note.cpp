#include "note.h"
#include "attributes.h"

#include "llvm/IR/Constants.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"

using namespace llvm;

namespace headway {
namespace {

enum NoteType : uint32_t { HasProbes = 1, AllocatorHasProbes = 2 };
constexpr uint32_t ContractVersion = 1;
constexpr StringLiteral Owner = "Headway";

/// In no group: the linker drops notes only with the group they are in.
void add(Module &M, NoteType Type) {
  LLVMContext &C = M.getContext();
  const auto word = [&](uint32_t Value) { return ConstantInt::get(llvm::Type::getInt32Ty(C), Value); };
  Constant *Note = ConstantStruct::getAnon({word(Owner.size() + 1), word(sizeof(ContractVersion)), word(Type),
                                            ConstantDataArray::getString(C, Owner, /*AddNull=*/true), word(ContractVersion)});
  auto *Global = new GlobalVariable(M, Note->getType(), /*isConstant=*/true, GlobalValue::PrivateLinkage, Note, "headway.note");
  Global->setSection(".note.headway");
  Global->setAlignment(Align(4));
  appendToCompilerUsed(M, {Global});
}

bool definesAllocator(const Module &M) {
  const Function *F = M.getFunction("malloc");
  return F && !F->isDeclaration() && !F->hasLocalLinkage() && F->hasFnAttribute(ProbedAttribute);
}

} // namespace

void noteProbes(Module &M) {
  add(M, HasProbes);
  if (definesAllocator(M))
    add(M, AllocatorHasProbes);
}

} // namespace headway
