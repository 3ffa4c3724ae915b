// Updates that may meet the same element: the host has sorted them by where they go, those of one
// element in their order. A thread takes all that meet its element, one after the other, so that
// sums are those of the CPU.
#include "support/indexing.h"
#include "support/walk.h"
#include "support/combine.h"

struct SortedScatter {
  long distance;  // between the destinations of keys, in units
  uint count;     // of the updates
  uint first;     // of those of this launch, in their sorted order
  uint launched;
  uint mode;
  uint is_wide;  // units are blocks of 16 bytes
};

// A unit is an element, or a block of them.
template <typename T, typename Unit>
inline Unit met(uint mode, Unit old, Unit update) {
  if constexpr (is_same_v<T, Unit>) {
    return combined(mode, old, update);
  } else {
    return combined_blocks<T>(mode, old, update);
  }
}

// All updates from `rank` on that have its key meet `out`. They are read four at a time. `places`
// say where an update begins.
template <typename T, typename Unit>
inline void meet_all(device Unit& out, const device Unit* updates, const device long* keys,
                     const device uint* positions, uint rank, constant SortedScatter& scatter,
                     constant Walk<1>& places, constant JointExtent<1>* place_extents) {
  constexpr uint at_a_time = 4;
  const long key = keys[rank];
  Unit value = Unit(0);
  if (scatter.mode != update_replace) value = out;
  for (bool goes_on = true; goes_on; rank += at_a_time) {
    bool is_met[at_a_time];
    Unit taken[at_a_time];
    for (uint i = 0; i < at_a_time; ++i)
      is_met[i] = rank + i < scatter.count && keys[rank + i] == key;
    for (uint i = 0; i < at_a_time; ++i) {
      taken[i] = Unit(0);
      if (is_met[i])
        taken[i] = updates[offsets_of(positions[rank + i], places, place_extents).of[0]];
    }
    for (uint i = 0; i < at_a_time; ++i) {
      if (is_met[i]) value = met<T>(scatter.mode, value, taken[i]);
    }
    goes_on = is_met[at_a_time - 1];
  }
  out = value;
}

// Slices meet updates (views of both: `slice`). Keys say where in the array, negative ones nowhere.
template <typename T>
KERNEL(256)
scatter_sorted(device T* out, const device T* updates, const device long* keys,
               const device uint* positions, constant SortedScatter& scatter,
               constant Extent& per_update, constant Walk<1>& places,
               constant JointExtent<1>* place_extents, constant Walk<2>& slice,
               constant JointExtent<2>* slice_extents, uint position [[thread_position_in_grid]]) {
  const uint of_launch = slice.size > 1 ? divided(position, per_update) : position;
  if (of_launch >= scatter.launched) return;
  const uint rank = scatter.first + of_launch;
  const long key = keys[rank];
  // One thread per element: of its first update, or of the last where that replaces the others.
  const bool replaces = scatter.mode == update_replace;
  const bool has_neighbour = replaces ? rank + 1 < scatter.count : rank > 0;
  if (key < 0 || (has_neighbour && keys[replaces ? rank + 1 : rank - 1] == key)) return;
  const Offsets<2> at = offsets_of(position - of_launch * slice.size, slice, slice_extents);
  const long to = at.of[0] + key * scatter.distance;
  if (scatter.is_wide) {
    meet_all<T>(reinterpret_cast<device uint4*>(out)[to],
                reinterpret_cast<const device uint4*>(updates) + at.of[1], keys, positions, rank,
                scatter, places, place_extents);
  } else {
    meet_all<T>(out[to], updates + at.of[1], keys, positions, rank, scatter, places, place_extents);
  }
}

#define SCATTER(name, T) ENTRY("scatter_sorted_" #name, scatter_sorted<T>)
SCATTER(bool, bool)
FOR_NUMBERS(SCATTER)
