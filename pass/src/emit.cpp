#include "emit.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"

#include <array>

using namespace llvm;

namespace headway {
namespace {

/// LLVM's name for memory relative to the FS segment on x86-64, where a thread's block starts.
constexpr unsigned FsAddressSpace = 257;
/// The countdown of TSC probes in `__headway_self`.
constexpr int64_t CountdownOffset = 16;
/// The deadline of a thread that has none: the countdown runs out now and then, and no more happens.
constexpr uint64_t NoDeadline = UINT64_MAX;
constexpr uint32_t QuietWeight = 1u << 20;
constexpr StringRef Flag = "__headway_preempt";
constexpr StringRef Self = "__headway_self";
constexpr uint64_t LineBytes = 64;

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

/// The executable itself must define the words then, even if the runtime is a shared library, whose own definition yields to this one. Weak, and in
/// a group of which one is kept: another module's, the runtime's or `libheadway_probes`' does as well. `First` is the first word before the runtime writes it.
void defineLine(Module &M, StringRef Name, uint64_t First) {
  GlobalVariable *Known = M.getNamedGlobal(Name);
  if (Known && !Known->isDeclaration())
    return;
  std::array<uint64_t, LineBytes / 8> Words{First};
  Constant *Initial = ConstantDataArray::get(M.getContext(), Words);
  auto *Defined = new GlobalVariable(M, Initial->getType(), /*isConstant=*/false, GlobalValue::WeakAnyLinkage, Initial, "",
                                     /*InsertBefore=*/nullptr, GlobalVariable::InitialExecTLSModel);
  if (Known) {
    Defined->takeName(Known);
    Known->replaceAllUsesWith(Defined);
    Known->eraseFromParent();
  } else {
    Defined->setName(Name);
  }
  Defined->setAlignment(Align(LineBytes));
  Defined->setDSOLocal(true);
  Defined->setComdat(M.getOrInsertComdat(Name));
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

/// The same of a countdown: one subtraction from memory.
Value *ranOutDirectly(IRBuilder<> &B, Cost Weight) {
  auto *Type = FunctionType::get(B.getInt8Ty(), {B.getInt32Ty()}, false);
  const std::string Text = ("subq $1, %fs:" + Self + "@tpoff+" + Twine(CountdownOffset)).str();
  auto *Asm = InlineAsm::get(Type, Text, "={@ccs},e,~{dirflag},~{fpsr},~{flags}", /*hasSideEffects=*/true);
  CallInst *Call = B.CreateCall(Type, Asm, {B.getInt32(std::clamp<Cost>(Weight, 1, INT32_MAX))});
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
  Value *Address = wordAt(B, Self, CountdownOffset, Where);
  Value *Before = B.CreateAlignedLoad(B.getInt64Ty(), Address, Align(8), /*isVolatile=*/true);
  Value *After = B.CreateSub(Before, B.getInt64(std::max<Cost>(1, Weight)));
  B.CreateAlignedStore(After, Address, Align(8), /*isVolatile=*/true);
  return B.CreateICmpSLT(After, B.getInt64(0));
}

} // namespace

Emitter::Emitter(Module &M, ProbeKind Kind, bool MayDefine) : M(M), Kind(Kind), Directly(MayDefine && isForExecutables(M)) {}

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
    defineLine(M, Kind == ProbeKind::Flag ? Flag : Self, Kind == ProbeKind::Flag ? 0 : NoDeadline);
  Value *Take = Kind == ProbeKind::Flag ? (Directly ? isAskedDirectly(B) : isAsked(B, Where))
                                        : (Directly ? ranOutDirectly(B, Weight) : ranOut(B, Weight, Where));
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
