// Barriers: each simdgroup runs up to its next barrier, then the next simdgroup; when all have
// come, another round goes on from there.
//
// A barrier becomes the end of a run: what lives on is kept in the simdgroup's part of the frame,
// with the number of the place. The loop over simdgroups jumps back there in the next round. So
// barriers may stand in any control flow, simdgroups may wait at different ones, and those that
// have returned take part no more. A group of one simdgroup runs a copy without any of this.
#pragma once

namespace holdfast::jit {

class Growth;
struct GroupFunction;

// Also settles the frame's size: to be called for functions without barriers too. Throws Declined
// where too much would be kept.
void cut_at_barriers(GroupFunction& group, const Growth& growth);

}  // namespace holdfast::jit
