// The instructions of a probe (see docs/preemption.md, "The contract between probes and the runtime").
#pragma once

#include "cost.h"
#include "options.h"

#include "llvm/IR/BasicBlock.h"
#include "llvm/IR/Instruction.h"
#include "llvm/IR/Module.h"

namespace headway {

/// Puts probes into one module.
class Emitter {
public:
  Emitter(llvm::Module &M, ProbeKind Kind);

  /// A probe in front of `Point`, which ends up in a block of its own. `Weight` is what a TSC probe
  /// takes from the countdown.
  void before(llvm::Instruction *Point, Cost Weight);
  /// A probe on the edge `From` → `To`; in front of the branch where the edge cannot be split.
  void onEdge(llvm::BasicBlock *From, llvm::BasicBlock *To, Cost Weight);

private:
  llvm::Module &M;
  ProbeKind Kind;

  llvm::FunctionCallee slowPath(llvm::StringRef Name);
};

} // namespace headway
