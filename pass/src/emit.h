// The instructions of a probe (see docs/probes.md, "The contract between probes and the runtime").
#pragma once

#include "cost.h"
#include "options.h"

#include "llvm/IR/BasicBlock.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instruction.h"
#include "llvm/IR/Module.h"

namespace headway {

/// Puts probes into one module.
class Emitter {
public:
  /// `MayDefine`: the thread's words may be defined in this module, if it is for an executable.
  Emitter(llvm::Module &M, ProbeKind Kind, bool MayDefine);

  /// Whether the offset of the flag may be computed in front of a loop: worth a register only where
  /// nothing in the loop takes registers away (a call) and the probe comes by often.
  enum class Offset { AtProbe, MayHoist };

  /// A probe in front of `Point`, which ends up in a block of its own. `Weight` is what a TSC probe
  /// takes from the countdown.
  void before(llvm::Instruction *Point, Cost Weight, Offset Where);
  /// A probe on the edge `From` → `To`; in front of the branch where the edge cannot be split. Returns whether it is
  /// there: then it is on every other edge from `From` as well.
  bool onEdge(llvm::BasicBlock *From, llvm::BasicBlock *To, Cost Weight, Offset Where);

private:
  llvm::Module &M;
  ProbeKind Kind;
  /// Whether probes name the place of the thread's words instead of loading it.
  const bool Directly;

  void callSlowPath(llvm::IRBuilder<> &B);
};

} // namespace headway
