// The fused block engine: a group of element-wise ops as one pass over cache-sized blocks.
//
// For each block: load (and widen half types), apply each step to the block in its compute type,
// round half types, store. Operands that lie dense in memory in their compute type are used where
// they are.
#pragma once

#include "graph/op.h"

namespace holdfast::cpu {

// Gives every output of the group memory (an input's, where it may be taken over) and encodes the
// pass.
void encode_fused(Encoder& encoder, const FusedGroup& group);

}  // namespace holdfast::cpu
