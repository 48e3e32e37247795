#include "emit.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"

using namespace llvm;

namespace headway {
namespace {

/// LLVM's name for memory relative to the FS segment on x86-64, where a thread's block starts.
constexpr unsigned FsAddressSpace = 257;
/// The countdown of TSC probes in `__headway_self`.
constexpr int64_t CountdownOffset = 16;
constexpr uint32_t QuietWeight = 1u << 20;
constexpr StringRef Flag = "__headway_preempt";
constexpr uint64_t FlagBytes = 64;

/// The distance of a thread-local object from the start of the thread's block: the same in every
/// thread, hence the only part of a probe that may be kept in a register across a yield. It is read
/// from the table that the loader fills, so that it links in shared objects as well.
Value *threadOffset(IRBuilder<> &B, StringRef Symbol, Emitter::Offset Where) {
  auto *Type = FunctionType::get(B.getInt64Ty(), false);
  auto *Asm = InlineAsm::get(Type, ("movq " + Symbol + "@gottpoff(%rip), $0").str(), "=r",
                             /*hasSideEffects=*/Where == Emitter::Offset::AtProbe);
  auto *Call = B.CreateCall(Type, Asm);
  if (Where == Emitter::Offset::MayHoist)
    Call->setDoesNotAccessMemory();
  Call->setDoesNotThrow();
  return Call;
}

Value *wordAt(IRBuilder<> &B, StringRef Symbol, int64_t Offset, Emitter::Offset Where) {
  Value *Address = threadOffset(B, Symbol, Where);
  if (Offset != 0)
    Address = B.CreateAdd(Address, B.getInt64(Offset));
  return B.CreateIntToPtr(Address, PointerType::get(B.getContext(), FsAddressSpace));
}

/// Whether this code can only become part of an executable: thread-local objects that are defined there lie at a distance that
/// the linker knows.
bool isForExecutables(const Module &M) { return M.getPICLevel() == PICLevel::NotPIC || M.getPIELevel() != PIELevel::Default; }

/// The executable itself must define the flag then, even if the runtime is a shared library, whose own definition yields to this one. Weak, and in
/// a group of which one is kept: another module's, the runtime's or `libheadway_probes`' does as well.
void defineFlag(Module &M) {
  GlobalVariable *Known = M.getNamedGlobal(Flag);
  if (Known && !Known->isDeclaration())
    return;
  Type *Words = ArrayType::get(Type::getInt64Ty(M.getContext()), FlagBytes / 8);
  auto *Defined = new GlobalVariable(M, Words, /*isConstant=*/false, GlobalValue::WeakAnyLinkage, Constant::getNullValue(Words), "",
                                     /*InsertBefore=*/nullptr, GlobalVariable::InitialExecTLSModel);
  if (Known) {
    Defined->takeName(Known);
    Known->replaceAllUsesWith(Defined);
    Known->eraseFromParent();
  } else {
    Defined->setName(Flag);
  }
  Defined->setAlignment(Align(FlagBytes));
  Defined->setDSOLocal(true);
  Defined->setComdat(M.getOrInsertComdat(Flag));
  appendToCompilerUsed(M, {Defined}); // by assembly
}

/// One comparison with memory: no offset takes a register, or an instruction to load it. The flags that it sets are its result, for a branch.
Value *isAskedDirectly(IRBuilder<> &B) {
  auto *Type = FunctionType::get(B.getInt8Ty(), false);
  auto *Asm = InlineAsm::get(Type, ("cmpq $$0, %fs:" + Flag + "@tpoff").str(), "={@ccne},~{dirflag},~{fpsr},~{flags}",
                             /*hasSideEffects=*/true);
  CallInst *Call = B.CreateCall(Type, Asm);
  Call->setDoesNotThrow();
  return B.CreateICmpNE(Call, B.getInt8(0));
}

/// Volatile: it must happen each time that the program comes by.
Value *isAsked(IRBuilder<> &B, Emitter::Offset Where) {
  Value *Address = wordAt(B, Flag, 0, Where);
  Value *Asked = B.CreateAlignedLoad(B.getInt64Ty(), Address, Align(8), /*isVolatile=*/true);
  return B.CreateICmpNE(Asked, B.getInt64(0));
}

Value *ranOut(IRBuilder<> &B, Cost Weight, Emitter::Offset Where) {
  Value *Address = wordAt(B, "__headway_self", CountdownOffset, Where);
  Value *Before = B.CreateAlignedLoad(B.getInt64Ty(), Address, Align(8), /*isVolatile=*/true);
  Value *After = B.CreateSub(Before, B.getInt64(std::max<Cost>(1, Weight)));
  B.CreateAlignedStore(After, Address, Align(8), /*isVolatile=*/true);
  return B.CreateICmpSLT(After, B.getInt64(0));
}

} // namespace

Emitter::Emitter(Module &M, ProbeKind Kind) : M(M), Kind(Kind), Directly(Kind == ProbeKind::Flag && isForExecutables(M)) {}

/// Calls the function that yields. It preserves every register but r11 (and what AVX-512 added, which
/// `preserve_all` leaves to its callers), so that the way past it costs the surrounding code no register.
/// Through the procedure linkage table the first call would not: it runs the loader's resolver, which keeps
/// the registers of arguments only. So the address is read from the table that the loader fills before the
/// program starts, into r11, and by an instruction that the optimiser cannot move: `nonlazybind` would do,
/// but its load is hoisted out of loops into a register.
void Emitter::callSlowPath(IRBuilder<> &B) {
  auto *Type = FunctionType::get(B.getVoidTy(), false);
  FunctionCallee Slow = M.getOrInsertFunction(Kind == ProbeKind::Flag ? "__headway_preempted" : "__headway_tick", Type);
  auto *Load = FunctionType::get(B.getPtrTy(), {B.getPtrTy()}, false);
  auto *Asm = InlineAsm::get(Load, "movq ${1:P}@GOTPCREL(%rip), $0", "={r11},s", /*hasSideEffects=*/true);
  CallInst *Address = B.CreateCall(Load, Asm, {Slow.getCallee()});
  Address->setDoesNotThrow();
  CallInst *Call = B.CreateCall(Type, Address);
  Call->setCallingConv(CallingConv::PreserveAll);
  Call->setDoesNotThrow();
  Call->addFnAttr(Attribute::Cold);
}

void Emitter::before(Instruction *Point, Cost Weight, Offset Where) {
  IRBuilder<> B(Point);
  if (Directly)
    defineFlag(M);
  Value *Take = Kind == ProbeKind::Tsc ? ranOut(B, Weight, Where) : Directly ? isAskedDirectly(B) : isAsked(B, Where);
  MDNode *Weights = MDBuilder(M.getContext()).createBranchWeights(1, QuietWeight);
  Instruction *Cold = SplitBlockAndInsertIfThen(Take, Point->getIterator(), /*Unreachable=*/false, Weights);
  B.SetInsertPoint(Cold);
  B.SetCurrentDebugLocation(Point->getStableDebugLoc());
  callSlowPath(B);
}

bool Emitter::onEdge(BasicBlock *From, BasicBlock *To, Cost Weight, Offset Where) {
  Instruction *Branch = From->getTerminator();
  const bool Splits = isa<BranchInst, SwitchInst>(Branch) && !To->isEHPad() && count(successors(From), To) == 1;
  if (!Splits || Branch->getNumSuccessors() == 1) {
    before(Branch, Weight, Where);
    return true;
  }
  before(SplitEdge(From, To)->getTerminator(), Weight, Where);
  return false;
}

} // namespace headway
