#include "cost.h"

#include "llvm/IR/DerivedTypes.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

namespace headway {
namespace {

/// Cycles of the slow instructions on current x86-64 cores, per element where they are not pipelined.
constexpr Cost DivisionCost = 16;
constexpr Cost AtomicCost = 20;
constexpr Cost FenceCost = 30;
constexpr Cost AssemblyCost = 10;
/// A load at an address that was itself loaded: a scattered access, often a miss.
constexpr Cost DependentLoadCost = 12;
/// A library function that computes a bounded while: sin, exp, pow … (20 to 100 cycles).
constexpr Cost LibraryCost = 60;
/// malloc and free on their fast path.
constexpr Cost AllocatorCost = 60;
constexpr Cost CopyStartCost = 10;
/// A block operation whose length is not known here: mostly short, and if not, taken apart (blocks.h).
constexpr Cost CopyOfUnknownLengthCost = 40;
/// Bits of vector arithmetic that count as one instruction (two 128-bit units, or one of 256).
constexpr unsigned RegisterBits = 256;

/// How many machine registers a value takes: vectors wider than a register are split.
Cost registers(const Type *T) {
  if (const auto *V = dyn_cast<FixedVectorType>(T)) {
    const unsigned Bits = V->getNumElements() * std::max(1u, V->getScalarSizeInBits());
    return std::max<Cost>(1, Bits / RegisterBits);
  }
  return 1;
}

Cost elements(const Type *T) {
  const auto *V = dyn_cast<FixedVectorType>(T);
  return V ? V->getNumElements() : 1;
}

/// Functions that look up what belongs to the thread.
bool isThreadLookup(const CallBase &CB) {
  const Function *F = CB.getCalledFunction();
  if (!F)
    return false;
  const StringRef Name = F->getName();
  return Name == "__errno_location" || Name == "__tls_get_addr" || Name == "pthread_self" ||
         Name.starts_with("__headway_address_of.") || (Name.starts_with("__ctype_") && Name.ends_with("_loc"));
}

std::optional<Cost> knownLibraryCost(const CallBase &CB, const TargetLibraryInfo &TLI) {
  if (isThreadLookup(CB))
    return CopyStartCost;
  LibFunc Func;
  if (!TLI.getLibFunc(CB, Func))
    return std::nullopt;
  switch (Func) {
  case LibFunc_malloc: case LibFunc_free: case LibFunc_Znwm: case LibFunc_Znam: case LibFunc_ZdlPv:
  case LibFunc_ZdaPv: case LibFunc_ZdlPvm: case LibFunc_ZdaPvm:
    return AllocatorCost;
  case LibFunc_memcpy: case LibFunc_memmove: case LibFunc_memset: case LibFunc_memcmp: case LibFunc_bcmp:
  case LibFunc_memchr: case LibFunc_strlen: case LibFunc_strcmp: case LibFunc_strncmp: case LibFunc_strchr:
    return CopyOfUnknownLengthCost;
  case LibFunc_abs: case LibFunc_labs:
  case LibFunc_isdigit: case LibFunc_isascii: case LibFunc_toascii:
    return CopyStartCost;
  default:
    break;
  }
  // What is left of arithmetic on floating-point numbers only is mathematics of bounded time.
  const FunctionType *FT = CB.getFunctionType();
  const bool Mathematics = FT->getReturnType()->isFloatingPointTy() && FT->getNumParams() > 0 &&
                           all_of(FT->params(), [](Type *T) { return T->isFloatingPointTy() || T->isIntegerTy(32); });
  return Mathematics ? std::optional<Cost>(LibraryCost) : std::nullopt;
}

/// Intrinsics: most are an instruction or nothing; copies take their length, mathematics a call.
std::optional<Cost> intrinsicCost(const IntrinsicInst &I) {
  if (const auto *Copy = dyn_cast<AnyMemIntrinsic>(&I)) {
    if (const auto *Length = dyn_cast<ConstantInt>(Copy->getLength()))
      return CopyStartCost + Length->getLimitedValue(1u << 30) / CopyBytesPerUnit;
    return CopyOfUnknownLengthCost;
  }
  switch (I.getIntrinsicID()) {
  case Intrinsic::sin: case Intrinsic::cos: case Intrinsic::pow: case Intrinsic::powi: case Intrinsic::exp:
  case Intrinsic::exp2: case Intrinsic::log: case Intrinsic::log2: case Intrinsic::log10:
    return LibraryCost * elements(I.getType());
  case Intrinsic::sqrt:
    return DivisionCost;
  default:
    break;
  }
  if (I.isAssumeLikeIntrinsic() || I.getType()->isVoidTy())
    return 0;
  return registers(I.getType());
}

} // namespace

bool isRealCall(const CallBase &CB) {
  if (CB.isInlineAsm())
    return false;
  const auto *I = dyn_cast<IntrinsicInst>(&CB);
  return !I || !intrinsicCost(*I);
}

Cost CostModel::instruction(const Instruction &I, bool LoadDependsOnLoad) {
  switch (I.getOpcode()) {
  case Instruction::PHI: case Instruction::BitCast: case Instruction::IntToPtr: case Instruction::PtrToInt:
  case Instruction::Alloca: case Instruction::Freeze: case Instruction::Ret: case Instruction::Unreachable:
  case Instruction::ExtractValue: case Instruction::InsertValue: case Instruction::LandingPad:
    return 0;
  case Instruction::GetElementPtr:
    return cast<GetElementPtrInst>(I).hasAllConstantIndices() ? 0 : 1;
  case Instruction::Br:
    return cast<BranchInst>(I).isConditional() ? 1 : 0;
  case Instruction::UDiv: case Instruction::SDiv: case Instruction::URem: case Instruction::SRem:
    if (isa<Constant>(I.getOperand(1)))
      return 4 * elements(I.getType());
    return DivisionCost * elements(I.getType());
  case Instruction::FDiv: case Instruction::FRem:
    return DivisionCost;
  case Instruction::AtomicRMW: case Instruction::AtomicCmpXchg:
    return AtomicCost;
  case Instruction::Fence:
    return FenceCost;
  case Instruction::Load:
    return LoadDependsOnLoad ? DependentLoadCost * elements(I.getType()) : registers(I.getType());
  case Instruction::Call: case Instruction::Invoke: case Instruction::CallBr:
    if (const auto *Intrinsic = dyn_cast<IntrinsicInst>(&I))
      return intrinsicCost(*Intrinsic).value_or(0);
    return AssemblyCost;
  default:
    return registers(I.getType());
  }
}

bool CostModel::isRecursive(const CallBase &CB) const {
  const Function *Callee = CB.getCalledFunction();
  return Callee && Cycle.contains(Callee);
}

CallCost CostModel::call(const CallBase &CB, const TargetLibraryInfo &TLI) const {
  // Whoever climbs back from a recursion has the little that each caller does after its call.
  if (isRecursive(CB))
    return {CallCost::Recursive, {0, 0, 0, true}};
  const Function *Callee = CB.getCalledFunction();
  if (Callee)
    if (const auto Found = Known.find(Callee); Found != Known.end())
      return {CallCost::Known, Found->second};
  if (const auto C = knownLibraryCost(CB, TLI))
    return {CallCost::Known, Residual::plain(*C)};
  return {CallCost::Leaves, Residual::plain(Half)};
}

bool hasRealCall(const Loop &L) {
  for (const BasicBlock *BB : L.blocks())
    for (const Instruction &I : *BB)
      if (const auto *CB = dyn_cast<CallBase>(&I); CB && isRealCall(*CB))
        return true;
  return false;
}

SmallPtrSet<const Instruction *, 8> dependentLoads(const Loop &L) {
  SmallPtrSet<const Value *, 16> FromLoad;
  SmallPtrSet<const Instruction *, 8> Dependent;
  // Twice over the body in the order of its blocks reaches the addresses that come round the loop.
  for (int Round = 0; Round < 2; ++Round)
    for (const BasicBlock *BB : L.blocks())
      for (const Instruction &I : *BB) {
        if (const auto *Load = dyn_cast<LoadInst>(&I)) {
          if (FromLoad.contains(Load->getPointerOperand()))
            Dependent.insert(Load);
          FromLoad.insert(Load);
        } else if (isa<GetElementPtrInst, CastInst, PHINode, BinaryOperator, SelectInst>(I) &&
                   !I.getType()->isFPOrFPVectorTy()) {
          if (any_of(I.operands(), [&](const Use &U) { return FromLoad.contains(U.get()); }))
            FromLoad.insert(&I);
        }
      }
  return Dependent;
}

} // namespace headway
