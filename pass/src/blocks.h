// Block operations too long to wait for: memset and memcpy of large or unknown size.
#pragma once

#include "cost.h"

namespace headway {

/// Takes the operations that may be longer than half of `Half` apart: a loop of pieces, which gets its
/// probe as any other, and the rest. `memmove` stays whole, its order depends on the overlap. Returns
/// whether it changed the function; analyses of it are stale then.
bool takeApart(llvm::Function &F, Cost Half);

} // namespace headway
