// What an object says of itself to whom it is linked with: ELF notes, which a program can read of all that is loaded.
#pragma once

#include "llvm/IR/Module.h"

namespace headway {

/// Notes that the module has probes, and if it has the allocator, that this has some. Contents: docs/probes.md, "The contract between probes and the
/// runtime".
void noteProbes(llvm::Module &M);

} // namespace headway
