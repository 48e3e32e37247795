// Which functions get probes, and what is no longer true of one that has them.
#pragma once

#include "llvm/ADT/StringMap.h"
#include "llvm/IR/Module.h"

#include <string>

namespace headway {

/// Set on a function that has been through the pass: with LTO it may come by twice.
constexpr const char *ProbedAttribute = "headway-probed";
/// The annotation by which a program keeps probes out of a function (HEADWAY_NO_PROBES).
constexpr const char *NoProbesAnnotation = "headway_no_probes";

/// The same as an attribute, which the optimiser's clones and parts of the function inherit.
constexpr const char *NoProbesAttribute = "headway-no-probes";

/// Gives annotated functions their attribute, before the optimiser clones or splits them. Returns whether there are any.
bool markAnnotated(llvm::Module &M);

/// x86-64 ELF; anything else is refused with a diagnostic.
bool isSupportedTarget(llvm::Module &M);

/// The functions of the module that must not or need not be touched, each with the reason.
llvm::StringMap<std::string> functionsWithoutProbes(llvm::Module &M);

/// A function with a probe may yield: whoever calls it must not take it for one without effects.
void forgetPurity(llvm::Function &F);

} // namespace headway
