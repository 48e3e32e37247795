#include "blocks.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

using namespace llvm;

namespace headway {
namespace {

/// Small enough for any bound to be worth a call; a power of two, so that pieces are as aligned as the whole.
constexpr uint64_t LeastPiece = 4096;

uint64_t pieceBytes(Cost Half) { return std::max(LeastPiece, bit_floor(Half / 2 * CopyBytesPerUnit)); }

bool mayBeLong(const MemIntrinsic &I, uint64_t Piece) {
  const Intrinsic::ID Operation = I.getIntrinsicID();
  if (I.isVolatile() || (Operation != Intrinsic::memset && Operation != Intrinsic::memcpy))
    return false;
  const auto *Length = dyn_cast<ConstantInt>(I.getLength());
  return !Length || Length->getValue().ugt(Piece);
}

/// What an operation works on at a time: where to, where from (null: memset), how many bytes are left.
struct Range {
  Value *To, *From, *Left;
};

PHINode *join(IRBuilder<> &B, Value *First, BasicBlock *FirstFrom) {
  PHINode *Phi = B.CreatePHI(First->getType(), 2);
  Phi->addIncoming(First, FirstFrom);
  return Phi;
}

Range joinRanges(IRBuilder<> &B, const Range &R, BasicBlock *From) {
  return {join(B, R.To, From), R.From ? join(B, R.From, From) : nullptr, join(B, R.Left, From)};
}

void addIncoming(const Range &Joined, const Range &R, BasicBlock *From) {
  cast<PHINode>(Joined.To)->addIncoming(R.To, From);
  if (Joined.From)
    cast<PHINode>(Joined.From)->addIncoming(R.From, From);
  cast<PHINode>(Joined.Left)->addIncoming(R.Left, From);
}

/// The same operation on a part. What is said of the whole's extent is not true of a part.
void setRange(MemIntrinsic &I, const Range &R) {
  I.setDest(R.To);
  if (auto *Copy = dyn_cast<MemTransferInst>(&I))
    Copy->setSource(R.From);
  I.setLength(R.Left);
  I.setMetadata(LLVMContext::MD_tbaa_struct, nullptr);
  for (unsigned Argument = 0; Argument < 2; ++Argument)
    for (const Attribute::AttrKind K : {Attribute::Dereferenceable, Attribute::DereferenceableOrNull})
      I.removeParamAttr(Argument, K);
}

/// while (left > piece) { do a piece; } do the rest.
void inPieces(MemIntrinsic &I, uint64_t Piece) {
  BasicBlock *Head = I.getParent();
  BasicBlock *Rest = SplitBlock(Head, I.getIterator());
  BasicBlock *Pieces = BasicBlock::Create(I.getContext(), "headway.piece", I.getFunction(), Rest);
  auto *Copy = dyn_cast<MemTransferInst>(&I);
  const Range Whole{I.getRawDest(), Copy ? Copy->getRawSource() : nullptr, I.getLength()};
  Value *PieceLength = ConstantInt::get(Whole.Left->getType(), Piece);
  MDNode *Rarely = MDBuilder(I.getContext()).createBranchWeights(1, 1000);

  Head->getTerminator()->eraseFromParent();
  IRBuilder<> B(Head);
  B.SetCurrentDebugLocation(I.getDebugLoc());
  B.CreateCondBr(B.CreateICmpUGT(Whole.Left, PieceLength), Pieces, Rest, Rarely);

  B.SetInsertPoint(Pieces);
  const Range Current = joinRanges(B, Whole, Head);
  auto *Part = cast<MemIntrinsic>(B.Insert(I.clone()));
  setRange(*Part, {Current.To, Current.From, PieceLength});
  const auto behind = [&](Value *P) { return P ? B.CreateGEP(B.getInt8Ty(), P, PieceLength) : nullptr; };
  const Range Next{behind(Current.To), behind(Current.From), B.CreateSub(Current.Left, PieceLength)};
  B.CreateCondBr(B.CreateICmpUGT(Next.Left, PieceLength), Pieces, Rest);
  addIncoming(Current, Next, Pieces);

  B.SetInsertPoint(Rest, Rest->begin());
  const Range Remaining = joinRanges(B, Whole, Head);
  addIncoming(Remaining, Next, Pieces);
  setRange(I, Remaining);
}

} // namespace

bool takeApart(Function &F, Cost Half) {
  const uint64_t Piece = pieceBytes(Half);
  SmallVector<MemIntrinsic *, 8> Long;
  for (BasicBlock &BB : F)
    for (Instruction &I : BB)
      if (auto *Block = dyn_cast<MemIntrinsic>(&I); Block && mayBeLong(*Block, Piece))
        Long.push_back(Block);
  for (MemIntrinsic *I : Long)
    inPieces(*I, Piece);
  return !Long.empty();
}

} // namespace headway
