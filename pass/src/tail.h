// Calls in the last place of a function: the code generator may make jumps of them, so that nothing stands behind.
#pragma once

#include "llvm/IR/InstrTypes.h"

namespace headway {

/// Whether the call may become a jump: it is marked for it, and what it returns is returned at once.
bool mayBecomeJump(const llvm::CallBase &CB);

} // namespace headway
