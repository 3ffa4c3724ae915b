// The fused block engine: a group of element-wise ops as one pass over cache-sized blocks.
//
// Runs of ops that compute in float32 are chains: a few registers of elements go through all of
// them (chain.h). For the other ops a block at a time is loaded, worked on in its compute type, and
// stored. Operands that lie dense in memory are used where they are. Half types are rounded after
// each op.
#pragma once

#include "graph/op.h"

namespace holdfast::kernels::cpu {

// Gives every output of the group memory (an input's, where it may be taken over) and encodes the
// pass.
void encode_fused(Encoder& encoder, const FusedGroup& group);

}  // namespace holdfast::kernels::cpu
